"""Rows that come late, cut into epochs anywhere: what holds whatever the cuts (docs/design/0008-late-rows.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.common.types import RowKind
from headrace.metrics.reports import MetricName
from headrace.operators.window.late import LATE_DROPPED
from headrace.table import StreamTableEnvironment
from tests.differential.runs import Case, job_of, run_locally
from tests.differential.tables import BEGIN, DELAY_MS, Rows, register
from tests.engines import MINI
from tests.operators.table_harness import as_numbers
from tests.spark.sql_support import run_together
from tests.surveys import examples
from tests.watching import watching

_SIZE_MS, _STEP_MS, _GAP_MS = 6000, 3000, 2000
#: A row and its window, by when the window ends.
Pair = tuple[int, int]


def tumbling(ms: int) -> list[int]:
    return [ms // _SIZE_MS * _SIZE_MS + _SIZE_MS]


def hopping(ms: int) -> list[int]:
    first = ms // _STEP_MS * _STEP_MS + _STEP_MS
    return list(range(first, first + _SIZE_MS, _STEP_MS))


def cumulating(ms: int) -> list[int]:
    first, (last,) = ms // _STEP_MS * _STEP_MS + _STEP_MS, tumbling(ms)
    return list(range(first, last + 1, _STEP_MS))


@dataclass(frozen=True)
class Shape:
    """A query that tells the rows of each window.

    Args:
        rows: The table with its windows.
        ends: When the windows of a row end, by its time; None for sessions, which are as their rows are.
        is_ranked: Whether each row is told by itself; otherwise a window tells all its rows at once.
    """

    rows: str
    ends: Callable[[int], list[int]] | None
    is_ranked: bool = False

    @property
    def query(self) -> str:
        """The query: when a window ends, and ids of rows."""
        if not self.is_ranked:
            items = "window_end AS we, LISTAGG(CAST(id AS STRING)) AS ids"
            return f"SELECT {items} FROM {self.rows} GROUP BY window_start, window_end"
        number = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY id) AS n"
        numbered = f"SELECT *, {number} FROM {self.rows}"
        return f"SELECT window_end AS we, CAST(id AS STRING) AS ids FROM ({numbered}) WHERE n <= 99"


_TUMBLE = "TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '6' SECOND))"
_HOP = "TABLE(HOP(TABLE o, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '6' SECOND))"
_CUMULATE = "TABLE(CUMULATE(TABLE o, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '6' SECOND))"
_SESSION = "TABLE(SESSION(TABLE o, DESCRIPTOR(ts), INTERVAL '2' SECOND))"
SHAPES = {
    "tumble": Shape(_TUMBLE, tumbling),
    "hop": Shape(_HOP, hopping),
    "cumulate": Shape(_CUMULATE, cumulating),
    "session": Shape(_SESSION, None),
    "top-n": Shape(_TUMBLE, tumbling, is_ranked=True),
    "top-n of hop": Shape(_HOP, hopping, is_ranked=True),
}


@st.composite
def late_events(draw: st.DrawFn) -> tuple[Rows, list[int]]:
    """Rows in any order, and the time of each in ms."""
    times = draw(st.lists(st.integers(0, 40).map(lambda second: second * 1000), max_size=12))
    rows = [(number, "a", 1, BEGIN + timedelta(milliseconds=ms)) for number, ms in enumerate(times)]
    cuts = tuple(sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6))))
    return Rows(tuple(("+I", *row) for row in rows), tuple(rows), cuts, draw(st.booleans())), times


def on_time(times: Sequence[int], ends: Callable[[int], list[int]]) -> set[Pair]:
    """The rows with the windows that were not over when they came, by the rows before them."""
    newest, found = None, set()
    for number, ms in enumerate(times):
        found |= {(number, end) for end in ends(ms) if newest is None or end - 1 > newest - DELAY_MS}
        newest = ms if newest is None else max(newest, ms)
    return found


def told(shape: Shape, results: Iterable[Sequence[Any]]) -> set[Pair]:
    """See that each window is told once and each row in it; return the rows with their windows."""
    pairs: Counter[Pair] = Counter()
    windows: Counter[int] = Counter()
    for end, ids in results:
        end_us, begin_us = as_numbers([end, BEGIN])
        end_ms = (end_us - begin_us) // 1000
        windows[end_ms] += 1
        pairs.update((int(number), end_ms) for number in ids.split(","))
    assert set(pairs.values()) <= {1}
    assert shape.is_ranked or set(windows.values()) <= {1}
    return set(pairs)


def expected_drops(shape: Shape, times: Sequence[int], pairs: set[Pair]) -> int:
    """See that rows are in the windows they must be in and in no others; return how many have been dropped."""
    if shape.ends is None:
        # By the rows before it a session of its own would not be over; others may make it longer.
        needed = {number for number, _ in on_time(times, lambda ms: [ms + _GAP_MS])}
        found = [number for number, _ in pairs]
        assert len(found) == len(set(found))
        assert needed <= set(found)
        assert all(times[number] < end for number, end in pairs)
        return len(times) - len(found)
    assert on_time(times, shape.ends) <= pairs
    possible = {(number, end) for number, ms in enumerate(times) for end in shape.ends(ms)}
    assert pairs <= possible
    # An aggregation drops a row whose windows are all over, a ranking each row of a window that is.
    return (
        len(possible - pairs)
        if shape.is_ranked
        else len(set(range(len(times))) - {each for each, _ in pairs})
    )


def check_locally(env: Any, name: str, events: tuple[Rows, list[int]], **how: Any) -> None:
    """See that what is told and what is dropped is all there is."""
    (rows, times), shape = events, SHAPES[name]
    case = Case((shape.query,), {"o": rows}, **how)
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    engine = run_locally(job_of(t_env, case), case)
    ((*changes,),) = engine.results
    assert {mark for mark, *_ in changes} <= {"+I"}
    pairs = told(shape, [row for _, *row in changes])
    assert engine.late == expected_drops(shape, times, pairs)
    if len(rows.epochs) <= 2:  # nothing has been told before the last rows come
        assert engine.late == 0


_HOW = st.fixed_dictionaries(
    {
        "parallelism": st.integers(1, 2),
        "forgets": st.booleans(),
        "rescales": st.booleans(),
        "packs": st.booleans(),
    }
)
_ANY_PACE = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("name", SHAPES)
@settings(_ANY_PACE, derandomize=True, database=None, max_examples=12)
@given(events=late_events(), how=_HOW)
def test_only_rows_whose_window_was_emitted_are_dropped(env, name, events, how):
    check_locally(env, name, events, **how)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("name", SHAPES)
@settings(_ANY_PACE, max_examples=examples(500))
@given(events=late_events(), how=_HOW)
def test_the_same_of_many_rows(env, name, events, how):
    check_locally(env, name, events, **how)


def check_on_spark(
    t_env: StreamTableEnvironment, shapes: Sequence[Shape], rows: Rows, times: Sequence[int]
) -> int:
    """See the same of a job on Spark with several queries; return how many rows it dropped."""
    register(t_env, "o", rows)
    dropped = 0

    def count(_: Any, epoch: Any) -> None:
        nonlocal dropped
        late = MetricName(LATE_DROPPED)
        reports = [each for report in epoch.reports for each in report.user_metrics.values()]
        dropped += sum(each[late].increment for each in reports if late in each)

    with watching(on_epoch=count):
        results = run_together(t_env, [shape.query for shape in shapes])
    expected = 0
    for shape, changes in zip(shapes, results, strict=True):
        assert {change.get_row_kind() for change in changes} <= {RowKind.INSERT}
        expected += expected_drops(shape, times, told(shape, map(tuple, changes)))
    assert dropped == expected
    return dropped


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(_ANY_PACE, max_examples=examples(20), phases=[Phase.generate])
@given(events=late_events(), parallelism=st.integers(1, 2), max_records=st.integers(1, 4))
def test_the_same_on_spark(env, events, parallelism, max_records):
    rows, times = events
    t_env = StreamTableEnvironment.create(env(parallelism=parallelism, max_records=max_records))
    check_on_spark(t_env, list(SHAPES.values()), rows, times)


@pytest.mark.spark
def test_a_late_row_on_spark(env):
    """The last row comes two epochs after the one by which its window is over."""
    times = [1000, 30000, 31000, 0]
    rows = [(number, "a", 1, BEGIN + timedelta(milliseconds=ms)) for number, ms in enumerate(times)]
    table = Rows(tuple(("+I", *row) for row in rows), tuple(rows), (), tells_end=False)
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=1))
    assert check_on_spark(t_env, [SHAPES["tumble"], SHAPES["top-n"]], table, times) == 2
