"""Aggregate functions of the user's: the same value whatever the epochs, with rows taken back, and in windows."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UserFunctionError
from headrace.operators.table.declarations import (
    AggSpec,
    GroupAggregateDeclaration,
    TableWindowSpec,
    WindowAggregateDeclaration,
    WindowKind,
)
from headrace.operators.table.steps import StepColumn
from headrace.operators.table.user_aggregates import UserAccumulator
from headrace.operators.table.user_functions import UserAggregate
from headrace.table import AggregateFunction, TableAggregateFunction
from tests.operators.table_harness import Harness, materialized

USER = StepColumn("user", "STRING", pa.string())
AMOUNT = StepColumn("amount", "BIGINT", pa.int64())
TIME = StepColumn("time", "BIGINT", pa.int64())


class Total(AggregateFunction):
    """A sum with a number of rows; it can do everything."""

    def create_accumulator(self) -> Any:
        return [0, 0]

    def accumulate(self, accumulator: Any, value: Any) -> None:
        accumulator[0] += value
        accumulator[1] += 1

    def retract(self, accumulator: Any, value: Any) -> None:
        accumulator[0] -= value
        accumulator[1] -= 1

    def merge(self, accumulator: Any, accumulators: Any) -> None:
        for other in accumulators:
            accumulator[0] += other[0]
            accumulator[1] += other[1]

    def get_value(self, accumulator: Any) -> Any:
        return 1000 * accumulator[1] + accumulator[0]


class TotalOfRows(AggregateFunction):
    """The same without retract() and merge()."""

    create_accumulator = Total.create_accumulator
    accumulate = Total.accumulate
    get_value = Total.get_value


class Top(TableAggregateFunction):
    def create_accumulator(self) -> Any:
        return []

    def accumulate(self, accumulator: Any, value: Any) -> None:
        accumulator[:] = sorted([*accumulator, value])[-2:]

    def emit_value(self, accumulator: Any) -> Any:
        for value in accumulator:
            yield value, -value


def call(function: Any, kind: pa.DataType | None = None, **how: Any) -> AggSpec:
    result = StepColumn("x", "BIGINT", kind or pa.int64())
    return AggSpec("f", ("amount",), result, user=UserAggregate("f", function, **how))


def grouped(spec: AggSpec, directory: Path, *, retracts: bool = True) -> Harness:
    node = GroupAggregateDeclaration((USER, spec.result), keys=("user",), calls=(spec,))
    return Harness(node, [(USER, AMOUNT)], [retracts], directory)


def test_rows_are_accumulated_and_retracted(tmp_path: Path):
    job = grouped(call(Total()), tmp_path)
    assert job.run([("+I", "ann", 1), ("+I", "ann", 2), ("+I", "bob", 5)]) == [
        ("+I", "ann", 2003),
        ("+I", "bob", 1005),
    ]
    assert job.run([("-U", "ann", 2), ("+U", "ann", 7)]) == [("-U", "ann", 2003), ("+U", "ann", 2008)]
    assert job.run([("-D", "bob", 5)]) == [("-D", "bob", 1005)]
    job.rescale(2)
    assert job.run([("+I", "ann", 1)]) == [("-U", "ann", 2008), ("+U", "ann", 3009)]


def test_a_table_aggregate_function_gives_the_list_of_its_rows(tmp_path: Path):
    rows = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    job = grouped(call(Top(), rows, width=2), tmp_path, retracts=False)
    ((_, _, found),) = job.run([("+I", "ann", 3), ("+I", "ann", 1), ("+I", "ann", 2)])
    assert found == [{"a": 2, "b": -2}, {"a": 3, "b": -3}]
    with pytest.raises(
        UserFunctionError, match=r"f returned the row \(3, -3\) with 2 columns, but declares 3"
    ):
        value_of(call(Top(), rows, width=3), 3)


def test_a_function_of_series_sees_all_rows_of_a_group(tmp_path: Path):
    job = grouped(call(lambda amounts: amounts.max() - amounts.min(), is_pandas=True), tmp_path)
    assert job.run([("+I", "ann", 1), ("+I", "ann", 9)]) == [("+I", "ann", 8)]
    assert job.run([("-D", "ann", 9), ("+I", "ann", 4)]) == [("-U", "ann", 8), ("+U", "ann", 3)]


def value_of(spec: AggSpec, *amounts: int | None) -> Any:
    """Return the value of one group with these rows."""
    accumulator = UserAccumulator("a0", spec, {"amount": pa.int64()}, retracts=False, keeps_rows=False)
    (column,) = accumulator.columns
    rows = [{"v": {"f0": amount}, "w": 1} for amount in amounts]
    old = {"a0": pa.nulls(1, column.arrow)}
    new = {"a0": pa.array([{"a": None, "r": rows}], column.arrow)}
    return accumulator.result(accumulator.merge(old, new)).to_pylist()[0]


def test_the_error_of_a_function_names_its_row():
    with pytest.raises(UserFunctionError, match="unsupported operand") as failed:
        value_of(call(Total()), None)
    assert failed.value.record == "(None,)"
    with pytest.raises(UserFunctionError, match=r"f returned 1001, which is not STRING"):
        value_of(call(Total(), pa.string()), 1)


CHANGES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.booleans()), max_size=30)


@settings(max_examples=40, deadline=None)
@given(CHANGES, st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_the_table_is_the_same_whatever_the_epochs(drawn: list[Any], lengths: list[int]):
    live: list[tuple[str, int]] = []
    made = []
    for user, amount, goes in drawn:
        if goes and live:
            made.append(("-D", *live.pop()))
        else:
            live.append((user, amount))
            made.append(("+I", user, amount))
    expected: dict[str, int] = defaultdict(int)
    for user, amount in live:
        expected[user] += 1000 + amount
    with tempfile.TemporaryDirectory() as directory:
        job = grouped(call(Total()), Path(directory))
        changes, at = [], 0
        while at < len(made):
            length = lengths[at % len(lengths)]
            changes += job.run(made[at : at + length])
            at += length
    assert dict(materialized(changes)) == {(user, value): 1 for user, value in expected.items()}


@pytest.mark.parametrize("function", [Total(), TotalOfRows()], ids=["merges", "keeps rows"])
@pytest.mark.parametrize("kind", [WindowKind.TUMBLE, WindowKind.HOP])
def test_windows_are_put_together_of_slices(tmp_path: Path, kind: WindowKind, function: Any):
    spec = call(function)
    window = TableWindowSpec(kind, "time", size_ms=10, slide_ms=5 if kind is WindowKind.HOP else 0)
    end = StepColumn("e", "TIMESTAMP_NTZ", pa.timestamp("us"))
    node = WindowAggregateDeclaration(
        (USER, spec.result, end), window, ("user",), (spec,), properties=("window_end",), is_insert_only=True
    )
    job = Harness(node, [(USER, AMOUNT, TIME)], [False], tmp_path)
    assert job.run([("+I", "ann", 1, 3), ("+I", "ann", 2, 7)], after=-1) == []
    fired = job.run([("+I", "ann", 4, 8)], before=-1, after=100)
    sums = {change[3].microsecond // 1000: change[2] for change in fired}
    assert sums == ({10: 3007} if kind is WindowKind.TUMBLE else {5: 1001, 10: 3007, 15: 2006})
