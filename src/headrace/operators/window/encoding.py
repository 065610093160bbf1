"""Windows as bytes: the namespace under which a window's state and timers are kept."""

from __future__ import annotations

import struct
from typing import Any

from headrace.state.keys import encode_key
from headrace.windowing.windows import CountWindow, GlobalWindow, TimeWindow

_SIGN = 1 << 63
_pack_bounds = struct.Struct(">QQ").pack


def window_bytes(window: Any) -> bytes:
    """Return a window's canonical bytes; windows of time sort by their end."""
    if type(window) is TimeWindow:
        return b"t" + _pack_bounds(window.end + _SIGN, window.start + _SIGN)
    if type(window) is GlobalWindow:
        return b"g"
    if type(window) is CountWindow:
        return b"c" + encode_key(window.id)
    return b"o" + encode_key(window)
