"""Aggregates that need the values themselves, in arrival order: LISTAGG, COLLECT, ARRAY_AGG and similar functions.

State has a list per key: values with 1, or with -1 if a value was retracted before it arrived. Spark lists the values
of an epoch; lists are concatenated, and a retraction removes the first equal value. In windows whose rows are not
counted by slice (sessions, processing-time windows) DISTINCT uses such lists, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.accumulators import (
    ColumnAccumulator,
    Columns,
    PartialSql,
    ValueChanges,
    make_accumulator,
    weight_sql,
)
from headrace.operators.table.base import quote
from headrace.operators.table.declarations import AggSpec
from headrace.operators.table.user_aggregates import UserAccumulator
from headrace.state.columns import ColumnType, Ints

#: What is made of the list of values.
LISTS = ("LISTAGG", "COLLECT", "ARRAY_AGG")
_EDGES = ("FIRST_VALUE", "LAST_VALUE")
_VALUE, _WEIGHT = "v", "w"


def make_aggregate(
    position: int,
    call: AggSpec,
    arguments: Mapping[str, pa.DataType],
    *,
    retracts: bool,
    merges: bool = False,
) -> ColumnAccumulator:
    """Make what computes a call over rows as they come; arguments as of `make_accumulator`.

    ``merges`` says whether accumulators are combined, for which functions of the user's may have no way.
    """
    function = call.function.upper()
    if call.user is not None:
        keeps_rows = merges and not call.user.can_merge
        return UserAccumulator(f"a{position}", call, arguments, retracts=retracts, keeps_rows=keeps_rows)
    if function in LISTS or (function in _EDGES and retracts):
        return ListedValues(f"a{position}", call, arguments[call.arguments[0]], retracts=retracts)
    return make_accumulator(position, call, arguments, retracts=retracts)


class ListedValues:
    """The values of a call.

    Args:
        name: Of the column that state has for it.
        call: What it is.
        kind: The type of its values.
        retracts: Whether they may be taken back.
        value: Spark SQL of a row's value; the first argument if it is not said.
    """

    def __init__(
        self, name: str, call: AggSpec, kind: pa.DataType, *, retracts: bool, value: str | None = None
    ) -> None:
        self._name = name
        self._call = call
        self._function = call.function.upper()
        condition = PartialSql(call, retracts).condition(counts_nulls=self._function == "ARRAY_AGG")
        weight = weight_sql(retracts=retracts)
        value = value or quote(call.arguments[0])
        entry = f"named_struct('{_VALUE}', {value}, '{_WEIGHT}', CAST({weight} AS TINYINT))"
        self.partials = ((f"collect_list({entry}) FILTER (WHERE {condition})", name),)
        self._type = pa.list_(pa.struct([(_VALUE, kind), (_WEIGHT, pa.int8())]))
        self.columns = (ColumnType(name, self._type),)

    def merge(self, old: Columns, new: Columns) -> dict[str, pa.Array]:
        before, added = old[self._name].to_pylist(), new[self._name].to_pylist()
        merged = [_netted([*(a or ()), *(b or ())]) for a, b in zip(before, added, strict=True)]
        return {self._name: pa.array(merged, self._type)}

    def of_values(self, changes: ValueChanges) -> dict[str, pa.Array]:
        lists: list[list[dict[str, Any]]] = [[] for _ in range(changes.count)]
        for at, sign, value in zip(changes.positions, changes.signs, changes.values.to_pylist(), strict=True):
            lists[at].append({_VALUE: value, _WEIGHT: int(sign)})
        return {self._name: pa.array(lists, self._type)}

    def values(self, columns: Columns) -> list[list[Any]]:
        """Return the values that each key has."""
        return [
            [each[_VALUE] for each in entries or () if each[_WEIGHT] > 0]
            for entries in columns[self._name].to_pylist()
        ]

    def result(self, columns: Columns) -> pa.Array:
        return pa.array([self.of(values) for values in self.values(columns)], self._call.result.arrow)

    def of(self, values: list[Any]) -> Any:
        """Return what the function makes of values."""
        if self._function == "COLLECT":
            return list(_counted(values))
        if not values:
            return None
        if self._function == "LISTAGG":
            return self._call.separator.join(values)
        if self._function == "ARRAY_AGG":
            return values
        return values[0 if self._function == "FIRST_VALUE" else -1]


class DistinctInList:
    """A call over the values of its arguments, each once, or over the highest or lowest of those that are left."""

    def __init__(
        self,
        name: str,
        call: AggSpec,
        types: Mapping[str, pa.DataType],
        inner: ColumnAccumulator,
        *,
        retracts: bool,
    ) -> None:
        arguments = call.arguments
        kind, value = types[arguments[0]], None
        if len(arguments) > 1:  # the value is a row of them
            names = [f"f{at}" for at in range(len(arguments))]
            kind = pa.struct([(name, types[each]) for name, each in zip(names, arguments, strict=True)])
            pairs = ", ".join(f"'{name}', {quote(each)}" for name, each in zip(names, arguments, strict=True))
            value = f"named_struct({pairs})"
        self._listed = ListedValues(f"{name}v", call, kind, retracts=retracts, value=value)
        self._call, self._kind, self._inner = call, kind, inner
        self.partials, self.columns = self._listed.partials, self._listed.columns

    def merge(self, old: Columns, new: Columns) -> dict[str, pa.Array]:
        return self._listed.merge(old, new)

    def of_values(self, changes: ValueChanges) -> dict[str, pa.Array]:
        return self._listed.of_values(changes)

    def result(self, columns: Columns) -> pa.Array:
        by_key = [[value for value, _ in _counted(each)] for each in self._listed.values(columns)]
        positions: Ints = np.repeat(np.arange(len(by_key)), [len(values) for values in by_key])
        values = pa.array([value for each in by_key for value in each], self._kind)
        function = self._call.function.upper()
        if function in ("MIN", "MAX"):
            return best_values(positions, values, len(by_key), is_min=function == "MIN")
        changes = ValueChanges(positions, np.ones(len(positions), np.int64), values, len(by_key))
        return self._inner.result(self._inner.of_values(changes))


def best_values(positions: Ints, values: pa.Array, count: int, *, is_min: bool) -> pa.Array:
    """Return the lowest (or highest) value at each position, NULL where there is none."""
    order = pc.sort_indices(
        pa.table({"p": positions, "v": values}),
        sort_keys=[("p", "ascending"), ("v", "ascending" if is_min else "descending")],
    )
    ordered = positions[order.to_numpy()]
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    places = np.full(count, -1, np.int64)
    places[ordered[firsts]] = firsts
    return values.take(order).take(pa.array(places, mask=places < 0))


def _counted(values: Iterable[Any]) -> Iterable[tuple[Any, int]]:
    """Return each value with how often it is there; arrays and rows cannot be hashed, but written."""
    counts: dict[str, tuple[Any, int]] = {}
    for value in values:
        text = repr(value)
        counts[text] = (value, counts[text][1] + 1 if text in counts else 1)
    return counts.values()


def _netted(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Let values that were taken back go: each with the first equal one; what has not come yet is remembered."""
    there: list[Mapping[str, Any]] = []
    owed: list[Any] = []
    for entry in entries:
        value = entry[_VALUE]
        if entry[_WEIGHT] > 0:
            if value in owed:
                owed.remove(value)
            else:
                there.append(entry)
            continue
        place = next((at for at, each in enumerate(there) if each[_VALUE] == value), None)
        if place is None:
            owed.append(value)
        else:
            del there[place]
    return [*there, *({_VALUE: value, _WEIGHT: -1} for value in owed)]
