"""The wall clock, as everything here counts it."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return what time it is, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
