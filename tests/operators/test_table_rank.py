"""Top-N, LIMIT, deduplication and upsert streams: Flink's changes, and the right rows whatever the epochs."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.operators.table.declarations import (
    ChangelogNormalizeDeclaration,
    DeduplicateDeclaration,
    EpochSortDeclaration,
    Order,
    RankDeclaration,
    StatefulNode,
)
from headrace.operators.table.sink_declarations import SinkUpsertMaterializeDeclaration
from headrace.operators.table.steps import StepColumn
from tests.operators.table_harness import Change, Harness, materialized

K, V = StepColumn("k", "STRING", pa.string()), StepColumn("v", "BIGINT", pa.int64())
RANK = StepColumn("rn", "BIGINT", pa.int64())
ROW = (K, V)


def top(last: int | None, *, has_rank: bool = False, **node: Any) -> RankDeclaration:
    order = (Order("v", ascending=False, nulls_first=False),)
    output = (*ROW, RANK) if has_rank else ROW
    return RankDeclaration(
        output, partition=("k",), order=order, last=last, rank_column=RANK if has_rank else None, **node
    )


def job(declaration: StatefulNode, directory: Path, *, retracts: bool = True, **how: Any) -> Harness:
    return Harness(declaration, [ROW], [retracts], directory, **how)


def test_without_ranks_a_row_that_is_pushed_out_is_deleted(tmp_path: Path):
    ranked = job(top(2), tmp_path, retracts=False)
    assert ranked.run([("+I", "a", 1), ("+I", "a", 2)]) == [("+I", "a", 2), ("+I", "a", 1)]
    assert ranked.run([("+I", "a", 3)]) == [("-D", "a", 1), ("+I", "a", 3)]
    assert ranked.run([("+I", "a", 0)]) == []
    assert ranked.state_rows == 2


def test_with_ranks_each_place_is_updated(tmp_path: Path):
    ranked = job(top(2, has_rank=True), tmp_path, retracts=False)
    assert ranked.run([("+I", "a", 1)]) == [("+I", "a", 1, 1)]
    assert ranked.run([("+I", "a", 2)]) == [("-U", "a", 1, 1), ("+U", "a", 2, 1), ("+I", "a", 1, 2)]


def test_a_row_that_is_taken_back_makes_room_for_the_next(tmp_path: Path):
    ranked = job(top(1), tmp_path)
    assert ranked.run([("+I", "a", 1), ("+I", "a", 2)]) == [("+I", "a", 2)]
    assert ranked.run([("-D", "a", 2)]) == [("-D", "a", 2), ("+I", "a", 1)]
    assert ranked.run([("-D", "a", 1)]) == [("-D", "a", 1)]


def test_rows_of_an_epoch_are_sorted_and_nothing_is_kept(tmp_path: Path):
    order = (Order("k", ascending=False, nulls_first=False), Order("v"))
    ordered = job(EpochSortDeclaration(ROW, order, is_insert_only=True), tmp_path, retracts=False)
    given = [("+I", "a", 2), ("+I", None, 1), ("+I", "b", 5), ("+I", "a", None), ("+I", "a", 2)]
    assert ordered.run(given) == [
        ("+I", "b", 5),
        ("+I", "a", None),
        ("+I", "a", 2),
        ("+I", "a", 2),
        ("+I", None, 1),
    ]
    assert ordered.run([("+I", "c", 1)]) == [("+I", "c", 1)]
    assert ordered.run([]) == []
    assert ordered.state_rows == 0


def test_equal_rows_come_in_the_order_they_came(tmp_path: Path):
    ranked = Harness(
        RankDeclaration(ROW, partition=(), order=(), last=2, is_insert_only=True), [ROW], [False], tmp_path
    )
    assert ranked.run([("+I", "a", 5)]) == [("+I", "a", 5)]
    assert len(ranked.run([("+I", "b", 1), ("+I", "c", 9)])) == 1
    assert ranked.run([("+I", "d", 0)]) == []


def test_an_offset_leaves_the_first_ones_out(tmp_path: Path):
    ranked = job(top(3, first=2), tmp_path)
    assert ranked.run([("+I", "a", value) for value in (1, 2, 3, 4)]) == [("+I", "a", 3), ("+I", "a", 2)]


def test_the_first_row_of_a_key_stays(tmp_path: Path):
    first = DeduplicateDeclaration(ROW, keys=("k",), time=None, is_insert_only=True)
    rows = job(first, tmp_path, retracts=False)
    assert rows.run([("+I", "a", 1), ("+I", "a", 2)]) == [("+I", "a", 1)]
    assert rows.run([("+I", "a", 3), ("+I", "b", 4)]) == [("+I", "b", 4)]


def test_the_last_row_of_a_key_takes_the_place_of_the_one_before(tmp_path: Path):
    rows = job(DeduplicateDeclaration(ROW, keys=("k",), time=None, keep_last=True), tmp_path, retracts=False)
    assert rows.run([("+I", "a", 1), ("+I", "a", 2)]) == [("+I", "a", 2)]
    assert rows.run([("+I", "a", 3)]) == [("-U", "a", 2), ("+U", "a", 3)]
    assert rows.run([("+I", "a", 3)]) == []


@pytest.mark.parametrize(("keep_last", "expected"), [(True, [7, 7, 8]), (False, [5, 3, 3])])
def test_by_event_time_an_earlier_row_may_come_later(tmp_path: Path, keep_last: bool, expected: list[int]):
    rows = job(
        DeduplicateDeclaration(ROW, keys=("k",), time="v", keep_last=keep_last), tmp_path, retracts=False
    )
    kept = []
    table: Counter[Any] = Counter()
    for epoch in ([5, 7], [3], [8]):
        for mark, *row in rows.run([("+I", "a", value) for value in epoch]):
            table[tuple(row)] += 1 if mark in ("+I", "+U") else -1
        kept += [value for (_, value), count in table.items() if count]
    assert kept == expected


def test_an_upsert_stream_gets_its_former_values(tmp_path: Path):
    rows = job(ChangelogNormalizeDeclaration(ROW, keys=("k",)), tmp_path)
    assert rows.run([("+I", "a", 1)]) == [("+I", "a", 1)]
    assert rows.run([("+U", "a", 2)]) == [("-U", "a", 1), ("+U", "a", 2)]
    assert rows.run([("+U", "a", 2)]) == []
    assert rows.run([("-D", "a", None), ("-D", "b", 9)]) == [("-D", "a", 2)]
    assert rows.run([("+U", "a", 3)]) == [("+I", "a", 3)]


def test_a_sink_gets_the_newest_row_of_its_key_and_the_one_before_when_that_goes(tmp_path: Path):
    declaration = SinkUpsertMaterializeDeclaration(ROW, keys=("k",), emits_update_before=False)
    rows = job(declaration, tmp_path)
    assert rows.run([("+I", "a", 1)]) == [("+I", "a", 1)]
    assert rows.run([("+I", "a", 2)]) == [("+U", "a", 2)]
    assert rows.run([("-D", "a", 2)]) == [("+U", "a", 1)]
    assert rows.run([("-D", "a", 1)]) == [("-D", "a", 1)]


CUTS = pytest.mark.parametrize("cut", [0, 1, 4, 8])


@CUTS
def test_a_sink_has_the_row_of_a_key_that_came_last(tmp_path: Path, cut: int):
    changes: list[Change] = [("+I", "a", value) for value in (5, 1, 7, 2, 6, 0, 3, 5)]
    rows = job(SinkUpsertMaterializeDeclaration(ROW, keys=("k",), emits_update_before=False), tmp_path)
    written = rows.run(changes[:cut]) + rows.run(changes[cut:])
    assert written[-1][1:] == ("a", 5)  # the copy that came again
    assert rows.run([("-D", "a", 3), ("-D", "a", 5)]) == []  # the first copy of the two goes
    assert rows.run([("-D", "a", 5)]) == [("+U", "a", 0)]


@CUTS
@pytest.mark.parametrize("order", [(), (Order("v"),)])
def test_equal_rows_are_ranked_in_arrival_order(tmp_path: Path, cut: int, order: tuple[Order, ...]):
    changes: list[Change] = [("+I", name, 1) for name in "hbgacfed"]
    rows = job(RankDeclaration(ROW, partition=(), order=order, last=3), tmp_path, retracts=False)
    emitted = materialized(rows.run(changes[:cut]) + rows.run(changes[cut:]))
    assert {name for name, _ in emitted} == set("hbg")


# -- against a model -------------------------------------------------------------------------------------------


@st.composite
def changelogs(draw: st.DrawFn, *, retracts: bool) -> list[list[Change]]:
    there: list[tuple[Any, ...]] = []
    epochs = []
    for _ in range(draw(st.integers(1, 5))):
        epoch: list[Change] = []
        for _ in range(draw(st.integers(0, 6))):
            if retracts and there and draw(st.booleans()):
                epoch.append(("-D", *there.pop(draw(st.integers(0, len(there) - 1)))))
            else:
                row = (draw(st.sampled_from("ab")), draw(st.none() | st.integers(0, 5)))
                there.append(row)
                epoch.append(("+I", *row))
        epochs.append(epoch)
    return epochs


@pytest.mark.parametrize("retracts", [True, False])
@pytest.mark.parametrize("has_rank", [True, False])
@settings(max_examples=25, deadline=None)
@given(data=st.data(), parallelism=st.integers(1, 2), forgets=st.booleans())
def test_the_first_rows_are_those_of_the_rows_that_are_there(
    data: st.DataObject, retracts: bool, has_rank: bool, parallelism: int, forgets: bool
):
    epochs = data.draw(changelogs(retracts=retracts))
    with tempfile.TemporaryDirectory() as directory:
        ranked = job(
            top(2, has_rank=has_rank),
            Path(directory),
            retracts=retracts,
            parallelism=parallelism,
            forgets=forgets,
        )
        there: Counter[Any] = Counter()
        changes: list[Change] = []
        for number, epoch in enumerate(epochs):
            changes += ranked.run(epoch)
            for mark, *row in epoch:
                there[tuple(row)] += 1 if mark == "+I" else -1
            expected: Counter[Any] = Counter()
            for key in "ab":
                values = [value for (k, value), count in there.items() if k == key for _ in range(count)]
                values.sort(key=lambda value: (value is None, -(value or 0)))
                for rank, value in enumerate(values[:2], 1):
                    expected[(key, value, rank) if has_rank else (key, value)] += 1
            assert materialized(changes) == expected
            if number == 1:
                ranked.rescale(parallelism + 1)


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(),
    order=st.sampled_from(["v", "w"]),
    ascending=st.booleans(),
    nulls_first=st.booleans(),
    first=st.integers(1, 2),
    has_rank=st.booleans(),
    emits_update_before=st.booleans(),
)
def test_insert_only_input_gives_the_same_rows_as_input_with_retractions(
    data: st.DataObject,
    order: str,
    ascending: bool,
    nulls_first: bool,
    first: int,
    has_rank: bool,
    emits_update_before: bool,
):
    # Rows are different: of those that may go copies count together.
    schema = (K, V, StepColumn("w", "STRING", pa.string()), StepColumn("id", "BIGINT", pa.int64()))
    rows = st.tuples(
        st.sampled_from("ab"), st.none() | st.integers(-2, 3), st.none() | st.sampled_from("xyz")
    )
    epochs = data.draw(st.lists(st.lists(rows, max_size=6), max_size=4))
    declaration = RankDeclaration(
        (*schema, RANK) if has_rank else schema,
        partition=("k",),
        order=(Order(order, ascending=ascending, nulls_first=nulls_first),),
        first=first,
        last=3,
        rank_column=RANK if has_rank else None,
        emits_update_before=emits_update_before,
    )
    with tempfile.TemporaryDirectory() as directory:
        harnesses = [
            Harness(declaration, [schema], [retracts], Path(directory, str(retracts)))
            for retracts in (False, True)
        ]
        for number, epoch in enumerate(epochs):
            changes: list[Change] = [("+I", *row, 10 * number + place) for place, row in enumerate(epoch)]
            own, others = (each.run(changes) for each in harnesses)
            assert Counter(own) == Counter(others)


def waiting(tmp_path: Path, **options: Any) -> Any:
    declaration = DeduplicateDeclaration(ROW, keys=("k",), time="v", is_insert_only=True, **options)
    return job(declaration, tmp_path, retracts=False)


def test_the_first_row_by_event_time_is_emitted_when_the_watermark_has_passed_it(tmp_path: Path):
    rows = waiting(tmp_path)
    assert rows.run([("+I", "a", 5), ("+I", "a", 7), ("+I", "b", 9)], after=3) == []
    assert rows.run([("+I", "a", 4), ("+I", "b", 10)], before=3, after=4) == [("+I", "a", 4)]
    # Another row of "a" is a duplicate; the one of "b" that waits is due.
    assert rows.run([("+I", "a", 6)], before=4, after=9) == [("+I", "b", 9)]
    assert rows.run([("+I", "c", 12), ("+I", "a", 11)], before=9, after=20) == [("+I", "c", 12)]


def test_rows_behind_the_watermark_are_late_for_the_first_of_their_key(tmp_path: Path):
    rows = waiting(tmp_path)
    assert rows.run([("+I", "a", 5), ("+I", "b", 2)], before=2, after=4) == []
    assert rows.late == 1
    assert rows.run([("+I", "a", 4)], before=4, after=9) == [("+I", "a", 5)]
    assert rows.late == 2


def test_first_rows_come_in_the_order_of_their_times_after_a_rescale(tmp_path: Path):
    rows = waiting(tmp_path)
    assert rows.run([("+I", "a", 5), ("+I", "b", 3)], after=1) == []
    rows.rescale(2)
    assert sorted(rows.run([("+I", "a", 6), ("+I", "b", 2)], before=1, after=9)) == [
        ("+I", "a", 5),
        ("+I", "b", 2),
    ]
    assert rows.run([("+I", "a", 10), ("+I", "b", 10)], before=9, after=20) == []


def test_a_key_may_have_a_first_row_again_when_its_time_to_live_is_over(tmp_path: Path):
    rows = waiting(tmp_path, ttl_ms=100)
    assert rows.run([("+I", "a", 5)], after=5, now_ms=0) == [("+I", "a", 5)]
    assert rows.run([("+I", "a", 8)], before=5, after=8, now_ms=50) == []
    assert rows.run([("+I", "a", 9)], before=8, after=9, now_ms=150) == [("+I", "a", 9)]
