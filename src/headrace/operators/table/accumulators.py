"""Aggregate functions: partial results that Spark computes for an epoch, accumulators in state, and results.

    rows of an epoch --Spark: partials--> one row per key --merge with state--> new accumulator --result--> the output

Partials are differences: a row that is retracted counts -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import InvariantViolation, UnsupportedFeatureError
from headrace.operators.table.base import SIGNED_DIGITS, negative_decimal, quote
from headrace.operators.table.declarations import AggSpec
from headrace.operators.table.steps import KIND
from headrace.state.columns import ColumnType, Ints

Columns = Mapping[str, pa.Array]

#: For decimals of 38 digits, and as many after the point; python's own has 28 in all.
_WIDE = Context(prec=76)

#: Whether a row comes rather than goes.
_ADDS = f"{quote(KIND)} IN (0, 2)"
_WEIGHT = f"CASE WHEN {_ADDS} THEN 1L ELSE -1L END"


@dataclass(frozen=True)
class ValueChanges:
    """Values that keys have now and had not, or had and have not."""

    #: The key each belongs to, as a position among the keys of the epoch.
    positions: Ints
    #: 1: the value is there now; -1: it is gone.
    signs: Ints
    values: pa.Array
    #: How many keys there are.
    count: int

    def numbers(self) -> pa.Array:
        """Return how many more values each key has."""
        numbers = np.zeros(self.count, np.int64)
        np.add.at(numbers, self.positions, self.signs)
        return pa.array(numbers)

    def sums(self, kind: pa.DataType) -> pa.Array:
        """Return by how much the sum of each key's values has grown; NULL where nothing changed."""
        values = self.values.cast(_wide(sum_type(self.values.type)[0]))
        signed = pc.if_else(pa.array(self.signs > 0), values, pc.negate(values))
        sums = pa.table({"p": self.positions, "v": signed}).group_by("p").aggregate([("v", "sum")])
        places = np.full(self.count, -1, np.int64)
        places[sums.column("p").to_numpy()] = np.arange(sums.num_rows)
        found = sums.column("v_sum").combine_chunks().take(pa.array(places, mask=places < 0))
        return _narrow(found, kind)


class ColumnAccumulator(Protocol):
    """Maintains the result of one aggregate call."""

    @property
    def partials(self) -> tuple[tuple[str, str], ...]:
        """Spark SQL aggregates over the rows of one key, with the column each is called."""

    @property
    def columns(self) -> tuple[ColumnType, ...]:
        """What state keeps per key; the partials have the same names."""

    def merge(self, old: Columns, new: Columns) -> dict[str, pa.Array]:
        """Add partials to an accumulator; that of a new key is NULL."""

    def result(self, columns: Columns) -> pa.Array:
        """Return the results of accumulators."""

    def of_values(self, changes: ValueChanges) -> dict[str, pa.Array]:
        """Return the partials of values that appeared and disappeared, for DISTINCT."""


def weight_sql(*, retracts: bool) -> str:
    """Return the Spark SQL of what a row counts."""
    return _WEIGHT if retracts else "1L"


def rows_sql(*, retracts: bool, filter: str | None = None) -> str:
    """Return the Spark SQL of how many rows there are, or how many more if rows may be retracted.

    Args:
        retracts: Whether they may.
        filter: The column that says which rows count; None: all.
    """
    if not retracts:
        return "count(1)" if filter is None else f"count(1) FILTER (WHERE {quote(filter)})"
    counted = _WEIGHT if filter is None else f"CASE WHEN {quote(filter)} THEN {_WEIGHT} ELSE 0L END"
    return f"CAST(sum({counted}) AS BIGINT)"


def make_accumulator(
    position: int, call: AggSpec, arguments: Mapping[str, pa.DataType], *, retracts: bool
) -> ColumnAccumulator:
    """Make what computes a call over rows as they come. DISTINCT and retracted extremes are not its business.

    Args:
        position: The call's number, for names.
        call: What to compute.
        arguments: The types of the input's columns.
        retracts: Whether rows may be retracted.
    """
    name = f"a{position}"
    sql = PartialSql(call, retracts)
    function = call.function.upper()
    if function == "COUNT":
        return Count(name, sql.count())
    kind = arguments[call.arguments[0]]
    if function in ("SUM", "SUM0", "AVG"):
        return Sum(name, call, sql, kind)
    if function in ("MIN", "MAX"):
        return Extreme(name, call, sql.extreme(function), kind, function)
    if function in ("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "STDDEV"):
        return Variance(name, call, sql)
    if function in ("FIRST_VALUE", "LAST_VALUE") and not retracts:
        return Edge(name, call, kind)
    suffix = " of a changelog with updates" if retracts else ""
    raise UnsupportedFeatureError.not_yet(
        f"{function}{suffix} in a streaming query", "run the query in BATCH mode"
    )


@dataclass(frozen=True)
class PartialSql:
    """The Spark SQL of partials of one call."""

    call: AggSpec
    retracts: bool

    def condition(self, *, counts_nulls: bool = False) -> str:
        """Return which rows the call is over."""
        conditions = [quote(self.call.filter)] if self.call.filter else []
        if not counts_nulls:
            # Only COUNT(DISTINCT ...) has several that count; LISTAGG's second one is the separator.
            counted = self.call.arguments[: None if self.call.distinct else 1]
            conditions += [f"{quote(argument)} IS NOT NULL" for argument in counted]
        return " AND ".join(conditions) or "true"

    def count(self) -> str:
        condition = self.condition()
        if not self.retracts:  # written so that Spark computes it once where it is wanted several times
            return "count(1)" if condition == "true" else f"count(CASE WHEN {condition} THEN 1 END)"
        return f"CAST(coalesce(sum(CASE WHEN {condition} THEN {_WEIGHT} END), 0L) AS BIGINT)"

    def sum(self, value: str, spark_type: str, *, is_decimal: bool = False) -> str:
        weighted = f"CAST({value} AS {spark_type})"
        if self.retracts:  # a product of decimals would have room for fewer digits after the point
            gone = negative_decimal(weighted, spark_type) if is_decimal else f"-{weighted}"
            weighted = f"(CASE WHEN {_ADDS} THEN {weighted} ELSE {gone} END)"
        return f"CAST(sum(CASE WHEN {self.condition()} THEN {weighted} END) AS {spark_type})"

    def extreme(self, function: str) -> str:
        return f"{function}(CASE WHEN {self.condition()} THEN {quote(self.call.arguments[0])} END)"


def sum_type(kind: pa.DataType) -> tuple[pa.DataType, str]:
    """Return what sums of a type are kept as, for Arrow and for Spark."""
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale), f"DECIMAL(38,{kind.scale})"
    if pa.types.is_floating(kind):
        return pa.float64(), "DOUBLE"
    return pa.int64(), "BIGINT"


class Count:
    """COUNT of rows, or of values that are not NULL."""

    def __init__(self, name: str, sql: str) -> None:
        self._name = name
        self.partials = ((sql, name),)
        self.columns = (ColumnType(name, pa.int64()),)

    def merge(self, old: Columns, new: Columns) -> dict[str, pa.Array]:
        return {self._name: add(old[self._name], new[self._name])}

    def result(self, columns: Columns) -> pa.Array:
        return pc.fill_null(columns[self._name], 0)

    def of_values(self, changes: ValueChanges) -> dict[str, pa.Array]:
        return {self._name: changes.numbers()}


class Sum:
    """SUM, SUM0 and AVG: a sum, and how many values are in it.

    A sum of decimals that has no room is NULL although there are values, and stays so until there are none.
    """

    def __init__(self, name: str, call: AggSpec, sql: PartialSql, kind: pa.DataType) -> None:
        self._sum, self._count = f"{name}s", f"{name}n"
        self._call = call
        arrow, spark = sum_type(kind)
        is_large = pa.types.is_decimal(kind) and kind.precision > SIGNED_DIGITS
        self.partials = (
            (sql.sum(quote(call.arguments[0]), spark, is_decimal=is_large), self._sum),
            (sql.count(), self._count),
        )
        self.columns = (ColumnType(self._sum, arrow), ColumnType(self._count, pa.int64()))

    def merge(self, old: Columns, new: Columns) -> dict[str, pa.Array]:
        merged = {column.name: add(old[column.name], new[column.name]) for column in self.columns}
        if pa.types.is_decimal(self.columns[0].arrow):
            has_no_room = pc.or_(self._has_no_room(old), self._has_no_room(new))
            merged[self._sum] = pc.if_else(
                has_no_room, pa.scalar(None, merged[self._sum].type), merged[self._sum]
            )
        return merged

    def _has_no_room(self, columns: Columns) -> pa.Array:
        has_values = pc.not_equal(pc.fill_null(columns[self._count], 0), 0)
        return pc.and_(pc.is_null(columns[self._sum]), has_values)

    def result(self, columns: Columns) -> pa.Array:
        total, count = columns[self._sum], pc.fill_null(columns[self._count], 0)
        kind = self._call.result.arrow
        is_empty = pc.equal(count, 0)
        if self._call.function.upper() == "SUM0":
            return pc.if_else(is_empty, pa.scalar(0, kind), total.cast(kind, safe=False))
        value = (
            total.cast(kind, safe=False)
            if self._call.function.upper() == "SUM"
            else average(total, count, kind)
        )
        return pc.if_else(is_empty, pa.scalar(None, kind), value)

    def of_values(self, changes: ValueChanges) -> dict[str, pa.Array]:
        return {self._sum: changes.sums(self.columns[0].arrow), self._count: changes.numbers()}


class _NotDistinct:
    """Functions that cannot go by distinct values."""

    def of_values(self, changes: ValueChanges) -> dict[str, pa.Array]:
        raise InvariantViolation(f"{type(self).__name__} does not support DISTINCT")


class Extreme(_NotDistinct):
    """MIN and MAX of rows that are never retracted."""

    def __init__(self, name: str, call: AggSpec, sql: str, kind: pa.DataType, function: str) -> None:
        self._name = name
        self._call = call
        self._pick = pc.min_element_wise if function == "MIN" else pc.max_element_wise
        self.partials = ((sql, name),)
        self.columns = (ColumnType(name, kind),)

    def merge(self, old: Columns, new: Columns) -> dict[str, pa.Array]:
        return {self._name: pick(self._pick, old[self._name], new[self._name])}

    def result(self, columns: Columns) -> pa.Array:
        return columns[self._name].cast(self._call.result.arrow, safe=False)


class Variance:
    """VAR_POP and its relatives, by the sums of values and of their squares."""

    def __init__(self, name: str, call: AggSpec, sql: PartialSql) -> None:
        self._sum, self._squares, self._count = f"{name}s", f"{name}q", f"{name}n"
        self._call = call
        value = f"CAST({quote(call.arguments[0])} AS DOUBLE)"
        self.partials = (
            (sql.sum(value, "DOUBLE"), self._sum),
            (sql.sum(f"{value} * {value}", "DOUBLE"), self._squares),
            (sql.count(), self._count),
        )
        self.columns = (
            ColumnType(self._sum, pa.float64()),
            ColumnType(self._squares, pa.float64()),
            ColumnType(self._count, pa.int64()),
        )

    def merge(self, old: Columns, new: Columns) -> dict[str, pa.Array]:
        return {column.name: add(old[column.name], new[column.name]) for column in self.columns}

    def result(self, columns: Columns) -> pa.Array:
        function = self._call.function.upper()
        count = pc.fill_null(columns[self._count], 0).to_numpy(zero_copy_only=False).astype(np.float64)
        total, squares = (
            pc.fill_null(columns[name], 0.0).to_numpy(zero_copy_only=False)
            for name in (self._sum, self._squares)
        )
        least = 1 if function.endswith("_POP") else 2
        divisor = np.where(count >= least, count - (least - 1), 1)
        spread = np.maximum(squares - total * total / np.maximum(count, 1), 0) / divisor
        if function.startswith("STDDEV"):
            spread = np.sqrt(spread)
        return pa.array(spread, mask=count < least).cast(self._call.result.arrow, safe=False)

    def of_values(self, changes: ValueChanges) -> dict[str, pa.Array]:
        numbers = changes.values.cast(pa.float64(), safe=False)
        return {
            self._sum: replace(changes, values=numbers).sums(pa.float64()),
            self._squares: replace(changes, values=pc.multiply(numbers, numbers)).sums(pa.float64()),
            self._count: changes.numbers(),
        }


class Edge(_NotDistinct):
    """FIRST_VALUE and LAST_VALUE of rows that are never retracted, in the order Spark has them in an epoch."""

    def __init__(self, name: str, call: AggSpec, kind: pa.DataType) -> None:
        self._name = name
        self._call = call
        self._is_first = call.function.upper() == "FIRST_VALUE"
        value = quote(call.arguments[0])
        condition = f" FILTER (WHERE {quote(call.filter)})" if call.filter else ""
        function = "first" if self._is_first else "last"
        self.partials = ((f"{function}({value}, true){condition}", name),)
        self.columns = (ColumnType(name, kind),)

    def merge(self, old: Columns, new: Columns) -> dict[str, pa.Array]:
        first, second = (old, new) if self._is_first else (new, old)
        return {self._name: pc.coalesce(first[self._name], second[self._name])}

    def result(self, columns: Columns) -> pa.Array:
        return columns[self._name].cast(self._call.result.arrow, safe=False)


# -- arithmetic ------------------------------------------------------------------------------------------------


def add(left: pa.Array, right: pa.Array) -> pa.Array:
    """Add numbers; NULL counts as nothing, and two of them are NULL."""
    kind = left.type
    left, right = (each if each.type == _wide(kind) else each.cast(_wide(kind)) for each in (left, right))
    if not left.null_count and not right.null_count:
        return _narrow(pc.add(left, right), kind)
    zero = pa.scalar(Decimal(0) if pa.types.is_decimal(kind) else 0, left.type)
    total = pc.add(pc.fill_null(left, zero), pc.fill_null(right, zero))
    nothing = pc.and_(pc.is_null(left), pc.is_null(right))
    return _narrow(pc.if_else(nothing, pa.scalar(None, total.type), total), kind)


def _wide(kind: pa.DataType) -> pa.DataType:
    """Return what numbers are added as: decimals may have more digits than there is room for."""
    return pa.decimal256(60, kind.scale) if pa.types.is_decimal(kind) else kind


def _narrow(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return numbers as they are kept; NULL, as in Flink, where there is no room for a decimal."""
    if not pa.types.is_decimal(kind):
        return array if array.type == kind else array.cast(kind)
    limit = pa.scalar(Decimal(1).scaleb(kind.precision - kind.scale), array.type)
    return pc.if_else(pc.less(pc.abs(array), limit), array, pa.scalar(None, array.type)).cast(kind)


def pick(function: Any, left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the lesser or greater of values; of a value and NULL the value."""
    kind = left.type
    if pa.types.is_boolean(kind):
        return function(left.cast(pa.int8()), right.cast(pa.int8())).cast(kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:  # Arrow compares those without a time zone only
        plain = pa.timestamp(kind.unit)
        return function(left.cast(plain), right.cast(plain)).cast(kind)
    return function(left, right, skip_nulls=True)


def average(total: pa.Array, count: pa.Array, kind: pa.DataType) -> pa.Array:
    """Divide as Flink does: whole numbers are cut off, decimals rounded."""
    if pa.types.is_decimal(total.type):
        pairs = zip(total.to_pylist(), count.to_pylist(), strict=True)
        quotients = [
            _WIDE.divide(value, number) if value is not None and number else None for value, number in pairs
        ]
        if pa.types.is_decimal(kind):
            return pa.array([_fitted(each, kind) for each in quotients], kind)
        floats = [None if each is None else float(each) for each in quotients]
        return pa.array(floats, pa.float64()).cast(kind)
    numbers = np.maximum(count.to_numpy(zero_copy_only=False), 1)
    sums = pc.fill_null(total, 0).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(total.type):
        return pa.array(sums / numbers).cast(kind, safe=False)
    if pa.types.is_floating(kind):
        return pa.array(sums / numbers).cast(kind)
    return pa.array(np.sign(sums) * (np.abs(sums) // numbers)).cast(kind, safe=False)


def _fitted(value: Decimal | None, kind: pa.Decimal128Type) -> Decimal | None:
    """Round to the digits that a type has after the point; NULL, as in Flink, where it has too few before it."""
    if value is None:
        return None
    rounded = value.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _WIDE)
    return rounded if rounded.adjusted() < kind.precision - kind.scale else None
