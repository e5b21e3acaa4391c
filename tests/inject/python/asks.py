"""Asks for memory of the puppet driver, in functions that have names; "end": ends at once."""
import ctypes
import os
import sys
import time


def make(cuda):
    def collate():
        address = ctypes.c_uint64()
        cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(4096))

    return collate


def child_work():
    return sum(range(100))


def main():
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0):
        sys.exit(9)
    make(cuda)()
    child = os.fork()
    if not child:
        child_work()
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.3)
    print("launches 0")
    sys.stdout.flush()
    if sys.argv[1:] == ["kill"]:
        os.kill(os.getpid(), 9)


if sys.argv[1:] == ["end"]:
    child_work()
else:
    main()
