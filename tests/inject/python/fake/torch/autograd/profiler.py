import atexit
import sys
import threading

_active = {}  # thread -> what is on in it


def _disable_profiler():
    if _active.get(threading.get_ident()) != "emit_nvtx":
        raise RuntimeError("Profiler is not enabled on this thread")
    del _active[threading.get_ident()]


def _run_on_profiler_stop():
    pass


class _Profiler(object):
    def __enter__(self):
        if threading.get_ident() in _active:
            raise RuntimeError("Profiler is already enabled on this thread")
        _active[threading.get_ident()] = type(self).__name__
        return self

    def __exit__(self, *why):
        del _active[threading.get_ident()]


class emit_nvtx(_Profiler):
    def __enter__(self):
        return _Profiler.__enter__(self)

    def __exit__(self, *why):
        print("waited for the GPU")
        return _Profiler.__exit__(self)


class profile(_Profiler):
    def __enter__(self):
        self._prepare_trace()
        return _Profiler.__enter__(self)

    def _prepare_trace(self):
        pass


def _at_exit():
    for name in _active.values():
        sys.stderr.write("Leaked callback handle: %s\n" % name)


# Before what others register once torch is there, so that it runs last.
atexit.register(_at_exit)
