from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.collection import CollectionSource
from headrace.datastream.functions import KeyedProcessFunction, MapFunction
from headrace.errors import InvariantViolation, JobDefinitionError
from headrace.operators.io import SourceDeclaration
from headrace.operators.keyed import KeyedProcessDeclaration, ReduceDeclaration
from headrace.operators.simple import MapDeclaration
from headrace.state.descriptors import ListStateDescriptor
from headrace.testing.harness import OperatorHarness, Snapshot


def count() -> ReduceDeclaration:
    return ReduceDeclaration(lambda left, right: (left[0], left[1] + right[1]), lambda pair: pair[0])


def test_a_source_is_refused() -> None:
    with pytest.raises(JobDefinitionError, match="no input"):
        OperatorHarness(SourceDeclaration(CollectionSource([1])))


def test_the_function_that_was_given_is_left_alone() -> None:
    class Counts(MapFunction):
        def __init__(self) -> None:
            self.count = 0

        def map(self, value: Any) -> Any:
            self.count += 1
            return self.count

    function = Counts()
    with OperatorHarness(MapDeclaration(function)) as harness:
        harness.process_batch("abc")
        assert function.count == 0
        assert harness.operator.function.count == 3  # type: ignore[attr-defined]


def test_functions_that_cannot_be_pickled_are_refused_with_a_hint() -> None:
    class Locked(MapFunction):
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def map(self, value: Any) -> Any:
            return value

    with pytest.raises(JobDefinitionError, match="cannot be copied") as caught:
        OperatorHarness(MapDeclaration(Locked())).open()
    assert "open()" in (caught.value.hint or "")


def test_timestamps_must_be_as_many_as_records() -> None:
    with (
        OperatorHarness(MapDeclaration(str)) as harness,
        pytest.raises(JobDefinitionError, match="2 records with 1"),
    ):
        harness.process_batch("ab", [1])


def test_a_snapshot_is_portable() -> None:
    with OperatorHarness(count()) as harness:
        harness.process_batch([("a", 1), ("b", 2), ("a", 3)])
        snapshot: Snapshot = pickle.loads(pickle.dumps(harness.snapshot()))
    assert sum(len(states["_reduced"]) for states in snapshot.keyed.values()) == 2
    with OperatorHarness.restored(count(), snapshot) as again:
        again.process(("a", 1))
        assert again.output == [("a", 5)]


def test_equal_state_makes_equal_snapshots_however_it_came_about() -> None:
    with OperatorHarness(count()) as one, OperatorHarness(count()) as other:
        one.process_batch([("a", 1), ("b", 2), ("a", 3)])
        other.process_batch([("b", 1), ("a", 4)])
        other.move()
        other.process(("b", 1))
        assert one.snapshot() == other.snapshot()


def test_a_restored_harness_continues_after_the_epoch_of_the_snapshot() -> None:
    class Listing(KeyedProcessFunction):
        """Keeps a list, which is stored in one piece an epoch."""

        def open(self, runtime_context: Any) -> None:
            self._all = runtime_context.get_list_state(ListStateDescriptor("all", None))

        def process_element(self, value: Any, ctx: Any) -> Any:
            self._all.add(value)
            return [list(self._all.get())] if value == "?" else None

    declaration = KeyedProcessDeclaration(Listing(), lambda value: 0)
    with OperatorHarness(declaration) as harness:
        for value in "abc":
            harness.process(value)
            harness.end_epoch()
        harness.process("d")
        snapshot = harness.snapshot()
    with OperatorHarness.restored(declaration, snapshot) as again:
        again.process("e")
        again.end_epoch()
        again.process("?")
        assert again.output == [list("abcde?")]


def test_a_snapshot_carries_the_watermark_and_the_clock_is_given() -> None:
    with OperatorHarness(count()) as harness:
        harness.process_watermark(5)
        snapshot = harness.snapshot()
    with OperatorHarness.restored(count(), snapshot, processing_time=7) as again:
        again.open()
        assert (again.context.watermark(), again.context.processing_time()) == (5, 7)
        again.process_watermark(4)
        assert again.watermarks == []


def test_a_snapshot_with_another_number_of_key_groups_is_refused() -> None:
    with OperatorHarness(count(), max_parallelism=16) as harness:
        snapshot = harness.snapshot()
    with (
        OperatorHarness(count(), max_parallelism=32) as other,
        pytest.raises(JobDefinitionError, match="16 key"),
    ):
        other.restore(snapshot)


def test_restoring_comes_first() -> None:
    with OperatorHarness(count()) as harness:
        snapshot = harness.snapshot()
        with pytest.raises(InvariantViolation):
            harness.restore(snapshot)


def test_nothing_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with OperatorHarness(count()) as harness:
        harness.process(("a", 1))
        harness.move()
        assert any(tmp_path.iterdir())
    assert not any(tmp_path.iterdir())


def test_a_directory_that_was_given_stays(tmp_path: Path) -> None:
    with OperatorHarness(count(), state_dir=str(tmp_path)) as harness:
        harness.process(("a", 1))
        harness.end_epoch()
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["0-1-0.change"]


def test_output_can_be_forgotten() -> None:
    with OperatorHarness(MapDeclaration(str)) as harness:
        harness.process(1)
        harness.process_watermark(1)
        harness.clear_output()
        harness.process(2)
        assert (harness.output, harness.watermarks) == (["2"], [])


def test_metrics_and_accumulators_of_a_function_are_shown() -> None:
    class Lengths(MapFunction):
        def open(self, runtime_context: Any) -> None:
            self.seen = runtime_context.get_metrics_group().counter("seen")
            self.total = runtime_context.get_long_counter("total")

        def map(self, value: str) -> str:
            self.seen.inc()
            self.total.add(len(value))
            return value

    with OperatorHarness(MapDeclaration(Lengths())) as harness:
        harness.process_batch(["a", "bcd"])
        assert harness.metrics == {"seen": 2}
        assert harness.accumulators == {"total": 4}
