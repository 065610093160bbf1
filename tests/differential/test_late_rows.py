"""Rows that come late, cut into epochs anywhere: what holds whatever the cuts (docs/design/0008-late-rows.md)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.table import StreamTableEnvironment
from tests.differential.runs import Case, _job_of, run_locally
from tests.differential.tables import BEGIN, DELAY_MS, Rows
from tests.engines import MINI
from tests.operators.table_harness import as_numbers

_SIZE_MS = 6000
#: The window of each row, and the rows themselves.
_QUERIES = (
    "SELECT window_end AS we, LISTAGG(CAST(id AS STRING)) AS ids "
    "FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '6' SECOND)) GROUP BY window_start, window_end",
    "SELECT window_end AS we, CAST(id AS STRING) AS ids FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, "
    "window_end ORDER BY id) AS n FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '6' SECOND))) WHERE n <= 99",
)


@st.composite
def late_events(draw: st.DrawFn) -> tuple[Rows, list[int]]:
    """Rows in any order, and the time of each in ms."""
    times = draw(st.lists(st.integers(0, 40).map(lambda second: second * 1000), max_size=12))
    rows = [(number, "a", 1, BEGIN + timedelta(milliseconds=ms)) for number, ms in enumerate(times)]
    cuts = tuple(sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6))))
    return Rows(tuple(("+I", *row) for row in rows), tuple(rows), cuts, draw(st.booleans())), times


def on_time(times: list[int]) -> set[int]:
    """The rows whose window was not over when they came, by the rows before them."""
    newest, found = -1, set()
    for number, ms in enumerate(times):
        end = ms // _SIZE_MS * _SIZE_MS + _SIZE_MS
        if newest < 0 or end - 1 > newest - DELAY_MS:
            found.add(number)
        newest = max(newest, ms)
    return found


@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("query", _QUERIES, ids=["aggregation", "top-n"])
@settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(events=late_events(), parallelism=st.integers(1, 2), forgets=st.booleans())
def test_only_rows_whose_window_was_told_are_dropped(env, query, events, parallelism, forgets):
    rows, times = events
    case = Case((query,), {"o": rows}, parallelism, forgets)
    t_env = StreamTableEnvironment.create(env(parallelism=parallelism))
    ((*changes,),) = run_locally(_job_of(t_env, case), case)
    told: dict[int, set[int]] = {}
    for mark, end, ids in changes:
        end_us, begin_us = as_numbers([end, BEGIN])
        end_ms = (end_us - begin_us) // 1000
        assert mark == "+I"
        members = {int(number) for number in ids.split(",")}
        window = told.setdefault(end_ms, set())
        if "LISTAGG" in query:
            assert not window, "a window is told once"
        assert not window & members
        window |= members
    found = set().union(*told.values())
    assert found >= on_time(times)
    assert found <= set(range(len(times)))
    assert all(
        times[number] // _SIZE_MS == (end - 1) // _SIZE_MS for end, ids in told.items() for number in ids
    )
    if len(rows.epochs) <= 2:  # nothing has been told before the last rows come
        assert len(found) == len(times)
