"""Correct wherever the stream is cut: the same results with one epoch, a few, or very many.

A program does not know where epochs end, so its results must not either. Every pipeline here is compared with a
model that folds the input in a plain loop. All cuts and parallelisms run on a mini cluster; on Spark, some of them.

    one epoch      r r r r r r r r r r r r |
    three          r r r r | r r r r | r r r r |
    fifty          r | r | r | r | r | ...
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Types
from headrace.datastream import (
    AggregateFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ReduceFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from headrace.datastream.data_stream import DataStream
from headrace.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headrace.testing.sources import EndEpoch, ScriptedSource
from tests.conftest import EnvironmentFactory
from tests.engines import on_mini_cluster, on_spark, with_cuts
from tests.spark.support import by_key, read, run, run_and_collect

RECORDS = 150
#: How many epochs the records are cut into -> how many records one epoch may have.
CUTS = {1: RECORDS, 3: RECORDS // 3, 50: RECORDS // 50}
ALL = [on_mini_cluster(epochs, parallelism) for epochs in CUTS for parallelism in (1, 2, 4)]
ON_SPARK = [on_spark(epochs, parallelism) for epochs in (1, 3) for parallelism in (1, 2, 4)]
#: Fifty epochs take Spark some seconds: one pipeline does it always, the others when there is time.
with_every_cut = with_cuts(*ALL, on_spark(3, 4), on_spark(50, 2, pytest.mark.slow))

_chance = random.Random(7)
#: Skewed: a few keys come often, others once; numbers repeat.
EVENTS = [(f"k{min(int(_chance.expovariate(0.4)), 12)}", _chance.randrange(20)) for _ in range(RECORDS)]

#: Results by key, in order.
Model = dict[Any, list[Any]]


def key_of(event: Any) -> Any:
    return event[0]


def check(
    env: EnvironmentFactory,
    epochs: int,
    parallelism: int,
    build: Callable[[DataStream], DataStream],
    model: Model,
) -> None:
    environment = env(parallelism, max_records=CUTS[epochs])
    outcome = run(build(environment.from_collection(EVENTS)))
    # An epoch more where the source learns only then that nothing is left.
    assert len(outcome.epochs) in {epochs, epochs + 1}
    assert by_key(outcome.rows) == model


# -- value state ---------------------------------------------------------------------------------------


class RunningCount(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield value[0], value[1], count


def running_counts() -> Model:
    counts: Counter[str] = Counter()
    model: Model = defaultdict(list)
    for key, number in EVENTS:
        counts[key] += 1
        model[key].append((key, number, counts[key]))
    return model


@with_cuts(*ALL, *ON_SPARK, on_spark(50, 2))
def test_a_running_count(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    check(env, epochs, parallelism, lambda s: s.key_by(key_of).process(RunningCount()), running_counts())


class CountInFields(KeyedProcessFunction):
    """Keeps what belongs into state in its own fields, as many programs for PyFlink do."""

    def __init__(self) -> None:
        self.calls = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self.counts: dict[str, int] = {}

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.calls += 1
        self.counts[value[0]] = self.counts.get(value[0], 0) + 1
        assert self.calls == sum(self.counts.values())
        yield value[0], value[1], self.counts[value[0]]


@with_every_cut
def test_a_running_count_in_fields(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    check(env, epochs, parallelism, lambda s: s.key_by(key_of).process(CountInFields()), running_counts())


class CountAndForget(KeyedProcessFunction):
    """Counts, and clears its state whenever it meets a number that seven divides."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", None))
        #: An object that is changed in place and handed back.
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen", None))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        key, number = value
        seen = self._seen.value()
        if seen is None:
            self._seen.update([])
            seen = self._seen.value()
        seen.append(number)
        if number % 7 == 0:
            self._count.clear()
            self._seen.clear()
        else:
            self._count.update((self._count.value() or 0) + 1)
        yield key, self._count.value(), tuple(self._seen.value() or ())


def counts_with_gaps() -> Model:
    model: Model = defaultdict(list)
    seen: dict[str, list[int]] = defaultdict(list)
    for key, number in EVENTS:
        seen[key] = [] if number % 7 == 0 else [*seen[key], number]
        model[key].append((key, len(seen[key]) or None, tuple(seen[key])))
    return model


@with_every_cut
def test_state_that_is_cleared_and_state_that_is_changed_in_place(
    env: EnvironmentFactory, epochs: int, parallelism: int
) -> None:
    check(env, epochs, parallelism, lambda s: s.key_by(key_of).process(CountAndForget()), counts_with_gaps())


@with_every_cut
def test_results_are_the_same_when_no_decoded_object_is_kept(
    env: EnvironmentFactory, epochs: int, parallelism: int
) -> None:
    environment = env(parallelism, max_records=CUTS[epochs], options={"headrace.state.cache-entries": 0})
    rows = run_and_collect(environment.from_collection(EVENTS).key_by(key_of).process(RunningCount()))
    assert by_key(rows) == running_counts()


# -- list state ----------------------------------------------------------------------------------------


class History(KeyedProcessFunction):
    """Appends without reading, reads at even numbers, and keeps only the last three at zero."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._history = runtime_context.get_list_state(ListStateDescriptor("history", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        key, number = value
        self._history.add(number)
        if number == 0:
            self._history.update(list(self._history.get())[-3:])
        elif number == 13:
            self._history.clear()
        if number % 2 == 0:
            yield key, tuple(self._history)


def histories() -> Model:
    model: Model = defaultdict(list)
    history: dict[str, list[int]] = defaultdict(list)
    for key, number in EVENTS:
        history[key].append(number)
        if number == 0:
            history[key] = history[key][-3:]
        elif number == 13:
            history[key].clear()
        if number % 2 == 0:
            model[key].append((key, tuple(history[key])))
    return model


@with_every_cut
def test_list_state(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    check(env, epochs, parallelism, lambda s: s.key_by(key_of).process(History()), histories())


# -- map state -----------------------------------------------------------------------------------------


class Histogram(KeyedProcessFunction):
    """Counts each number, takes back what was counted at 3, and shows everything at multiples of 4."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.INT(), Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        key, number = value
        if number == 19:
            self._counts.clear()
        elif number == 3:
            for other in list(self._counts.keys())[:1]:
                self._counts.remove(other)
        else:
            seen = self._counts.get(number) if self._counts.contains(number) else 0
            self._counts.put(number, seen + 1)
        if number % 4 == 0:
            yield key, tuple(self._counts.items()), self._counts.is_empty()
        else:
            yield key, self._counts.get(number), self._counts.contains(number)


def histograms() -> Model:
    model: Model = defaultdict(list)
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for key, number in EVENTS:
        own = counts[key]
        if number == 19:
            own.clear()
        elif number == 3:
            if own:
                del own[min(own)]
        else:
            own[number] = own.get(number, 0) + 1
        if number % 4 == 0:
            model[key].append((key, tuple(sorted(own.items())), not own))
        else:
            model[key].append((key, own.get(number), number in own))
    return model


@with_every_cut
def test_map_state(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    check(env, epochs, parallelism, lambda s: s.key_by(key_of).process(Histogram()), histograms())


# -- reducing and aggregating state --------------------------------------------------------------------


class Larger(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return max(value1, value2)


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class PeakAndMean(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._peak = runtime_context.get_reducing_state(
            ReducingStateDescriptor("peak", Larger(), Types.INT())
        )
        self._mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), None))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        key, number = value
        if number == 11:
            self._peak.clear()
            self._mean.clear()
        self._peak.add(number)
        self._mean.add(number)
        yield key, self._peak.get(), self._mean.get()


def peaks_and_means() -> Model:
    model: Model = defaultdict(list)
    numbers: dict[str, list[int]] = defaultdict(list)
    for key, number in EVENTS:
        if number == 11:
            numbers[key].clear()
        numbers[key].append(number)
        model[key].append((key, max(numbers[key]), sum(numbers[key]) / len(numbers[key])))
    return model


@with_every_cut
def test_reducing_and_aggregating_state(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    check(env, epochs, parallelism, lambda s: s.key_by(key_of).process(PeakAndMean()), peaks_and_means())


# -- reductions ----------------------------------------------------------------------------------------


def sums() -> Model:
    model: Model = defaultdict(list)
    for key, number in EVENTS:
        before = model[key][-1][1] if model[key] else 0
        model[key].append((key, before + number))
    return model


@with_every_cut
def test_reduce(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    check(
        env, epochs, parallelism, lambda s: s.key_by(key_of).reduce(lambda a, b: (a[0], a[1] + b[1])), sums()
    )


def as_list(event: Any) -> list[Any]:
    return [event[0], [event[1]]]


def merged_lists(left: list[Any], right: list[Any]) -> list[Any]:
    left[1].extend(right[1])  # in place, as the values of some programs are
    return left


@with_every_cut
def test_reduce_with_a_function_that_changes_its_argument(
    env: EnvironmentFactory, epochs: int, parallelism: int
) -> None:
    model: Model = defaultdict(list)
    for key, number in EVENTS:
        before = model[key][-1][1] if model[key] else []
        model[key].append([key, [*before, number]])
    check(
        env,
        epochs,
        parallelism,
        lambda s: s.map(as_list).set_parallelism(1).key_by(key_of).reduce(merged_lists),
        model,
    )


@with_every_cut
def test_batch_mode_emits_the_last_result_of_each_key(
    env: EnvironmentFactory, epochs: int, parallelism: int
) -> None:
    environment = env(parallelism, max_records=CUTS[epochs]).set_runtime_mode(RuntimeExecutionMode.BATCH)
    rows = run_and_collect(environment.from_collection(EVENTS).key_by(key_of).sum(1))
    assert sorted(rows) == sorted(group[-1] for group in sums().values())


@with_every_cut
def test_two_stateful_operators_in_a_row(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    environment = env(parallelism, max_records=CUTS[epochs])
    counted = environment.from_collection(EVENTS).key_by(key_of).process(RunningCount())
    rows = run_and_collect(counted.key_by(lambda row: row[2] % 3).process(CountByGroup()))
    # The order in which keys meet in a group is not defined; how many do is.
    groups = Counter(row[2] % 3 for results in running_counts().values() for row in results)
    assert by_key(rows) == {
        group: [(group, n) for n in range(1, count + 1)] for group, count in groups.items()
    }


class CountByGroup(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield ctx.get_current_key(), count


@with_every_cut
def test_files_are_read_once_and_counted(
    env: EnvironmentFactory, tmp_path: Path, epochs: int, parallelism: int
) -> None:
    directory = tmp_path / "lines"
    directory.mkdir()
    for name, part in (("a", EVENTS[:5]), ("b", EVENTS[5:110]), ("c", []), ("d", EVENTS[110:])):
        (directory / name).write_text("".join(f"{key} {number}\n" for key, number in part))
    environment = env(parallelism, max_records=CUTS[epochs])
    rows = run_and_collect(
        environment.read_text_file(str(directory)).map(str.split).key_by(key_of).process(RunningCount())
    )
    # Two subtasks read side by side, so the order of a key's numbers is not defined; the counts are.
    assert Counter((key, int(number)) for key, number, _ in rows) == Counter(EVENTS)
    assert {key: [row[2] for row in group] for key, group in by_key(rows).items()} == {
        key: [row[2] for row in group] for key, group in running_counts().items()
    }


# -- two inputs ----------------------------------------------------------------------------------------


class Join(KeyedCoProcessFunction):
    """Keeps both sides forever and emits every pair once, whichever came first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._lefts = runtime_context.get_list_state(ListStateDescriptor("lefts", None))
        self._rights = runtime_context.get_list_state(ListStateDescriptor("rights", None))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        self._lefts.add(value)
        for right in self._rights:
            yield value, right

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        self._rights.add(value)
        for left in self._lefts.get():
            yield left, value


@with_every_cut
def test_a_join_of_two_keyed_streams(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    environment = env(parallelism, max_records=CUTS[epochs])
    others = [(key, f"o{index}") for index, (key, _) in enumerate(EVENTS[::3])]
    left, right = environment.from_collection(EVENTS), environment.from_collection(others)
    rows = run_and_collect(left.connect(right).key_by(key_of, key_of).process(Join()))
    assert Counter(rows) == Counter((a, b) for a in EVENTS for b in others if a[0] == b[0])


FACTORS = MapStateDescriptor("factors", Types.STRING(), None)


class WeightedSum(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        key, number = value
        factors = ctx.get_broadcast_state(FACTORS)
        total = (self._sum.value() or 0) + number * (factors.get(key) or 1)
        self._sum.update(total)
        yield key, total

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        key, factor = value
        factors = ctx.get_broadcast_state(FACTORS)
        if factor is None:
            factors.remove(key)
        else:
            factors.put(key, factor)


def weighted(environment: StreamExecutionEnvironment, epochs: int) -> tuple[DataStream, Model]:
    """Change the rules after every third of the events, in epochs of their own."""
    rules = [[("k0", 10), ("k1", 7)], [("k0", None), ("k2", 5)], [("k1", 2)]]
    third = RECORDS // 3
    width = max(1, CUTS[epochs] if epochs > 3 else third)
    rule_script: list[Any] = []
    event_script: list[Any] = []
    model: Model = defaultdict(list)
    factors: dict[str, int | None] = {}
    for part, changes in enumerate(rules):
        factors.update(changes)
        events = EVENTS[part * third : (part + 1) * third]
        rule_script += [*changes, EndEpoch(), *[EndEpoch()] * -(-third // width)]
        event_script.append(EndEpoch())
        for start in range(0, third, width):
            event_script += [*events[start : start + width], EndEpoch()]
        for key, number in events:
            before = model[key][-1][1] if model[key] else 0
            model[key].append((key, before + number * (factors.get(key) or 1)))
    keyed = read(environment, ScriptedSource(event_script)).set_parallelism(1).key_by(key_of)
    stream = read(environment, ScriptedSource(rule_script)).set_parallelism(1)
    return keyed.connect(stream.broadcast(FACTORS)).process(WeightedSum()), model


@with_every_cut
def test_keyed_state_with_broadcast_rules(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    stream, model = weighted(env(parallelism), epochs)
    assert by_key(run_and_collect(stream)) == model
