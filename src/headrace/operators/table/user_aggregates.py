"""The user's aggregate functions: their accumulators in state, and the values that Spark lists for them.

    rows of an epoch --Spark: listed per key--> accumulate(), retract() --> accumulator in state --get_value()--> output

An accumulator is stored as a pickle. Functions that cannot merge accumulators (of pandas Series, or without `merge`
in windows that consist of slices) keep the rows themselves until the window is over.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.common.arrow_values import arrow_form, python_values
from headrace.operators.table.accumulators import Columns, PartialSql, ValueChanges, weight_sql
from headrace.operators.table.base import quote
from headrace.operators.table.declarations import AggSpec
from headrace.operators.table.user_functions import Weighted
from headrace.operators.table.user_results import result_column
from headrace.state.columns import ColumnType

__all__ = ["UserAccumulator"]

_ACCUMULATOR, _ROWS, _VALUES, _WEIGHT = "a", "r", "v", "w"
_NO_ARGUMENT = "'f0', 0"


class UserAccumulator:
    """The accumulator of one call.

    Args:
        name: Of the column that state has for it.
        call: What it is.
        types: The types of columns.
        retracts: Whether rows may be taken back.
        keeps_rows: Whether rows are kept until the result is asked for.
    """

    def __init__(
        self,
        name: str,
        call: AggSpec,
        types: Mapping[str, pa.DataType],
        *,
        retracts: bool,
        keeps_rows: bool,
    ) -> None:
        assert call.user is not None
        self._name, self._call, self._user = name, call, call.user
        self._keeps_rows = keeps_rows or call.user.is_pandas
        fields = [f"f{at}" for at in range(len(call.arguments))]
        #: A row always has a field: Arrow has no way to say how many rows without columns there are.
        self._kind = pa.struct(
            [(field, types[each]) for field, each in zip(fields, call.arguments, strict=True)]
            or [("f0", pa.int32())]
        )
        pairs = [f"'{field}', {quote(each)}" for field, each in zip(fields, call.arguments, strict=True)]
        row = f"named_struct({', '.join(pairs or [_NO_ARGUMENT])})"
        weight = weight_sql(retracts=retracts)
        entry = f"named_struct('{_VALUES}', {row}, '{_WEIGHT}', CAST({weight} AS TINYINT))"
        condition = PartialSql(call, retracts).condition(counts_nulls=True)
        listed = f"collect_list({entry}) FILTER (WHERE {condition})"
        self.partials = (
            (f"named_struct('{_ACCUMULATOR}', CAST(NULL AS BINARY), '{_ROWS}', {listed})", name),
        )
        entries = pa.list_(pa.struct([(_VALUES, self._kind), (_WEIGHT, pa.int8())]))
        self._type = pa.struct([(_ACCUMULATOR, pa.binary()), (_ROWS, entries)])
        self.columns = (ColumnType(name, self._type),)
        row_form = arrow_form(self._kind)
        assert row_form is not None
        self._stored: Callable[[Any], Any] = lambda row: row_form(row or (0,))

    def merge(self, old: Columns, new: Columns) -> dict[str, pa.Array]:
        before, added = self._kept(old), self._kept(new)
        merged = [self._merged(one, other) for one, other in zip(before, added, strict=True)]
        return {self._name: pa.array(merged, self._type)}

    def of_values(self, changes: ValueChanges) -> dict[str, pa.Array]:
        """Return accumulators over values, each of which counts once: for DISTINCT."""
        rows: list[list[dict[str, Any]]] = [[] for _ in range(changes.count)]
        is_row = len(self._call.arguments) > 1
        for at, sign, value in zip(changes.positions, changes.signs, changes.values.to_pylist(), strict=True):
            rows[at].append({_VALUES: value if is_row else {"f0": value}, _WEIGHT: int(sign)})
        return {self._name: pa.array([{_ACCUMULATOR: None, _ROWS: each} for each in rows], self._type)}

    def result(self, columns: Columns) -> pa.Array:
        values = [self._value(each) for each in self._kept(columns)]
        return result_column(self._user.name, values, self._call.result.arrow)

    # -- one key ---------------------------------------------------------------------------------------------

    def _kept(self, columns: Columns) -> list[_Kept | None]:
        column = columns[self._name]
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        pickled = column.field(_ACCUMULATOR).to_pylist()
        rows = column.field(_ROWS)
        entries = rows.flatten()
        width = len(self._call.arguments)
        values = [tuple(row)[:width] for row in python_values(entries.field(_VALUES))]
        weights = entries.field(_WEIGHT).to_pylist()
        lengths = rows.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths)
        listed = list(zip(values, weights, strict=True))
        present = column.is_valid().to_pylist()
        return [
            _Kept(pickled[at], listed[ends[at] - lengths[at] : ends[at]]) if present[at] else None
            for at in range(len(column))
        ]

    def _merged(self, old: _Kept | None, new: _Kept | None) -> dict[str, Any] | None:
        if old is None and new is None:
            return None
        if self._keeps_rows:
            rows = _netted([*(old.rows if old else ()), *(new.rows if new else ())])
            return {_ACCUMULATOR: None, _ROWS: [{_VALUES: self._stored(row), _WEIGHT: n} for row, n in rows]}
        accumulator = self._accumulated(old)
        if new is not None:
            if new.accumulator is not None:
                self._user.merge(accumulator, [pickle.loads(new.accumulator)])
            self._user.take(accumulator, new.rows)
        return {_ACCUMULATOR: pickle.dumps(accumulator, protocol=5), _ROWS: None}

    def _accumulated(self, kept: _Kept | None) -> Any:
        """Return the accumulator of what is kept of a key."""
        if kept is None:
            return self._user.new()
        found = self._user.new() if kept.accumulator is None else pickle.loads(kept.accumulator)
        self._user.take(found, kept.rows)
        return found

    def _value(self, kept: _Kept | None) -> Any:
        if kept is None:
            return None
        if self._keeps_rows:
            return self._user.value_of([row for row, weight in kept.rows if weight > 0], self._kind)
        return self._user.value(self._accumulated(kept))


@dataclass(frozen=True)
class _Kept:
    """What state or an epoch has of a key: an accumulator, and rows that are not in it yet."""

    accumulator: bytes | None
    rows: Sequence[Weighted]


def _netted(entries: Iterable[Weighted]) -> list[Weighted]:
    """Let rows that were taken back go, each with the first equal one; what has not come yet is remembered."""
    there: list[tuple[Any, ...]] = []
    owed: list[tuple[Any, ...]] = []
    for row, weight in entries:
        gone, other = (owed, there) if weight > 0 else (there, owed)
        if row in gone:
            gone.remove(row)
        else:
            other.append(row)
    return [*((row, 1) for row in there), *((row, -1) for row in owed)]
