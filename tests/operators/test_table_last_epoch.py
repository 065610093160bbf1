"""The epoch that a job ends with: operators may leave its state out, and emit what they would have emitted with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.operators.table.declarations import DeduplicateDeclaration, JoinKind, StatefulNode
from tests.operators import test_table_join, test_table_rank
from tests.operators.table_harness import Change, Harness

ROWS: list[Change] = [("+I", "a", 2), ("+I", "b", 5), ("+I", "a", 7)]
MORE: list[Change] = [("+I", "a", 3), ("+I", "c", 1), ("+I", "b", 9), ("+I", "a", 8)]


@pytest.mark.parametrize(
    "node",
    [
        test_table_rank.top(2, has_rank=True),
        test_table_rank.top(1),
        DeduplicateDeclaration(test_table_rank.ROW, keys=("k",), time=None, keep_last=True),
    ],
    ids=["top with ranks", "top without ranks", "last row"],
)
def test_ranks_without_state(node: StatefulNode, tmp_path: Path):
    kept, left_out = (
        Harness(node, [test_table_rank.ROW], [False], _new(tmp_path / name)) for name in ("kept", "left out")
    )
    for each in (kept, left_out):
        each.run(ROWS)
    assert left_out.run(MORE, is_final=True, keeps_state=False) == kept.run(MORE, is_final=True)
    assert (kept.changed_rows > 0, left_out.changed_rows) == (True, 0)


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI])
def test_joins_without_state(kind: JoinKind, tmp_path: Path):
    kept, left_out = (test_table_join.job(kind, _new(tmp_path / name)) for name in ("kept", "left out"))
    left: list[Change] = [("+I", 1, "a"), ("+I", 2, "b")]
    right: list[Change] = [("+I", 1, "x"), ("+I", 3, "y")]
    for each in (kept, left_out):
        each.run(left, right)
    more = ([("-D", 1, "a"), ("+I", 3, "c")], [("+I", 2, "z")])
    without = left_out.run(*more, is_final=True, keeps_state=False)
    assert without == kept.run(*more, is_final=True)
    assert without
    assert (kept.changed_rows > 0, left_out.changed_rows) == (True, 0)


def _new(directory: Path) -> Path:
    directory.mkdir()
    return directory
