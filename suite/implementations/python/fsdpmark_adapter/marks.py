"""Phase marks for the probes (docs/probes.md): calls fsdpmark_mark(phase, step) where a preloaded library has that symbol."""

import ctypes

try:
    _mark = ctypes.CDLL(None).fsdpmark_mark
    _mark.argtypes, _mark.restype = (ctypes.c_char_p, ctypes.c_int), None
except AttributeError:
    _mark = None


def mark(phase, step=-1):
    if _mark:
        _mark(phase.encode(), step)
