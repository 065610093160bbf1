"""What expressions are made of: SQL, and pieces that are not known before an expression is used; values as SQL."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from headrace.errors import SqlValidationError, shorten
from headrace.types.logical import quote_name, quote_text

__all__ = [
    "SHOWN",
    "ColumnPiece",
    "ColumnsPiece",
    "FlattenPiece",
    "InlineTable",
    "Names",
    "OverReference",
    "Piece",
    "FunctionPiece",
    "WindowPropertyPiece",
    "written",
]


@dataclass(frozen=True)
class ColumnPiece:
    """A column by its name."""

    name: str


@dataclass(frozen=True)
class ColumnsPiece:
    """Several columns at once: those from one to another, or all but those."""

    chosen: tuple[Any, ...] | None
    is_inverted: bool = False


@dataclass(frozen=True)
class FlattenPiece:
    """The fields of a row, each as a column of its own."""

    row: Any


@dataclass(frozen=True)
class FunctionPiece:
    """A Python function that is called without having been given a name."""

    function: Any


@dataclass(frozen=True)
class WindowPropertyPiece:
    """Start, end or time of the window a row was put in."""

    window: str
    name: str


@dataclass(frozen=True)
class InlineTable:
    """A table that a subquery reads."""

    table: Any


@dataclass(frozen=True)
class OverReference:
    """The window an aggregation looks at, by the alias it has in `over_window`."""

    alias: str


Piece = (
    str
    | ColumnPiece
    | FunctionPiece
    | WindowPropertyPiece
    | InlineTable
    | OverReference
    | ColumnsPiece
    | FlattenPiece
)


class Names:
    """What an expression's open pieces are called in the statement it is put into.

    Args:
        function: Gives a Python function a name.
        table: Gives a table a name.
        window: Writes a property of the group window with this alias.
        over: Writes the window with this alias.
    """

    def __init__(
        self,
        function: Callable[[Any], str],
        table: Callable[[Any], str],
        window: Callable[[str, str], str] | None = None,
        over: Callable[[str], str] | None = None,
    ) -> None:
        self._function = function
        self._table = table
        self._window = window
        self._over = over

    def write(self, piece: Piece) -> str:
        """Write a piece as SQL."""
        match piece:
            case str():
                return piece
            case ColumnPiece(name):
                return quote_name(name)
            case FunctionPiece(function):
                return quote_name(self._function(function))
            case InlineTable(table):
                return self._table(table)
            case WindowPropertyPiece(window, name):
                if self._window is None:
                    raise SqlValidationError(
                        f"col({window!r}).{name} refers to a window, but the query has none",
                        hint="use it in select() after window(...).group_by(...)",
                    )
                return self._window(window, name)
            case OverReference(alias):
                if self._over is None:
                    raise SqlValidationError(
                        f"over({alias!r}) refers to a window, but the query has none",
                        hint="use it in select() after over_window(...)",
                    )
                return self._over(alias)
            case ColumnsPiece():
                raise SqlValidationError(
                    "with_columns(), without_columns() and range_() select several columns",
                    hint="use them as arguments of select(), drop_columns() or a function alone",
                )
            case FlattenPiece():
                raise SqlValidationError(
                    "flatten makes several columns of a row",
                    hint="use it in select(), not inside another expression",
                )


def written(value: Any) -> str:
    """Write a value of Python as SQL.

    Raises:
        SqlValidationError: If SQL has no way to write it.
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Decimal():
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
        case float():
            # With an exponent it is a DOUBLE; without one it would be a DECIMAL.
            return repr(value) if "e" in repr(value) else f"{value!r}E0"
        case str():
            return quote_text(value)
        case bytes():
            return f"X'{value.hex()}'"
        case datetime.datetime():
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
        case datetime.date():
            return f"DATE '{value:%Y-%m-%d}'"
        case datetime.time():
            return f"TIME '{value:%H:%M:%S}'"
        case datetime.timedelta():
            seconds = Decimal(value // datetime.timedelta(microseconds=1)) / 1_000_000
            return f"INTERVAL '{seconds:f}' SECOND({len(str(int(abs(seconds))))})"
    raise SqlValidationError(
        f"{shorten(value)} is a {type(value).__name__}, which has no SQL literal",
        hint="pass a number, a string, a date or time, a list or a dict",
    )


#: How messages write open pieces.
SHOWN: Final = Names(
    function=lambda each: str(getattr(each, "_name", each)),
    table=lambda each: "a table",
    window=lambda window, name: f"{quote_name(window)}.{name}",
    over=quote_name,
)
