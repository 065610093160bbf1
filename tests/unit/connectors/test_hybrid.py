from __future__ import annotations

from typing import Any

import pytest

from headrace.connectors.base import Boundedness, Slice, SplitProgress
from headrace.connectors.collection import CollectionSource
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.hybrid import HybridSource
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream.connectors.hybrid_source import HybridSourceBuilder
from headrace.errors import JobDefinitionError
from headrace.runtime.run.source_coordinator import SourceCoordinator


def test_the_next_source_begins_when_all_of_the_one_before_was_read() -> None:
    source = HybridSource.builder(NumberSequenceSource(1, 4)).add_source(CollectionSource([5, 6])).build()
    enumerator, reader = source.create_enumerator(2), source.create_reader()

    def read(split: Any) -> list[Any]:
        piece = enumerator.plan(split, enumerator.start_position(split), 10)
        assert piece is not None
        return [value for batch in reader.read(piece) for value in batch.values]

    first, second = enumerator.discover()
    assert (read(first), enumerator.discover(), enumerator.is_complete) == ([1, 2], [], False)
    enumerator.split_finished(first)
    assert enumerator.discover() == []
    assert read(second) == [3, 4]
    enumerator.split_finished(second)
    (last,) = enumerator.discover()
    assert (read(last), reader.progress().is_finished, enumerator.is_complete) == ([5, 6], True, True)
    reader.close()
    enumerator.close()


@pytest.mark.parametrize("max_records", [1, 2, 5, 100])
def test_a_job_that_comes_back_after_every_epoch_continues_in_the_right_source(max_records: int) -> None:
    source = (
        HybridSource.builder(NumberSequenceSource(0, 9))
        .add_source(CollectionSource([]))
        .add_source(NumberSequenceSource(10, 19))
        .build()
    )
    coordinator, found = SourceCoordinator(source, 2), list[int]()
    for epoch in range(100):
        plans = coordinator.plan(max_records, now_ms=0)
        for subtask, plan in (plans or {}).items():
            reader = source.create_reader()
            progress: dict[str, SplitProgress] = {}
            for piece in plan.slices:
                found += [value for batch in reader.read(piece) for value in batch.values]
                progress[piece.split.split_id] = reader.progress()
            finished = {split for split, reached in progress.items() if reached.is_finished}
            has_ended = not plan.may_get_more_splits and plan.open_splits <= finished
            coordinator.advance(subtask, progress, has_ended=has_ended, now_ms=0)
        if coordinator.has_ended:
            break
        parallelism = 1 + epoch % 3
        snapshot = coordinator.snapshot()
        coordinator.close()
        coordinator = SourceCoordinator(source, parallelism)
        # Of another number of subtasks none has ended.
        coordinator.restore(snapshot, ended=(), now_ms=0)
    assert sorted(found) == list(range(20))
    assert sorted(found[:10]) == list(range(10))


def test_it_ends_if_its_last_source_does() -> None:
    endless = DataGeneratorSource(str, None)
    source = HybridSource.builder(CollectionSource([1])).add_source(endless).build()
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert source.concurrent_splits is None
    assert HybridSource.builder(CollectionSource([1])).build().concurrent_splits == 1


def test_positions_of_a_checkpoint_reach_the_source_that_is_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = HybridSource.builder(CollectionSource([1])).build()
    enumerator = source.create_enumerator(1)
    (split,) = enumerator.discover()
    seen: list[Any] = []
    inner = enumerator._enumerator()  # type: ignore[attr-defined]
    monkeypatch.setattr(inner, "checkpoint_completed", lambda *told: seen.append(told))
    enumerator.checkpoint_completed({split.split_id: 1, "7/other": 2}, [split])
    assert seen == [({split.split.split_id: 1}, [split.split])]  # type: ignore[attr-defined]
    assert isinstance(enumerator.plan(split, 0, 1), Slice)


def test_what_cannot_be_put_together_is_refused() -> None:
    endless = DataGeneratorSource(str, None)
    with pytest.raises(
        JobDefinitionError, match="DataGeneratorSource is unbounded, so no source can follow it"
    ):
        HybridSource.builder(endless).add_source(CollectionSource([1]))
    with pytest.raises(JobDefinitionError, match="expected a Source; got 3"):
        HybridSourceBuilder(3)  # type: ignore[arg-type]
