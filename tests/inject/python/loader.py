"""Launches on the puppet driver; between launches a function sleeps or burns.

    loader.py sleep|burn|both STEPS
"""
import ctypes
import sys
import time

NAP_S = 0.02


def collate(naps):
    time.sleep(NAP_S * naps)


def augment():
    until = time.perf_counter() + NAP_S
    total = 0
    while time.perf_counter() < until:
        total += 1
    return total


class Loader:
    def __init__(self, ways, steps):
        self.ways = ways
        self.steps = steps

    def __iter__(self):
        for _ in range(self.steps):
            if "sleep" in self.ways:
                collate(1)
            if "burn" in self.ways:
                augment()
            yield 1


def main():
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    name = ctypes.create_string_buffer(b"plain_name")
    for _ in Loader(["sleep", "burn"] if sys.argv[1] == "both" else [sys.argv[1]], int(sys.argv[2])):
        for _ in range(20):
            cuda.cuLaunchKernel(name, 3, 1, 1, 64, 1, 1, 0, None, None, None)
        cuda.cuCtxSynchronize()
    print("done")


main()
