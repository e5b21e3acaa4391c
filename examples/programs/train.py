"""A small training job with known faults (slow) and without them (fast).

    python3 train.py slow|fast [--profiler torch|none] [--steps N]

With torch's profiler it writes a Kineto trace, its own table and a memory
snapshot into $OUT (default /tmp). With none it marks the same four steps with
cudaProfilerStart and cudaProfilerStop, of N steps (8) all but the first three
and the last, and prints how long all took and the median of the marked ones.
"""
import os
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function, schedule

out = os.environ.get("OUT", "/tmp")
mode = sys.argv[1] if len(sys.argv) > 1 else "slow"
own_profiler = "none" not in sys.argv
count = int(sys.argv[sys.argv.index("--steps") + 1]) if "--steps" in sys.argv else 8
torch.manual_seed(0)
dev = "cuda"


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64 * (count + 4)

    def __getitem__(self, i):
        x = torch.randn(3, 64, 64)
        if mode == "slow":
            x = torch.fft.fft2(x).real / 64
            time.sleep(0.0004)
        return x, i % 10


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.c = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
                            nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(8))
        s.a = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 8, 512, batch_first=True), 4)
        s.h = nn.Linear(128, 10)

    def forward(s, x):
        x = s.c(x).flatten(2).transpose(1, 2)
        return s.h(s.a(x).mean(1))


net = Net().to(dev)
opt = torch.optim.Adam(net.parameters(), 1e-3)
leak = []
dl = torch.utils.data.DataLoader(Data(), batch_size=64, num_workers=0 if mode == "slow" else 8,
                                 pin_memory=mode != "slow")


def steps(step_done):
    for s, (x, y) in enumerate(dl):
        if s >= count:
            break
        x = x.to(dev, non_blocking=mode != "slow")
        y = y.to(dev)
        with record_function("forward"):
            loss = F.cross_entropy(net(x), y)
        with record_function("backward"):
            opt.zero_grad()
            loss.backward()
        with record_function("optimizer"):
            opt.step()
        if mode == "slow":
            leak.append(loss)
            print(s, loss.item())
            [loss.item() for _ in range(3)]
        step_done(s)


if own_profiler:
    torch.cuda.memory._record_memory_history(max_entries=100000)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                 profile_memory=mode == "slow", with_stack=mode == "slow",
                 schedule=schedule(wait=1, warmup=2, active=4, repeat=1),
                 on_trace_ready=lambda p: p.export_chrome_trace(f"{out}/train_{mode}.json")) as prof:
        steps(lambda s: prof.step())
    open(f"{out}/key_averages_{mode}.txt", "w").write(
        prof.key_averages().table(sort_by="cuda_time_total", row_limit=25))
    open(f"{out}/memory_summary_{mode}.txt", "w").write(torch.cuda.memory_summary())
    torch.cuda.memory._dump_snapshot(f"{out}/snapshot_{mode}.pickle")
else:
    def mark(s):
        if s == 2:
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStart()
        if s == count - 2:
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStop()
        if 2 < s <= count - 2:
            times.append(time.perf_counter())

    times = []
    start = time.perf_counter()
    steps(mark)
    torch.cuda.synchronize()
    wall = time.perf_counter() - start
    print("wall %.4f step %.6f" % (wall, statistics.median(b - a for a, b in zip(times, times[1:]))))
