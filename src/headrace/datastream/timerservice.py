"""Time and timers of functions, under PyFlink's module name."""

from __future__ import annotations

from headrace.operators.time import TimerService

__all__ = ["TimerService"]
