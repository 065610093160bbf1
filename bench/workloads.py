"""The work that is measured, in plain Python, the same for every contender.

Records are made from their number, so that nobody reads files: ``(user, number)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Record = tuple[str, int]


def record_maker(keys: int) -> Callable[[int], Record]:
    """Return what makes record number i; its key is one of so many."""
    # Multiplying by an odd number visits all keys in an order that no cache foresees.
    return lambda index: (f"user_{index * 7919 % keys}", index)


def enrich(record: Record) -> tuple[str, int, int]:
    """Add a field."""
    return record[0], record[1], record[1] % 10


def is_wanted(record: tuple[str, int, int]) -> bool:
    """Drop a tenth."""
    return record[2] != 3


def shorten(record: tuple[str, int, int]) -> tuple[str, int]:
    """Keep two fields."""
    return record[0], record[1] + record[2]


def key_of(record: Any) -> str:
    """Return the user."""
    return record[0]  # type: ignore[no-any-return]
