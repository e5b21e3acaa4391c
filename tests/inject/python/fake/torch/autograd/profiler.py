_active = []


class _Profiler(object):
    def __enter__(self):
        if _active:
            raise RuntimeError("Profiler is already enabled on this thread")
        _active.append(type(self).__name__)
        return self

    def __exit__(self, *why):
        _active.remove(type(self).__name__)


class emit_nvtx(_Profiler):
    pass


class profile(_Profiler):
    def __enter__(self):
        self._prepare_trace()
        return _Profiler.__enter__(self)

    def _prepare_trace(self):
        pass
