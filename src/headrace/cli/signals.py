"""Handling signals for as long as a block runs."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["SignalHandler"]


class SignalHandler(ABC):
    """Handles signals within a ``with`` block; what handled them before does so again after it.

    Args:
        numbers: The signals.
        leaves_ignored: Whether signals that are ignored when the block begins stay so.
    """

    def __init__(self, *numbers: int, leaves_ignored: bool = False) -> None:
        self._numbers = numbers
        self._leaves_ignored = leaves_ignored
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in self._numbers:
            if self._leaves_ignored and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @abstractmethod
    def _handle(self, number: int, _frame: FrameType | None) -> None:
        """Called in the main thread when one of the signals has come."""
