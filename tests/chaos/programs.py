"""Small programs, and what they must give; and a sink that knows which epoch published what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.common.time import Time
from headrace.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from headrace.connectors.base import Committable, Committer, Sink, SinkWriter, WriterContext
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from headrace.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headrace.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from tests.chaos.faults import Faults

NUMBERS = 60
RULES = 20
PARALLELISM = 2

# -- a sink that tells ---------------------------------------------------------------------------------

#: By the sink's name: batches by epoch and subtask.
published: dict[str, dict[tuple[int, int], list[Any]]] = {}


@dataclass(frozen=True)
class ChaosSink(Sink):
    """Publishes each batch once, by the epoch and subtask it is of; fails between two batches."""

    name: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _ChaosWriter()

    def create_committer(self) -> Committer:
        return ChaosCommitter(self.name)


class _ChaosWriter(SinkWriter):
    def __init__(self) -> None:
        self._records: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._records.append(value)

    def prepare_commit(self) -> Sequence[Any]:
        return [self._records]


class ChaosCommitter(Committer):
    faults: Faults | None = None

    def __init__(self, name: str) -> None:
        self._name = name
        self._batches = published.setdefault(name, {})

    def commit(self, committables: Sequence[Committable]) -> None:
        for each in committables:
            if self.faults is not None:
                self.faults.step(f"commit {self._name.rpartition('/')[2]}")
            there = self._batches.setdefault((each.epoch, each.subtask), each.payload)
            assert there == each.payload, f"epoch {each.epoch} stands for two"


# -- programs ------------------------------------------------------------------------------------------


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % 7, count


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 100


class HoldBack(ProcessFunction, CheckpointedFunction):
    """Holds records back in list state until it has three, or sees the last of a split."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.state = store.get_list_state(ListStateDescriptor("held", None))
        self.held = list(self.state.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.state.update(self.held)

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        self.held.append(value)
        if len(self.held) >= 3 or (value + 1) % (NUMBERS // PARALLELISM) == 0:
            yield from self.held
            self.held.clear()


class Rules(BroadcastProcessFunction):
    """Says of every rule how many are known with it; lets values pass."""

    descriptor = MapStateDescriptor("rules", None, None)

    def process_element(self, value: int, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        yield "value", value

    def process_broadcast_element(self, value: int, ctx: BroadcastProcessFunction.Context) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(self.descriptor)
        rules.put(value, True)
        yield "rule", value, len(list(rules.keys()))


def numbers(env: StreamExecutionEnvironment, count: int = NUMBERS, name: str = "numbers") -> DataStream:
    return env.from_source(NumberSequenceSource(0, count - 1), WatermarkStrategy.no_watermarks(), name).uid(
        name
    )


def counting(env: StreamExecutionEnvironment, suffix: str = "") -> DataStream:
    source = numbers(env, name=f"numbers{suffix}")
    return source.key_by(lambda n: n % 7).process(Count()).uid(f"count{suffix}")


def windows(env: StreamExecutionEnvironment, assigner: Any) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    stamped = numbers(env).set_parallelism(1).assign_timestamps_and_watermarks(strategy).uid("stamped")
    return stamped.key_by(lambda n: n % 5).window(assigner).reduce(lambda a, b: a + b).uid("sums")


def routed(env: StreamExecutionEnvironment) -> DataStream:
    """Counts after one edge of each kind that records can be overtaken on."""
    spread = numbers(env).rebalance().map(lambda n: n).uid("spread")
    dealt = spread.partition_custom(lambda key, width: key % width, lambda n: n // 2)
    return dealt.map(lambda n: n).uid("dealt").key_by(lambda n: n % 7).process(Count()).uid("count")


def counting_apart(env: StreamExecutionEnvironment) -> DataStream:
    """Counts in a region of its own."""
    return counting(env, " apart")


def tumbling(env: StreamExecutionEnvironment) -> DataStream:
    return windows(env, TumblingEventTimeWindows.of(Time.seconds(1)))


def sliding(env: StreamExecutionEnvironment) -> DataStream:
    return windows(env, SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1)))


def holding_back(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).process(HoldBack()).uid("held")


def broadcasting(env: StreamExecutionEnvironment) -> DataStream:
    rules = numbers(env, RULES, "rules").set_parallelism(1).broadcast(Rules.descriptor)
    return numbers(env).rebalance().connect(rules).process(Rules()).uid("ruled")


@dataclass(frozen=True)
class Program:
    build: Callable[[StreamExecutionEnvironment], DataStream]
    can_rescale: bool = True
    #: The parallelism with which another driver may start the program: the same operators are chained with each.
    widths: tuple[int, ...] = (1, 2, 3)
    expected: Callable[[], list[Any]] = list
    #: What the second sink gets, if that is a stream of its own: the same, in a region of its own.
    apart: Callable[[StreamExecutionEnvironment], DataStream] | None = None


def _window_sums(size: int, slide: int) -> list[int]:
    sums = []
    for key in range(5):
        for start in range(slide - size, NUMBERS * 100, slide):
            inside = [n for n in range(key, NUMBERS, 5) if start <= n * 100 < start + size]
            sums += [sum(inside)] if inside else []
    return sums


def _counts() -> list[tuple[int, int]]:
    return [(n % 7, n // 7 + 1) for n in range(NUMBERS)]


PROGRAMS = {
    "counting": Program(counting, expected=_counts),
    "tumbling": Program(tumbling, widths=(2, 3), expected=lambda: _window_sums(1000, 1000)),
    "sliding": Program(sliding, widths=(2, 3), expected=lambda: _window_sums(2000, 1000)),
    "list state": Program(holding_back, can_rescale=False, expected=lambda: list(range(NUMBERS))),
    "broadcast state": Program(
        broadcasting,
        can_rescale=False,  # how many say something of a rule depends on the parallelism
        expected=lambda: [
            *(("value", n) for n in range(NUMBERS)),
            *(("rule", n, n + 1) for n in range(RULES) for _ in range(PARALLELISM)),
        ],
    ),
}
#: With one more, for barriers that overtake: seeds of other tests draw from those above.
ALL_PROGRAMS = {
    **PROGRAMS,
    "routed": Program(routed, expected=_counts),
    "two regions": Program(counting, expected=_counts, apart=counting_apart),
}
