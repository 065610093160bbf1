"""Temporal joins: each row with the version of its time, whatever the epochs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.operators.table.declarations import JoinKind
from headrace.operators.table.steps import StepColumn
from headrace.operators.table.timed_declarations import TemporalJoinDeclaration
from tests.operators.table_harness import Change, Harness

LEFT = (
    StepColumn("a", "BIGINT", pa.int64()),
    StepColumn("k", "STRING", pa.string()),
    StepColumn("t", "BIGINT", pa.int64()),
)
RIGHT = (
    StepColumn("j", "STRING", pa.string()),
    StepColumn("b", "BIGINT", pa.int64()),
    StepColumn("s", "BIGINT", pa.int64()),
)


def join(kind: JoinKind = JoinKind.LEFT, *, is_insert_only: bool = True) -> TemporalJoinDeclaration:
    return TemporalJoinDeclaration(
        (*LEFT, *RIGHT), kind, ("k",), ("j",), "t", "s", is_insert_only=is_insert_only
    )


def test_a_row_joins_the_version_of_its_time(tmp_path: Path) -> None:
    job = Harness(join(), [LEFT, RIGHT], [False, True], tmp_path)
    versions = [
        ("+I", "x", 1, 4),
        ("-U", "x", 1, 7),
        ("+U", "x", 2, 7),
        ("-D", "x", 2, 9),
        ("+I", "x", 3, 12),
    ]
    rows = [("+I", number, "x", time) for number, time in enumerate((3, 4, 6, 7, 10, 12))]
    assert job.run([*rows, ("+I", 9, None, 5)], versions, before=0, after=2) == []
    emitted = job.run([], [], before=2, after=20)
    assert [(row[1], row[5]) for row in emitted] == [
        (0, None),
        (1, 1),
        (2, 1),
        (3, 2),
        (4, None),
        (5, 3),
        (9, None),
    ]
    assert job.state_rows == 1  # the last version


def test_an_inner_join_leaves_rows_without_a_version_out(tmp_path: Path) -> None:
    job = Harness(join(JoinKind.INNER), [LEFT, RIGHT], [False, False], tmp_path)
    job.run([("+I", 1, "x", 3), ("+I", 2, "x", 5), ("+I", 3, "y", 5)], [("+I", "x", 7, 4)], before=0, after=0)
    assert job.run([], [], before=0, after=9) == [("+I", 2, "x", 5, "x", 7, 4)]


def test_late_rows_are_dropped_and_late_versions_count_from_now_on(tmp_path: Path) -> None:
    job = Harness(join(), [LEFT, RIGHT], [False, False], tmp_path)
    job.run([], [("+I", "x", 1, 1)], before=0, after=10)
    assert job.run([("+I", 1, "x", 10)], [("+I", "x", 2, 5)], before=10, after=10) == []
    assert job.late == 1
    assert job.run([("+I", 2, "x", 12)], [], before=10, after=12) == [("+I", 2, "x", 12, "x", 2, 5)]
    assert job.state_rows == 1


def test_rows_keep_their_kinds(tmp_path: Path) -> None:
    job = Harness(join(is_insert_only=False), [LEFT, RIGHT], [True, False], tmp_path)
    job.run([("-U", 1, "x", 3), ("+U", 1, "x", 5)], [("+I", "x", 7, 4)], before=0, after=0)
    assert job.run([], [], before=0, after=9) == [
        ("-U", 1, "x", 3, None, None, None),
        ("+U", 1, "x", 5, "x", 7, 4),
    ]


ROWS = st.lists(st.tuples(st.sampled_from("xy"), st.integers(1, 15)), max_size=12)
VERSIONS = st.lists(
    st.tuples(st.sampled_from("xy"), st.integers(0, 9), st.integers(1, 15), st.booleans()), max_size=12
)


@settings(deadline=None, max_examples=40)
@given(ROWS, VERSIONS, st.lists(st.integers(0, 12), max_size=4))
def test_any_cut_into_epochs_gives_the_same_rows(rows, versions, cuts) -> None:
    expected = []
    for number, (key, time) in enumerate(rows):
        found = [each for each in versions if each[0] == key and each[2] <= time]
        newest = max((each[2] for each in found), default=None)
        *_, (_, value, _, is_gone) = [
            (None, None, None, True),
            *(each for each in found if each[2] == newest),
        ]
        value = None if is_gone else value
        expected.append((number, value))
    with tempfile.TemporaryDirectory() as directory:
        job = Harness(join(), [LEFT, RIGHT], [False, True], Path(directory))
        emitted: list[Change] = []
        watermark = 0
        bounds = sorted({*cuts, 12})
        for start, end in zip([0, *bounds], bounds, strict=False):
            to_come = [time for _, time in rows[end:]] + [each[2] for each in versions[end:]]
            after = max(watermark, min(to_come, default=100) - 1)
            left = [("+I", start + at, *row) for at, row in enumerate(rows[start:end])]
            right = [("-D" if gone else "+I", *row) for *row, gone in versions[start:end]]
            emitted += job.run(left, right, before=watermark, after=after)
            watermark = after
    assert sorted(((row[1], row[5]) for row in emitted), key=lambda pair: pair[0]) == expected
