"""The rows of a query as a screen shows them: all changes in their order, or the table that they make."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from itertools import islice

from headrace.common.types import Row, RowKind

__all__ = ["ChangelogRows", "ShownRows", "CurrentRows"]


class ShownRows(ABC):
    """Rows that come from one thread and are shown by another.

    Args:
        limit: How many are kept; the oldest are dropped.
    """

    #: Whether rows are shown with what they do to the table.
    has_kinds = True

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        #: What is shown, made when it is asked for; None after a change.
        self._shown: list[Row] | None = None
        #: How many were received.
        self.received = 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._current())

    def add(self, rows: Sequence[Row]) -> None:
        """Take rows of the query."""
        with self._lock:
            for row in rows:
                self._add(row)
            self.received += len(rows)
            if rows:
                self._drop()
                self._shown = None

    def slice(self, start: int, count: int) -> list[Row]:
        """Return rows to show."""
        with self._lock:
            return self._current()[start : start + count]

    def _current(self) -> list[Row]:
        if self._shown is None:
            self._shown = self._list()
        return self._shown

    @abstractmethod
    def _add(self, row: Row) -> None:
        """Add a row to the displayed ones."""

    @abstractmethod
    def _drop(self) -> None:
        """Drop the oldest rows, if there are too many."""

    @abstractmethod
    def _list(self) -> list[Row]:
        """Return all rows in the order in which they are shown."""


class ChangelogRows(ShownRows):
    """Every change, in the order in which they came."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._rows: deque[Row] = deque(maxlen=limit)

    def _add(self, row: Row) -> None:
        self._rows.append(row)

    def _drop(self) -> None:
        """Nothing is left to do: the deque has dropped them."""

    def _list(self) -> list[Row]:
        return list(self._rows)


class CurrentRows(ShownRows):
    """The current table, after all changes.

    A row that replaces another takes its place, so that what the user reads does not jump.
    """

    has_kinds = False

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._count = 0
        #: The rows by number, in the order in which they are shown.
        self._rows: dict[int, Row] = {}
        #: The numbers of equal rows; those without one have no entry.
        self._numbers: dict[Row, list[int]] = {}
        #: The number that the last −U has freed, for the +U that follows it; its old row no longer counts.
        self._freed: int | None = None

    def _add(self, row: Row) -> None:
        kind, row = row.get_row_kind(), Row(*row)
        freed, self._freed = self._freed, None
        if kind is RowKind.UPDATE_AFTER and freed is not None:
            self._put(freed, row)
            return
        if freed is not None:
            del self._rows[freed]
        if kind in {RowKind.INSERT, RowKind.UPDATE_AFTER}:
            self._count += 1
            self._put(self._count, row)
        elif row in self._numbers:
            number = self._take(row)
            if kind is RowKind.UPDATE_BEFORE:
                self._freed = number
            else:
                del self._rows[number]

    def _put(self, number: int, row: Row) -> None:
        self._rows[number] = row
        self._numbers.setdefault(row, []).append(number)

    def _take(self, row: Row, at: int = -1) -> int:
        numbers = self._numbers[row]
        number = numbers.pop(at)
        if not numbers:
            del self._numbers[row]
        return number

    def _drop(self) -> None:
        for number in list(islice(self._rows, max(0, len(self._rows) - self._limit))):
            row = self._rows.pop(number)
            if number == self._freed:
                self._freed = None
            else:
                self._take(row, self._numbers[row].index(number))

    def _list(self) -> list[Row]:
        return [row for number, row in self._rows.items() if number != self._freed]
