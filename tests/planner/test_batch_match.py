"""MATCH_RECOGNIZE in BATCH mode: the function that finds matches in the rows of a key."""

from __future__ import annotations

import pickle

import pyarrow as pa

from headrace.operators.table.match_declarations import PatternSpec
from headrace.operators.table.match_formulas import Apply, Cell, FixedValue, Fold
from headrace.operators.table.match_pattern import AfterMatch, PatternVariable
from headrace.planner.batch_match import MatchRows

#: A is below 3, B is not; column 1 is what is summed up, and column 0 only its place is told of.
BELOW = Apply("LESS_THAN", (Cell(1, 0), FixedValue(3)), pa.bool_())
ABOVE = Apply("GREATER_THAN_OR_EQUAL", (Cell(1, 1), FixedValue(3)), pa.bool_())
PATTERN = PatternSpec(
    (PatternVariable("A", 1, None), PatternVariable("B")),
    (BELOW, ABOVE),
    (Cell(0, 0, is_first=True), Cell(0, 0, 1), Fold("SUM", 1, 0, pa.int64()), None),
    AfterMatch(),
    within_ms=10,
)


def test_places_sums_and_the_time_of_matches_are_returned() -> None:
    # Of each row its time, and column 1.
    rows = [(100, 1), (101, 2), (102, 5), (103, 1), (104, 7), (105, 9)]
    assert MatchRows(PATTERN)(rows) == [(0, 0, 3, 102), (3, -1, 1, 104)]


def test_rows_that_are_too_far_apart_do_not_match() -> None:
    assert MatchRows(PATTERN)([(100, 1), (110, 5)]) == []


def test_an_empty_table_has_no_matches() -> None:
    assert MatchRows(PATTERN)([]) == []


def test_a_pattern_without_measures_gives_a_row_for_each_match() -> None:
    bare = PatternSpec(PATTERN.variables, PATTERN.conditions, ())
    assert MatchRows(bare)([(100, 1), (101, 5)]) == [(0,)]


def test_the_function_travels_to_workers() -> None:
    again = pickle.loads(pickle.dumps(MatchRows(PATTERN)))
    assert again([(100, 1), (101, 5)]) == [(0, -1, 1, 101)]
