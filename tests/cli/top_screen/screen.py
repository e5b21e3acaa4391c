"""Run a program on a terminal of our own and check what it draws there."""
import fcntl, os, pty, re, select, signal, struct, sys, termios


def size(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def wait_for(pattern, what):
    """All up to `pattern`, or the end with a line that says what is missing."""
    global seen
    while not (found := re.search(pattern, seen, re.S)):
        if not select.select([master], [], [], 30)[0]:
            sys.exit(f"never seen: {what}\n{seen!r}")
        try:
            got = os.read(master, 65536).decode(errors="replace")
        except OSError:
            got = ""
        if not got:
            sys.exit(f"ended before: {what}\n{seen!r}")
        seen += got
    head, seen = seen[: found.end()], seen[found.end():]
    print("seen:", what)
    return head


master, slave = pty.openpty()
seen = ""
size(24, 80)
before = termios.tcgetattr(slave)
child = os.fork()
if not child:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(slave, fd)
    os.execvp(sys.argv[1], sys.argv[1:])
wait_for(r"\x1b\[\?1049h\x1b\[\?25l", "the alternate screen, no cursor")
wait_for(r"\x1b\[H.* 40213 .* 4711 .*\x1b\[J", "a picture, by memory")
assert not termios.tcgetattr(slave)[3] & (termios.ECHO | termios.ICANON)
os.write(master, b"p")
wait_for(r"\x1b\[H.* 4711 .* 40213 .*\x1b\[J", "the same by PID, without waiting for the next round")
size(6, 80)
wait_for(r"\x1b\[H.*more lines\x1b\[J", "a small window, and how much is missing")
os.kill(child, signal.SIGTSTP)
wait_for(r"\x1b\[\?25h\x1b\[\?1049l", "the terminal back for the shell")
os.waitpid(child, os.WUNTRACED)
assert termios.tcgetattr(slave)[3] == before[3]
os.kill(child, signal.SIGCONT)
wait_for(r"\x1b\[\?1049h.*\x1b\[H.*\x1b\[J", "the picture again")
os.write(master, b"q")
wait_for(r"\x1b\[\?25h\x1b\[\?1049l", "the terminal back at the end")
print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert termios.tcgetattr(slave)[3] == before[3]
