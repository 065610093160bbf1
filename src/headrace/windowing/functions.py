"""Functions that windows call with records. A plain callable works wherever one of these is expected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

__all__ = ["DeltaFunction", "SessionWindowTimeGapExtractor"]


class SessionWindowTimeGapExtractor(ABC):
    """Returns the gap of a session, from a record.

    Example:
        >>> class ByUser(SessionWindowTimeGapExtractor):
        ...     def extract(self, element):
        ...         return element["timeout_ms"]
        >>> ByUser().extract({"timeout_ms": 500})
        500
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return the gap after this record in milliseconds; it must be positive."""


class DeltaFunction(ABC):
    """Returns the distance between two records (Flink's ``DeltaFunction``, which PyFlink does not have)."""

    @abstractmethod
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        """Return the distance from an earlier record to a later one."""


def call_of(function: Any, method: str) -> Callable[..., Any]:
    """Return what to call: a function object's method, or the callable itself."""
    call: Callable[..., Any] = getattr(function, method, function)
    return call
