"""Prints what it sees of itself, and of torch where asked."""
import sys

print([at for at in sys.path if "sonde" in at], sys.modules.get("sitecustomize") is not None)
if "torch" in sys.argv[1:]:
    import torch
    active = torch.autograd.profiler._active
    print("imported", active, torch.__spec__.loader is torch.__loader__, type(torch.__loader__).__name__)
    torch.cuda.init()
    print("ready", active)
    with torch.autograd.profiler.profile():
        print("its own", active)
    with torch.autograd.profiler.emit_nvtx():
        print("its own", active)
    print("after", active)
if "missing" in sys.argv[1:]:
    try:
        import torch
    except ImportError as why:
        print(why)
