from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from headrace.common.time import Duration
from headrace.common.watermark_strategy import WatermarkGenerator, WatermarkStrategy
from headrace.connectors.base import ReaderContext, Slice, SourceSplit
from headrace.elements import MAX_WATERMARK, Batch, Event, StreamStatus, Watermark
from headrace.errors import ConnectorError, UserFunctionError
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.operators.base import EpochPlace
from headrace.operators.context import OperatorContext, TaskPlace
from headrace.operators.io import SourceDeclaration, SourceTask
from tests.unit.runtime.fakes import SplitsReader, SplitsSource

#: Every number is its own timestamp, and time is right after it.
BY_VALUE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)


class Recorded:
    """A source task, what it emitted, and what state it left."""

    def __init__(self, source: SplitsSource, strategy: WatermarkStrategy | None = BY_VALUE) -> None:
        self.source = source
        self.emitted: list[Any] = []
        self.operator_state: bytes | None = None
        self._declaration = SourceDeclaration(source, strategy)
        self.start()

    def start(self) -> None:
        """Begin on a worker that knows nothing."""
        self.task: SourceTask = self._declaration.build()
        self.task.output = self
        place = TaskPlace("job", "task", "Source: numbers", "id", 0, 1, 128)
        self.context = OperatorContext(place=place, metrics=InMemoryMetricGroup())
        self.context.operator_state.restore(self.operator_state)
        self.task.open(self.context)

    def emit(self, batch: Batch) -> None:
        self.emitted += batch.values

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.emitted += [(tag_id, value) for value in batch.values]

    def emit_event(self, event: Event) -> None:
        if isinstance(event, StreamStatus):
            self.emitted.append("active" if event.active else "idle")
        else:
            assert isinstance(event, Watermark)
            self.emitted.append(f"W{event.timestamp}")

    def run(
        self,
        *pieces: tuple[str, int, int],
        max_records: int | None = None,
        idle: Iterable[str] = (),
        splits: Iterable[str] | None = None,
    ) -> list[Any]:
        """Read slices as (split, start, end) and return what came out; the epoch is not ended."""
        self.emitted = []
        self.context.operator_state.restore(self.operator_state)
        self.task.begin_epoch(EpochPlace(1, "attempt"))
        slices = [Slice(SourceSplit(name), start, end) for name, start, end in pieces]
        splits = self.source.splits if splits is None else splits
        for _ in self.task.run(slices, frozenset(splits), max_records, frozenset(idle)):
            pass
        return self.emitted

    def end_epoch(self) -> None:
        self.task.end_epoch()
        self.operator_state = self.context.operator_state.snapshot() or self.operator_state


def side_by_side(**splits: list[int]) -> Recorded:
    return Recorded(SplitsSource(splits, concurrent=None))


def test_time_is_that_of_the_slowest_split_read_side_by_side() -> None:
    #   a   1 2 3 4            out   1 2 3 4 10 20 W3
    #   b   10 20
    recorded = side_by_side(a=[1, 2, 3, 4, 5], b=[10, 20, 30])
    assert recorded.run(("a", 0, 4), ("b", 0, 2)) == [1, 2, 3, 4, 10, 20, "W3"]


def test_a_split_without_a_record_so_far_holds_time_back() -> None:
    recorded = side_by_side(a=[1, 2], b=[10], late=[5])
    assert recorded.run(("a", 0, 2), ("b", 0, 1)) == [1, 2, 10]


def test_a_split_that_is_finished_does_not_hold_time_back() -> None:
    recorded = side_by_side(a=[1, 2], b=[10, 20, 30])
    assert recorded.run(("b", 0, 2), ("a", 0, 2)) == [10, 20, 1, 2, "W1", "W19"]


def test_splits_read_in_turn_do_not_wait_for_each_other() -> None:
    recorded = Recorded(SplitsSource({"a": [1, 2], "b": [5, 6]}, concurrent=1))
    assert recorded.run(("a", 0, 2), ("b", 0, 2)) == [1, 2, "W1", 5, 6, "W5"]


def test_time_does_not_go_back_with_the_next_split() -> None:
    recorded = Recorded(SplitsSource({"a": [10, 20], "b": [5, 6]}, concurrent=1))
    assert recorded.run(("a", 0, 2), ("b", 0, 2)) == [10, 20, "W19", 5, 6]


@pytest.mark.parametrize("moves", [False, True])
def test_time_continues_where_it_stood_in_the_next_epoch(moves: bool) -> None:
    recorded = side_by_side(a=[1, 2, 3, 4], b=[10, 20, 30])
    recorded.run(("a", 0, 2), ("b", 0, 1))
    recorded.end_epoch()
    if moves:
        recorded.start()
    # b stands at 9 without being read again.
    assert recorded.run(("a", 2, 3)) == [3, "W2"]


def test_an_epoch_that_runs_again_gives_the_same_stream() -> None:
    recorded = side_by_side(a=[1, 2, 3, 4], b=[10, 20, 30])
    recorded.run(("a", 0, 2), ("b", 0, 1))
    recorded.end_epoch()
    first = list(recorded.run(("a", 2, 4), ("b", 1, 2)))
    assert recorded.run(("a", 2, 4), ("b", 1, 2)) == first


def test_the_end_of_the_source_is_the_end_of_time() -> None:
    recorded = side_by_side(a=[1])
    recorded.run(("a", 0, 1))
    recorded.task.finish()
    assert recorded.emitted[-1] == f"W{MAX_WATERMARK}"


def test_a_source_without_a_strategy_has_no_time_and_keeps_no_state() -> None:
    recorded = Recorded(SplitsSource({"a": [1, 2]}, concurrent=None), strategy=None)
    assert recorded.run(("a", 0, 2)) == [1, 2]
    recorded.end_epoch()
    assert recorded.operator_state is None


def test_how_far_each_split_was_read_is_reported() -> None:
    recorded = side_by_side(a=[1, 2, 3], b=[10])
    recorded.run(("a", 0, 2), ("b", 0, 1))
    progress = recorded.task.reader.progress
    assert (progress["a"].position, progress["a"].is_finished) == (2, False)
    assert progress["b"].is_finished
    assert recorded.task.reader.records == 3


def test_reading_stops_when_enough_was_read() -> None:
    recorded = Recorded(SplitsSource({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7]}, concurrent=1), strategy=None)
    assert recorded.run(("a", 0, 3), ("b", 0, 3), ("c", 0, 1), max_records=4) == [1, 2, 3, 4]
    assert {name: each.position for name, each in recorded.task.reader.progress.items()} == {"a": 3, "b": 1}


class Failing(SplitsReader):
    error: Exception = ValueError("bad line")

    def read(self, piece: Slice) -> Iterator[Batch]:
        yield Batch([1])
        raise self.error


class FailingSource(SplitsSource):
    def create_reader(self) -> Failing:
        return Failing(self)


def test_an_error_of_a_reader_says_which_source_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(FailingSource({"a": [1, 2]}), strategy=None)
    with pytest.raises(UserFunctionError, match="bad line") as caught:
        recorded.run(("a", 0, 2))
    assert caught.value.operator == "Source: numbers"
    monkeypatch.setattr(Failing, "error", ConnectorError("server is away"))
    with pytest.raises(ConnectorError, match="server is away"):
        recorded.run(("a", 0, 2))


# --- strategies -----------------------------------------------------------------------------------


class EveryThird(WatermarkGenerator):
    """Periodic: looks at records one by one, and says something after every third."""

    def __init__(self) -> None:
        self.count = 0
        self.highest = -1

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        self.count += 1
        self.highest = max(self.highest, timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        if self.count >= 3:
            self.count = 0
            output.emit_watermark(self.highest)


class AtTens(WatermarkGenerator):
    """Punctuated: multiples of ten stand for the time they show."""

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        if value % 10 == 0:
            output.emit_watermark(value)

    def on_periodic_emit(self, output: Any) -> None:
        pass


def by_value(strategy: WatermarkStrategy) -> WatermarkStrategy:
    return strategy.with_timestamp_assigner(lambda value, _: value)


@pytest.mark.parametrize(
    ("strategy", "stream"),
    [
        (WatermarkStrategy.no_watermarks(), [1, 2, 20, 5, 7, 30]),
        (by_value(WatermarkStrategy.no_watermarks()), [1, 2, 20, 5, 7, 30]),
        (BY_VALUE, [1, 2, "W1", 20, 5, "W19", 7, 30, "W29"]),
        (
            by_value(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(4))),
            [1, 2, "W-3", 20, 5, "W15", 7, 30, "W25"],
        ),
        (by_value(WatermarkStrategy.for_generator(EveryThird)), [1, 2, 20, 5, "W20", 7, 30]),
        (by_value(WatermarkStrategy.for_generator(AtTens)), [1, 2, 20, "W20", 5, 7, 30, "W30"]),
        # Records without a timestamp reach the generator, too.
        (WatermarkStrategy.for_generator(AtTens), [1, 2, 20, "W20", 5, 7, 30, "W30"]),
        (WatermarkStrategy.for_monotonous_timestamps(), [1, 2, 20, 5, 7, 30]),
    ],
    ids=["none", "none-timed", "monotonous", "bounded", "periodic", "punctuated", "untimed", "no-times"],
)
@pytest.mark.parametrize("cut", [None, 2, 4])
def test_every_strategy_wherever_epochs_end(
    strategy: WatermarkStrategy, stream: list[Any], cut: int | None
) -> None:
    numbers = [1, 2, 20, 5, 7, 30]
    recorded = Recorded(SplitsSource({"a": [*numbers, 99]}), strategy)
    found = list(recorded.run(("a", 0, cut or 6)))
    if cut is not None:
        recorded.end_epoch()
        recorded.start()
        found += recorded.run(("a", cut, 6))
    assert found == stream


def test_timestamps_of_the_source_are_kept_or_replaced_by_the_assigners() -> None:
    class Timed(SplitsReader):
        def read(self, piece: Slice) -> Iterator[Batch]:
            for batch in super().read(piece):
                yield Batch(batch.values, [value + 100 for value in batch.values])

    class TimedSource(SplitsSource):
        def create_reader(self) -> Timed:
            return Timed(self)

    source = TimedSource({"a": [1, 2, 99]})
    own = Recorded(source, WatermarkStrategy.for_monotonous_timestamps())
    assert own.run(("a", 0, 2)) == [1, 2, "W101"]
    shifted = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda _, at: at + 1000)
    assert Recorded(source, shifted).run(("a", 0, 2)) == [1, 2, "W1101"]


# --- idleness -------------------------------------------------------------------------------------

MAY_IDLE = BY_VALUE.with_idleness(Duration.of_seconds(5))


def may_idle(**splits: list[int]) -> Recorded:
    return Recorded(SplitsSource(splits, concurrent=None), MAY_IDLE)


def test_an_idle_split_does_not_hold_the_others() -> None:
    recorded = may_idle(a=[1, 2, 9], quiet=[3])
    assert recorded.run(("a", 0, 2)) == [1, 2]
    recorded.end_epoch()
    assert recorded.run(idle=["quiet"]) == ["W1"]


def test_a_split_that_wakes_up_does_not_turn_time_back_and_holds_it_again() -> None:
    recorded = may_idle(a=[10, 20, 30, 40, 50], quiet=[3, 35, 99])
    recorded.run(("a", 0, 2), idle=["quiet"])
    recorded.end_epoch()
    assert recorded.run(("quiet", 0, 1), idle=["quiet"]) == [3]
    recorded.end_epoch()
    assert recorded.run(("a", 2, 4)) == [30, 40]
    recorded.end_epoch()
    assert recorded.run(("quiet", 1, 2)) == [35, "W34"]


def test_a_subtask_is_idle_when_all_its_splits_are_until_a_record_comes() -> None:
    recorded = may_idle(a=[1, 2, 9, 99], b=[3, 4, 9])
    recorded.run(("a", 0, 2), ("b", 0, 2))
    recorded.end_epoch()
    assert recorded.run(idle=["a"]) == ["W3"]
    recorded.end_epoch()
    assert recorded.run(idle=["a", "b"]) == ["idle"]
    assert recorded.task.is_idle
    recorded.end_epoch()
    recorded.start()
    assert recorded.run(idle=["a", "b"]) == [], "it was said before"
    recorded.end_epoch()
    assert recorded.run(("a", 2, 3), idle=["a", "b"]) == ["active", 9, "W8"]
    assert not recorded.task.is_idle


def test_an_error_of_the_assigner_says_which_source_it_was() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value["at"]
    )
    recorded = Recorded(SplitsSource({"a": [1, 2]}), strategy)
    with pytest.raises(UserFunctionError, match="not subscriptable") as caught:
        recorded.run(("a", 0, 2))
    assert caught.value.operator == "Source: numbers"


def test_a_subtask_without_splits_is_idle() -> None:
    recorded = may_idle(a=[1])
    assert recorded.run(splits=[]) == ["idle"]
    recorded.end_epoch()
    assert recorded.run(splits=["a"]) == ["active"], "one that has records to come holds time back"


@pytest.mark.parametrize("concurrent", [1, None])
def test_a_subtask_between_two_splits_is_not_idle(concurrent: int | None) -> None:
    recorded = Recorded(SplitsSource({"a": [1, 2], "b": [3, 9]}, concurrent=concurrent), MAY_IDLE)
    assert "idle" not in recorded.run(("a", 0, 2), splits=["a"])
    recorded.end_epoch()
    assert recorded.run(("b", 0, 1), splits=["b"]) == [3, "W2"]


def test_the_end_of_an_idle_source_is_the_end_of_time_as_well() -> None:
    recorded = may_idle(a=[1])
    recorded.run(("a", 0, 0), idle=["a"])
    recorded.task.finish()
    assert recorded.emitted == ["idle", f"W{MAX_WATERMARK}"]


class IdleAtZero(WatermarkGenerator):
    """A split says itself that it has nothing for now: with a zero."""

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        if value == 0:
            output.mark_idle()
        else:
            output.emit_watermark(value)

    def on_periodic_emit(self, output: Any) -> None:
        pass


@pytest.mark.parametrize("moves", [False, True])
def test_a_generator_may_say_that_its_split_is_idle(moves: bool) -> None:
    strategy = by_value(WatermarkStrategy.for_generator(IdleAtZero))
    source = SplitsSource({"a": [5, 0, 7, 99], "b": [8, 9, 0, 99]}, concurrent=None, batch_records=1)
    recorded = Recorded(source, strategy)
    assert recorded.run(("a", 0, 2), ("b", 0, 1)) == [5, 0, 8, "W8"]
    recorded.end_epoch()
    if moves:
        recorded.start()
    assert recorded.run(("b", 1, 3)) == [9, "W9", 0, "idle"]
    recorded.end_epoch()
    assert recorded.run(("a", 2, 3)) == ["active", 7]


class AtTensWithPauses(AtTens):
    """After a nine, nothing is to be expected until the next ten."""

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        super().on_event(value, timestamp, output)
        if value % 10 == 9:
            output.mark_idle()


@pytest.mark.parametrize("batch_records", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("cut", [None, 1, 4, 6])
def test_a_watermark_that_follows_from_a_record_stands_right_after_it(
    batch_records: int, cut: int | None
) -> None:
    numbers = [10, 3, 20, 40, 5, 30, 41, 49, 50, 60, 8]
    source = SplitsSource({"a": [*numbers, 99]}, batch_records=batch_records)
    recorded = Recorded(source, by_value(WatermarkStrategy.for_generator(AtTensWithPauses)))
    found = list(recorded.run(("a", 0, cut or 11)))
    if cut is not None:
        recorded.end_epoch()
        recorded.start()
        found += recorded.run(("a", cut, 11))
    # 30 comes when time is at 40 already.
    assert found == [
        *[10, "W10", 3, 20, "W20", 40, "W40", 5, 30, 41, 49, "idle"],
        *["active", 50, "W50", 60, "W60", 8],
    ]


class OddOnes(SplitsReader):
    """Sends even numbers to a side output and counts them, with what the engine lends."""

    def open(self, context: ReaderContext) -> None:
        self._context = context
        self._evens = context.metrics.counter("evens")

    def read(self, piece: Slice) -> Iterator[Batch]:
        for batch in super().read(piece):
            for value in batch.values:
                if value % 2 == 0:
                    self._evens.inc()
                    self._context.emit_side("even", value)
            yield Batch([value for value in batch.values if value % 2])


class OddSource(SplitsSource):
    def create_reader(self) -> SplitsReader:
        return OddOnes(self)


def test_a_reader_can_count_and_write_to_side_outputs() -> None:
    recorded = Recorded(OddSource({"a": [1, 2, 3, 4]}, concurrent=1), strategy=None)
    assert recorded.run(("a", 0, 4)) == [("even", 2), 1, ("even", 4), 3]
    assert recorded.context.metrics.values() == {"evens": 2}
