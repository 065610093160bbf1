"""Window aggregation: each window once, when the watermark has passed it; what comes too late is counted."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.elements import MAX_WATERMARK
from headrace.operators.table.declarations import (
    AggSpec,
    TableWindowSpec,
    WindowAggregateDeclaration,
    WindowKind,
)
from headrace.operators.table.steps import StepColumn
from tests.operators.table_harness import Change, Harness

USER = StepColumn("user", "STRING", pa.string())
TIME = StepColumn("ts", "BIGINT", pa.int64())
AMOUNT = StepColumn("amount", "BIGINT", pa.int64())
INPUT = (USER, TIME, AMOUNT)
N, S = StepColumn("n", "BIGINT", pa.int64()), StepColumn("s", "BIGINT", pa.int64())
START = StepColumn("window_start", "TIMESTAMP_NTZ", pa.timestamp("us"))
END = StepColumn("window_end", "TIMESTAMP_NTZ", pa.timestamp("us"))
CALLS = (AggSpec("COUNT", (), N), AggSpec("SUM", ("amount",), S))
DISTINCT = StepColumn("d", "BIGINT", pa.int64())
DISTINCT_CALLS = (*CALLS, AggSpec("COUNT", ("amount",), DISTINCT, distinct=True))


def node(window: TableWindowSpec) -> WindowAggregateDeclaration:
    return WindowAggregateDeclaration(
        (USER, N, S, START, END),
        window=window,
        keys=("user",),
        calls=CALLS,
        properties=("window_start", "window_end"),
        is_insert_only=True,
    )


def job(window: TableWindowSpec, directory: Path, **how: Any) -> Harness:
    return Harness(node(window), [INPUT], [False], directory, **how)


def plain(changes: list[Change]) -> list[tuple[Any, ...]]:
    """Return rows with start and end of their windows in ms."""
    rows = []
    for mark, *values, start, end in changes:
        assert mark == "+I"
        bounds = [int(time.replace(tzinfo=dt.UTC).timestamp() * 1000) for time in (start, end)]
        rows.append((*values, *bounds))
    return sorted(rows)


def tumble(size: int, offset: int = 0) -> TableWindowSpec:
    return TableWindowSpec(WindowKind.TUMBLE, "ts", size_ms=size, offset_ms=offset)


def test_a_window_fires_once_behind_its_end(tmp_path: Path):
    windows = job(tumble(10), tmp_path)
    assert windows.run([("+I", "ann", 1, 5), ("+I", "ann", 9, 1), ("+I", "bob", 12, 7)]) == []
    assert windows.run([("+I", "ann", 3, 2)], before=0, after=8) == []
    assert plain(windows.run([], before=8, after=9)) == [("ann", 3, 8, 0, 10)]
    assert windows.run([], before=9, after=15) == []
    assert plain(windows.run([], before=15, after=MAX_WATERMARK)) == [("bob", 1, 7, 10, 20)]
    assert windows.state_rows == 0


def test_rows_of_a_window_that_has_fired_are_late(tmp_path: Path):
    windows = job(tumble(10), tmp_path)
    windows.run([("+I", "ann", 1, 5)], before=0, after=12)
    assert windows.run([("+I", "ann", 2, 5), ("+I", "ann", 3, 5)], before=12, after=13) == []
    assert windows.late == 2
    assert windows.state_rows == 0


def test_a_late_row_counts_in_the_hops_that_have_not_fired(tmp_path: Path):
    windows = job(TableWindowSpec(WindowKind.HOP, "ts", size_ms=20, slide_ms=10), tmp_path)
    assert plain(windows.run([("+I", "ann", 5, 1)], before=0, after=9)) == [("ann", 1, 1, -10, 10)]
    assert plain(windows.run([("+I", "ann", 6, 1)], before=9, after=19)) == [("ann", 2, 2, 0, 20)]
    windows.run([("+I", "ann", 7, 1)], before=19, after=25)
    assert windows.late == 1


def test_windows_that_come_and_go_within_an_epoch_leave_state_alone(tmp_path: Path):
    windows = job(tumble(10), tmp_path)
    windows.run([("+I", "ann", 15, 1), ("+I", "bob", 25, 1)], before=0, after=9)
    came_and_went = [("+I", "ann", 11, 2), ("+I", "bob", 12, 3), ("+I", "bob", 34, 4)]
    fired = windows.run(came_and_went, before=9, after=19)
    assert plain(fired) == [("ann", 2, 3, 10, 20), ("bob", 1, 3, 10, 20)]
    assert windows.changed_rows == 2  # ann's stored slice goes, bob's last one comes
    assert windows.state_rows == 2


@pytest.mark.parametrize(
    "window",
    [
        tumble(10),
        TableWindowSpec(WindowKind.HOP, "ts", size_ms=20, slide_ms=5),
        TableWindowSpec(WindowKind.CUMULATE, "ts", size_ms=20, slide_ms=5),
        TableWindowSpec(WindowKind.SESSION, "ts", gap_ms=3),
    ],
    ids=lambda window: window.kind.value,
)
def test_windows_that_are_over_come_in_the_order_of_their_ends(window: TableWindowSpec, tmp_path: Path):
    windows = job(window, tmp_path)
    windows.run([("+I", user, at, 1) for at in (31, 2, 17, 8) for user in ("ann", "bob", "eve")])
    ends = [row[-1] for row in windows.run([("+I", "tom", 24, 1)], after=MAX_WATERMARK)]
    assert len(set(ends)) > 3
    assert ends == sorted(ends)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            WindowKind.CUMULATE,
            {11: [("ann", 1, 1, 0, 10)], 21: [("ann", 2, 3, 0, 20)], 31: [("ann", 2, 3, 0, 30)]},
        ),
        (
            WindowKind.HOP,
            {
                11: [("ann", 1, 1, -20, 10)],
                21: [("ann", 2, 3, -10, 20)],
                31: [("ann", 2, 3, 0, 30)],
                60: [("ann", 1, 2, 10, 40)],
            },
        ),
    ],
    ids=lambda each: each.value if isinstance(each, WindowKind) else "",
)
@pytest.mark.parametrize("forgets", [False, True])
def test_a_window_of_the_clock_fires_once_though_its_slices_stay(
    kind: WindowKind, expected: dict[int, list[Any]], forgets: bool, tmp_path: Path
):
    windows = job(TableWindowSpec(kind, None, size_ms=30, slide_ms=10), tmp_path, forgets=forgets)
    added = {5: 1, 13: 2}
    for now in (5, 11, 12, 13, 21, 22, 31, 32, 60, 61):
        rows = [("+I", "ann", None, added[now])] if now in added else []
        assert plain(windows.run(rows, now_ms=now)) == expected.get(now, []), now
    assert windows.state_rows == 0


def test_windows_are_shifted_by_their_offset(tmp_path: Path):
    windows = job(tumble(10, offset=-3), tmp_path)
    windows.run([("+I", "ann", 6, 1), ("+I", "ann", 7, 1)])
    assert plain(windows.run([], after=MAX_WATERMARK)) == [("ann", 1, 1, -3, 7), ("ann", 1, 1, 7, 17)]


def test_rows_without_a_time_are_in_no_window(tmp_path: Path):
    windows = job(tumble(10), tmp_path)
    assert windows.run([("+I", "ann", None, 1)], after=MAX_WATERMARK) == []


def test_windows_of_the_clock_close_when_it_passes_them(tmp_path: Path):
    windows = job(TableWindowSpec(WindowKind.TUMBLE, None, size_ms=10), tmp_path)
    assert windows.run([("+I", "ann", None, 1)], now_ms=23) == []
    assert windows.timers == [30]
    assert windows.run([("+I", "ann", None, 2)], now_ms=29) == []
    assert plain(windows.run([], now_ms=30)) == [("ann", 2, 3, 20, 30)]
    assert windows.timers == []


@pytest.mark.parametrize("kind", [WindowKind.TUMBLE, WindowKind.CUMULATE, WindowKind.SESSION])
def test_processing_time_windows_follow_the_wall_clock(kind: WindowKind, tmp_path: Path):
    hour = 3_600_000
    window = TableWindowSpec(
        kind, None, size_ms=24 * hour, slide_ms=12 * hour, gap_ms=2 * hour, zone="Asia/Tokyo"
    )  # nine hours ahead of UTC
    windows = job(window, tmp_path)
    assert windows.run([("+I", "ann", None, 7)], now_ms=16 * hour) == []
    assert windows.timers == [
        {WindowKind.TUMBLE: 39, WindowKind.CUMULATE: 27, WindowKind.SESSION: 18}[kind] * hour
    ]
    expected = {
        WindowKind.TUMBLE: [("ann", 1, 7, 24, 48)],
        WindowKind.CUMULATE: [("ann", 1, 7, 24, 36), ("ann", 1, 7, 24, 48)],
        WindowKind.SESSION: [("ann", 1, 7, 25, 27)],
    }[kind]
    fired = plain(windows.run([], now_ms=40 * hour))
    assert fired == [(*row[:3], row[3] * hour, row[4] * hour) for row in expected]


def test_rows_that_have_their_windows_are_aggregated_by_them(tmp_path: Path):
    start, end = StepColumn("ws", "BIGINT", pa.int64()), StepColumn("we", "BIGINT", pa.int64())
    declaration = WindowAggregateDeclaration(
        (USER, N, S, START, END),
        window=None,
        keys=("user",),
        calls=CALLS,
        start="ws",
        end="we",
        properties=("window_start", "window_end"),
        is_insert_only=True,
    )
    windows = Harness(declaration, [(USER, AMOUNT, start, end)], [False], tmp_path)
    windows.run([("+I", "ann", 1, 0, 20), ("+I", "ann", 2, 10, 20), ("+I", "ann", 3, 0, 20)])
    assert plain(windows.run([], after=19)) == [("ann", 1, 2, 10, 20), ("ann", 2, 4, 0, 20)]


def test_a_changelog_takes_rows_back_out_of_their_windows(tmp_path: Path):
    windows = Harness(node(tumble(10)), [INPUT], [True], tmp_path)
    windows.run([("+I", "ann", 1, 5), ("+I", "bob", 1, 5)])
    windows.run([("-U", "ann", 1, 5), ("+U", "ann", 1, 6), ("-D", "bob", 1, 5)])
    assert plain(windows.run([], after=9)) == [("ann", 1, 6, 0, 10)]


def session(gap: int, time: str | None = "ts") -> TableWindowSpec:
    return TableWindowSpec(WindowKind.SESSION, time, gap_ms=gap)


def test_sessions_grow_merge_and_fire_behind_their_end(tmp_path: Path):
    windows = job(session(5), tmp_path)
    assert windows.run([("+I", "ann", 1, 1), ("+I", "ann", 10, 2), ("+I", "bob", 3, 7)]) == []
    assert windows.run([("+I", "ann", 5, 4)], before=0, after=7) == plain_changes("bob", 1, 7, 3, 8)
    assert plain(windows.run([("+I", "bob", 2, 1)], before=7, after=14)) == [("ann", 3, 7, 1, 15)]
    assert windows.late == 1
    assert windows.state_rows == 0


def plain_changes(user: str, n: int, s: int, start: int, end: int) -> list[Change]:
    bounds = [dt.datetime.fromtimestamp(ms / 1000, dt.UTC).replace(tzinfo=None) for ms in (start, end)]
    return [("+I", user, n, s, *bounds)]


def test_sessions_of_the_clock_end_when_nothing_comes_for_so_long(tmp_path: Path):
    windows = job(session(10, None), tmp_path)
    assert windows.run([("+I", "ann", None, 1)], now_ms=20) == []
    assert windows.timers == [30]
    assert windows.run([("+I", "ann", None, 2)], now_ms=29) == []
    assert windows.timers == [39]
    # A row that comes as the session ends begins the next one.
    assert plain(windows.run([("+I", "ann", None, 5)], now_ms=39)) == [("ann", 2, 3, 20, 39)]
    assert windows.timers == [49]
    assert plain(windows.run([], now_ms=60)) == [("ann", 1, 5, 39, 49)]
    assert windows.timers == []
    assert windows.state_rows == 0


def test_rows_that_are_taken_back_leave_their_session(tmp_path: Path):
    windows = Harness(node(session(5)), [INPUT], [True], tmp_path)
    windows.run([("+I", "ann", 1, 5), ("+I", "bob", 1, 5)])
    windows.run([("-U", "ann", 1, 5), ("+U", "ann", 3, 6), ("-D", "bob", 1, 5)])
    assert plain(windows.run([], after=20)) == [("ann", 1, 6, 1, 8)]


LISTED = StepColumn("l", "STRING", pa.string())
ITEMS = StepColumn("i", "ARRAY<BIGINT>", pa.list_(pa.int64()))
LEAST = StepColumn("m", "BIGINT", pa.int64())


@pytest.mark.parametrize(
    ("window", "retracts"),
    [
        (session(5), False),
        (session(5), True),
        (session(5, None), True),
        (TableWindowSpec(WindowKind.TUMBLE, None, size_ms=10), True),
        (tumble(10), True),
        (TableWindowSpec(WindowKind.CUMULATE, "ts", size_ms=10, slide_ms=5), False),
    ],
)
def test_values_of_a_window_are_counted_once_and_listed(
    tmp_path: Path, window: TableWindowSpec, retracts: bool
):
    calls = (
        AggSpec("COUNT", ("amount",), DISTINCT, distinct=True),
        AggSpec("SUM", ("amount",), S, distinct=True),
        AggSpec("MIN", ("amount",), LEAST),
        AggSpec("LISTAGG", ("user",), LISTED, separator="-"),
        AggSpec("ARRAY_AGG", ("amount",), ITEMS),
        AggSpec("COUNT", ("user", "amount"), replace(N, name="pairs"), distinct=True),
        AggSpec("ARRAY_AGG", ("amount",), replace(ITEMS, name="once"), distinct=True),
    )
    declaration = WindowAggregateDeclaration(
        (*(call.result for call in calls), START, END),
        window=window,
        keys=(),
        calls=calls,
        properties=("window_start", "window_end"),
        is_insert_only=True,
    )
    windows = Harness(declaration, [INPUT], [retracts], tmp_path)
    windows.run([("+I", "a", 1, 4), ("+I", "b", 2, 7)], now_ms=1)
    more = [("+I", "c", 2, 4), ("+I", "d", 2, None), ("+I", "a", 2, 4)]
    more += [("+I", "e", 2, 1), ("-D", "e", 2, 1)] if retracts else []
    windows.run(more, now_ms=3)
    fired = windows.run([], after=99, now_ms=99)
    assert fired[-1][1:-2] == (2, 11, 4, "a-b-c-d-a", [4, 7, 4, None, 4], 3, [4, 7, None])


def test_a_window_has_its_next_highest_value_after_a_retraction(tmp_path: Path):
    high = WindowAggregateDeclaration(
        (USER, S, START, END),
        window=tumble(10),
        keys=("user",),
        calls=(AggSpec("MAX", ("amount",), S),),
        properties=("window_start", "window_end"),
        is_insert_only=True,
    )
    windows = Harness(high, [INPUT], [True], tmp_path)
    windows.run([("+I", "ann", 1, 5), ("+I", "ann", 2, 9), ("+I", "ann", 3, 7)])
    windows.run([("-D", "ann", 2, 9)])
    assert [row[1:3] for row in windows.run([], after=9)] == [("ann", 7)]
    assert windows.state_rows == 0


# -- against a model -------------------------------------------------------------------------------------------


def windows_of(spec: TableWindowSpec, time: int) -> list[tuple[int, int]]:
    if spec.kind is WindowKind.TUMBLE:
        start = time - (time - spec.offset_ms) % spec.size_ms
        return [(start, start + spec.size_ms)]
    if spec.kind is WindowKind.HOP:
        last = time - (time - spec.offset_ms) % spec.slide_ms
        starts = range(last, last - spec.size_ms - spec.slide_ms, -spec.slide_ms)
        return [(start, start + spec.size_ms) for start in starts if start <= time < start + spec.size_ms]
    start = time - (time - spec.offset_ms) % spec.size_ms
    ends = range(start + spec.slide_ms, start + spec.size_ms + 1, spec.slide_ms)
    return [(start, end) for end in ends if end > time]


SPECS = [
    tumble(7, 2),
    TableWindowSpec(WindowKind.HOP, "ts", size_ms=12, slide_ms=4),
    TableWindowSpec(WindowKind.HOP, "ts", size_ms=10, slide_ms=4, offset_ms=1),
    TableWindowSpec(WindowKind.HOP, "ts", size_ms=4, slide_ms=10),
    TableWindowSpec(WindowKind.CUMULATE, "ts", size_ms=12, slide_ms=4, offset_ms=-1),
]
rows = st.tuples(st.just("+I"), st.sampled_from(["ann", "bob"]), st.integers(-20, 60), st.integers(0, 9))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.kind.value}-{spec.size_ms}-{spec.slide_ms}")
@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.lists(rows, max_size=6), st.integers(0, 15)), max_size=5),
    st.integers(1, 2),
    st.booleans(),
)
def test_every_window_has_the_rows_that_came_before_it_fired(
    spec: TableWindowSpec, epochs: list[tuple[list[Change], int]], parallelism: int, forgets: bool
):
    with tempfile.TemporaryDirectory() as directory:
        declaration = replace(node(spec), output=(USER, N, S, DISTINCT, START, END), calls=DISTINCT_CALLS)
        windows = Harness(
            declaration, [INPUT], [False], Path(directory), parallelism=parallelism, forgets=forgets
        )
        contents: dict[tuple[str, int, int], list[int]] = defaultdict(list)
        before, dropped, results = -100, 0, []
        for position, (epoch, step) in enumerate(epochs):
            for _, user, time, amount in epoch:
                around = windows_of(spec, time)
                waiting = [window for window in around if window[1] - 1 > before]
                dropped += bool(around) and not waiting
                for start, end in waiting:
                    contents[user, start, end].append(amount)
            after = before + step
            results += windows.run(epoch, before=before, after=after)
            before = after
            if position == 2:
                windows.rescale(parallelism + 1)
        results += windows.run([], before=before, after=MAX_WATERMARK, is_final=True)
        expected = [
            (user, len(of), sum(of), len(set(of)), start, end) for (user, start, end), of in contents.items()
        ]
        assert plain(results) == sorted(expected)
        if spec.size_ms >= spec.slide_ms:
            assert windows.late == dropped
        assert windows.state_rows == 0
