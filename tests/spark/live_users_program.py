"""A program for `test_live_users`: what Flink's users write, live with a killed worker, and in epochs.

Rules that are broadcast, sessions with timers, asynchronous calls, two sources with time of their own of which one
falls silent, and timers by the clock over two inputs. All jobs run on one Spark, because starting it takes longer than
they do. Prints what came out, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.common import Configuration, Duration, Time, Types, WatermarkStrategy
from headrace.common.serialization import Encoder
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.connectors import base
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.datastream import (
    AsyncDataStream,
    AsyncFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headrace.datastream.connectors.file_system import FileSink, RollingPolicy
from headrace.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from headrace.datastream.window import TumblingEventTimeWindows
from headrace.elements import Batch

RECORDS = 2_000
KEYS = 10
RULES = 5
PER_SECOND = 1_000
#: The record that kills its worker, the first time it comes.
DEADLY = 1_300
#: Between two sessions, in ms.
GAP = 1_000
MODES = {
    "live": {
        "headrace.exchange.kind": "pipelined",
        "execution.checkpointing.unaligned.enabled": "true",
    },
    "epochs": {"headrace.exchange.kind": "blocking", "headrace.epoch.target-duration": "200 ms"},
}
OPTIONS = {
    "headrace.spark.master": "local[2]",
    "execution.checkpointing.interval": "100 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "restart-strategy.fixed-delay.attempts": "5",
}


def die_once(number: int, marker: str) -> None:
    """Kill this worker at one record, once; not in epochs, where the marker is there from the start."""
    if number == DEADLY and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def numbers(env: StreamExecutionEnvironment, count: int = RECORDS, rate: float = PER_SECOND) -> DataStream:
    source = DataGeneratorSource(lambda index: index, count, rate)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), f"numbers to {count}")


# -- rules -----------------------------------------------------------------------------------------------------------

RULES_STATE = MapStateDescriptor("rules", Types.INT(), Types.STRING())
WAITING_STATE = ListStateDescriptor("waiting", Types.LONG())


class ApplyRules(KeyedBroadcastProcessFunction):
    """Says what the rule of a record makes of it; records whose rule is not there yet wait for it."""

    def __init__(self, marker: str) -> None:
        self._marker = marker

    def open(self, runtime_context: RuntimeContext) -> None:
        self._waiting = runtime_context.get_list_state(WAITING_STATE)

    def process_element(self, value: int, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        die_once(value, self._marker)
        self._waiting.add(value)
        yield from self._look(ctx)

    def process_broadcast_element(
        self, value: tuple[int, str], ctx: KeyedBroadcastProcessFunction.Context
    ) -> Any:
        ctx.get_broadcast_state(RULES_STATE).put(*value)
        return ()

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        yield from self._look(ctx)

    def _look(self, ctx: Any) -> Any:
        """Emit what has a rule; look again soon if something has none."""
        rules, waiting = ctx.get_broadcast_state(RULES_STATE), []
        for number in self._waiting.get() or ():
            rule = rules.get(number % RULES)
            if rule is None:
                waiting.append(number)
            else:
                yield f"{rule} {number}"
        self._waiting.update(waiting)
        if waiting:
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() // 50 * 50 + 50)


def rules(env: StreamExecutionEnvironment, marker: str) -> DataStream:
    source = DataGeneratorSource(lambda index: (index, f"rule-{index}"), RULES, 10)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "rules").set_parallelism(1)
    broadcast = stream.broadcast(RULES_STATE)
    keyed = numbers(env).key_by(lambda number: number % KEYS)
    return keyed.connect(broadcast).process(ApplyRules(marker), Types.STRING())


# -- sessions --------------------------------------------------------------------------------------------------------


class MadeUpTime(TimestampAssigner):
    """Ten milliseconds from one record to the next, and long silence after each five hundred."""

    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 10 + value // 500 * 5 * GAP


class Sessions(KeyedProcessFunction):
    """Counts a key's records until it has been silent for long enough."""

    def __init__(self, marker: str) -> None:
        self._marker = marker

    def open(self, runtime_context: RuntimeContext) -> None:
        count = ReducingStateDescriptor("count", lambda a, b: a + b, Types.LONG())
        count.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self._count = runtime_context.get_reducing_state(count)
        self._last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        die_once(value, self._marker)
        last, now = self._last.value(), ctx.timestamp()
        if last is not None and now > last + GAP:
            # Watermarks go by the clock: the timer may come later than the next session's first record.
            yield self._ended(ctx.get_current_key())
        elif last is not None:
            ctx.timer_service().delete_event_time_timer(last + GAP)
        self._count.add(1)
        self._last.update(now)
        ctx.timer_service().register_event_time_timer(now + GAP)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        if self._last.value() == timestamp - GAP:
            yield self._ended(ctx.get_current_key())

    def _ended(self, key: int) -> str:
        text = f"{key} {self._count.get()} until {self._last.value()}"
        self._count.clear()
        self._last.clear()
        return text


def sessions(env: StreamExecutionEnvironment, marker: str) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(MadeUpTime())
    timed = numbers(env).assign_timestamps_and_watermarks(strategy)
    return timed.key_by(lambda number: number % KEYS).process(Sessions(marker), Types.STRING())


# -- asynchronous calls ----------------------------------------------------------------------------------------------


class Enrich(AsyncFunction):
    """Asks for each record, which takes some milliseconds."""

    def __init__(self, marker: str) -> None:
        self._marker = marker

    async def async_invoke(self, value: int) -> list[str]:
        await asyncio.sleep(value % 7 / 1000)
        die_once(value, self._marker)
        return [f"{value} is {'even' if value % 2 == 0 else 'odd'}"]


def enrichment(env: StreamExecutionEnvironment, marker: str) -> DataStream:
    stream = numbers(env).rebalance()
    return AsyncDataStream.unordered_wait(stream, Enrich(marker), Time.seconds(30), 20, Types.STRING())


# -- two sources with time of their own ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partitions(base.Source):
    """Two partitions of (time, number). The second has little, then is silent until the first is read to its end."""

    count: int
    #: The first waits there until a window has fired: the second must not hold time back.
    gate: str

    boundedness = base.Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        return _PartitionEnumerator(self.count, self.gate)

    def create_reader(self) -> base.SourceReader:
        return _PartitionReader(self.count)


class _PartitionEnumerator(base.KnownSplits):
    def __init__(self, count: int, gate: str) -> None:
        super().__init__([base.SourceSplit("busy"), base.SourceSplit("quiet")])
        self._count, self._gate = count, gate
        self._reached = 0

    def restore(self, splits: Sequence[base.SourceSplit]) -> None:
        if splits:
            self._new = []

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice | None:
        if split.split_id == "busy":
            self._reached = max(self._reached, position)
            end = self._count if Path(self._gate).exists() else self._count // 2
            end = min(position + min(max_records, 100), end)
        else:
            if position >= 50 and self._reached < self._count:
                return None
            end = min(position + max_records, 50)
        if end <= position and not (split.split_id == "quiet" or position >= self._count):
            return None
        return base.Slice(split, position, end)


class _PartitionReader(base.SourceReader):
    def __init__(self, count: int) -> None:
        self._count = count
        self._progress = base.SplitProgress(0, is_finished=False)

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        offset = 0 if piece.split.split_id == "busy" else 1
        values = [(number, offset) for number in range(piece.start, piece.end)]
        whole = self._count if offset == 0 else 50
        if values:
            yield Batch(values)
        self._progress = base.SplitProgress(piece.end, is_finished=piece.end >= whole)

    def progress(self) -> base.SplitProgress:
        return self._progress


class PartitionTime(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[0] * 10


class Note(ProcessWindowFunction):
    """Counts a window's records, and lets it be known that one has fired."""

    def __init__(self, marker: str, gate: str) -> None:
        self._marker, self._gate = marker, gate

    def process(self, key: int, context: ProcessWindowFunction.Context, elements: Any) -> Any:
        values = list(elements)
        Path(self._gate).touch()
        for number, _ in values:
            die_once(number, self._marker)
        yield f"{key} {context.window().start} {len(values)} {sum(number for number, _ in values)}"


def partitions(env: StreamExecutionEnvironment, marker: str) -> DataStream:
    def strategy() -> WatermarkStrategy:
        plain = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100))
        timed = plain.with_timestamp_assigner(PartitionTime()).with_idleness(Duration.of_millis(200))
        return timed.with_watermark_alignment("both", Duration.of_seconds(2), Duration.of_millis(50))

    Path(gate := f"{marker}-fired").unlink(missing_ok=True)
    first = env.from_source(Partitions(RECORDS, gate), strategy(), "orders")
    second = env.from_source(Partitions(RECORDS, gate), strategy(), "payments")
    keyed = first.union(second).key_by(lambda value: value[0] % KEYS)
    window = TumblingEventTimeWindows.of(Time.seconds(2))
    return keyed.window(window).process(Note(marker, gate), Types.STRING())


# -- timers by the clock ---------------------------------------------------------------------------------------------


class Gather(KeyedCoProcessFunction):
    """Sums up both inputs, and emits what there is some milliseconds after the first record, and at the last."""

    def __init__(self, marker: str) -> None:
        self._marker = marker

    def open(self, runtime_context: RuntimeContext) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element1(self, value: int, ctx: KeyedCoProcessFunction.Context) -> Any:
        die_once(value, self._marker)
        return self._take(value, value, ctx)

    def process_element2(self, value: int, ctx: KeyedCoProcessFunction.Context) -> Any:
        return self._take(1_000_000, value, ctx)

    def _take(self, amount: int, number: int, ctx: KeyedCoProcessFunction.Context) -> Any:
        before = self._sum.value()
        self._sum.update((before or 0) + amount)
        if number >= RECORDS - KEYS:
            # Timers by the clock do not fire any more when the input has ended.
            yield from self._emit(ctx.get_current_key())
        elif before is None:
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + 15)

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Any:
        yield from self._emit(ctx.get_current_key())

    def _emit(self, key: int) -> Any:
        if self._sum.value() is not None:
            yield f"{key} {self._sum.value()}"
            self._sum.clear()


def gathering(env: StreamExecutionEnvironment, marker: str) -> DataStream:
    first, second = numbers(env), numbers(env)
    connected = first.connect(second).key_by(lambda number: number % KEYS, lambda number: number % KEYS)
    return connected.process(Gather(marker), Types.STRING())


# -- both modes ------------------------------------------------------------------------------------------------------

Program = Callable[[StreamExecutionEnvironment, str], DataStream]
PROGRAMS: Mapping[str, Program] = {
    "gathering": gathering,  # the widest is first: Spark gets the threads that it needs
    "partitions": partitions,
    "rules": rules,
    "sessions": sessions,
    "enrichment": enrichment,
}


def run(name: str, mode: str, directory: Path) -> list[str]:
    """Run a program; return what it has published."""
    output = directory / f"{name}-{mode}"
    values = {**OPTIONS, **MODES[mode], "execution.checkpointing.dir": f"{output}-checkpoints"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(values))
    env.set_parallelism(2)
    marker = directory / f"{name}-killed"
    if mode == "epochs":
        marker.touch()
    sink = FileSink.for_row_format(str(output), Encoder.simple_string_encoder())
    sink = sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    PROGRAMS[name](env, str(marker)).sink_to(sink.build())
    env.execute(f"{name} in {mode}")
    parts = (path.relative_to(output).parts for path in output.rglob("*") if path.is_file())
    files = [output.joinpath(*each) for each in parts if not any(part.startswith(".") for part in each)]
    return sorted(line for file in files for line in file.read_text().splitlines())


def comparable(name: str, lines: list[str]) -> Any:
    """Return what must be the same in both modes: of timers by the clock, the sum over what they have emitted."""
    if name != "gathering":
        return lines
    totals: Counter[str] = Counter()
    for key, amount in map(str.split, lines):
        totals[key] += int(amount)
    return dict(totals)


def main() -> None:
    directory = Path(sys.argv[1])
    outcomes: dict[str, Any] = {}
    for name in sys.argv[2].split(",") if len(sys.argv) > 2 else PROGRAMS:
        marker = directory / f"{name}-killed"
        outcomes[name] = {
            "live": comparable(name, run(name, "live", directory)),
            "was killed": marker.exists(),
        }
        outcomes[name]["epochs"] = comparable(name, run(name, "epochs", directory))
        same = outcomes[name]["live"] == outcomes[name]["epochs"]
        print(
            name, outcomes[name]["was killed"], len(outcomes[name]["live"]), same, file=sys.stderr, flush=True
        )
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
