"""MATCH_RECOGNIZE without Spark: against a model that tries everything, and whatever the epochs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import JobExecutionError
from headrace.operators.table.declarations import Order
from headrace.operators.table.match_declarations import MatchRecognizeDeclaration, PatternSpec
from headrace.operators.table.match_formulas import (
    FUNCTIONS,
    NULL_SAFE,
    Apply,
    Cell,
    FixedValue,
    Fold,
    RowValues,
)
from headrace.operators.table.match_pattern import AfterMatch, PatternVariable, SkipTo
from headrace.operators.table.match_runs import Runs
from headrace.operators.table.matching import Matching
from headrace.operators.table.steps import StepColumn
from tests.operators.table_harness import Change, Harness

K, C, V, T = (
    StepColumn("k", "STRING", pa.string()),
    StepColumn("c", "STRING", pa.string()),
    StepColumn("v", "BIGINT", pa.int64()),
    StepColumn("t", "BIGINT", pa.int64()),
)
BOOLEAN, BIGINT, DOUBLE = pa.bool_(), pa.int64(), pa.float64()
NAMES = "ABCD"
#: Column 1 of a row has the letters of the variables that it may belong to; columns after it say so one by one.
FLAGS = tuple(StepColumn(name.lower(), "BOOLEAN", BOOLEAN) for name in NAMES)
SCHEMA = (K, V, T, *FLAGS)
QUANTIFIERS = [(1, 1), (0, 1), (0, None), (1, None), (2, 2), (2, None), (1, 2), (0, 2), (2, 3)]


def variable(name: str, least: int = 1, most: int | None = 1, *, greedy: bool = True) -> PatternVariable:
    return PatternVariable(name, least, most, greedy)


def pattern(
    *variables: PatternVariable, skip: AfterMatch | None = None, within_ms: int | None = None
) -> PatternSpec:
    """A pattern whose results are the first and last number of each variable."""
    conditions = tuple(Cell(3 + at, at) for at in range(len(variables)))
    results = [Cell(1, at, is_first=first) for at in range(len(variables)) for first in (True, False)]
    return PatternSpec(variables, conditions, tuple(results), skip or AfterMatch(), within_ms)


def node(of: PatternSpec, **how: Any) -> MatchRecognizeDeclaration:
    output = [K]
    for at, result in enumerate(of.results):
        kind = BIGINT if not isinstance(result, Fold) else result.kind
        output.append(StepColumn(f"r{at}", "BIGINT", kind))
    return MatchRecognizeDeclaration(
        tuple(output), ("k",), of, **{"time": "t", "is_insert_only": True, **how}
    )


def row(number: int, letters: str, time: int | None = None, key: str = "x") -> Change:
    return ("+I", key, number, number if time is None else time, *(name.lower() in letters for name in NAMES))


AB = pattern(variable("A"), variable("B", 1, None), variable("C"))


# -- a model: all ways to give rows to variables ----------------------------------------------------------------


def has_choice(each: PatternVariable) -> bool:
    return each.is_greedy and each.most != max(each.least, 1)


def takes(of: PatternSpec, letters: str, last: int, chosen: int) -> bool:
    """Whether a row may belong to a variable, after one of another: greedy ones in between must not want it."""
    names = [each.name.lower() for each in of.variables]
    wanted = [names[at] for at in range(max(last, 0), chosen) if has_choice(of.variables[at])]
    return names[chosen] in letters and not any(each in letters for each in wanted)


def may_end(of: PatternSpec, letters: str, last: int) -> bool:
    rest = range(last + 1, len(of.variables))
    is_wanted = any(
        has_choice(of.variables[at - 1]) and of.variables[at - 1].name.lower() in letters for at in rest
    )
    return all(of.variables[at].least == 0 for at in rest) and not is_wanted


def ends_from(of: PatternSpec, rows: list[tuple[int, str]], at: int, last: int, count: int) -> Iterator[int]:
    """Yield where matches end that continue at a row, with so many rows of the last variable."""
    if at == len(rows):
        return
    letters = rows[at][1]
    for chosen in range(max(last, 0), len(of.variables)):
        if chosen > last:
            skipped = of.variables[last + 1 : chosen] if last >= 0 else of.variables[:chosen]
            if any(each.least for each in skipped):
                break
            if last >= 0 and count < of.variables[last].least:
                break
        number = count + 1 if chosen == last else 1
        most = of.variables[chosen].most
        if (most is not None and number > most) or not takes(
            of, letters, last if chosen != last else chosen, chosen
        ):
            continue
        if number >= of.variables[chosen].least and may_end(of, letters, chosen):
            yield at + 1
        yield from ends_from(of, rows, at + 1, chosen, number)


def model(of: PatternSpec, rows: list[tuple[int, str]]) -> list[tuple[int, int]]:
    """Return first and last row of every match; only for ways to continue that do not need to know variables."""
    found, begin = [], 0
    while begin < len(rows):
        ends = [
            end
            for end in ends_from(of, rows, begin, -1, 0)
            if of.within_ms is None or rows[end - 1][0] - rows[begin][0] < of.within_ms
        ]
        if not ends:
            begin += 1
            continue
        found.append((begin, min(ends) - 1))
        begin = begin + 1 if of.skip.kind is SkipTo.NEXT_ROW else min(ends)
    return found


@st.composite
def patterns(draw: st.DrawFn) -> PatternSpec:
    count = draw(st.integers(1, 4))
    chosen = [draw(st.sampled_from(QUANTIFIERS)) for _ in range(count)]
    made = [
        variable(name, *bounds, greedy=bounds == (0, 1) or draw(st.booleans()))
        for name, bounds in zip(NAMES, chosen, strict=False)
    ]
    last = made[-1]
    if last.least != last.most:
        made[-1] = replace(last, is_greedy=False)
    if all(each.least == 0 for each in made):
        made[0] = variable("A")
    skip = AfterMatch(draw(st.sampled_from([SkipTo.PAST_LAST_ROW, SkipTo.NEXT_ROW])))
    return pattern(*made, skip=skip, within_ms=draw(st.sampled_from([None, None, 3, 6])))


LETTERS = st.sampled_from(["", "a", "b", "c", "d", "ab", "bc", "cd", "abc", "abcd", "ac", "bd"])


@given(patterns(), st.lists(st.tuples(st.integers(0, 2), LETTERS), max_size=14))
@settings(max_examples=400, deadline=None)
def test_matches_are_those_of_a_model_that_tries_everything(
    of: PatternSpec, steps: list[tuple[int, str]]
) -> None:
    rows, time = [], 0
    for step, letters in steps:
        time += step
        rows.append((time, letters))
    columns = {3 + at: [name.lower() in letters for _, letters in rows] for at, name in enumerate(NAMES)}
    matching = Matching(of, columns)
    runs = Runs(matching.plan)
    found = matching.fed(runs, range(len(rows)), [each for each, _ in rows])
    # Those after an earlier start that rows have not decided about stay open.
    settled = [(each.bounds[0], each.bounds[-1] - 1) for each in found]
    undecided = [each.bounds[0] for each in runs.runs if each.bounds]
    expected = model(of, rows)
    assert settled == expected[: len(settled)]
    assert all(begin > min(undecided, default=len(rows)) for begin, _ in expected[len(settled) :])


@given(
    patterns(),
    st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 2), LETTERS), max_size=24),
    st.lists(st.integers(0, 24), max_size=4),
)
@settings(max_examples=25, deadline=None)
def test_results_do_not_depend_on_epochs_and_subtasks(
    of: PatternSpec, steps: list[tuple[str, int, str]], cuts: list[int]
) -> None:
    rows, time = [], 0
    for at, (key, step, letters) in enumerate(steps):
        time += step
        rows.append(row(at, letters, time, key))
    with tempfile.TemporaryDirectory() as directory:
        whole = Harness(node(of), [SCHEMA], [False], Path(directory))
        expected = whole.run(rows, before=-1, after=time)
    with tempfile.TemporaryDirectory() as directory:
        parts = Harness(node(of), [SCHEMA], [False], Path(directory), parallelism=2, forgets=True)
        found, start, before = [], 0, -1
        for number, cut in enumerate(sorted({*(min(each, len(rows)) for each in cuts), len(rows)})):
            after = rows[cut - 1][3] - 1 if cut else before
            found += parts.run(rows[start:cut], before=before, after=max(after, before))
            start, before = cut, max(after, before)
            if number == 1:
                parts.rescale(3)
        found += parts.run([], before=before, after=time)
    assert sorted(map(str, found)) == sorted(map(str, expected))


# -- time and state ----------------------------------------------------------------------------------------------


def test_rows_are_looked_at_in_the_order_of_time_when_the_watermark_has_passed(tmp_path: Path) -> None:
    job = Harness(node(AB), [SCHEMA], [False], tmp_path)
    assert job.run([row(1, "a", 1), row(4, "c", 4), row(2, "b", 2)], before=0, after=2) == []
    assert job.run([row(3, "b", 3)], before=2, after=4) == [("+I", "x", 1, 1, 2, 3, 4, 4)]
    assert job.state_rows == 0


def test_late_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    job = Harness(node(AB), [SCHEMA], [False], tmp_path)
    job.run([row(1, "a", 1), row(5, "b", 5)], before=0, after=5)
    assert job.run([row(6, "c", 6), row(2, "b", 2)], before=5, after=6) == [("+I", "x", 1, 1, 5, 5, 6, 6)]
    assert job.late == 1


def test_rows_of_one_time_are_sorted_by_further_keys(tmp_path: Path) -> None:
    job = Harness(node(AB, order=(Order("v", ascending=False),)), [SCHEMA], [False], tmp_path)
    rows = [row(1, "c", 7), row(3, "a", 7), row(2, "b", 7)]
    assert job.run(rows, before=0, after=7) == [("+I", "x", 3, 3, 2, 2, 1, 1)]


def test_state_is_freed_when_a_match_would_take_too_long(tmp_path: Path) -> None:
    within = pattern(variable("A"), variable("B", 1, None), variable("C"), within_ms=10)
    job = Harness(node(within), [SCHEMA], [False], tmp_path)
    job.run([row(1, "a", 1), row(2, "b", 2)], before=0, after=2)
    assert job.state_rows == 3  # two rows, and the partial match
    job.run([], before=2, after=10)
    assert job.state_rows == 3
    job.run([], before=10, after=11)
    assert job.state_rows == 0
    assert job.run([row(3, "c", 12)], before=11, after=12) == []


def test_rows_exactly_within_apart_do_not_match(tmp_path: Path) -> None:
    within = pattern(variable("A"), variable("B"), within_ms=10)
    job = Harness(node(within), [SCHEMA], [False], tmp_path)
    rows = [row(1, "a", 1), row(2, "b", 11), row(3, "a", 20), row(4, "b", 29)]
    assert job.run(rows, before=0, after=29) == [("+I", "x", 3, 3, 4, 4)]


def test_by_the_clock_partial_matches_expire_at_a_timer(tmp_path: Path) -> None:
    within = pattern(variable("A"), variable("B"), within_ms=10)
    job = Harness(node(within, time=None), [SCHEMA], [False], tmp_path)
    assert job.run([row(1, "a")], now_ms=100) == []
    assert job.timers == [110]
    job.run([], now_ms=110)
    assert (job.state_rows, job.timers) == (0, [])
    job.run([row(2, "a")], now_ms=120)
    assert job.run([row(3, "b")], now_ms=129) == [("+I", "x", 2, 2, 3, 3)]


def test_a_match_waits_for_an_earlier_start_until_that_expires(tmp_path: Path) -> None:
    # From row 1 on C could still come; from row 2 on it does not have to.
    of = pattern(
        variable("A"), variable("B", 2, None), variable("C"), within_ms=4, skip=AfterMatch(SkipTo.NEXT_ROW)
    )
    job = Harness(node(of), [SCHEMA], [False], tmp_path)
    rows = [row(1, "a", 1), row(2, "ab", 2), row(3, "b", 3), row(4, "bc", 4)]
    assert job.run(rows, before=0, after=4) == []
    assert job.run([row(5, "c", 5)], before=4, after=5) == [("+I", "x", 2, 2, 3, 4, 5, 5)]


# -- after a match -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        (AfterMatch(SkipTo.PAST_LAST_ROW), [(0, 3)]),
        (AfterMatch(SkipTo.NEXT_ROW), [(0, 3), (1, 3), (2, 3)]),
        (AfterMatch(SkipTo.FIRST, 1), [(0, 3)]),
    ],
)
def test_skipping_says_where_the_next_match_may_begin(
    skip: AfterMatch, expected: list[tuple[int, int]]
) -> None:
    of = pattern(variable("A", 1, None), variable("B"), skip=skip)
    matching = Matching(of, {3: [True, True, True, False], 4: [False, False, False, True]})
    found = matching.fed(Runs(matching.plan), range(4), range(4))
    assert [(each.bounds[0], each.bounds[-1] - 1) for each in found] == expected


@pytest.mark.parametrize(
    ("skip", "letters", "message"),
    [
        (AfterMatch(SkipTo.FIRST, 1), "a c", "TO FIRST B: the match has no row of B"),
        (AfterMatch(SkipTo.FIRST, 0), "a b c", "TO FIRST A: this is the first row of the match"),
        (AfterMatch(SkipTo.LAST, 0), "a c", "TO LAST A: this is the first row of the match"),
    ],
)
def test_skipping_to_a_row_that_cannot_be_skipped_to_fails(
    skip: AfterMatch, letters: str, message: str
) -> None:
    of = pattern(variable("A"), variable("B", 0, None), variable("C"), skip=skip)
    rows = letters.split()
    columns = {3 + at: [name in each for each in rows] for at, name in enumerate("abc")}
    matching = Matching(of, columns)
    with pytest.raises(JobExecutionError, match=message):
        matching.fed(Runs(matching.plan), range(len(rows)), range(len(rows)))


# -- conditions ------------------------------------------------------------------------------------------------------


def value_of(
    formula: Any, columns: dict[int, list[Any]], at: int, bounds: tuple[int, ...], own: int | None
) -> Any:
    return RowValues(columns).value(formula, own)(at, bounds)


NUMBERS = {0: [5, 7, None, 9]}


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (Cell(0, 0), 7),
        (Cell(0, 0, is_first=True), 5),
        (Cell(0, 0, 1), 5),
        (Cell(0, 0, 2), None),
        (Cell(0, 1), 9),
        (Cell(0, 1, 1), None),
        (Cell(0, 1, 0, is_first=True), None),
        (Cell(0, None), 9),
        (Cell(0, None, 3), 5),
        (Cell(0, None, 4), None),
        (Cell(0, 2), None),
    ],
)
def test_cells_count_the_current_row_among_those_of_its_variable(cell: Cell, expected: Any) -> None:
    # A has rows 0 and 1, B row 2; row 3 is to be one of B, too.
    assert value_of(cell, NUMBERS, 3, (0, 2, 3, 3), own=1) == expected


def test_a_row_that_is_not_there_has_the_value_of_another_column() -> None:
    columns = {0: [1, 2], 1: [-1, -2]}
    assert value_of(Cell(0, 0, 5, otherwise=1), columns, 1, (0, 1, 1), own=1) == -2


@pytest.mark.parametrize(
    ("function", "expected"),
    [("COUNT", 3), ("SUM", 21), ("AVG", 7), ("MIN", 5), ("MAX", 9), ("FIRST_VALUE", 5), ("LAST_VALUE", 9)],
)
def test_aggregates_leave_nulls_out(function: str, expected: int) -> None:
    assert value_of(Fold(function, 0, None, BIGINT), NUMBERS, 3, (0, 2, 3, 3), own=1) == expected


@pytest.mark.parametrize("function", ["SUM", "AVG", "MIN", "MAX", "STDDEV_POP"])
def test_aggregates_of_no_rows_are_null(function: str) -> None:
    assert value_of(Fold(function, 0, 2, BIGINT), NUMBERS, 3, (0, 2, 3, 3), own=1) is None


def test_an_aggregate_is_right_for_shorter_and_longer_stretches() -> None:
    total = RowValues({0: list(range(100))}).value(Fold("SUM", 0, 0, BIGINT), 0)
    assert [total(at, (begin, begin, begin)) for begin, at in ((0, 3), (0, 9), (0, 4), (2, 5), (0, 10))] == [
        sum(range(begin, at + 1)) for begin, at in ((0, 3), (0, 9), (0, 4), (2, 5), (0, 10))
    ]


D = pa.decimal128(10, 2)


@pytest.mark.parametrize(
    ("function", "operands", "kind", "expected"),
    [
        ("PLUS", (2**63 - 1, 1), BIGINT, -(2**63)),
        ("MINUS", (2**31, 0), pa.int32(), -(2**31)),
        ("DIVIDE", (-7, 2), BIGINT, -3),
        ("MOD", (-7, 2), BIGINT, -1),
        ("DIVIDE", (1.0, 0.0), DOUBLE, float("inf")),
        ("DIVIDE", (Decimal("1.00"), Decimal("3.00")), D, Decimal("0.33")),
        ("TIMES", (Decimal("99999999.99"), Decimal(100)), D, None),
        ("PLUS", (None, 1), BIGINT, None),
        ("AND", (None, False), BOOLEAN, False),
        ("AND", (None, True), BOOLEAN, None),
        ("OR", (None, True), BOOLEAN, True),
        ("NOT", (None,), BOOLEAN, None),
        ("IN", (1, None, 2), BOOLEAN, None),
        ("IN", (2, None, 2), BOOLEAN, True),
        ("CASE", (None, 1, True, 2, 3), BIGINT, 2),
        ("COALESCE", (None, 4), BIGINT, 4),
        ("NULLIF", (4, 4), BIGINT, None),
        ("IS_DISTINCT_FROM", (None, None), BOOLEAN, False),
        ("EQUALS", (float("nan"), float("nan")), BOOLEAN, True),
        ("GREATER_THAN", (float("nan"), float("inf")), BOOLEAN, True),
        ("CAST", (3.99,), pa.int32(), 3),
        ("CAST", (1e300,), pa.int32(), 2**31 - 1),
        ("ABS", (-(2**31),), pa.int32(), -(2**31)),
    ],
)
def test_functions_of_several_rows_are_those_of_sql(
    function: str, operands: tuple[Any, ...], kind: pa.DataType, expected: Any
) -> None:
    formula = Apply(function, tuple(map(FixedValue, operands)), kind)
    assert value_of(formula, {}, 0, (0,), own=0) == expected


def test_a_division_by_zero_fails_as_in_flink() -> None:
    formula = Apply("DIVIDE", (FixedValue(1), FixedValue(0)), BIGINT)
    with pytest.raises(JobExecutionError, match="division by zero"):
        value_of(formula, {}, 0, (0,), own=0)


def test_no_function_is_known_twice() -> None:
    assert not FUNCTIONS.keys() & NULL_SAFE.keys()


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (variable("A"), "A"),
        (variable("A", 0, 1), "A?"),
        (variable("A", 0, None, greedy=False), "A*?"),
        (variable("A", 1, None), "A+"),
        (variable("A", 2, 2), "A{2}"),
        (variable("A", 2, None), "A{2,}"),
        (variable("A", 0, 3, greedy=False), "A{0,3}?"),
    ],
)
def test_variables_are_shown_as_they_are_written(of: PatternVariable, text: str) -> None:
    assert str(of) == text
