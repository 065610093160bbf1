"""The user's aggregate functions behind one interface, whatever they were written as."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.common.types import Row
from headrace.errors import UserFunctionError, shorten

__all__ = ["UserAggregate", "Weighted", "rows_in", "wrong_width"]

#: The arguments of a row, and 1 if it comes or -1 if it goes.
Weighted = tuple[tuple[Any, ...], int]


@dataclass(frozen=True, eq=False)
class UserAggregate:
    """An aggregate function: `create_accumulator`, `accumulate`, `get_value`; or a function of pandas Series.

    Args:
        name: What messages call it.
        implementation: The object, or the function.
        is_pandas: Whether it takes all rows of a group at once, as Series.
        width: How many columns each row has that it emits; None: it returns one value.
    """

    name: str
    implementation: Any
    is_pandas: bool = False
    width: int | None = None

    @property
    def can_merge(self) -> bool:
        """Whether accumulators can be combined."""
        return not self.is_pandas and _defines(self.implementation, "merge")

    @property
    def can_retract(self) -> bool:
        """Whether rows can be taken back: from an accumulator, or from the rows of a group."""
        return self.is_pandas or _defines(self.implementation, "retract")

    def new(self) -> Any:
        """Return what a group starts with."""
        return self._call("create_accumulator")

    def take(self, accumulator: Any, rows: Iterable[Weighted]) -> None:
        """Take rows into a group, or out of it where their weight is -1."""
        implementation = self.implementation
        for row, weight in rows:
            method = implementation.accumulate if weight > 0 else implementation.retract
            try:
                method(accumulator, *row)
            except UserFunctionError:
                raise
            except Exception as error:
                raise UserFunctionError.from_exception(error, record=row) from error

    def merge(self, accumulator: Any, others: Sequence[Any]) -> None:
        """Put other accumulators into one."""
        self._call("merge", accumulator, others)

    def value(self, accumulator: Any) -> Any:
        """Return the value of a group; of a table aggregate function the list of its rows."""
        if self.width is None:
            return self._call("get_value", accumulator)
        return [self._row(each) for each in rows_in(self._call("emit_value", accumulator))]

    def value_of(self, rows: Sequence[tuple[Any, ...]], kind: pa.DataType) -> Any:
        """Return the value of a group whose rows are all there.

        Args:
            rows: The arguments of each.
            kind: Their types, as a struct.
        """
        if not self.is_pandas:
            accumulator = self.new()
            self.take(accumulator, ((row, 1) for row in rows))
            return self.value(accumulator)
        width = len(rows[0]) if rows else kind.num_fields
        series = [_series([row[at] for row in rows], kind.field(at).type) for at in range(width)]
        implementation = self.implementation
        try:
            if not hasattr(implementation, "accumulate"):
                return _plain(implementation(*series))
            accumulator = implementation.create_accumulator()
            implementation.accumulate(accumulator, *series)
            return _plain(implementation.get_value(accumulator))
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=rows[:1]) from error

    def open(self, context: Any) -> None:
        """Get it ready; the context is a `FunctionContext`."""
        opener = getattr(self.implementation, "open", None)
        if opener is not None:
            opener(context)

    def close(self) -> None:
        """Have it release what it holds."""
        closer = getattr(self.implementation, "close", None)
        if closer is not None:
            closer()

    def _row(self, given: Any) -> tuple[Any, ...]:
        row = tuple(given) if isinstance(given, tuple | Row) else (given,)
        if len(row) != self.width:
            raise wrong_width(self.name, row, self.width or 0)
        return row

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            result = getattr(self.implementation, method)(*arguments)
            # A generator runs here, so that what it raises is reported as an error of the function.
            return list(result) if method == "emit_value" and result is not None else result
        except Exception as error:
            raise UserFunctionError.from_exception(error) from error


def rows_in(result: Any) -> Iterable[Any]:
    """Return the rows that a function gave: those of a list or generator, none for None, or one."""
    if result is None:
        return ()
    is_several = isinstance(result, list | range) or hasattr(result, "__next__")
    return result if is_several else (result,)


def wrong_width(name: str, row: tuple[Any, ...], width: int) -> UserFunctionError:
    """Return the error for a row with too many or too few columns."""
    return UserFunctionError(
        f"{name} returned the row {shorten(row)} with {len(row)} column{'' if len(row) == 1 else 's'}, "
        f"but declares {width}",
        hint="give a tuple with a value for each of its result types",
    )


def _defines(implementation: Any, method: str) -> bool:
    """Whether a function has a method of its own, not that of the base class, which refuses."""
    found = getattr(type(implementation), method, None)
    return found is not None and not getattr(found, "is_missing", False)


def _series(values: Sequence[Any], kind: pa.DataType) -> Any:
    """Return an argument of all rows as pandas has it; a ROW is a DataFrame."""
    import pandas as pd  # few functions ask for it

    if pa.types.is_struct(kind):
        columns = [_series([row[at] for row in values], kind.field(at).type) for at in range(kind.num_fields)]
        return pd.DataFrame(dict(zip((field.name for field in kind), columns, strict=True)))
    if pa.types.is_nested(kind):
        return pd.Series(list(values), dtype=object)
    return pa.array(values, kind).to_pandas()


def _plain(value: Any) -> Any:
    """Return numpy's scalars as Python's."""
    match value:
        case np.generic():
            return value.item()
        case np.ndarray():
            return value.tolist()
        case Row() | tuple():
            return tuple(map(_plain, value))
        case list():
            return list(map(_plain, value))
        case Mapping():
            return {key: _plain(each) for key, each in value.items()}
    return value
