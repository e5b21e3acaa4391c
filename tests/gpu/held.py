"""What CUPTI has of a program that runs under sonde and has not handed over: the records in the
buffers that it holds, and what lies behind the first that is none.

    held.py PID-OF-SONDE FILE.gz    prints a line a record; the buffers themselves to FILE.gz

The layout is that of src/wire/segment.h and cupti_abi.h; a buffer that was taken is all zero.
"""
import gzip
import os
import struct
import sys

HEAD = struct.Struct("<QII8QII")
MAGIC = 0x31676573646E6F73
# Of CUDA 13.0.
BYTES = {1: 96, 2: 88, 4: 40, 5: 40, 8: 184, 9: 32, 10: 216, 17: 56, 22: 96, 25: 104, 49: 128, 50: 80, 51: 56, 52: 72}
NAMES = {1: "memcpy", 4: "driver call", 5: "runtime call", 8: "device", 9: "context", 10: "kernel", 17: "overhead",
         49: "memory"}


def spool_of(pid):
    for fd in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, fd)
        try:
            if os.readlink(path).startswith("/memfd:") and os.stat(path).st_size > 1 << 20:
                yield path
        except OSError:
            pass # closed meanwhile


def segments_of(file):
    """Where a segment begins: its magic lies at the begin of a page."""
    at, end = 0, os.fstat(file.fileno()).st_size
    while at < end:
        try:
            at = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:
            return
        file.seek(at)
        head = HEAD.unpack(file.read(HEAD.size).ljust(HEAD.size, b"\0"))
        if head[0] == MAGIC:
            yield at, head
            at += head[3]
        else:
            at = at // 4096 * 4096 + 4096


def tell(buffer):
    at = 0
    while at + 8 <= len(buffer):
        kind = struct.unpack_from("<I", buffer, at)[0]
        is_open, kind = kind >> 31, kind & 0x7FFFFFFF
        if kind not in BYTES:
            behind = buffer[at:]
            zeros = len(behind) - len(behind.lstrip(b"\0"))
            if zeros == len(behind):
                print("    %6d  all behind is zero" % at)
                return
            zeros &= ~7
            print("    %6d  kind %d; then, after %d zero bytes:" % (at, kind, zeros))
            for row in range(at + zeros, min(at + zeros + 512, len(buffer)), 32):
                print("    %6d  %s" % (row, " ".join("%016x" % word for word in struct.unpack_from("<4Q", buffer, row))))
            return
        line = "    %6d  %-12s%s" % (at, NAMES.get(kind, kind), " not ended" * is_open)
        if kind in (4, 5):
            cbid, start, end, _pid, tid, correlation = struct.unpack_from("<IQQIII", buffer, at + 4)
            line += " cbid %d, %d to %d, thread %d, correlation %d" % (cbid, start, end, tid, correlation)
        elif kind == 10:
            start, end = struct.unpack_from("<QQ", buffer, at + 16)
            line += " %d to %d, correlation %d" % (start, end, struct.unpack_from("<I", buffer, at + 92)[0])
        print(line)
        at += BYTES[kind]


def main():
    found = 0
    with gzip.open(sys.argv[2], "wb", 1) as kept:
        for path in spool_of(int(sys.argv[1])):
            with open(path, "rb", buffering=0) as file:
                for where, head in segments_of(file):
                    buffers_at, buffer_bytes, count = head[8], head[9], head[11]
                    for i in range(min(count, 256)):
                        file.seek(where + buffers_at + i * buffer_bytes)
                        buffer = file.read(buffer_bytes)
                        if not any(buffer):
                            continue
                        found += 1
                        print("  segment at %d, buffer %d: %d bytes to the last that is not zero" %
                              (where, i, len(buffer.rstrip(b"\0"))))
                        tell(buffer)
                        kept.write(struct.pack("<QQ", i, buffer_bytes) + buffer)
    print("  buffers with something in them: %d" % found)


if __name__ == "__main__":
    main()
