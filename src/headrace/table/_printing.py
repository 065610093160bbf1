"""Rows as Flink prints them: a frame around columns whose width follows from their types, or from what is in them.

+----+--------------------------------+----------------------+
| op |                           name |                    n |
+----+--------------------------------+----------------------+
| +I |                            ann |                    1 |
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from headrace.common.typed_text import double_text, float_text
from headrace.common.types import Row
from headrace.types import logical as t
from headrace.types.intervals import YearMonthIntervalType

__all__ = ["TableFrame", "shown"]

NULL: Final = "<NULL>"
_KIND: Final = "op"
#: Lines and tabs are printed as they are, as in Flink; what else terminals obey is not.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DIGITS: Final[dict[type[t.DataType], int]] = {
    t.TinyIntType: 4,
    t.SmallIntType: 6,
    t.IntType: 11,
    t.BigIntType: 20,
}


class TableFrame:
    """Writes rows into a frame, as they come.

    Args:
        names: The columns.
        types: Their types.
        max_width: How many characters of a text are shown.
        has_kinds: Whether the first column says what a row does to the table.
        rows: All rows of a statement that answers at once: columns are as wide as what is in them, NULL is empty.
    """

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[t.DataType],
        *,
        max_width: int = 30,
        has_kinds: bool = True,
        rows: Sequence[Row] | None = None,
    ) -> None:
        self._types = types
        self._has_kinds = has_kinds
        self._max_width = max_width
        self._null = NULL if rows is None else ""
        if rows is None:
            widths = [_width_by_type(name, each, max_width) for name, each in zip(names, types, strict=True)]
        else:
            cells = [self._cells(row) for row in rows]
            start = 1 if has_kinds else 0
            widths = [
                min(max([_wide(name), *(_wide(line[start + at]) for line in cells)]), max_width)
                for at, name in enumerate(names)
            ]
        self._names = [*([_KIND] if has_kinds else []), *names]
        self._widths = [*([len(_KIND)] if has_kinds else []), *widths]

    @property
    def border(self) -> str:
        """The line above and below."""
        return "+" + "+".join("-" * (width + 2) for width in self._widths) + "+"

    @property
    def header(self) -> list[str]:
        """The lines above the rows."""
        return [self.border, self._line(self._names), self.border]

    def row(self, row: Row) -> str:
        """Print one row of the result table."""
        return self._line(self._cells(row))

    def _cells(self, row: Row) -> list[str]:
        cells = [
            self._null if value is None else shown(value, kind)
            for value, kind in zip(row, self._types, strict=True)
        ]
        return [row.get_row_kind().short_string(), *cells] if self._has_kinds else cells

    def _line(self, cells: Iterable[str]) -> str:
        fitted = (_fitted(cell, width) for cell, width in zip(cells, self._widths, strict=True))
        return "|" + "|".join(f" {cell} " for cell in fitted) + "|"


def _width_by_type(name: str, data_type: t.DataType, max_width: int) -> int:
    match data_type:
        case t.DecimalType():
            width = data_type.precision + 2
        case t.BooleanType():
            width = 5
        case t.DateType():
            width = 10
        case t.TimeType():
            width = 8 if data_type.precision == 0 else 9 + data_type.precision
        case t.TimestampType() | t.LocalZonedTimestampType():
            width = 19 if data_type.precision == 0 else 20 + data_type.precision
        case _:
            width = _DIGITS.get(type(data_type), max_width)
    # Room for NULL, also in columns that have none.
    return max(width, _wide(name), len(NULL))


def shown(value: Any, data_type: t.DataType | None = None) -> str:
    """Write a value for people.

    >>> shown(True), shown(None), shown([1, None]), shown(1.0)
    ('TRUE', '<NULL>', '[1, NULL]', '1.0')
    """
    match value:
        case None:
            return NULL
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if isinstance(data_type, YearMonthIntervalType):
            return f"{'-' if value < 0 else '+'}{abs(value) // 12}-{abs(value) % 12:02d}"
        case datetime.datetime():
            return _timestamp(value, getattr(data_type, "precision", 6))
        case datetime.timedelta():
            return _interval(value)
        case datetime.time():
            return value.strftime("%H:%M:%S")
        case bytes():
            return f"x'{value.hex()}'"
        case Decimal():
            return f"{value:f}"
        case float() if isinstance(data_type, t.FloatType):
            return float_text(value)
        case float():
            return double_text(value)
        case Row():
            kinds = data_type.field_types() if isinstance(data_type, t.RowType) else [None] * len(value)
            return "(" + ", ".join(_inner(*pair) for pair in zip(value, kinds, strict=True)) + ")"
        case list() | tuple():
            element = getattr(data_type, "element_type", None)
            return "[" + ", ".join(_inner(each, element) for each in value) + "]"
        case dict():
            keys, values = getattr(data_type, "key_type", None), getattr(data_type, "value_type", None)
            pairs = (f"{_inner(key, keys)}={_inner(each, values)}" for key, each in value.items())
            return "{" + ", ".join(pairs) + "}"
        case _:
            return str(value)


def _inner(value: Any, data_type: t.DataType | None) -> str:
    return "NULL" if value is None else shown(value, data_type)


def _interval(value: datetime.timedelta) -> str:
    """Write an interval as SQL does: `+1 02:03:04.500`."""
    rest = abs(value)
    minutes, seconds = divmod(rest.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if value < datetime.timedelta() else "+"
    return f"{sign}{rest.days} {hours:02d}:{minutes:02d}:{seconds:02d}.{rest.microseconds // 1000:03d}"


def _timestamp(value: datetime.datetime, precision: int) -> str:
    digits = f"{value.microsecond:06d}".ljust(9, "0")[:precision]
    return value.strftime("%Y-%m-%d %H:%M:%S") + (f".{digits}" if digits else "")


def _wide(text: str) -> int:
    """Count columns of a terminal: characters of East Asia take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _spelled(control: re.Match[str]) -> str:
    return f"\\x{ord(control[0]):02x}"


def _fitted(text: str, width: int) -> str:
    """Fill a text up on the left, or cut it off; characters that a terminal would obey are spelled out."""
    if not text.isprintable():
        text = _CONTROLS.sub(_spelled, text)
    if _wide(text) <= width:
        return " " * (width - _wide(text)) + text
    kept = ""
    for each in text:
        if _wide(kept + each) > width - 3:
            break
        kept += each
    return kept + "..." if width > 3 else text[:width]
