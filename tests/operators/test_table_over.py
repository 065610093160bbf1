"""OVER: what functions say of the rows before each row, whatever the epochs."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.declarations import AggSpec, Order
from headrace.operators.table.steps import StepColumn
from headrace.operators.table.timed_declarations import OverAggregateDeclaration, OverCall
from headrace.operators.table.user_functions import UserAggregate
from tests.operators.table_harness import Change, Harness

K, V, T = (
    StepColumn("k", "STRING", pa.string()),
    StepColumn("v", "BIGINT", pa.int64()),
    StepColumn("t", "BIGINT", pa.int64()),
)
D = StepColumn("d", "DECIMAL(10,2)", pa.decimal128(10, 2))
NUMBERS = ("COUNT", "ROW_NUMBER", "RANK", "DENSE_RANK")
FRAMES = [(None, True), (None, False), (2, False), (3, True), (0, False)]
FUNCTIONS = ["COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "ARRAY_AGG"]


def over(
    name: str, function: str, preceding: int | None = None, is_range: bool = True, distinct: bool = False
) -> OverCall:
    kind = pa.list_(pa.int64()) if function == "ARRAY_AGG" else pa.int64()
    result = StepColumn(name, "BIGINT", kind)
    arguments = () if function in NUMBERS[1:] else ("v",)
    return OverCall(AggSpec(function, arguments, result, distinct), preceding, is_range)


def node(*calls: OverCall, **how: Any) -> OverAggregateDeclaration:
    output = (K, V, T, *(each.call.result for each in calls))
    return OverAggregateDeclaration(output, ("k",), calls, **{"time": "t", "is_insert_only": True, **how})


def test_rows_come_out_when_the_watermark_has_passed_them(tmp_path: Path) -> None:
    job = Harness(node(over("s", "SUM", 1, is_range=False)), [(K, V, T)], [False], tmp_path)
    assert job.run([("+I", "a", 1, 5), ("+I", "a", 2, 3)], before=0, after=0) == []
    assert job.run([("+I", "a", 4, 9)], before=0, after=5) == [("+I", "a", 2, 3, 2), ("+I", "a", 1, 5, 3)]
    assert job.state_rows == 2  # one that waits, and one that the next looks back to
    assert job.run([("+I", "a", 100, 5)], before=5, after=9) == [("+I", "a", 4, 9, 5)]
    assert job.late == 1


def test_rows_of_the_same_time_see_each_other_in_a_range(tmp_path: Path) -> None:
    job = Harness(node(over("s", "SUM"), over("n", "SUM", is_range=False)), [(K, V, T)], [False], tmp_path)
    assert job.run([("+I", "a", 1, 5), ("+I", "a", 2, 5)], before=0, after=9) == [
        ("+I", "a", 1, 5, 3, 1),
        ("+I", "a", 2, 5, 3, 3),
    ]
    assert job.run([("+I", "a", 4, 10)], before=9, after=10) == [("+I", "a", 4, 10, 7, 7)]


def test_a_range_frees_its_rows_as_time_moves_on(tmp_path: Path) -> None:
    job = Harness(node(over("s", "SUM", 10)), [(K, V, T)], [False], tmp_path)
    job.run([("+I", "a", 1, 5), ("+I", "b", 2, 7)], before=0, after=8)
    assert job.state_rows == 2
    job.run([], before=8, after=15)
    assert job.state_rows == 1
    job.run([("+I", "c", 2, 29)], before=15, after=30)
    assert job.state_rows == 1


def test_lag_uses_the_last_row_of_a_time(tmp_path: Path) -> None:
    before = OverCall(AggSpec("LAG", ("v",), StepColumn("b", "BIGINT", pa.int64())), offset=2)
    job = Harness(node(before), [(K, V, T)], [False], tmp_path)
    rows = [("+I", "a", 1, 1), ("+I", "a", 2, 2), ("+I", "a", 3, 3), ("+I", "a", 4, 3)]
    assert [row[-1] for row in job.run(rows, before=0, after=5)] == [None, None, 2, 2]
    assert [row[-1] for row in job.run([("+I", "a", 5, 7)], before=5, after=9)] == [3]
    assert job.state_rows == 2


def test_numbers_of_rows(tmp_path: Path) -> None:
    calls = (over("n", "ROW_NUMBER", is_range=False), over("r", "RANK"), over("d", "DENSE_RANK"))
    job = Harness(node(*calls), [(K, V, T)], [False], tmp_path)
    rows = [("+I", "a", 1, 1), ("+I", "a", 2, 2), ("+I", "a", 3, 2)]
    emitted = [row[-3:] for row in job.run(rows, before=0, after=2)]
    emitted += [row[-3:] for row in job.run([("+I", "a", 5, 7)], before=2, after=9)]
    assert emitted == [(1, 1, 1), (2, 2, 2), (3, 2, 2), (4, 4, 3)]


def test_by_the_clock_rows_come_out_at_once(tmp_path: Path) -> None:
    calls = (over("a", "SUM"), over("b", "SUM", 1, is_range=False), over("c", "SUM", 10))
    job = Harness(node(*calls, time=None), [(K, V, T)], [False], tmp_path)
    rows = [("+I", "a", 1, 0), ("+I", "a", 2, 0)]
    assert [row[-3:] for row in job.run(rows, now_ms=100)] == [(1, 1, 3), (3, 3, 3)]
    assert [row[-3:] for row in job.run([("+I", "a", 5, 0)], now_ms=105)] == [(8, 7, 8)]
    assert [row[-3:] for row in job.run([("+I", "a", 7, 0)], now_ms=200)] == [(15, 12, 7)]


def test_keys_end_with_their_time_to_live(tmp_path: Path) -> None:
    calls = (over("a", "SUM"), over("b", "SUM", 1, is_range=False))
    job = Harness(node(*calls, time=None, ttl_ms=50), [(K, V, T)], [False], tmp_path)
    assert job.run([("+I", "a", 1, 0)], now_ms=100) == [("+I", "a", 1, 0, 1, 1)]
    assert job.run([("+I", "a", 2, 0)], now_ms=120) == [("+I", "a", 2, 0, 3, 3)]
    assert job.run([("+I", "a", 4, 0)], now_ms=180) == [("+I", "a", 4, 0, 4, 4)]
    job.run([], now_ms=500)
    assert job.state_rows == 0


def test_sums_of_decimals_are_exact(tmp_path: Path) -> None:
    result = StepColumn("s", "DECIMAL(38,2)", pa.decimal128(38, 2))
    calls = [
        OverCall(AggSpec("SUM", ("d",), replace(result, name=name)), n, False)
        for name, n in (("s", None), ("b", 1))
    ]
    declaration = OverAggregateDeclaration(
        (K, D, T, *(each.call.result for each in calls)), ("k",), tuple(calls), time="t", is_insert_only=True
    )
    job = Harness(declaration, [(K, D, T)], [False], tmp_path)
    rows = [
        ("+I", "a", Decimal("0.10"), 1),
        ("+I", "a", Decimal("0.20"), 2),
        ("+I", "a", Decimal("99999999.99"), 3),
    ]
    emitted = job.run(rows, before=0, after=9)
    assert [row[-2:] for row in emitted] == [
        (Decimal("0.10"), Decimal("0.10")),
        (Decimal("0.30"), Decimal("0.30")),
        (Decimal("100000000.29"), Decimal("100000000.19")),
    ]


def test_updates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="insert-only"):
        Harness(node(over("s", "SUM")), [(K, V, T)], [True], tmp_path)


# -- against a model -------------------------------------------------------------------------------------------


def model_value(function: str, values: list[int | None], distinct: bool) -> Any:
    known = [each for each in values if each is not None]
    if distinct:
        known = list(dict.fromkeys(known))
    match function:
        case "COUNT":
            return len(known)
        case "ARRAY_AGG":
            return values
    if not known:
        return None
    total = sum(known)
    return {
        "SUM": total,
        "AVG": abs(total) // len(known) * (1 if total >= 0 else -1),
        "MIN": min(known),
        "MAX": max(known),
        "FIRST_VALUE": known[0],
        "LAST_VALUE": known[-1],
    }[function]


def model(rows: list[tuple[str, int | None, int]], call: OverCall) -> list[Any]:
    """What comes of rows that are sorted by time: for each the value of its frame."""
    made = []
    for place, (key, _, time) in enumerate(rows):
        own = [(at, v, t) for at, (k, v, t) in enumerate(rows) if k == key]
        frame = [each for each in own if (each[2] <= time if call.is_range else each[0] <= place)]
        if call.preceding is not None:
            frame = (
                [each for each in frame if each[2] >= time - call.preceding]
                if call.is_range
                else frame[-call.preceding - 1 :]
            )
        made.append(model_value(call.call.function, [v for _, v, _ in frame], call.call.distinct))
    return made


ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.none() | st.integers(-3, 3), st.integers(1, 12)), max_size=24
)
CALLS = st.lists(
    st.tuples(st.sampled_from(FUNCTIONS), st.sampled_from(FRAMES), st.booleans()),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=60)
@given(ROWS, CALLS, st.lists(st.integers(0, 24), max_size=5), st.integers(1, 3), st.booleans())
def test_any_cut_into_epochs_gives_the_rows_of_the_model(rows, drawn, cuts, parallelism, forgets) -> None:
    calls = [
        over(f"r{at}", function, *frame, distinct=distinct and function in ("COUNT", "SUM", "AVG"))
        for at, (function, frame, distinct) in enumerate(drawn)
    ]
    arrived = rows
    ordered = sorted(rows, key=lambda row: row[2])
    expected = sorted(map(repr, zip(ordered, *(model(ordered, call) for call in calls), strict=True)))
    with tempfile.TemporaryDirectory() as directory:
        job = Harness(
            node(*calls), [(K, V, T)], [False], Path(directory), parallelism=parallelism, forgets=forgets
        )
        emitted: list[Change] = []
        bounds = sorted({min(cut, len(rows)) for cut in cuts} | {len(rows)})
        start, watermark = 0, 0
        for number, end in enumerate(bounds):
            # Rows that are still to come are never late.
            after = min((row[2] for row in arrived[end:]), default=100) - 1
            changes = [("+I", *row) for row in arrived[start:end]]
            emitted += job.run(changes, before=watermark, after=max(after, watermark))
            start, watermark = end, max(after, watermark)
            if number == 1:
                job.rescale(3 - parallelism if parallelism < 3 else 1)
        made = sorted(repr((row[1:4], *row[4:])) for row in emitted)
    assert made == expected


@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 3)), max_size=14), CALLS, st.data()
)
def test_over_by_a_column_that_is_not_a_time_emits_changes(values, drawn, data) -> None:
    calls = [
        over(f"r{at}", function, None, frame[1], distinct=distinct and function in ("COUNT", "SUM"))
        for at, (function, frame, distinct) in enumerate(drawn)
    ]
    declaration = node(*calls, time=None, order=Order("t"), is_insert_only=False)
    there: list[tuple[str, int | None, int]] = []
    table: defaultdict[str, int] = defaultdict(int)
    with tempfile.TemporaryDirectory() as directory:
        job = Harness(declaration, [(K, V, T)], [True], Path(directory))
        for key, value in values:
            changes: list[Change] = []
            if there and data.draw(st.booleans()):
                row = there.pop(data.draw(st.integers(0, len(there) - 1)))
                changes.append(("-D", *row))
            row = (key, value, data.draw(st.integers(1, 4)) * 100 + len(there))
            there.append(row)
            changes.append(("+I", *row))
            for mark, *emitted in job.run(changes):
                table[repr(tuple(emitted))] += 1 if mark in ("+I", "+U") else -1
                assert table[repr(tuple(emitted))] >= 0
            ordered = sorted(there, key=lambda row: row[2])
            results = zip(*(model(ordered, call) for call in calls), strict=True)
            expected = sorted(repr((*row, *result)) for row, result in zip(ordered, results, strict=True))
            made = sorted(text for text, count in table.items() for _ in range(count))
            assert made == expected


class _Longest:
    """The sum of rows, which also says how many it was asked about; it cannot take rows back."""

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def accumulate(self, accumulator: list[int], value: int | None) -> None:
        accumulator[0] += value or 0
        accumulator[1] += 1

    def get_value(self, accumulator: list[int]) -> int:
        return accumulator[0] * 100 + accumulator[1]


def own(name: str, preceding: int | None, is_range: bool, **how: Any) -> OverCall:
    function = UserAggregate("own", how.pop("function", _Longest()), is_pandas=how.pop("is_pandas", False))
    call = AggSpec("own", ("v",), StepColumn(name, "BIGINT", pa.int64()), user=function, **how)
    return OverCall(call, preceding, is_range)


@pytest.mark.parametrize(("preceding", "is_range"), FRAMES)
def test_functions_of_the_users_see_the_rows_of_their_frame_across_epochs(
    tmp_path: Path, preceding: int | None, is_range: bool
) -> None:
    calls = [
        own("mine", preceding, is_range),
        own("series", preceding, is_range, function=lambda v: v.sum() * 100 + len(v), is_pandas=True),
        over("s", "SUM", preceding, is_range),
        over("n", "COUNT", preceding, is_range),
    ]
    job = Harness(node(*calls), [(K, V, T)], [False], tmp_path)
    rows = []
    for at, (value, moment) in enumerate([(1, 1), (2, 2), (3, 2), (4, 4), (5, 7), (6, 7), (7, 20)]):
        rows += job.run([("+I", "a", value, moment), ("+I", "b", 1, moment)], before=at * 2, after=at * 2 + 2)
    rows += job.run([], before=14, after=30)
    assert len(rows) + job.late == 14
    assert all(mine == series == total * 100 + count for *_, mine, series, total, count in rows)


def test_different_values_of_a_function_of_the_users_count_once(tmp_path: Path) -> None:
    job = Harness(node(own("mine", None, False, distinct=True)), [(K, V, T)], [False], tmp_path)
    job.run([("+I", "a", 3, 1), ("+I", "a", 3, 2)], before=0, after=5)
    assert job.run([("+I", "a", 3, 6), ("+I", "a", 4, 7)], before=5, after=9) == [
        ("+I", "a", 3, 6, 301),
        ("+I", "a", 4, 7, 702),
    ]


def test_rows_are_counted_that_no_function_looks_into(tmp_path: Path) -> None:
    count = OverCall(AggSpec("COUNT", (), StepColumn("n", "BIGINT", pa.int64())), 1, is_range=False)
    job = Harness(node(count), [(K, V, T)], [False], tmp_path)
    job.run([("+I", "a", 3, 1), ("+I", "a", 3, 2)], before=0, after=5)
    assert job.run([("+I", "a", 3, 6)], before=5, after=9) == [("+I", "a", 3, 6, 2)]
