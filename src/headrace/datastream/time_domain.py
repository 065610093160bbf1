"""The two clocks of a program, under PyFlink's module name."""

from __future__ import annotations

from headrace.operators.time import TimeDomain

__all__ = ["TimeDomain"]
