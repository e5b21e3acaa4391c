"""Launches on the puppet driver, beside three forked workers that touch no GPU.

    workers.py SECONDS
"""
import ctypes
import os
import sys
import time

PR_SET_NAME = 15


def worker(until):
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"pt_data_worker", 0, 0, 0)
    os.read(until, 1)
    os._exit(0)


def main():
    end, begin = os.pipe()
    for _ in range(3):
        if not os.fork():
            os.close(begin)
            worker(end)
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    name = ctypes.create_string_buffer(b"plain_name")
    for _ in range(20):
        cuda.cuLaunchKernel(name, 3, 1, 1, 64, 1, 1, 0, None, None, None)
    cuda.cuCtxSynchronize()
    time.sleep(float(sys.argv[1]))
    os.close(begin)
    for _ in range(3):
        os.wait()
    print("done")


main()
