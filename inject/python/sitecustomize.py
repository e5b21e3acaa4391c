"""Start-up module of `sonde run`: PyTorch's operators as NVTX ranges, and whose perf maps are ours.

Python imports it because sonde puts its folder in front of PYTHONPATH. It takes
itself out of sys.path and lets the sitecustomize that would have run do so.

With --torch-ops it waits: when the program imports torch, and torch then sets CUDA up, it turns on
torch.autograd.profiler.emit_nvtx in that thread. It never sets CUDA up itself (a
program may fork before), steps back for good when the program profiles on its
own, and when that thread or the program ends: torch tells on stderr of callbacks
that are left.

With --perf-map it tells sonde this process's number, and those of its forked children, as
these may end before sonde has seen who wrote a map. Whatever fails here fails silently.
"""
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


class _Torch(object):
    """Finds torch as it would be found, and adds a step after it has run."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(object):
    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            _arm(module)
        except Exception:
            pass


class _AtEnd(object):
    """What a thread has of its own goes with it, in the thread itself."""

    def __init__(self, what):
        self._what = what

    def __del__(self):
        self._what()


def _arm(torch):
    import atexit
    import threading
    profiler = torch.autograd.profiler
    state = {"range": None, "thread": None, "over": False, "entering": False}
    own = threading.local()
    ident = threading.get_ident

    def begin():
        try:
            if not state["over"] and state["range"] is None:
                nvtx = profiler.emit_nvtx()
                state["entering"] = True
                nvtx.__enter__()
                state.update(range=nvtx, thread=ident())
                own.end = _AtEnd(leave)
                atexit.register(leave)
        except Exception:
            state["over"] = True
        finally:
            state["entering"] = False

    def leave(and_wait=False):
        """Only the thread that entered can. At the end not by __exit__, which waits for
        the GPU: a program must be able to end though a kernel hangs."""
        state["over"] = True
        nvtx = state["range"]
        if nvtx is None or state["thread"] != ident():
            return
        state["range"] = None
        try:
            if hasattr(profiler, "_disable_profiler"):
                profiler._disable_profiler()
                getattr(profiler, "_run_on_profiler_stop", int)()
            elif and_wait:
                nvtx.__exit__(None, None, None)
        except Exception:
            pass

    def give_way(owner, name):
        """Before the program's own profiler begins."""
        method = getattr(owner, name, None)
        if method is None:
            return

        def wrapper(self, *args, **kwargs):
            if not state["entering"]:
                leave(and_wait=True)
            return method(self, *args, **kwargs)

        wrapper.__name__, wrapper.__doc__ = name, method.__doc__
        setattr(owner, name, wrapper)

    give_way(profiler.profile, "_prepare_trace")
    give_way(profiler.profile, "__enter__")
    give_way(profiler.emit_nvtx, "__enter__")
    torch.cuda._lazy_call(begin)


def _tell():
    """Into sonde's own memory, and nothing else: the name can be another's by now, as that of
    a pipe, which waits for who reads it."""
    ours = "/memfd:sonde-perf-maps"
    try:
        name = os.environ["SONDE_PERF_MAP"]
        if not os.readlink(name).startswith(ours):
            return
        to = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            if os.readlink("/proc/self/fd/%d" % to).startswith(ours):
                os.write(to, b"%d\n" % os.getpid())
        finally:
            os.close(to)
    except Exception:
        pass


def _others():
    """The sitecustomize that is next, as if this one were not there."""
    sys.path[:] = [at for at in sys.path if os.path.abspath(at or os.curdir) != _here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as why:
        if getattr(why, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


if os.environ.get("SONDE_TORCH_OPS") == "1" and sys.version_info >= (3, 6):
    sys.meta_path.insert(0, _Torch())
if "SONDE_PERF_MAP" in os.environ and sys.version_info >= (3, 12) and not (
        "perf" in sys._xoptions or "perf_jit" in sys._xoptions):
    _tell()
    os.register_at_fork(after_in_child=_tell)
_others()
