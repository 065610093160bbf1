from __future__ import annotations

from typing import Any

import pytest

from headrace.connectors.base import Boundedness, Slice
from headrace.connectors.collection import CollectionSource
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.hybrid import HybridSource
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream.connectors.hybrid_source import HybridSourceBuilder
from headrace.errors import JobDefinitionError


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


def test_it_ends_if_its_last_source_does() -> None:
    endless = DataGeneratorSource(str, None)
    source = HybridSource.builder(CollectionSource([1])).add_source(endless).build()
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert source.concurrent_splits is None
    assert HybridSource.builder(CollectionSource([1])).build().concurrent_splits == 1


def test_positions_of_a_checkpoint_reach_the_source_whose_turn_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    source = HybridSource.builder(CollectionSource([1])).build()
    enumerator = source.create_enumerator(1)
    (split,) = enumerator.discover()
    seen: list[Any] = []
    inner = enumerator._enumerator()  # type: ignore[attr-defined]
    monkeypatch.setattr(inner, "checkpoint_completed", seen.append)
    enumerator.checkpoint_completed({split.split_id: 1, "7/other": 2})
    assert seen == [{split.split.split_id: 1}]  # type: ignore[attr-defined]
    assert isinstance(enumerator.plan(split, 0, 1), Slice)


def test_what_cannot_be_put_together_is_refused() -> None:
    endless = DataGeneratorSource(str, None)
    with pytest.raises(JobDefinitionError, match="DataGeneratorSource never ends, so nothing can follow it"):
        HybridSource.builder(endless).add_source(CollectionSource([1]))
    with pytest.raises(JobDefinitionError, match="expected a Source; got 3"):
        HybridSourceBuilder(3)  # type: ignore[arg-type]
