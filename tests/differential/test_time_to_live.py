"""State that ends, by a clock that continues between epochs: joins, groups, top-N and deduplication against models.

Rows that were already emitted are not retracted when their state expires. So outer joins are compared change by change,
one row in an epoch, with a model that follows Flink's rules; the others are cut anywhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.common.changelog import UPSERT
from headrace.table import StreamTableEnvironment
from tests.differential.runs import Case, job_of, run_locally
from tests.differential.tables import Rows
from tests.engines import MINI
from tests.operators.table_harness import Change, materialized
from tests.surveys import examples

pytestmark = pytest.mark.parametrize("engine", [MINI])
_ANY_PACE = settings(deadline=None, suppress_health_check=list(HealthCheck))
_FIXED = settings(_ANY_PACE, derandomize=True, database=None, max_examples=12)
_MANY = settings(_ANY_PACE, max_examples=examples(500))

_VALUES = st.tuples(st.sampled_from("ab"), st.integers(0, 5))


@st.composite
def inserts(draw: st.DrawFn) -> Rows:
    """Rows of whole numbers, cut anywhere, in more epochs than other tests have."""
    rows = tuple((number, *draw(_VALUES)) for number in range(draw(st.integers(0, 10))))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=8)))
    return Rows(tuple(("+I", *row) for row in rows), rows, tuple(cuts), draw(st.booleans()))


_HOW = st.fixed_dictionaries(
    {
        "parallelism": st.integers(1, 2),
        "forgets": st.booleans(),
        "rescales": st.booleans(),
        "packs": st.booleans(),
        "pace_ms": st.sampled_from([1000, 3000, 5000]),
        "ttl_ms": st.sampled_from([3000, 6000, 10_000]),
    }
)


def timed(case: Case, name: str) -> list[tuple[int, str, int, int]]:
    """The rows of a table, each with the time of its epoch."""
    epochs = case.tables[name].epochs
    return [(*row[1:], case.clock(number)) for number, epoch in enumerate(epochs) for row in epoch]


def check_join(env: Any, left: Rows, right: Rows, how: dict[str, Any]) -> None:
    """Rows meet if the first one of them still lives when the second one comes. Meeting makes nobody live longer."""
    query = "SELECT l.id AS a, r.id AS b FROM t l JOIN u r ON l.k = r.k"
    case = Case((query,), {"t": left, "u": right}, **how)
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    (changes,) = run_locally(job_of(t_env, case), case).results
    assert materialized(changes) == Counter(
        (one[0], other[0])
        for one in timed(case, "t")
        for other in timed(case, "u")
        if one[1] == other[1] and abs(one[3] - other[3]) < case.ttl_ms
    )


def check_groups(env: Any, rows: Rows, how: dict[str, Any]) -> None:
    """A group that no row has come to for so long begins again. A sink with its key has what it came to last."""
    query = "SELECT k, COUNT(*) AS n, SUM(v) AS s, MIN(v) AS l, AVG(v) AS m FROM t GROUP BY k"
    case = Case((query,), {"t": rows}, **how)
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    (changes,) = run_locally(job_of(t_env, case, UPSERT, keys=(0,)), case).results
    groups: dict[str, tuple[int, list[int]]] = {}
    for _, key, value, now in timed(case, "t"):
        last, values = groups.get(key, (0, []))
        groups[key] = (now, [*(values if now - last < case.ttl_ms else []), value])
    assert {key: rest for _, key, *rest in changes} == {
        key: [len(values), sum(values), min(values), sum(values) // len(values)]
        for key, (_, values) in groups.items()
    }


@dataclass
class _Kept:
    """A row of a join's state."""

    row: tuple[Any, ...]
    written_ms: int
    #: In how many pairs it was emitted; only of an outer side.
    pairs: int = 0


class StreamingJoin:
    """Flink's regular joins with a time to live, a change at a time."""

    def __init__(self, kind: str, ttl_ms: int) -> None:
        self._kind, self._ttl_ms = kind, ttl_ms
        self._is_half = kind in ("SEMI", "ANTI")
        self._outer = (kind != "RIGHT", kind in ("RIGHT", "FULL"))
        self._kept: tuple[list[_Kept], list[_Kept]] = ([], [])

    def process(self, side: int, mark: str, row: tuple[Any, ...], now: int) -> list[Change]:
        comes = mark in ("+I", "+U")
        if self._is_half and side == 1:
            row = (None, row[1])  # nobody reads the rest
        matches = [each for each in self._alive(1 - side, now) if each.row[1] == row[1]]
        own = self._kept[side]
        own[:] = self._alive(side, now)
        equal = [each for each in own if each.row == row]
        if comes:
            own.append(_Kept(row, now, len(matches)))
        elif equal:
            own.remove(equal[0])
        for each in equal:  # they are one entry of state, with a count
            each.written_ms = now
        emitted = (
            self._half(side, mark, row, matches) if self._is_half else self._pairs(side, mark, row, matches)
        )
        if self._outer[1 - side]:
            for each in matches:
                # Flink counts below zero where a row goes whose pairs it never emitted.
                each.pairs = max(each.pairs + (1 if comes else -1), 0)
                each.written_ms = now
        return emitted

    def _alive(self, side: int, now: int) -> list[_Kept]:
        return [each for each in self._kept[side] if now - each.written_ms < self._ttl_ms]

    def _half(self, side: int, mark: str, row: tuple[Any, ...], matches: list[_Kept]) -> list[Change]:
        is_semi, comes = self._kind == "SEMI", mark in ("+I", "+U")
        if side == 0:
            return [(mark, row[0])] if bool(matches) == is_semi else []
        moved = [each.row[0] for each in matches if each.pairs == (0 if comes else 1)]
        return [(mark if is_semi else ("-D" if comes else "+I"), each) for each in moved]

    def _pairs(self, side: int, mark: str, row: tuple[Any, ...], matches: list[_Kept]) -> list[Change]:
        comes = mark in ("+I", "+U")
        kind = "+I" if comes else "-D" if self._outer[side] else mark

        def pair(mark: str, own: Any, other: Any) -> Change:
            return (mark, own, other) if side == 0 else (mark, other, own)

        emitted = [pair(kind, row[0], each.row[0]) for each in matches]
        if not matches and self._outer[side]:
            emitted.append(pair(kind, row[0], None))
        if self._outer[1 - side]:
            alone = [each for each in matches if each.pairs == (0 if comes else 1)]
            emitted += [pair("-D" if comes else "+I", None, each.row[0]) for each in alone]
        return emitted


@st.composite
def changes_of_two(draw: st.DrawFn) -> list[tuple[int, Change]]:
    """Changes of two tables, one after the other; no two rows are equal."""
    live: tuple[list[Any], list[Any]] = ([], [])
    made: list[tuple[int, Change]] = []
    for number in range(draw(st.integers(1, 14))):
        side = draw(st.integers(0, 1))
        if live[side] and draw(st.integers(0, 2)) == 0:
            row = live[side].pop(draw(st.integers(0, len(live[side]) - 1)))
            made.append((side, (draw(st.sampled_from(["-D", "-U"])), *row)))
        else:
            row = (number, *draw(_VALUES))
            live[side].append(row)
            made.append((side, (draw(st.sampled_from(["+I", "+U"])), *row)))
    return made


_EXISTS = "SELECT l.id FROM t l WHERE {}EXISTS (SELECT 1 FROM u r WHERE r.k = l.k)"
_OUTER_JOINS = {
    **{
        kind: f"SELECT l.id AS a, r.id AS b FROM t l {kind} JOIN u r ON l.k = r.k"
        for kind in ("LEFT", "RIGHT", "FULL")
    },
    "SEMI": _EXISTS.format(""),
    "ANTI": _EXISTS.format("NOT "),
}


def check_outer_join(env: Any, kind: str, changes: list[tuple[int, Change]], how: dict[str, Any]) -> None:
    """Rows are emitted by the pairs that they were in, whether or not the partners live."""
    tables = {}
    for side, name in enumerate("tu"):
        own = tuple(change for place, change in changes if place == side)
        cuts = [sum(place == side for place, _ in changes[:end]) for end in range(1, len(changes))]
        tables[name] = Rows(own, (), tuple(cuts), tells_end=True)
    case = Case((_OUTER_JOINS[kind],), tables, **how)
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    (found,) = run_locally(job_of(t_env, case), case).results
    model = StreamingJoin(kind, case.ttl_ms)
    expected = []
    for epoch, (side, (mark, *row)) in enumerate(changes):
        emitted = model.process(side, mark, tuple(row), case.clock(epoch))
        # What goes comes out before what comes; among rows of an epoch there is no order besides.
        expected.append(sorted(emitted, key=_in_order))
    assert _by_lengths(found, expected) == expected


def _in_order(change: Change) -> tuple[bool, str]:
    return change[0] in ("+I", "+U"), repr(change)


def _by_lengths(changes: list[Change], expected: list[list[Change]]) -> list[list[Change]]:
    """Cut changes where those that are expected end; what is left comes last."""
    parts, rest = [], list(changes)
    for part in expected:
        parts.append(sorted(rest[: len(part)], key=_in_order))
        rest = rest[len(part) :]
    return [*parts, rest] if rest else parts


def check_first_rows(env: Any, rows: Rows, how: dict[str, Any]) -> None:
    """The best two of the rows that live: those that have ended make room, and are not taken back."""
    number = "ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n"
    query = f"SELECT id FROM (SELECT *, {number} FROM clocked) WHERE n <= 2"
    case = Case((query,), {"clocked": rows}, **how)
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    (changes,) = run_locally(job_of(t_env, case), case).results
    kept: dict[str, list[tuple[int, str, int, int]]] = {}
    emitted: Counter[tuple[int]] = Counter()
    for epoch in range(len(rows.epochs)):
        came = [
            row
            for row in timed(case, "clocked")
            if row[3] == case.clock(epoch) and row[0] in _ids(rows, epoch)
        ]
        for key in sorted({row[1] for row in came}):
            alive = [row for row in kept.get(key, []) if case.clock(epoch) - row[3] < case.ttl_ms]
            best = sorted(
                [*alive, *(row for row in came if row[1] == key)], key=lambda row: (-row[2], row[0])
            )
            kept[key] = best[:2]
            emitted.subtract((row[0],) for row in alive)
            emitted.update((row[0],) for row in kept[key])
    assert materialized(changes) == +emitted


def _ids(rows: Rows, epoch: int) -> set[int]:
    return {change[1] for change in rows.epochs[epoch]}


def check_duplicates(env: Any, rows: Rows, how: dict[str, Any]) -> None:
    """The first row of a key, again when none was emitted for so long; the last one in any case."""
    number = "ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS n"
    query = f"SELECT id, k FROM (SELECT *, {number} FROM clocked) WHERE n = 1"
    first, last = query.format("pt"), query.format("pt DESC")
    case = Case((first, last), {"clocked": rows}, **how)
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    firsts, lasts = run_locally(job_of(t_env, case), case).results
    begins: dict[str, int] = {}
    newest: dict[str, tuple[int, int]] = {}
    expected: Counter[tuple[Any, ...]] = Counter()
    left: Counter[tuple[Any, ...]] = Counter()
    for number, key, _, now in timed(case, "clocked"):
        if key not in begins or now - begins[key] >= case.ttl_ms:
            begins[key] = now
            expected[number, key] += 1
        if key in newest and now - newest[key][1] < case.ttl_ms:
            left[newest[key][0], key] -= 1
        newest[key] = (number, now)
        left[number, key] += 1
    assert {mark for mark, *_ in firsts} <= {"+I"}
    assert materialized(firsts) == expected
    assert materialized(lasts) == +left


@_FIXED
@given(left=inserts(), right=inserts(), how=_HOW)
def test_rows_of_a_join_meet_while_they_live(env, left, right, how):
    check_join(env, left, right, how)


@_FIXED
@given(rows=inserts(), how=_HOW)
def test_a_group_ends_with_its_time_to_live(env, rows, how):
    check_groups(env, rows, how)


@pytest.mark.parametrize("kind", _OUTER_JOINS)
@settings(_FIXED, max_examples=8)
@given(changes=changes_of_two(), how=_HOW)
def test_an_outer_join_uses_the_pairs_that_were_emitted(env, kind, changes, how):
    check_outer_join(env, kind, changes, how)


@settings(_FIXED, max_examples=8)
@given(rows=inserts(), how=_HOW)
def test_the_first_rows_are_of_those_that_live(env, rows, how):
    check_first_rows(env, rows, how)


@settings(_FIXED, max_examples=8)
@given(rows=inserts(), how=_HOW)
def test_a_key_that_has_ended_is_new_again(env, rows, how):
    check_duplicates(env, rows, how)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", _OUTER_JOINS)
@settings(_MANY, max_examples=examples(200))
@given(changes=changes_of_two(), how=_HOW)
def test_many_outer_joins(env, kind, changes, how):
    check_outer_join(env, kind, changes, how)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@_MANY
@given(rows=inserts(), how=_HOW)
def test_many_first_rows(env, rows, how):
    check_first_rows(env, rows, how)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@_MANY
@given(rows=inserts(), how=_HOW)
def test_many_duplicates(env, rows, how):
    check_duplicates(env, rows, how)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@_MANY
@given(left=inserts(), right=inserts(), how=_HOW)
def test_many_joins(env, left, right, how):
    check_join(env, left, right, how)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@_MANY
@given(rows=inserts(), how=_HOW)
def test_many_groups(env, rows, how):
    check_groups(env, rows, how)
