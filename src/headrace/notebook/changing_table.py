"""The rows that a running query has at this moment, and their HTML."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Final

from headrace.common.types import Row, RowKind
from headrace.table._printing import shown
from headrace.types import logical as t

__all__ = ["ChangingTable"]

_RETRACTS: Final = frozenset({RowKind.UPDATE_BEFORE, RowKind.DELETE})
_STYLE: Final = "text-align:left;white-space:pre;font-variant-numeric:tabular-nums"


class ChangingTable:
    """A table that changes with every row of a changelog. Keeps the rows, or the last changes.

    Args:
        names: The columns.
        types: Their types; None for values of a stream, whose types are not known.
        limit: How many rows are shown.
        is_changelog: Whether to keep the last changes, with their kinds, instead of the table they lead to.

    >>> table = ChangingTable(["n"], [t.BigIntType()], limit=10)
    >>> table.apply(Row(1)); table.apply(Row(2)); table.rows
    [(1,), (2,)]
    """

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[t.DataType] | None,
        *,
        limit: int,
        is_changelog: bool = False,
    ) -> None:
        self._names = names
        self._types = types
        self._limit = limit
        self._is_changelog = is_changelog
        self._counts: Counter[Hashable] = Counter()
        self._values: dict[Hashable, tuple[Any, ...]] = {}
        self._last: list[tuple[Any, ...]] = []
        self.changes = 0

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the table, those that came first in front; a row that occurs twice is there twice."""
        if self._is_changelog:
            return list(self._last)
        return [self._values[key] for key, count in self._counts.items() for _ in range(count)]

    @property
    def size(self) -> int:
        """How many rows the table has."""
        return self.changes if self._is_changelog else self._counts.total()

    def apply(self, row: Any) -> None:
        """Insert a row, or retract it if its kind says so. A value that is not a Row is a row of one column."""
        self.changes += 1
        kind = row.get_row_kind() if isinstance(row, Row) else RowKind.INSERT
        values = tuple(row) if isinstance(row, Row) else (row,)
        if self._is_changelog:
            self._last = [*self._last, (kind.short_string(), *values)][-self._limit :]
            return
        key = repr(values)
        if kind in _RETRACTS:
            self._retract(key)
        else:
            self._counts[key] += 1
            self._values[key] = values

    def _retract(self, key: Hashable) -> None:
        self._counts[key] -= 1
        if self._counts[key] <= 0:
            del self._counts[key]
            self._values.pop(key, None)

    def to_html(self, status: str) -> str:
        """Write the first rows as a table, with a line below it that says how many there are.

        Args:
            status: What the query does, such as "running".
        """
        names = ["op", *self._names] if self._is_changelog else self._names
        rows = self.rows[: self._limit]
        head = "".join(f"<th style='{_STYLE}'>{html.escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(map(self._cell, self._typed(row)))}</tr>" for row in rows)
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{html.escape(self._summary(len(rows), status))}</p>"
        )

    def to_text(self, status: str) -> str:
        """Say in one line how many rows there are, for a front end without HTML."""
        return self._summary(min(self.size, self._limit), status)

    def _summary(self, count: int, status: str) -> str:
        what = "changes" if self._is_changelog else "rows"
        shown_part = "" if count == self.size else f", {count:,} shown"
        return f"{self.size:,} {what}{shown_part}; {status}"

    def _typed(self, row: tuple[Any, ...]) -> list[tuple[Any, t.DataType | None]]:
        types: list[t.DataType | None] = [*self._types] if self._types else [None] * len(self._names)
        return list(zip(row, [None, *types] if self._is_changelog else types, strict=True))

    @staticmethod
    def _cell(cell: tuple[Any, t.DataType | None]) -> str:
        value, data_type = cell
        return f"<td style='{_STYLE}'>{html.escape(shown(value, data_type))}</td>"
