"""A core for what is to be measured, and the CPUs for everything else: all but the other half
of that core, which a virtual machine may not tell of. A thread that shares its core with
somebody else is slower by a third, which is more than what is to be measured. Found by
keeping each CPU busy in turn and timing a loop, twice.

    python3 quiet_core.py     "CORE OTHERS", OTHERS as taskset -c takes them
"""
import os
import statistics
import subprocess
import sys
import time

# Ends with us, however that is.
BUSY = "import os\nos.sched_setaffinity(0, {%d})\nprint(flush=True)\nwhile os.getppid() == %d:\n    pass"
# Two threads of one core take 1.3 times as long and more.
SHARED = 1.25


def seconds():
    start = time.perf_counter()
    for _ in range(200000):
        pass
    return time.perf_counter() - start


def beside(cpu):
    other = subprocess.Popen([sys.executable, "-S", "-c", BUSY % (cpu, os.getpid())], stdout=subprocess.PIPE)
    other.stdout.readline()
    took = min(seconds() for _ in range(5))
    other.kill()
    other.wait()
    return took


def half_of(cpu, others):
    """The one CPU that slows this one, seen twice; None: there is none, or it can't be told."""
    os.sched_setaffinity(0, {cpu})
    slow = []
    for _ in range(2):
        took = {other: beside(other) for other in others}
        usual = statistics.median(took.values())
        slow.append([other for other in others if took[other] > SHARED * usual])
    return slow[0][0] if len(slow[0]) == 1 and slow[0] == slow[1] else None


cpus = sorted(os.sched_getaffinity(0))
core, half = cpus[-1], None
for cpu in cpus[:-4:-1] if len(cpus) > 3 else []:
    half = half_of(cpu, [other for other in cpus if other != cpu])
    if half is not None:
        core = cpu
        break
print("core %d, its other half %s" % (core, half), file=sys.stderr)
print(core, ",".join(str(cpu) for cpu in cpus if cpu not in (core, half)) or core)
