from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.connectors.base import Slice, SourceSplit, SplitProgress
from headrace.runtime.run.source_coordinator import SourceCoordinator, SourceTaskPlan
from tests.unit.runtime.fakes import SplitsEnumerator, SplitsReader, SplitsSource


class Reader:
    """Does what source tasks do with the plans of a coordinator."""

    def __init__(self, source: SplitsSource, parallelism: int, *, has_event_time: bool = False) -> None:
        self.source = source
        self.coordinator = SourceCoordinator(source, parallelism, has_event_time=has_event_time)
        #: What each subtask read, in order.
        self.read: list[list[Any]] = [[] for _ in range(parallelism)]
        self.epochs = 0

    def run_epoch(self, max_records: int) -> dict[int, SourceTaskPlan] | None:
        plans = self.coordinator.plan(max_records, now_ms=0)
        if plans is None:
            return None
        self.epochs += 1
        for subtask in range(len(self.read)):
            if subtask in plans:
                self._run_subtask(subtask, plans[subtask], max_records)
            else:
                self.coordinator.advance(subtask, {}, has_ended=False, now_ms=0)
        return plans

    def _run_subtask(self, subtask: int, plan: SourceTaskPlan, max_records: int) -> None:
        progress: dict[str, SplitProgress] = {}
        count = 0
        for piece in plan.slices:
            if count >= max_records:
                break
            reader = SplitsReader(self.source)
            for batch in reader.read(piece):
                self.read[subtask] += batch.values
                count += len(batch)
            progress[piece.split.split_id] = reader.progress()
        finished = {split for split, reached in progress.items() if reached.is_finished}
        has_ended = not plan.may_get_more_splits and plan.open_splits <= finished
        self.coordinator.advance(subtask, progress, has_ended=has_ended, now_ms=0)

    def run(self, max_records: int, most_polls: int = 500) -> list[Any]:
        """Run to the end and return everything that was read, sorted."""
        for _ in range(most_polls):
            if self.coordinator.has_ended:
                return sorted(record for records in self.read for record in records)
            self.run_epoch(max_records)  # there may be nothing to do until more splits are found
        raise AssertionError("no end")


def numbered(*sizes: int) -> dict[str, list[int]]:
    """Splits of these sizes; no record is there twice."""
    return {f"s{index}": [index * 1000 + n for n in range(size)] for index, size in enumerate(sizes)}


def everything(splits: dict[str, list[int]]) -> list[int]:
    return sorted(record for records in splits.values() for record in records)


@given(
    sizes=st.lists(st.integers(0, 12), max_size=8),
    parallelism=st.integers(1, 4),
    concurrent=st.sampled_from([None, 1, 2]),
    max_records=st.integers(1, 15),
    later=st.integers(0, 3),
)
def test_every_record_is_read_exactly_once(
    sizes: list[int], parallelism: int, concurrent: int | None, max_records: int, later: int
) -> None:
    splits = numbered(*sizes)
    source = SplitsSource(splits, concurrent=concurrent, found_later=list(splits)[len(splits) - later :])
    assert Reader(source, parallelism).run(max_records) == everything(splits)


def test_splits_that_a_slow_subtask_did_not_get_to_are_not_lost_with_one_that_ended() -> None:
    # Both get two splits. The second is through with its own in the first epoch, and ends.
    splits = numbered(10, 1, 5, 1)
    reader = Reader(SplitsSource(splits), parallelism=2)
    assert reader.run(max_records=3) == everything(splits)


def test_splits_are_handed_out_evenly_in_the_order_they_were_found() -> None:
    coordinator = SourceCoordinator(SplitsSource(numbered(9, 9, 9, 9, 9), concurrent=None), parallelism=2)
    plans = coordinator.plan(max_records=100, now_ms=0)
    assert plans is not None
    names = {subtask: [piece.split.split_id for piece in plan.slices] for subtask, plan in plans.items()}
    assert names == {0: ["s0", "s2", "s4"], 1: ["s1", "s3"]}
    assert plans[0].open_splits == {"s0", "s2", "s4"}


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_splits_that_epochs_do_not_get_to_keep_the_order_in_which_they_were_found(parallelism: int) -> None:
    splits = numbered(*[2] * 40)
    reader = Reader(SplitsSource(splits, concurrent=1), parallelism)
    for epoch in range(1, 11):
        reader.run_epoch(2)
        read = sorted(record for records in reader.read for record in records)
        assert read == everything(splits)[: 2 * parallelism * epoch]


@pytest.mark.parametrize("parallelism", [1, 2, 4])
def test_splits_keep_their_order_when_a_job_continues_with_another_parallelism(parallelism: int) -> None:
    splits = numbered(*[2] * 40)
    source = SplitsSource(splits, concurrent=1)
    before = Reader(source, 3)
    for _ in range(3):
        before.run_epoch(2)
    after = Reader(source, parallelism)
    after.coordinator.restore(before.coordinator.snapshot(), (), 0)
    after.run_epoch(2)
    read = sorted(record for reader in (before, after) for records in reader.read for record in records)
    assert read == everything(splits)[: 18 + 2 * parallelism]


@given(
    sizes=st.lists(st.integers(1, 20), max_size=40),
    parallelism=st.integers(1, 4),
    max_records=st.integers(1, 30),
    restarts=st.sets(st.integers(1, 6)),
)
@example(sizes=[20, 1] * 60, parallelism=2, max_records=20, restarts=set())
@example(sizes=[20, 1] * 60, parallelism=2, max_records=20, restarts={1})
def test_with_event_time_a_subtask_reads_splits_in_order(
    sizes: list[int], parallelism: int, max_records: int, restarts: set[int]
) -> None:
    splits = numbered(*sizes)
    reader = Reader(SplitsSource(splits, concurrent=1), parallelism, has_event_time=True)
    while not reader.coordinator.has_ended:
        if reader.epochs in restarts:
            restarts.remove(reader.epochs)
            before, ended = reader.coordinator.snapshot(), reader.coordinator._ended
            reader.coordinator = SourceCoordinator(reader.source, parallelism, has_event_time=True)
            reader.coordinator.restore(before, ended, 0)
        reader.run_epoch(max_records)
    for read in reader.read:
        assert read == sorted(read)
    assert sorted(record for read in reader.read for record in read) == everything(splits)


def test_splits_read_one_after_the_other_are_finished_in_turn() -> None:
    reader = Reader(SplitsSource(numbered(4, 4, 4), concurrent=1), parallelism=1)
    reader.run(max_records=3)
    assert reader.read[0] == everything(numbered(4, 4, 4))


def test_splits_read_side_by_side_share_what_an_epoch_may_read() -> None:
    coordinator = SourceCoordinator(SplitsSource(numbered(99, 99, 99), concurrent=None), parallelism=1)
    plans = coordinator.plan(max_records=10, now_ms=0)
    assert plans is not None
    # All of it: an epoch that reads less than it may looks as if there was no backlog.
    assert [piece.end - piece.start for piece in plans[0].slices] == [4, 3, 3]


def test_many_small_splits_fit_into_one_epoch() -> None:
    reader = Reader(SplitsSource(numbered(*[2] * 20), concurrent=1), parallelism=2)
    reader.run(max_records=100)
    assert reader.epochs <= 2


def test_a_plan_continues_where_the_last_completed_epoch_ended() -> None:
    coordinator = SourceCoordinator(SplitsSource(numbered(10)), parallelism=1)
    first = coordinator.plan(max_records=4, now_ms=0)
    # The epoch did not complete: nothing was taken over, and the same is planned again.
    again = coordinator.plan(max_records=4, now_ms=0)
    assert first == again
    coordinator.advance(0, {"s0": SplitProgress(4, is_finished=False)}, has_ended=False, now_ms=0)
    third = coordinator.plan(max_records=4, now_ms=0)
    assert third is not None
    assert [(piece.start, piece.end) for piece in third[0].slices] == [(4, 8)]


def test_a_subtask_without_a_split_may_end_only_when_none_can_follow() -> None:
    source = SplitsSource(numbered(1, 1), found_later=["s1"])
    coordinator = SourceCoordinator(source, parallelism=2)
    plans = coordinator.plan(max_records=10, now_ms=0)
    assert plans is not None
    assert all(plan.may_get_more_splits for plan in plans.values())
    coordinator.advance(0, {"s0": SplitProgress(1, is_finished=True)}, has_ended=False, now_ms=0)
    plans = coordinator.plan(max_records=10, now_ms=0)
    assert plans is not None
    assert not any(plan.may_get_more_splits for plan in plans.values())
    assert [list(plan.open_splits) for plan in plans.values()] == [["s1"], []]


def test_there_is_nothing_to_do_while_no_split_is_found() -> None:
    class Nothing(SplitsEnumerator):
        @property
        def is_complete(self) -> bool:
            return False

        def next_discovery_delay(self) -> float:
            return 0.25

    class Empty(SplitsSource):
        def create_enumerator(self, parallelism: int) -> SplitsEnumerator:
            return Nothing(self)

    coordinator = SourceCoordinator(Empty({}), parallelism=2)
    assert coordinator.plan(max_records=10, now_ms=0) is None
    assert coordinator.retry_delay() == 0.25
    assert not coordinator.has_ended


def test_an_empty_source_ends_at_once() -> None:
    reader = Reader(SplitsSource({}), parallelism=3)
    assert reader.run(max_records=5) == []
    assert reader.epochs == 1


@pytest.mark.parametrize("ended", [[0], [0, 1]])
def test_a_subtask_that_ended_is_left_out(ended: Sequence[int]) -> None:
    coordinator = SourceCoordinator(SplitsSource(numbered(5, 5)), parallelism=2)
    coordinator.plan(max_records=10, now_ms=0)
    for subtask in ended:
        coordinator.advance(
            subtask, {f"s{subtask}": SplitProgress(5, is_finished=True)}, has_ended=True, now_ms=0
        )
    plans = coordinator.plan(max_records=10, now_ms=0)
    assert set(plans or {}) == {0, 1} - set(ended)
    assert coordinator.has_ended == (len(ended) == 2)


def test_closing_closes_the_connector() -> None:
    class Kept(SplitsSource):
        def create_enumerator(self, parallelism: int) -> SplitsEnumerator:
            self.enumerator = super().create_enumerator(parallelism)
            return self.enumerator

    source = Kept({})
    SourceCoordinator(source, parallelism=1).close()
    assert source.enumerator.is_closed


# --- time -----------------------------------------------------------------------------------------


class Tap(SplitsSource):
    """Splits that have as many records as are let out of them."""

    def __init__(self, *names: str) -> None:
        super().__init__(dict.fromkeys(names, ()), concurrent=None)
        self.available = dict.fromkeys(names, 0)

    def create_enumerator(self, parallelism: int) -> SplitsEnumerator:
        return TapEnumerator(self)


class TapEnumerator(SplitsEnumerator):
    def plan(self, split: SourceSplit, position: int, max_records: int) -> Any:
        source = self._source
        assert isinstance(source, Tap)
        end = source.available[split.split_id]
        return Slice(split, position, end) if end > position else None


class Tapped:
    """A source that is asked at times of a clock; what is planned is read at once."""

    def __init__(self, *names: str, parallelism: int = 1, idleness_ms: int | None = 100) -> None:
        self.source = Tap(*names)
        self.coordinator = SourceCoordinator(self.source, parallelism, idleness_ms)

    def let_out(self, *names: str) -> None:
        for name in names:
            self.source.available[name] += 1

    def at(self, now_ms: int, paused: frozenset[int] = frozenset()) -> tuple[set[str], set[str]] | None:
        """Run an epoch, if there is reason: which splits it read, and which were idle in it."""
        plans = self.coordinator.plan(10, now_ms, paused)
        if plans is None:
            return None
        read, idle = set(), set()
        for subtask, plan in plans.items():
            progress = {
                piece.split.split_id: SplitProgress(piece.end, is_finished=False) for piece in plan.slices
            }
            self.coordinator.advance(subtask, progress, has_ended=False, now_ms=now_ms)
            read |= set(progress)
            idle |= plan.idle_splits
        return read, idle


def test_a_split_without_records_falls_idle_after_some_time_and_that_is_reason_for_an_epoch() -> None:
    tapped = Tapped("a", "b")
    assert tapped.at(1000) is None
    assert tapped.coordinator.next_idle_ms() == 1100
    tapped.let_out("a")
    assert tapped.at(1050) == ({"a"}, set())
    assert tapped.at(1099) is None
    assert tapped.at(1100) == (set(), {"b"})
    assert tapped.coordinator.next_idle_ms() == 1150
    assert tapped.at(1149) is None, "it was said before"
    assert tapped.at(1150) == (set(), {"a", "b"})
    assert tapped.coordinator.next_idle_ms() is None


def test_a_split_that_has_records_again_is_active() -> None:
    tapped = Tapped("a", "b")
    tapped.at(1000)
    assert tapped.at(1100) == (set(), {"a", "b"})
    tapped.let_out("b")
    # Whether the slice holds anything is seen when it is read: the task says that the split is active.
    assert tapped.at(1300) == ({"b"}, {"a", "b"})
    assert tapped.coordinator.next_idle_ms() == 1400
    tapped.let_out("a")
    assert tapped.at(1301) == ({"a"}, {"a"})
    assert tapped.at(1400) == (set(), {"b"})


def test_an_epoch_for_another_reason_knows_which_splits_are_idle() -> None:
    tapped = Tapped("a")
    tapped.at(1000)
    assert tapped.at(1100) == (set(), {"a"})
    assert tapped.at(1200) is None
    standing = tapped.coordinator.standing[0]
    assert (standing.slices, standing.open_splits, standing.idle_splits) == ((), {"a"}, {"a"})


def test_without_a_time_out_nothing_falls_idle() -> None:
    tapped = Tapped("a", idleness_ms=None)
    assert tapped.at(1000) is None
    assert tapped.at(10**9) is None
    assert tapped.coordinator.next_idle_ms() is None


def test_a_subtask_that_is_held_back_reads_nothing_and_does_not_fall_idle() -> None:
    tapped = Tapped("a", "b", parallelism=2)
    tapped.at(1000)
    tapped.let_out("a", "b")
    assert tapped.at(1050, paused=frozenset({0})) == ({"b"}, set())
    assert tapped.at(1120, paused=frozenset({0})) is None
    assert tapped.at(1200, paused=frozenset({0})) == (set(), {"b"})
    assert tapped.at(1210) == ({"a"}, {"b"})


class Listening(SplitsEnumerator):
    heard: ClassVar[list[Any]] = []

    def checkpoint_completed(self, positions, finished) -> None:
        self.heard.append((dict(positions), [split.split_id for split in finished]))


class ListeningSource(SplitsSource):
    def create_enumerator(self, parallelism: int) -> SplitsEnumerator:
        return Listening(self)


def test_a_source_hears_how_far_a_completed_checkpoint_goes() -> None:
    #   a   1 2 3 4 |snapshot| 5       the snapshot counts, not how far the job is when it is complete
    #   b   1       (read to its end)
    reader = Reader(ListeningSource({"a": [1, 2, 3, 4, 5], "b": [1]}, concurrent=None), 1)
    reader.run_epoch(4)
    snapshot = reader.coordinator.snapshot()
    reader.run_epoch(4)
    Listening.heard.clear()
    reader.coordinator.checkpoint_completed(snapshot)
    assert Listening.heard == [({"a": 2}, ["b"])]
