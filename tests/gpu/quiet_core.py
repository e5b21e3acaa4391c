"""One CPU of each core, as a virtual machine may not say which two are one: a thread that
gets the other half of a core from somebody else is slower by a third, which is more than
what is to be measured. Found by keeping each busy in turn and timing a loop.

    python3 quiet_core.py     "CORE OTHERS": one for what is to be measured, and the rest,
                              with commas between
"""
import os
import statistics
import subprocess
import sys
import time

BUSY = "import os\nos.sched_setaffinity(0, {%d})\nprint(flush=True)\nwhile True:\n    pass"
# Two threads of one core take 1.3 times as long and more.
SHARED = 1.25


def seconds():
    start = time.perf_counter()
    for _ in range(200000):
        pass
    return time.perf_counter() - start


def beside(cpu):
    other = subprocess.Popen([sys.executable, "-S", "-c", BUSY % cpu], stdout=subprocess.PIPE)
    other.stdout.readline()
    took = min(seconds() for _ in range(4))
    other.kill()
    other.wait()
    return took


free = sorted(os.sched_getaffinity(0))
chosen, all_took = [], []
while free:
    cpu = free.pop()
    chosen.append(cpu)
    os.sched_setaffinity(0, {cpu})
    took = {other: beside(other) for other in free}
    all_took += took.values()
    if len(all_took) > 2 and took:
        slowest = max(took, key=took.get)
        if took[slowest] > SHARED * statistics.median(all_took):
            print("CPUs %d and %d are one core" % (cpu, slowest), file=sys.stderr)
            free.remove(slowest)
others = chosen[1:] or chosen
print(chosen[0], ",".join(map(str, sorted(others))))
