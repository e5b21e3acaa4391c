"""An eager torch loop: many small operators. Prints microseconds an operator, the
median of five loops.

    python3 eager.py [none|cuda|both]    with torch.profiler or without
"""
import statistics
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

mode = sys.argv[1] if len(sys.argv) > 1 else "none"
x = torch.ones(64, 64, device="cuda")


def loop(count):
    global x
    for _ in range(count):
        x = x * 1.0001


loop(2000)
torch.cuda.synchronize()
COUNT = 50000


def measure():
    walls = []
    for _ in range(5):
        start = time.perf_counter()
        loop(COUNT)
        torch.cuda.synchronize()
        walls.append(time.perf_counter() - start)
    return statistics.median(walls)


if mode == "none":
    wall = measure()
else:
    kinds = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if mode == "both" else [])
    with profile(activities=kinds):
        wall = measure()
print("%d operators %.3f us each" % (COUNT, wall / COUNT * 1e6))
