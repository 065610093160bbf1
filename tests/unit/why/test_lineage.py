"""Whether `headrace why` names exactly the input records that a row was made of.

The programs here carry the numbers of their input records along, so every row says itself what it was made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Duration, Time, Types, WatermarkStrategy
from headrace.config import Configuration
from headrace.datastream import (
    AggregateFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from headrace.datastream.execution_context import ExecutionContext
from headrace.datastream.functions import ProcessJoinFunction
from headrace.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from headrace.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from headrace.replay.recordings import JobRecording, find_recording
from headrace.testing.mini_cluster import MiniExecutor, random_faults
from headrace.why.answer import explain
from headrace.why.history import History

#: From a stream of events to one of rows.
Program = Callable[[Any], Any]
#: Records: a key, a time in seconds, and the numbers of the input records in it.
EVENTS = [("abc"[number % 3], number + (3 if number % 7 == 0 else 0), (number,)) for number in range(60)]


def by_key(stream: Any) -> Any:
    return stream.key_by(lambda event: event[0])


def merged(one: Any, other: Any) -> Any:
    return one[0], max(one[1], other[1]), (*one[2], *other[2])


class Numbers(AggregateFunction):
    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator.extend(value[2])  # in place
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return "window", 0, tuple(accumulator)

    def merge(self, a: Any, b: Any) -> Any:
        return [*a, *b]


class LastThree(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.events = runtime_context.get_list_state(
            ListStateDescriptor("events", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.events.add(value)
        last = list(self.events.get())[-3:]
        self.events.update(last)
        yield value[0], value[1], tuple(number for event in last for number in event[2])


class InPlace(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        seen = self.seen.value()
        if seen is None:
            seen = []
            self.seen.update(seen)
        seen.extend(value[2])
        yield value[0], value[1], tuple(seen)


class ByParity(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        ttl = StateTtlConfig.new_builder(Time.days(1)).build()
        descriptor = MapStateDescriptor("by parity", Types.LONG(), Types.PICKLED_BYTE_ARRAY())
        descriptor.enable_time_to_live(ttl)
        self.last = runtime_context.get_map_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        parity = value[2][0] % 2
        before = self.last.get(parity) or ()
        self.last.put(parity, value[2])
        yield value[0], value[1], (*before, *value[2])


class Later(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.last.update(value)
        ctx.timer_service().register_event_time_timer(value[1] * 1000 // 10_000 * 10_000 + 9_999)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield self.last.value()


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left[0], 0, (*left[2], *right[2])


class FirstWithLast(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.first = runtime_context.get_state(ValueStateDescriptor("first", Types.PICKLED_BYTE_ARRAY()))

    def process_element1(self, value: Any, ctx: Any) -> None:
        self.first.update(value)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        first = self.first.value()
        yield value[0], value[1], (*(() if first is None else first[2]), *value[2])


def odd(event: Any) -> bool:
    return bool(event[2][0] % 2)


def running(stream: Any) -> Any:
    return by_key(stream).reduce(merged)


def last_three(stream: Any) -> Any:
    return by_key(stream).process(LastThree())


def in_place(stream: Any) -> Any:
    return by_key(stream).process(InPlace())


def by_parity(stream: Any) -> Any:
    return by_key(stream).process(ByParity())


def later(stream: Any) -> Any:
    return by_key(stream).process(Later())


def two_stages(stream: Any) -> Any:
    pairs = by_key(stream.rebalance().map(lambda event: event)).reduce(merged)
    return by_key(pairs.filter(odd).flat_map(lambda event: [event, event])).process(InPlace())


def union(stream: Any) -> Any:
    return by_key(stream.filter(odd).union(stream.filter(lambda event: not odd(event)))).reduce(merged)


def tumbling(stream: Any) -> Any:
    return by_key(stream).window(TumblingEventTimeWindows.of(Time.seconds(10))).aggregate(Numbers())


def sliding(stream: Any) -> Any:
    windows = SlidingEventTimeWindows.of(Time.seconds(20), Time.seconds(2))
    return by_key(stream).window(windows).reduce(merged)


def sliding_aggregate(stream: Any) -> Any:
    windows = SlidingEventTimeWindows.of(Time.seconds(20), Time.seconds(2))
    return by_key(stream).window(windows).aggregate(Numbers())


def sessions(stream: Any) -> Any:
    return by_key(stream).window(EventTimeSessionWindows.with_gap(Time.seconds(4))).reduce(merged)


def counted(stream: Any) -> Any:
    windows = TumblingEventTimeWindows.of(Time.seconds(30))
    return by_key(stream).window(windows).trigger(CountTrigger.of(2)).reduce(merged)


class InWindow(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield key, 0, tuple(number for event in elements for number in event[2])


def buffered(stream: Any) -> Any:
    windows = TumblingEventTimeWindows.of(Time.seconds(10))
    return by_key(stream).window(windows).process(InWindow())


def interval_join(stream: Any) -> Any:
    left, right = by_key(stream.filter(odd)), by_key(stream.filter(lambda event: not odd(event)))
    return left.interval_join(right).between(Time.seconds(-4), Time.seconds(4)).process(Pairs())


def connected(stream: Any) -> Any:
    left, right = by_key(stream.filter(odd)), by_key(stream.filter(lambda event: not odd(event)))
    return left.connect(right).process(FirstWithLast())


#: Programs in which a row is made of all that it depends on.
EXACT = [
    *(running, two_stages, union, tumbling, sliding, sliding_aggregate, sessions, counted, buffered),
    *(interval_join, connected, in_place),
]
#: Programs that drop some of what they have read.
FORGETFUL = [last_three, by_parity, later]


def record(directory: Path, program: Program, seed: int = 0, *, is_batch: bool = False) -> JobRecording:
    values = {
        "headrace.replay.keep": "1000",
        "headrace.replay.dir": str(directory),
        "headrace.epoch.max-records": str(3 + 5 * seed),
        "parallelism.default": str(1 + seed % 3),
        "headrace.exchange.buffer-records": str(1 + seed),
        "state.backend.type": "rocksdb" if seed == 1 else "hashmap",
    }
    executor = MiniExecutor(seed=seed, faults=random_faults(seed, 0.02))
    with ExecutionContext(Configuration(values), executors={"spark": executor}).entered():
        env = StreamExecutionEnvironment.get_execution_environment()
        if is_batch:
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(3))
        strategy = strategy.with_timestamp_assigner(Seconds())
        events = env.from_collection(EVENTS).assign_timestamps_and_watermarks(strategy)
        with program(events).execute_and_collect() as rows:
            assert list(rows)
    return find_recording(str(directory))


class Seconds:
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1] * 1000)


def made_of(recording: JobRecording) -> list[tuple[Any, Any]]:
    """Return, for every row, the input that it names and the input that was found."""
    history = History(recording)
    pairs = []
    for number in history.numbers:
        for row in history.lineage(number).rows:
            answer = explain(history, row, 1)
            assert answer.unknown == []
            assert answer.with_fields == []
            found = [eval(each.record)[2][0] for each in answer.inputs]
            assert len(set(found)) == len(found)
            pairs.append((sorted(set(row.value[2])), sorted(found)))
    assert history.differences == {}
    return pairs


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("program", EXACT)
def test_exactly_the_input_of_every_row_is_found(program: Program, seed: int, tmp_path: Path) -> None:
    pairs = made_of(record(tmp_path, program, seed))
    assert [named for named, _ in pairs] == [found for _, found in pairs]


@pytest.mark.parametrize("program", FORGETFUL)
def test_what_a_function_has_read_counts_even_if_it_is_not_in_the_row(
    program: Program, tmp_path: Path
) -> None:
    for named, found in made_of(record(tmp_path, program, 2)):
        assert set(named) <= set(found)


@pytest.mark.parametrize("program", [running, tumbling, sessions, interval_join])
def test_in_batch_mode_all_records_of_a_key_are_found(program: Program, tmp_path: Path) -> None:
    pairs = made_of(record(tmp_path, program, 2, is_batch=True))
    for named, found in pairs:
        assert set(named) <= set(found)
        assert len({number % 3 for number in found}) == 1
