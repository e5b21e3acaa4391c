"""Prints what it sees of itself, and of torch where asked."""
import sys
import threading

WORDS = sys.argv[1:]


def active():
    return sorted(torch.autograd.profiler._active.values())


def profile():
    with torch.autograd.profiler.profile():
        print("its own", "profile" in active())


def in_thread(what):
    worker = threading.Thread(target=what)
    worker.start()
    worker.join()


print([at for at in sys.path if "sonde" in at], sys.modules.get("sitecustomize") is not None)
if "missing" in WORDS:
    try:
        import torch
    except ImportError as why:
        print(why)
if "torch" in WORDS:
    import torch
    print("imported", active(), torch.__spec__.loader is torch.__loader__, type(torch.__loader__).__name__)
    if "old" in WORDS:
        del torch.autograd.profiler._disable_profiler
    in_thread(torch.cuda.init) if "thread" in WORDS else torch.cuda.init()
    print("ready", active())
if "profile" in WORDS:
    profile()
    with torch.autograd.profiler.emit_nvtx():
        print("its own", active())
    print("after", active())
if "other" in WORDS:
    in_thread(profile)
if "exit" in WORDS:
    sys.exit(3)
if "raise" in WORDS:
    raise ValueError("its own")
