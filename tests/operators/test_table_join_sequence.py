"""Joins a change at a time: the very changes that Flink's streaming joins emit, by a model that follows their rules.

a row comes   no match   outer side: +I with NULLs; ANTI: the row as it came
              matches    other side outer: -D with NULLs of those that had none; +I of each pair (of an inner join the
                         kind that came); SEMI: the row as it came
a row goes    no match   outer side: -D with NULLs; ANTI: the row as it went
              matches    -D of each pair (the kind that went if this side is not outer); other side outer: +I with NULLs
                         of those that have none now; SEMI: the row as it went
Rows that SEMI lets through or takes back for a change of the other side have the kind of that change; those of ANTI
come with +I and go with -D.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.operators.table.declarations import JoinKind
from tests.operators.table_harness import Change
from tests.operators.test_table_join import ONE_SIDED, job

NOTHING = (None, None)
OUTER = {
    JoinKind.INNER: (False, False),
    JoinKind.LEFT: (True, False),
    JoinKind.RIGHT: (False, True),
    JoinKind.FULL: (True, True),
}


class StreamingJoin:
    """What a join emits for one change; both sides are plain lists."""

    def __init__(self, kind: JoinKind) -> None:
        self._kind = kind
        self._rows: tuple[list[Any], list[Any]] = ([], [])

    def process(self, side: int, mark: str, row: tuple[Any, ...]) -> list[Change]:
        comes = mark in ("+I", "+U")
        own, other = self._rows[side], self._rows[1 - side]
        if not comes:
            own.remove(row)
        matches = [each for each in other if row[0] is not None and each[0] == row[0]]
        # How many rows of this side the others are matched by, without this one.
        fellows = sum(each[0] == row[0] for each in own)
        if comes:
            own.append(row)
        if self._kind in ONE_SIDED:
            return self._one_sided(side, mark, row, matches, fellows)
        return self._two_sided(side, mark, row, matches, fellows)

    def _two_sided(
        self, side: int, mark: str, row: tuple[Any, ...], matches: list[Any], fellows: int
    ) -> list[Change]:
        outer = OUTER[self._kind]
        comes = mark in ("+I", "+U")
        keeps = self._kind is JoinKind.INNER or not (comes or outer[side])
        kind = mark if keeps else ("+I" if comes else "-D")

        def pair(mark: str, own: tuple[Any, ...], other: tuple[Any, ...]) -> Change:
            return (mark, *own, *other) if side == 0 else (mark, *other, *own)

        if not matches:
            return [pair(kind, row, NOTHING)] if outer[side] else []
        alone = [each for each in matches if outer[1 - side] and fellows == 0]
        pairs = [pair(kind, row, each) for each in matches]
        if comes:
            return [*(pair("-D", NOTHING, each) for each in alone), *pairs]
        return [*pairs, *(pair("+I", NOTHING, each) for each in alone)]

    def _one_sided(
        self, side: int, mark: str, row: tuple[Any, ...], matches: list[Any], fellows: int
    ) -> list[Change]:
        is_semi, comes = self._kind is JoinKind.SEMI, mark in ("+I", "+U")
        if side == 0:
            return [(mark, *row)] if bool(matches) == is_semi else []
        if fellows:
            return []
        return [(mark if is_semi else ("-D" if comes else "+I"), *each) for each in matches]


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[int, Change]]:
    there: tuple[list[Any], list[Any]] = ([], [])
    made: list[tuple[int, Change]] = []
    for _ in range(draw(st.integers(1, 14))):
        side = draw(st.integers(0, 1))
        if there[side] and draw(st.booleans()):
            row = there[side].pop(draw(st.integers(0, len(there[side]) - 1)))
            made.append((side, (draw(st.sampled_from(["-D", "-U"])), *row)))
        else:
            row = (draw(st.sampled_from([1, 2, None])), draw(st.sampled_from("abc")))
            there[side].append(row)
            made.append((side, (draw(st.sampled_from(["+I", "+U"])), *row)))
    return made


@pytest.mark.parametrize("kind", list(JoinKind), ids=lambda kind: kind.value)
@settings(max_examples=20, deadline=None)
@given(changes())
def test_a_change_at_a_time_makes_the_changes_of_flink(kind: JoinKind, changes: list[tuple[int, Change]]):
    with tempfile.TemporaryDirectory() as directory:
        joined, model = job(kind, Path(directory)), StreamingJoin(kind)
        for side, (mark, *row) in changes:
            emitted = joined.run(*([(mark, *row)] if each == side else [] for each in range(2)))
            expected = model.process(side, mark, tuple(row))
            # Pairs come in no order that means anything; what goes comes before what comes.
            assert sorted(emitted, key=repr) == sorted(expected, key=repr)
            signs = [change[0] in ("+I", "+U") for change in emitted]
            assert signs == sorted(signs)
