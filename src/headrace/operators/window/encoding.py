"""Windows as bytes: the namespace under which a window's state and timers are kept."""

from __future__ import annotations

import struct
from typing import Any

from headrace.state.keys import decode_key, encode_key
from headrace.windowing.windows import CountWindow, GlobalWindow, TimeWindow

_SIGN = 1 << 63
_bounds = struct.Struct(">QQ")


def window_bytes(window: Any) -> bytes:
    """Return a window's canonical bytes; windows of time sort by their end."""
    if type(window) is TimeWindow:
        return b"t" + _bounds.pack(window.end + _SIGN, window.start + _SIGN)
    if type(window) is GlobalWindow:
        return b"g"
    if type(window) is CountWindow:
        return b"c" + encode_key(window.id)
    return b"o" + encode_key(window)


def window_of(encoded: bytes) -> Any:
    """Return the window that has these bytes; of a window class of the user's, what its bytes tell."""
    tag, rest = encoded[:1], encoded[1:]
    if tag == b"t":
        end, start = _bounds.unpack(rest)
        return TimeWindow(start - _SIGN, end - _SIGN)
    if tag == b"g":
        return GlobalWindow()
    return CountWindow(decode_key(rest)) if tag == b"c" else decode_key(rest if tag == b"o" else encoded)
