#!/usr/bin/env python3
"""libsonde-osrt.so: programs run alone and under `sonde run -t ...,osrt` say and
return the same, and what they waited in is in the profile.

    check_osrt.py SONDE HOST_DIR [CASE...]   as check.py
"""
import glob
import json
import os
import shutil
import sys

from check import HOSTS, SONDE, Place, Skip, expect, host, main, same, setuid_copy

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python")
ONLY = ("-t", "osrt")
WAIT_NS = 15000000


def os_host(scenario):
    return [os.path.join(HOSTS, "os_host"), scenario]


def both(at, argv, options=ONLY):
    alone, under = at.run(argv), at.sonde(argv, *options)
    expect(alone.stdout == under.stdout, "output: %r became %r" % (alone.stdout, under.stdout))
    expect(alone.returncode == under.returncode, "status: %d became %d" % (alone.returncode, under.returncode))
    return under


def waited(at, name, more="1"):
    return at.number("select count(*) from os where name='%s' and duration_ns >= %d and %s" % (name, WAIT_NS, more))


def calls():
    at = Place()
    try:
        both(at, os_host("calls"))
        for name in ("poll ppoll select pselect epoll_wait epoll_pwait read recv recvfrom pthread_mutex_lock sem_wait "
                     "sem_timedwait pthread_cond_wait pthread_cond_timedwait pthread_join usleep nanosleep "
                     "clock_nanosleep sleep waitpid wait4").split():
            expect(waited(at, name) >= 1, "no wait in " + name)
        for name in "open openat write mmap munmap".split():
            expect(at.number("select count(*) from os where name='%s' and duration_ns < 1000" % name) == 0,
                   name + " below the threshold")
        expect(at.number("select count(*) from os o join lane l on l.id=o.lane where l.tid is null or l.kind<>1") == 0,
               "in the threads' lanes")
        expect(at.lost() == 0, "lost")
        at.clean()
    finally:
        at.close()


def scenario(name, kinds=None):
    def check():
        at = Place()
        try:
            both(at, os_host(name))
            for kind, count in (kinds or {}).items():
                expect(waited(at, kind) == count, "%s: %d, not %d" % (kind, waited(at, kind), count))
            at.clean()
        finally:
            at.close()
    return check


def forked():
    """Children are off until exec; those of vfork, too."""
    at = Place()
    try:
        both(at, os_host("forked"))
        expect(waited(at, "usleep") == 0, "a child's sleep is in the parent's lane")
        expect(waited(at, "waitpid") == 2, "%d waits" % waited(at, "waitpid"))
        processes = at.number("select count(*) from process")
        expect(processes == 2, "%d processes: the one and the one that it became by exec" % processes)
        at.clean()
    finally:
        at.close()


def replaced():
    """exec keeps the pid: the new program has a segment of its own."""
    at = Place()
    try:
        both(at, ["sh", "-c", "sleep 0.02; exec sleep 0.02"])
        expect(at.number("select count(*) from os where duration_ns >= %d" % WAIT_NS) >= 2, "sleeps")
        expect(at.lost() == 0, "lost")
    finally:
        at.close()


def with_cuda():
    """Both libraries fill one segment: one process, kernels and waits."""
    at = Place()
    try:
        both(at, host("slow"), ("-t", "cuda,nvtx,osrt"))
        expect(at.kernels() == 1000, "%d kernels" % at.kernels())
        expect(at.number("select count(*) from os") > 0, "waits")
        expect(at.number("select count(*) from process") == 1, "processes")
        expect(at.number("select count(distinct l.source) from lane l") == 1, "sources")
        expect(at.lost() == 0, "lost")
        at.clean()
    finally:
        at.close()


def static():
    """A static program is out of reach, and goes on."""
    at = Place()
    try:
        program = os.path.join(HOSTS, "os_host_static")
        if not os.path.exists(program):
            raise Skip("no static libc here")
        both(at, [program, "interrupted"])
        expect(at.number("select count(*) from os") == 0, "recorded")
    finally:
        at.close()


def others_preload():
    """What the user preloads stays in front."""
    at = Place(LD_PRELOAD=os.path.join(HOSTS, "libother_tool.so"))
    try:
        done = at.sonde(["sh", "-c", "echo $LD_PRELOAD"], *ONLY)
        first, ours = done.stdout.decode().strip().split(":")
        expect(first.endswith("/libother_tool.so") and ours.endswith("/libsonde-osrt.so"), repr(done.stdout))
        done = at.sonde(["sh", "-c", "unset LD_PRELOAD; exec sleep 0.02"], *ONLY)
        expect(done.returncode == 0 and waited(at, "nanosleep") + waited(at, "clock_nanosleep") == 0, "unset")
    finally:
        at.close()


def nested():
    """A sonde inside of one takes its place."""
    at = Place()
    try:
        inner = at.sonde_argv(["sh", "-c", "echo $LD_PRELOAD; sleep 0.02"], *ONLY)
        inner[inner.index("p.sonde")] = "inner.sonde"
        done = at.sonde(inner, *ONLY)
        expect(done.stdout.count(b"libsonde-osrt.so") == 1, repr(done.stdout))
        shutil.move(os.path.join(at.here, "inner.sonde"), os.path.join(at.here, "p.sonde"))
        expect(at.number("select count(*) from os where duration_ns >= %d" % WAIT_NS) >= 1, "the inner has it")
    finally:
        at.close()


def windows():
    """Outside the captured range nothing is recorded."""
    at = Place()
    try:
        both(at, host("profiler"), ("-t", "cuda,osrt", "-c", "cudaProfilerApi"))
        expect(at.kernels() == 70, "%d kernels" % at.kernels())
        expect(waited(at, "nanosleep") == 2, "%d naps" % waited(at, "nanosleep"))
        both(at, os_host("interrupted"), ("-t", "osrt", "-c", "cudaProfilerApi"))
        expect(at.number("select count(*) from os") == 0, "recorded")
    finally:
        at.close()


def yields():
    """CUPTI is the program's from then on; calls of the system are recorded on."""
    at = Place()
    try:
        under = both(at, [os.path.join(HOSTS, "host_cupti"), "subscribe"], ("-t", "cuda,osrt"))
        expect(b"asked for CUPTI itself" in under.stderr, "said")
        expect(at.kernels() == 120, "%d kernels before it asked" % at.kernels())
        expect(waited(at, "usleep") == 1, "%d naps after it" % waited(at, "usleep"))
    finally:
        at.close()


def crowd():
    """More processes than room: GPU programs keep theirs, loss is told."""
    at = Place()
    try:
        both(at, ["sh", "-c", "for i in $(seq 150); do sleep 1 & done; wait; exec %s one" % host("one")[0]],
             ("-t", "cuda,osrt"))
        expect(at.kernels() == 1000, "%d kernels" % at.kernels())
    finally:
        at.close()


def states():
    """Looks at threads from outside."""
    at = Place()
    try:
        both(at, ["sh", "-c", "exec %s calls" % os_host("calls")[0]])
        expect(at.number("select count(*) from state_exact") == 0, "switches, not asked for")
        seen = {row["name"] for row in at.rows("select distinct name from state")}
        expect("waiting: clock_nanosleep" in seen, "seen: %s" % seen)
        expect(at.number("select count(*) from state where duration_ns > 1000000000") == 0, "rare")
        both(at, os_host("calls"), ("-t", "osrt", "--no-threads"))
        expect(at.number("select count(*) from state") == 0, "looked")
        both(at, host("slow"), ("-t", "cuda"))
        expect(at.number("select count(*) from state r join lane l on l.id=r.lane") > 0, "without osrt")
        at.clean()
    finally:
        at.close()


def switches():
    """Exact states where the kernel gives them, with the call that a long wait is in."""
    at = Place()
    try:
        program = [sys.executable, os.path.join(TOP, "loader.py")]
        under = both(at, [*program, "sleep", "40"], ("-t", "cuda,sched,cpu"))
        if b"perf_event_open" in under.stderr:
            expect(at.number("select count(*) from state") > 0, "no looks in their place")
            raise Skip("no perf events here")
        # Before that it is one of the processes that use no CUDA, which are looked at after a while.
        expect(at.number("select count(*) from state where start_ns > (select min(start_ns) from state_exact)") == 0, "looks beside switches")
        seen = {row["name"] for row in at.rows("select distinct name from state_exact")}
        expect("waiting: clock_nanosleep" in seen and "running" in seen, "seen: %s" % seen)
        expect(at.number("select count(*) from (select end_ns, lead(start_ns) over (partition by lane order by start_ns) n "
                         "from state_exact) where end_ns > n") == 0, "states overlap")
        naps = at.number("select count(*) from state_exact where name like 'waiting%' and duration_ns >= 20000000")
        expect(naps >= 15, "%d naps of 40" % naps)
        expect(at.number("select count(*) from source s join string t on t.id=s.reader where t.text='perf'") == 1, "source")
        both(at, [*program, "burn", "20"], ("-t", "cuda,cpu"))
        ran = at.number("select sum(duration_ns) from state_exact where name='running'")
        samples = at.number("select count(*) from cpu_stack")
        expect(2 * samples >= ran * 99 // 1000000000 > 0, "%d samples of %d ns on a core" % (samples, ran))
        both(at, host("slow"), ("-t", "cuda"))
        expect(at.number("select count(*) from state_exact") == 0, "not asked for")
        at.clean()
    finally:
        at.close()


def refused():
    """Where the kernel says no there are looks, and a line each that says why."""
    at = Place()
    try:
        program = [os.path.join(HOSTS, "deny"), "perf_event_open", "process_vm_readv", "--"]
        if at.run([*program, "true"]).returncode == 77:
            raise Skip("no seccomp here")
        done = at.run([*program, *at.sonde_argv([sys.executable, os.path.join(TOP, "loader.py"), "sleep", "20"])])
        expect(done.returncode == 0 and done.stdout == b"done\n", "%r" % done.stdout)
        for line in (b"threads are only looked at: perf_event_open: Permission denied (perf_event_paranoid is ",
                     b"Python functions are not read: process_vm_readv: Permission denied"):
            expect(done.stderr.count(line) == 1, "no line, or several: %s" % done.stderr.decode())
        expect(at.number("select count(*) from state_exact") + at.number("select count(*) from python_stack") == 0, "how?")
        expect(at.number("select count(*) from state where name='waiting: clock_nanosleep'") > 0, "no looks")
        at.clean()
    finally:
        at.close()


def pythons():
    """The interpreters of this machine: ours, and those of PATH and pyenv."""
    found = [sys.executable]
    for name in ("python3.11", "python3.12", "python3.13"):
        found += [at for at in [shutil.which(name), *glob.glob(os.path.expanduser("~/.pyenv/versions/%s*/bin/%s" % (name[6:], name)))] if at]
    return {os.path.realpath(at): at for at in found if os.path.basename(os.path.dirname(at)) != "shims"}.values()


def python():
    """Functions of a Python program that sleeps or burns between launches."""
    at = Place()
    read = 0
    try:
        for interpreter in pythons():
            program = [interpreter, os.path.join(TOP, "loader.py")]
            under = both(at, [*program, "sleep", "40"], ("-t", "cuda,python"))
            if b"Python functions are not read" in under.stderr:
                continue
            read += 1
            looks = at.number("select count(*) from python_stack")
            expect(looks >= 5, "%d looks in 800 ms" % looks)
            slept = at.number("select count(*) from python_stack where name like 'collate loader.py:%' and "
                              "detail like 'stack=collate loader.py:% < Loader.__iter__ loader.py:% < main loader.py:%'")
            expect(2 * slept >= looks, "collate in %d of %d" % (slept, looks))
            both(at, [*program, "burn", "60"], ("-t", "cuda,sched,cpu,python"))
            looks = at.number("select count(*) from python_stack")
            burnt = at.number("select count(*) from python_stack where name like 'augment loader.py:%'")
            expect(2 * burnt >= looks > 0, "augment in %d of %d" % (burnt, looks))
            report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
            expect(all(source.get("file") for source in report["profile"]["sources"]), "a source without a name")
            causes = [idle.get("python", "") for device in report["devices"] for idle in device["idle"]]
            expect(any(name.startswith("augment loader.py:") for name in causes), "told: %s" % causes)
        both(at, [sys.executable, os.path.join(TOP, "loader.py"), "sleep", "5"], ("-t", "cuda"))
        expect(at.number("select count(*) from python_stack") == 0, "not asked for")
        at.clean()
        if not read:
            raise Skip("no Python here that may be read")
    finally:
        at.close()


def torch_ops():
    """The start-up module, with an invented torch: HERE/python/fake."""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python")
    program = [sys.executable, os.path.join(top, "program.py")]
    at = Place(PYTHONPATH=os.path.join(top, "fake") + ":" + os.path.join(top, "other"), PYTHONDONTWRITEBYTECODE="1")
    try:
        # Without torch's way that does not wait ("old"), only the program's own profiler is worth it.
        for words, waits in (("", 0), ("profile", 1), ("exit", 0), ("raise", 0), ("thread", 0), ("other", 0),
                             ("thread other", 0), ("old profile", 2)):
            argv = program + ["torch"] + words.split()
            alone, under = at.run(argv), at.sonde(argv, "--torch-ops")
            out, err = under.stdout.decode(), under.stderr.decode()
            on = alone.stdout.decode() if "thread" in words else alone.stdout.decode().replace(
                "ready []", "ready ['emit_nvtx']")
            expect(under.returncode == alone.returncode, "%s: status %d" % (words, under.returncode))
            expect(out.replace("waited for the GPU\n", "") == on.replace("waited for the GPU\n", ""),
                   "%s: %r" % (words, out))
            expect(out.count("waited") == waits, "%s: waits: %r" % (words, out))
            expect(out.startswith("the other one"), "the user's own start-up module")
            said = "".join(line for line in err.splitlines(True) if not line.startswith("sonde run: "))
            expect(said == alone.stderr.decode(), "%s: said: %r" % (words, said))
        expect("['emit_nvtx']" in at.sonde(program + ["torch"], "--torch-ops").stdout.decode(), "it is on")
        at.env["PYTHONPATH"] = ""
        under = at.sonde(program + ["missing"], "--torch-ops")
        expect(under.stdout == b"[] True\nNo module named 'torch'\n", "%r" % under.stdout)
        expect(at.sonde([sys.executable, "-I", "-c", "pass"], "--torch-ops").returncode == 0, "isolated")
        at.clean()
    finally:
        at.close()


def workers():
    """Processes that use neither CUDA nor NVTX have a name in the report, once they were there for a while."""
    at = Place()
    wanted = {"pt_data_worker": 3}
    try:
        for seconds in (4, 16):
            done = at.sonde([sys.executable, os.path.join(TOP, "workers.py"), str(seconds)], "-t", "cuda")
            expect(done.returncode == 0 and done.stdout == b"done\n", "%r" % done.stdout)
            report = json.loads(at.run([SONDE, "report", "--json", "p.sonde"]).stdout)
            others = [row for source in report["profile"]["sources"] for row in source.get("processes", [])]
            names = [row["name"].split(": ")[-1] for row in others]
            found = {name: names.count(name) for name in names}
            states = at.number("select count(distinct l.id) from state r join lane l on l.id=r.lane join process p "
                               "on p.id=l.process join string s on s.id=p.name where s.text like '%pt_data_worker'")
            if found == wanted and states == 3:
                break
        expect(found == wanted and states == 3, "%s, states of %d" % (others, states))
        expect(all("workers.py" in row["command"] for row in others), "%s" % others)
        text = at.run([SONDE, "report", "p.sonde"]).stdout.decode()
        expect("3 x " in text and "pt_data_worker, without CUDA or NVTX" in " ".join(text.split()), text)
        at.clean()
    finally:
        at.close()


def threshold():
    """What takes less than --osrt-threshold is left out."""
    at = Place()
    try:
        for ns in (1000000, 1000000000):
            at.sonde(["sleep", "0.02"], *ONLY, "--osrt-threshold", str(ns))
            slept = at.number("select count(*) from os where duration_ns >= 20000000")
            expect((slept > 0) == (ns < 20000000), "%d sleeps at %d" % (slept, ns))
            expect(at.number("select count(*) from os where duration_ns < %d" % ns) == 0, "shorter than %d" % ns)
        # Two calls for each byte, and each of them.
        at.sonde(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=10000"], *ONLY, "--osrt-threshold", "0")
        for call in ("read", "write"):
            got = at.number("select count(*) from os where name='%s'" % call)
            expect(10000 <= got <= 10100, "%d calls of %s" % (got, call))
        expect(at.lost() == 0, "lost")
        at.clean()
    finally:
        at.close()


def torch_names():
    """Operators of PyTorch are called by their name: each call has its range, all of them one text."""
    at = Place()
    try:
        at.sonde(host("nvtx_ops"), "--torch-ops")
        names = {row["name"]: row["n"] for row in at.rows("select name, count(*) n from range group by name")}
        expect(names == dict.fromkeys(("load, decode", "aten::mul", "aten::empty"), 10000), "%s" % names)
        texts = at.number("select count(*) from string where text like 'aten::%'")
        expect(texts == 2, "%d texts" % texts)
        at.sonde(host("nvtx_ops"), "-t", "cuda", "--torch-ops")
        expect(at.number("select count(*) from range where name = 'aten::mul'") == 10000, "nvtx comes with it")
        at.sonde(host("nvtx_ops"))
        expect(at.number("select count(distinct name) from range") == 20001, "names as they are")
        at.clean()
    finally:
        at.close()


CASES = {
    "torch_ops": torch_ops,
    "torch_names": torch_names,
    "states": states,
    "switches": switches,
    "python": python,
    "refused": refused,
    "calls": calls,
    "threshold": threshold,
    "workers": workers,
    "cancelled": scenario("cancelled"),
    "interrupted": scenario("interrupted", {"read": 1, "poll": 1, "clock_nanosleep": 1, "sleep": 1, "sem_wait": 1,
                                            "usleep": 1}),
    "deadlocks": scenario("deadlocks"),
    "forked": forked,
    "replaced": replaced,
    "with_cuda": with_cuda,
    "static": static,
    "others_preload": others_preload,
    "nested": nested,
    "windows": windows,
    "yields": yields,
    "crowd": crowd,
    "threads": same(host("threads"), ("-t", "cuda,osrt"), lost=0),
    "storm": same(host("storm"), ("-t", "cuda,osrt"), exact=False),
    "killed": same(host("killed"), ("-t", "cuda,osrt"), lost=0),
    "cloned": same(host("cloned"), ("-t", "cuda,osrt"), lost=0),
    "small_stacks": same(host("small_stacks"), ("-t", "cuda,osrt"), lost=0),
    "errno_kept": same(host("errno_kept"), ("-t", "cuda,osrt"), lost=0),
    "closed_first": same(host("closed_first"), ("-t", "cuda,osrt"), lost=0),
    "secure": same(host("secure"), ("-t", "cuda,osrt"), exact=False, setup=setuid_copy, says="no process"),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
