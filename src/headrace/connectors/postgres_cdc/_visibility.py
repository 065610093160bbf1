"""Which changes the initial snapshot of a table already has: those of transactions that it saw.

    key      ... 500 | 501 ...            a range of the table for each snapshot that it was read with
    snapshot   10:14:12 | 17:17:          PostgreSQL's own words: xmin:xmax:transactions that were running

There is one range, unless the job was restarted while it read the snapshot: the rest is then read with a new one. The
log alone cannot tell: a transaction is in the log a moment before others see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["KeyRange", "is_visible"]

_WRAP = 2**32


class KeyRange(NamedTuple):
    """A part of the table that was read with one snapshot.

    Attributes:
        upper: The last key of it, as texts; None: all keys that follow.
        snapshot: What `pg_current_snapshot()` printed.
        until: A place of the log after all transactions that the snapshot saw.
    """

    upper: tuple[str, ...] | None
    snapshot: str
    until: int


def is_visible(xid: int, snapshot: str) -> bool:
    """Whether a snapshot has what a transaction did. Asked only of transactions around the time of the snapshot.

    Args:
        xid: The transaction, of 32 bits.
        snapshot: What `pg_current_snapshot()` printed; its numbers have 64 bits.

    Example:
        >>> [is_visible(xid, "10:14:12") for xid in (9, 11, 12, 13, 14)]
        [True, True, False, True, False]
        >>> is_visible(2**32 - 1, f"{2**32}:{2**32 + 5}:")
        True
    """
    _, highest, running = snapshot.split(":")
    is_before = 0 < (int(highest) - xid) % _WRAP < _WRAP // 2
    return is_before and xid not in {int(each) % _WRAP for each in running.split(",") if each}


def with_snapshot(
    ranges: Sequence[KeyRange], key: tuple[str, ...] | None, snapshot: str, until: int
) -> tuple[KeyRange, ...]:
    """Return the ranges when reading continues after a key, with a snapshot that may be another one.

    Example:
        >>> first = with_snapshot((), None, "3:3:", 7)
        >>> with_snapshot(first, ("5",), "3:3:", 7) == first
        True
        >>> [each.upper for each in with_snapshot(first, ("5",), "9:9:", 8)]
        [('5',), None]
    """
    if ranges and ranges[-1].snapshot == snapshot:
        return tuple(ranges)
    closed = () if key is None else (*ranges[:-1], ranges[-1]._replace(upper=key))
    return (*closed, KeyRange(None, snapshot, until))
