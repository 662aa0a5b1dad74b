"""Phase marks for the probes (docs/probes.md): calls fsdpmark_mark(phase, step) where a preloaded library has that symbol."""

import ctypes


def _symbol(name, *arguments):
    try:
        function = getattr(ctypes.CDLL(None), name)
    except AttributeError:
        return None
    function.argtypes, function.restype = arguments, None
    return function


_mark = _symbol("fsdpmark_mark", ctypes.c_char_p, ctypes.c_int)
_pause = _symbol("fsdpmark_pause", ctypes.c_int)


def mark(phase, step=-1):
    if _mark:
        _mark(phase.encode(), step)


def pause(wanted):
    """For a benchmark of the probes alone: nothing is recorded while `wanted`. {"recorded": bool}, or {} where no probe is loaded."""
    if not _pause:
        return {}
    _pause(wanted)
    return {"recorded": not wanted}
