_queued, _ready = [], False


def _lazy_call(what, **kwargs):
    what() if _ready else _queued.append(what)


def init():
    global _ready
    _ready = True
    for what in _queued:
        what()
