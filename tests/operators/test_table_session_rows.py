"""SESSION windows over rows that stay rows, whatever the epochs."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.elements import MAX_WATERMARK
from headrace.operators.table.steps import StepColumn
from headrace.operators.table.timed_declarations import SessionRowsDeclaration
from tests.operators.table_harness import Harness

K, V, T = (
    StepColumn("k", "STRING", pa.string()),
    StepColumn("v", "BIGINT", pa.int64()),
    StepColumn("t", "BIGINT", pa.int64()),
)
BOUNDS = tuple(StepColumn(name, "TIMESTAMP_NTZ", pa.timestamp("us")) for name in ("s", "e", "w"))


def sessions(tmp_path: Path, gap_ms: int = 3) -> Harness:
    node = SessionRowsDeclaration((K, V, T, *BOUNDS), ("k",), "t", gap_ms, is_insert_only=True)
    return Harness(node, [(K, V, T)], [False], tmp_path)


def row(key: str, value: int, time: int, start: int, end: int) -> tuple[object, ...]:
    bounds = (
        datetime.fromisoformat("1970-01-01") + timedelta(milliseconds=each) for each in (start, end, end - 1)
    )
    return ("+I", key, value, time, *bounds)


def test_rows_come_out_with_their_session_when_it_is_over(tmp_path: Path) -> None:
    job = sessions(tmp_path)
    assert job.run([("+I", "a", 1, 1), ("+I", "b", 2, 2)], before=0, after=2) == []
    # The end of b's session is 5; a's grows to 8.
    assert job.run([("+I", "a", 3, 5), ("+I", "a", 4, 2)], before=2, after=4) == [row("b", 2, 2, 2, 5)]
    assert job.run([("+I", "a", 5, 20)], before=4, after=7) == [
        row("a", 1, 1, 1, 8),
        row("a", 3, 5, 1, 8),
        row("a", 4, 2, 1, 8),
    ]
    assert job.state_rows == 1


def test_a_row_that_touches_a_session_is_part_of_it_and_one_that_meets_none_is_late(tmp_path: Path) -> None:
    job = sessions(tmp_path)
    job.run([("+I", "a", 1, 5)], before=0, after=6)
    assert job.run([("+I", "a", 2, 2), ("+I", "b", 3, 3)], before=6, after=6) == []
    assert job.late == 1  # of b: [3, 6) is over
    assert job.run([], before=6, after=7) == [row("a", 1, 5, 2, 8), row("a", 2, 2, 2, 8)]


@pytest.mark.parametrize("seed", range(20))
def test_epochs_make_no_difference(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    rows = [("+I", choose.choice("ab"), at, choose.randrange(60)) for at in range(40)]
    (tmp_path / "whole").mkdir()
    whole = sessions(tmp_path / "whole").run(rows, before=0, after=MAX_WATERMARK)
    (tmp_path / "parts").mkdir()
    job, parts = sessions(tmp_path / "parts"), []
    rest = sorted(rows, key=lambda each: each[3] + choose.randrange(5))
    reached = 0
    while rest:
        count = choose.randrange(1, 6)
        now, rest = rest[:count], rest[count:]
        # A row at the end of a session would make it longer, or find it emitted: that goes by who comes first.
        after = max(reached, min((each[3] for each in rest), default=MAX_WATERMARK) - 2)
        parts += job.run(now, before=reached, after=after)
        reached = after
    assert sorted(parts) == sorted(whole)
    assert len(whole) == len(rows)
    assert job.late == 0


@pytest.mark.parametrize(("zone", "ahead_ms"), [(None, 0), ("Europe/Berlin", 3_600_000)])
def test_the_clock_ends_sessions_of_processing_time(tmp_path: Path, zone: str | None, ahead_ms: int) -> None:
    node = SessionRowsDeclaration((K, V, *BOUNDS), ("k",), None, 3, zone=zone, is_insert_only=True)
    job = Harness(node, [(K, V)], [False], tmp_path)

    def emitted(key: str, value: int, start: int, end: int) -> tuple[object, ...]:
        kind, *_, begin, over, last = row(key, value, 0, start + ahead_ms, end + ahead_ms)
        return kind, key, value, begin, over, last

    assert job.run([("+I", "a", 1), ("+I", "b", 2)], now_ms=10) == []
    assert job.timers == [13]
    assert job.run([("+I", "a", 3)], now_ms=12) == []
    assert job.run([], now_ms=13) == [emitted("b", 2, 10, 13)]
    # A session is over when the clock reaches its end: what comes then begins another.
    assert job.run([("+I", "a", 4)], now_ms=15) == [emitted("a", 1, 10, 15), emitted("a", 3, 10, 15)]
    assert job.timers == [18]
    assert job.run([], now_ms=18) == [emitted("a", 4, 15, 18)]
    assert job.timers == []
    assert job.state_rows == 0
