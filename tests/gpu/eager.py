"""An eager torch loop: many small operators. Prints microseconds an operator.

    python3 eager.py [none|cuda|both]    with torch.profiler or without
"""
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
if mode == "none":
    start = time.perf_counter()
    loop(COUNT)
    torch.cuda.synchronize()
    wall = time.perf_counter() - start
else:
    kinds = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if mode == "both" else [])
    with profile(activities=kinds):
        start = time.perf_counter()
        loop(COUNT)
        torch.cuda.synchronize()
        wall = time.perf_counter() - start
print("%d operators %.3f us each" % (COUNT, wall / COUNT * 1e6))
