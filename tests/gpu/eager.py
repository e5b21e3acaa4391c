"""An eager torch loop: many small operators. Prints microseconds an operator, the
median of 25 loops. Its thread stays on the core that CORE says (quiet_core.py): who else
is on that hardware costs more than a profiler.

    python3 eager.py [none|cuda|both]    with torch.profiler or without
"""
import glob
import os
import statistics
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

COUNT = 10000
x = torch.ones(64, 64, device="cuda")


def loop(count):
    global x
    for _ in range(count):
        x = x * 1.0001


def pin():
    """This thread alone; those of CUDA and CUPTI are there by now."""
    loop(2000)
    torch.cuda.synchronize()
    if "CORE" in os.environ:
        os.sched_setaffinity(0, {int(os.environ["CORE"])})


def spent():
    """Of each thread: user and system ticks; switches and page faults of this one."""
    threads = []
    for path in ["/proc/thread-self/stat", *glob.glob("/proc/self/task/*/stat")]:
        try:
            with open(path) as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue # the thread has ended
        fields = rest.split()
        threads.append((name, int(fields[11]), int(fields[12]), int(fields[7])))
    with open("/proc/thread-self/status") as file:
        switches = [line.split()[1] for line in file if "ctxt" in line]
    busy = ["%s %d+%d" % thread[:3] for thread in threads[1:] if thread[1] + thread[2] > 20]
    print("ticks", ", ".join(busy), "faults", threads[0][3], "switches", *switches, file=sys.stderr)


def measure():
    walls = []
    for _ in range(25):
        start = time.perf_counter()
        loop(COUNT)
        torch.cuda.synchronize()
        walls.append(time.perf_counter() - start)
    spent()
    print("loops", *("%.2f" % (wall / COUNT * 1e6) for wall in walls), file=sys.stderr)
    return statistics.median(walls)


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else "none"
    pin()
    if mode == "none":
        wall = measure()
    else:
        kinds = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if mode == "both" else [])
        with profile(activities=kinds):
            wall = measure()
    print("%d operators %.3f us each" % (COUNT * 25, wall / COUNT * 1e6))


if __name__ == "__main__":
    main()
