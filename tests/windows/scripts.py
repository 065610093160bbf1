"""Random programs and scripts for windows: each runs in the model and in an operator harness.

A record is a tuple of its key, its number (in a tuple, to be concatenated) and a value. What comes out begins with the
key, so that results can be compared key by key.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from headrace.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from headrace.operators.base import Operator
from headrace.operators.window.declaration import WindowComputation, WindowDeclaration
from headrace.operators.window.operator import WindowProcessor
from headrace.state.descriptors import ValueStateDescriptor
from headrace.testing.harness import OperatorHarness
from headrace.windowing import assigners, evictors, triggers
from headrace.windowing.windows import CountWindow, TimeWindow
from tests.windows import model

Record = tuple[str, tuple[int, ...], int]
ALL = "all"
LATE = "late"


def some_examples(count: int) -> settings:
    """Run so many programs; ten times as many in `make test-slow`, and others every time."""
    return settings(
        max_examples=count * settings.default.max_examples // 100,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def shown(window: Any) -> model.Window:
    """A window of ours as the model writes it."""
    if isinstance(window, TimeWindow):
        return model.time_window(window.start, window.end)
    return ("count", window.id) if isinstance(window, CountWindow) else ("global",)


# --------------------------------------------------------------------------------------- computations


def numbers(values: Iterable[Record]) -> tuple[int, ...]:
    return tuple(number for record in values for number in record[1])


def concatenate(left: Record, right: Record) -> Record:
    """Associative, and shows in which order elements came."""
    return left[0], left[1] + right[1], left[2] + right[2]


def unite(left: Record, right: Record) -> Record:
    """Associative and commutative: for windows that are put together from parts."""
    return min(left[0], right[0]), tuple(sorted(left[1] + right[1])), left[2] + right[2]


class Collect(AggregateFunction):
    """Collects numbers in a list that is changed in place."""

    def create_accumulator(self) -> Any:
        return {"key": None, "numbers": [], "sum": 0}

    def add(self, value: Record, accumulator: Any) -> Any:
        accumulator["key"] = accumulator["key"] or value[0]
        accumulator["numbers"].extend(value[1])
        accumulator["sum"] += value[2]
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        acc_a["key"] = acc_a["key"] or acc_b["key"]
        acc_a["numbers"] += acc_b["numbers"]
        acc_a["sum"] += acc_b["sum"]
        return acc_a

    def get_result(self, accumulator: Any) -> Any:
        return accumulator["key"], tuple(accumulator["numbers"]), accumulator["sum"]


class CollectAnyway(AggregateFunction):
    """Does not care for order, nor which of two accumulators it keeps."""

    def create_accumulator(self) -> Any:
        return {"keys": [], "numbers": [], "sum": 0}

    def add(self, value: Record, accumulator: Any) -> Any:
        accumulator["keys"].append(value[0])
        accumulator["numbers"].extend(value[1])
        accumulator["sum"] += value[2]
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        # Flink lets a function reuse any of the two.
        acc_b["keys"] += acc_a["keys"]
        acc_b["numbers"] += acc_a["numbers"]
        acc_b["sum"] += acc_a["sum"]
        return acc_b

    def get_result(self, accumulator: Any) -> Any:
        return min(accumulator["keys"]), tuple(sorted(accumulator["numbers"])), accumulator["sum"]


class ProcessAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Record]) -> Iterator[Any]:
        yield ALL, shown(context.window()), numbers(elements)


class Process(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: str, context: Any, elements: Iterable[Record]) -> Iterator[Any]:
        yield key, shown(context.window()), numbers(elements)


class Apply(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: str, window: Any, inputs: Iterable[Record]) -> list[Any]:
        return [(key, shown(window), numbers(inputs))]


class ApplyAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Record]) -> list[Any]:
        return [(ALL, shown(window), numbers(inputs))]


class Remember(ProcessWindowFunction[Any, Any, Any, Any]):
    """Counts its calls, per window and per key, and clears what belongs to a window."""

    calls = ValueStateDescriptor("calls", None)

    def process(self, key: str, context: Any, elements: Iterable[Record]) -> Iterator[Any]:
        counts = []
        for store in (context.window_state(), context.global_state()):
            state = store.get_state(self.calls)
            state.update((state.value() or 0) + 1)
            counts.append(state.value())
        yield key, shown(context.window()), numbers(elements), tuple(counts)

    def clear(self, context: Any) -> None:
        context.window_state().get_state(self.calls).clear()


class RememberAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Record]) -> Iterator[Any]:
        yield from Remember().process(ALL, context, elements)

    def clear(self, context: Any) -> None:
        Remember().clear(context)


def _process(key: Any, window: Any, values: list[Record], notes: Any, key_notes: Any) -> list[Any]:
    return [(key, window, numbers(values))]


def _remember(key: Any, window: Any, values: list[Record], notes: Any, key_notes: Any) -> list[Any]:
    for each in (notes, key_notes):
        each["calls"] = each.get("calls", 0) + 1
    return [(key, window, numbers(values), (notes["calls"], key_notes["calls"]))]


def _reduce(key: Any, window: Any, values: list[Record], notes: Any, key_notes: Any) -> list[Any]:
    return [functools.reduce(concatenate, values)]


def _unite(key: Any, window: Any, values: list[Record], notes: Any, key_notes: Any) -> list[Any]:
    return [functools.reduce(unite, values)]


@dataclass(frozen=True, repr=False)
class Computation:
    """What is computed of a window, for the model and for an operator with and without a key."""

    name: str
    of_model: Any
    kind: Any
    incremental: Any = None
    function: Any = None
    all_function: Any = None
    #: Whether results do not depend on the order of elements.
    is_commutative: bool = False

    def __repr__(self) -> str:
        return self.name

    def of_operator(self, *, is_all: bool) -> WindowComputation:
        function = self.all_function if is_all else self.function
        return WindowComputation(self.kind, self.incremental, function, is_all=is_all)


COMPUTATIONS = [
    Computation("process", _process, "buffer", None, Process(), ProcessAll()),
    Computation("apply", _process, "buffer", None, Apply(), ApplyAll()),
    Computation("remember", _remember, "buffer", None, Remember(), RememberAll()),
    Computation("reduce", _reduce, "reduce", concatenate),
    Computation("reduce+process", _process, "reduce", concatenate, Process(), ProcessAll()),
    Computation("reduce+remember", _remember, "reduce", concatenate, Remember(), RememberAll()),
    Computation("aggregate", _reduce, "aggregate", Collect()),
    Computation("aggregate+apply", _process, "aggregate", Collect(), Apply(), ApplyAll()),
]
#: For windows that are put together from slices, whose order is not that of the elements.
COMMUTATIVE = [
    Computation("unite", _unite, "reduce", unite, is_commutative=True),
    Computation("collect", _unite, "aggregate", CollectAnyway(), is_commutative=True),
]


# -------------------------------------------------------------------------------------------- programs


@dataclass(frozen=True)
class Program:
    """A window, a trigger and so on, as the model has them; `declaration` says the same to headrace."""

    assigner: Any
    trigger: model.Trigger
    is_event_time: bool = True
    lateness: int = 0
    evictor: Any = None
    computation: Computation = COMPUTATIONS[0]
    is_all: bool = False

    def make_model(self) -> model.Model:
        return model.Model(
            self.assigner,
            self.trigger,
            is_event_time=self.is_event_time,
            lateness=self.lateness,
            evictor=self.evictor,
            compute=self.computation.of_model,
        )

    def declaration(self) -> WindowDeclaration:
        return WindowDeclaration(
            computation=self.computation.of_operator(is_all=self.is_all),
            assigner=our_assigner(self.assigner, is_event_time=self.is_event_time),
            trigger=our_trigger(self.trigger),
            evictor=our_evictor(self.evictor),
            allowed_lateness_ms=self.lateness,
            late_tag_id=LATE,
            key_selector=self.key_of,
        )

    def key_of(self, record: Record) -> str:
        return ALL if self.is_all else record[0]


class GeneralWindowOperator(WindowDeclaration):
    """The general operator, also where a quicker one would do."""

    def build(self) -> Operator:
        return WindowProcessor(self)


def general(declaration: WindowDeclaration) -> GeneralWindowOperator:
    return GeneralWindowOperator(**{name: getattr(declaration, name) for name in declaration.__dict__})


def our_assigner(assigner: Any, *, is_event_time: bool) -> Any:
    clock = "EventTime" if is_event_time else "ProcessingTime"
    match assigner:
        case model.Tumbling(size, offset):
            return getattr(assigners, f"Tumbling{clock}Windows")(size, offset)
        case model.Sliding(size, slide, offset):
            return getattr(assigners, f"Sliding{clock}Windows")(size, slide, offset)
        case model.Sessions(gap_after):
            if isinstance(gap_after, FixedGap):
                return getattr(assigners, f"{clock}SessionWindows")(gap_after.gap)
            return getattr(assigners, f"{clock}SessionWindows").with_dynamic_gap(gap_after)
        case model.CountTumbling(size):
            return assigners.CountTumblingWindowAssigner(size)
        case model.CountSliding(size, slide):
            return assigners.CountSlidingWindowAssigner(size, slide)
    return assigners.GlobalWindows()


def our_trigger(trigger: model.Trigger) -> triggers.Trigger[Any, Any]:
    match trigger:
        case model.EventTime():
            return triggers.EventTimeTrigger()
        case model.ProcessingTime():
            return triggers.ProcessingTimeTrigger()
        case model.Continuous("event", interval):
            return triggers.ContinuousEventTimeTrigger(interval)
        case model.Continuous("processing", interval):
            return triggers.ContinuousProcessingTimeTrigger(interval)
        case model.Count(size):
            return triggers.CountTrigger(size)
        case model.Delta(threshold, distance):
            return triggers.DeltaTrigger(threshold, distance)
        case model.Purging(other):
            return triggers.PurgingTrigger(our_trigger(other))
        case model.Timeout(other, timeout, resets, clears):
            return triggers.ProcessingTimeoutTrigger(our_trigger(other), timeout, resets, clears)
    return triggers.NeverTrigger()


def our_evictor(evictor: Any) -> evictors.Evictor | None:
    match evictor:
        case model.KeepLatest(count, is_after):
            return evictors.CountEvictor(count, is_after)
        case model.KeepYoung(age, is_after):
            return evictors.TimeEvictor(age, is_after)
        case model.KeepNear(threshold, distance, is_after):
            return evictors.DeltaEvictor(threshold, distance, is_after)
    return None


@dataclass(frozen=True)
class FixedGap:
    gap: int

    def __call__(self, record: Record) -> int:
        return self.gap


def gap_by_value(record: Record) -> int:
    return 1 + record[2] % 8


def value_distance(left: Record, right: Record) -> int:
    return abs(left[2] - right[2])


@st.composite
def tumblings(draw: st.DrawFn) -> model.Tumbling:
    size = draw(st.integers(1, 12))
    return model.Tumbling(size, draw(st.integers(1 - size, size - 1)))


@st.composite
def slidings(draw: st.DrawFn) -> model.Sliding:
    size, slide = draw(st.integers(1, 15)), draw(st.integers(1, 10))
    return model.Sliding(size, slide, draw(st.integers(1 - slide, slide - 1)))


sessions = st.one_of(
    st.builds(model.Sessions, st.builds(FixedGap, st.integers(1, 8))), st.just(model.Sessions(gap_by_value))
)
counts = st.one_of(
    st.builds(model.CountTumbling, st.integers(1, 4)),
    st.builds(model.CountSliding, st.integers(1, 5), st.integers(1, 4)),
)
merging_triggers = st.one_of(
    st.just(model.EventTime()),
    st.just(model.ProcessingTime()),
    st.builds(model.Continuous, st.sampled_from(["event", "processing"]), st.integers(1, 7)),
    st.builds(model.Count, st.integers(1, 4)),
)
simple_triggers = st.one_of(
    merging_triggers,
    st.builds(model.Delta, st.integers(0, 5), st.just(value_distance)),
)
#: For windows that merge.
mergeable = st.one_of(merging_triggers, st.builds(model.Purging, merging_triggers))
#: For any other.
any_trigger = st.one_of(
    simple_triggers,
    st.builds(model.Purging, simple_triggers),
    st.builds(model.Timeout, simple_triggers, st.integers(1, 10), st.booleans(), st.booleans()),
)
any_evictor = st.one_of(
    st.builds(model.KeepLatest, st.integers(1, 4), st.booleans()),
    st.builds(model.KeepYoung, st.integers(1, 10), st.booleans()),
    st.builds(model.KeepNear, st.integers(1, 5), st.just(value_distance), st.booleans()),
)


# --------------------------------------------------------------------------------------------- scripts


@dataclass(frozen=True)
class Records:
    """Records that stand next to each other: (key, value, timestamp, counted from the watermark)."""

    items: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class WatermarkBy:
    step: int


@dataclass(frozen=True)
class ClockBy:
    step: int


@dataclass(frozen=True)
class Cut:
    """The epoch ends, and the next one runs here, in another worker, on another host, or from a snapshot.

    Or it fails, and is run again.
    """

    how: str


@dataclass(frozen=True)
class Finish:
    """The input ends."""


def scripts(
    *,
    most_late: int = 12,
    most_early: int = 20,
    most_steps: int = 30,
    largest_step: int = 12,
    cuts: Iterable[str] = ("epoch", "worker", "host", "snapshot", "retry"),
) -> st.SearchStrategy[list[Any]]:
    """Records in any order, watermarks that some of them are late for, a clock, and ends of epochs."""
    record = st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(-most_late, most_early))
    records = st.builds(Records, st.lists(record, min_size=1, max_size=4).map(tuple))
    step = st.one_of(
        records,
        records,
        records,
        st.builds(WatermarkBy, st.integers(0, largest_step)),
        st.builds(ClockBy, st.integers(0, largest_step)),
        st.builds(Cut, st.sampled_from(list(cuts))),
    )
    steps = st.lists(step, min_size=most_steps // 3, max_size=most_steps)
    end: st.SearchStrategy[list[Any]] = st.sampled_from([[ClockBy(100), Finish()], [Finish()], []])
    return st.builds(lambda body, tail: [*body, *tail], steps, end)


def long_script(
    chance: random.Random, *, steps: int, disorder: int, largest_step: int, keys: str = "abc"
) -> list[Any]:
    """A stream of some length: time advances, most records are in order, a few come late or much too late."""
    script: list[Any] = []
    for _ in range(steps):
        draw = chance.random()
        if draw < 0.6:
            records = [
                (
                    chance.choice(keys),
                    chance.randrange(10),
                    chance.randrange(largest_step) if chance.random() < 0.6 else -chance.randrange(disorder),
                )
                for _ in range(chance.randrange(1, 6))
            ]
            script.append(Records(tuple(records)))
        elif draw < 0.85:
            script.append(WatermarkBy(chance.randrange(largest_step)))
        else:
            script.append(Cut(chance.choice(["epoch", "epoch", "worker", "host", "snapshot", "retry"])))
    return [*script, Finish()]


@dataclass
class Found:
    """What came out."""

    #: Per key, in order.
    output: dict[str, list[tuple[Any, int | None]]] = field(default_factory=dict)
    late: list[tuple[Any, int | None]] = field(default_factory=list)


def unrolled(script: Iterable[Any]) -> list[Any]:
    """Return the script with all that the operator gets: records as (record, timestamp), times in full."""
    count = watermark = clock = 0
    steps: list[Any] = []
    for step in script:
        match step:
            case Records(items):
                made = []
                for key, value, offset in items:
                    made.append(((key, (count,), value), watermark + offset))
                    count += 1
                steps.append(("records", made))
            case WatermarkBy(by):
                watermark += by
                steps.append(("watermark", watermark))
            case ClockBy(by):
                clock += by
                steps.append(("clock", clock))
            case Cut(how):
                steps.append((how, clock))
            case Finish():
                steps.append(("finish", None))
    return steps


def run_model(program: Program, script: Iterable[Any]) -> Found:
    windows = program.make_model()
    for what, given in unrolled(script):
        match what:
            case "records":
                for record, time in given:
                    windows.record(program.key_of(record), record, time)
            case "watermark":
                windows.watermark(given)
            case "clock":
                windows.set_clock(given)
            case "finish":
                windows.finish()
    return Found(dict(windows.output), windows.late)


def run_harness(
    program: Program, script: Iterable[Any], declaration: WindowDeclaration | None = None
) -> Found:
    run = _HarnessRun(program, declaration or program.declaration())
    try:
        for what, given in unrolled(script):
            if what in ("records", "watermark", "clock", "finish"):
                run.step(what, given)
            elif what == "retry":
                run.retry()
            else:
                run.cut(what)
        run.take_output()
    finally:
        run.harness.close()
    return run.found


class _HarnessRun:
    """A script on its way through harnesses, one after the other."""

    def __init__(self, program: Program, declaration: WindowDeclaration) -> None:
        self._program = program
        self._declaration = declaration
        self.harness = OperatorHarness(declaration)
        self.found = Found()
        #: Of the epoch at work: where the clock stood, and what was done.
        self._clock = self._clock_at_barrier = 0
        self._steps: list[tuple[str, Any]] = []

    def step(self, what: str, given: Any) -> None:
        self._steps.append((what, given))
        match what:
            case "records":
                self.harness.process_batch([record for record, _ in given], [time for _, time in given])
            case "watermark":
                self.harness.process_watermark(given)
            case "clock":
                self._clock = given
                self.harness.set_processing_time(given)
            case "finish":
                self.harness.finish()

    def cut(self, how: str) -> None:
        """End the epoch. What it emitted counts from now on."""
        match how:
            case "epoch":
                self.harness.end_epoch()
                self.take_output()
            case "worker" | "host":
                self.harness.move(keeps_local_copy=how == "worker")
                self.take_output()
            case "snapshot":
                snapshot = self.harness.snapshot()
                self.take_output()
                self.harness.close()
                self.harness = OperatorHarness.restored(
                    self._declaration, snapshot, processing_time=self._clock
                )
        self._steps, self._clock_at_barrier = [], self._clock

    def retry(self) -> None:
        """Let the epoch fail and do everything again, by the same clock."""
        steps, self._steps = self._steps, []
        self.harness.clear_output()
        self.harness.retry_epoch(keeps_local_copy=len(steps) % 2 == 0)
        self.harness._now_ms = self._clock_at_barrier
        for what, given in steps:
            self.step(what, given)

    def take_output(self) -> None:
        for value, timestamp in self.harness.output_with_timestamps:
            key = ALL if self._program.is_all else value[0]
            self.found.output.setdefault(key, []).append((value, timestamp))
        self.found.late += self.harness.side_output_with_timestamps(LATE)
        self.harness.clear_output()


def check(program: Program, script: list[Any], declaration: WindowDeclaration | None = None) -> None:
    """Let the model and the operator run the same script: results must be the same, in the same order per key."""
    if declaration is None and isinstance(program.assigner, model.Sliding):
        if not program.computation.is_commutative:
            # Shared slices are put together in the order of time, not in that in which elements came.
            declaration = general(program.declaration())
    expected = run_model(program, script)
    found = run_harness(program, script, declaration)
    assert found.output == expected.output
    assert found.late == expected.late


def changed(program: Program, **changes: Any) -> Program:
    return replace(program, **changes)
