"""What CUPTI itself takes of an eager torch loop, by what is asked of it: bare_cupti.c
switched on and off within ONE process, as two processes differ by more than what is looked
for. Variants alternate; each round is printed as it ends, at the end the medians, then
torch.profiler's.

    python3 eager_bare.py BARE.so SECONDS
"""
import ctypes
import statistics
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

from eager import COUNT, loop, pin

bare = ctypes.CDLL(sys.argv[1])
VARIANTS = [
    None,
    "",
    "launch",
    "driver_launch",
    "launch,driver_launch",
    "api",
    "api,driver",
    "launch,memory",
    "launch,wait",
    "launch,event",
    "launch,callback",
    "launch,driver_callback",
    "launch,driver_launch,memory,wait,event,driver_callback",
    "launch,driver_launch,memory,wait,event,callback,driver_callback",
]


def timed():
    start = time.perf_counter()
    loop(COUNT)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / COUNT * 1e6


def once(words):
    if words is None:
        return timed()
    bare.bare_switch(words.encode(), 1)
    loop(500)
    torch.cuda.synchronize()
    us = timed()
    bare.bare_switch(words.encode(), 0)
    return us


def with_profiler():
    with profile(activities=[ProfilerActivity.CUDA]):
        loop(500)
        return timed()


def row(name, values, plain):
    added = [b - a for a, b in zip(plain, values)]
    print("%-58s %8.3f %+8.3f %8.3f" % (name, statistics.median(values), statistics.median(added), min(values)), flush=True)


pin()
with open("/proc/self/maps") as maps:
    print(torch.__version__, *sorted({line.split()[-1] for line in maps if "libcupti" in line}))
until = time.time() + float(sys.argv[2])
us = {words: [] for words in VARIANTS}
while time.time() < until:
    for words in VARIANTS:
        us[words].append(once(words))
    print(*("%.2f" % values[-1] for values in us.values()), flush=True)
print("%d rounds: us an operator, median; added in the same round, median; least" % len(us[None]))
for words, values in us.items():
    row("plain" if words is None else "kernels" if not words else "kernels," + words, values, us[None])
plain, torchs = [], []
for _ in range(7):
    plain.append(timed())
    torchs.append(with_profiler())
    print("plain %.3f torch.profiler %.3f" % (plain[-1], torchs[-1]), flush=True)
row("torch.profiler(CUDA)", torchs, plain)
