"""Every transformation of the DataStream API, end to end on Spark."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headrace.common import JobStatus, Row, Types
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.file import BucketAssigner, FileSink
from headrace.connectors.function_source import PythonSource
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from headrace.datastream.data_stream import DataStream
from headrace.datastream.state import MapStateDescriptor, ValueStateDescriptor
from headrace.errors import JobCancelledError, JobExecutionError
from headrace.operators.timestamps import NO_TIMESTAMP
from headrace.testing.sources import EndEpoch, ScriptedSource, Stop, Timestamped
from tests.conftest import EnvironmentFactory
from tests.spark.support import (
    WithSubtask,
    by_key,
    in_threads,
    read,
    run,
    run_and_collect,
    run_and_gather,
    running,
    wait_until,
)

pytestmark = pytest.mark.spark

#: (key, number) in no order: three keys, with a tie of the least and the greatest number of 'a'.
PAIRS = [("a", 3), ("b", 5), ("a", 1), ("c", 4), ("a", 1), ("b", 9), ("a", 9), ("c", 2), ("a", 9), ("b", 6)]


def first(pair: Any) -> Any:
    return pair[0]


def numbers(environment: StreamExecutionEnvironment, count: int) -> DataStream:
    return environment.from_collection(list(range(count)))


def endless(environment: StreamExecutionEnvironment) -> DataStream:
    def count_from(start: int) -> Any:
        while True:
            yield start
            start += 1

    return read(environment, PythonSource({"numbers": count_from}, bounded=False))


# -- one record at a time ------------------------------------------------------------------------------


class Scale(MapFunction):
    def __init__(self, factor: int) -> None:
        self._factor = factor

    def open(self, runtime_context: RuntimeContext) -> None:
        self._opened_factor = self._factor

    def map(self, value: int) -> int:
        return value * self._opened_factor


class IsOdd(FilterFunction):
    def filter(self, value: int) -> bool:
        return value % 2 == 1


class Repeat(FlatMapFunction):
    def flat_map(self, value: int) -> Any:
        return [value] * value


def test_map_takes_a_lambda_or_a_map_function(env: EnvironmentFactory) -> None:
    stream = numbers(env(1), 5).map(lambda n: n + 1).map(Scale(10))
    assert run_and_collect(stream) == [10, 20, 30, 40, 50]


def test_flat_map_takes_generators_lists_and_nothing(env: EnvironmentFactory) -> None:
    environment = env(1)
    source = numbers(environment, 4)

    def spell(n: int) -> Any:
        for index in range(n):
            yield f"{n}{'abc'[index]}"

    rows = run_and_gather(
        environment,
        source.flat_map(spell),
        source.flat_map(Repeat()),
        source.flat_map(lambda n: None if n < 3 else (n, n)),
    )
    assert rows == [["1a", "2a", "2b", "3a", "3b", "3c"], [1, 2, 2, 3, 3, 3], [3, 3]]


def test_filter_takes_a_lambda_or_a_filter_function(env: EnvironmentFactory) -> None:
    stream = numbers(env(1), 10).filter(lambda n: n > 4).filter(IsOdd())
    assert run_and_collect(stream) == [5, 7, 9]


def test_project_keeps_fields_of_tuples_and_rows(env: EnvironmentFactory) -> None:
    environment = env(1)
    tuples = environment.from_collection([(1, "a", 1.5), (2, "b", 2.5)])
    rows = environment.from_collection(
        [(1, "a", 1.5)],
        type_info=Types.ROW_NAMED(["id", "name", "score"], [Types.INT(), Types.STRING(), Types.DOUBLE()]),
    )
    projected, projected_rows = run_and_gather(environment, tuples.project(2, 0), rows.project(1, 2))
    assert projected == [(1.5, 1), (2.5, 2)]
    assert [row.as_dict() for row in projected_rows] == [{"name": "a", "score": 1.5}]


def test_a_process_function_sees_timestamps_across_an_exchange(env: EnvironmentFactory) -> None:
    environment = env(2)
    timed = read(environment, ScriptedSource([Timestamped("x", 7), Timestamped("y", 8), "z"]))
    untimed = environment.from_collection(["u"])

    def tell(value: str, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp()

    rows = run_and_collect(timed.union(untimed).key_by(lambda value: value).process(tell))
    assert sorted(rows) == [("u", NO_TIMESTAMP), ("x", 7), ("y", 8), ("z", NO_TIMESTAMP)]


def test_an_empty_collection_gives_an_empty_result(env: EnvironmentFactory) -> None:
    stream = env(2).from_collection([], type_info=Types.INT())
    assert run_and_collect(stream.key_by(lambda n: n).reduce(lambda a, b: a + b)) == []


# -- keyed streams -------------------------------------------------------------------------------------


class KeepLatest(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value2


class FirstField(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value[0]


@pytest.mark.parametrize(
    ("aggregate", "step"),
    [
        (lambda keyed: keyed.sum(1), lambda old, new: old + new),
        (lambda keyed: keyed.min(1), min),
        (lambda keyed: keyed.max(1), max),
        (lambda keyed: keyed.min_by(1), min),
        (lambda keyed: keyed.max_by(1), max),
        (lambda keyed: keyed.reduce(lambda a, b: (a[0], a[1] * b[1])), lambda old, new: old * new),
        (lambda keyed: keyed.reduce(KeepLatest()), lambda old, new: new),
    ],
    ids=["sum", "min", "max", "min_by", "max_by", "reduce", "reduce-function"],
)
def test_rolling_aggregates_emit_the_value_so_far_for_every_record(
    env: EnvironmentFactory, aggregate: Any, step: Any
) -> None:
    stream = aggregate(env(2, max_records=4).from_collection(PAIRS).key_by(FirstField()))
    rows = run_and_collect(stream)
    assert {key: [row[1] for row in group] for key, group in by_key(rows).items()} == running(PAIRS, step)


def test_min_keeps_the_other_fields_of_the_first_record_and_min_by_those_of_the_least(
    env: EnvironmentFactory,
) -> None:
    environment = env(2)
    keyed = environment.from_collection([("a", 3, "x"), ("a", 1, "y"), ("a", 1, "z"), ("a", 2, "w")]).key_by(
        first
    )
    least, least_by, most_by = run_and_gather(environment, keyed.min(1), keyed.min_by(1), keyed.max_by(1))
    assert least == [("a", 3, "x"), ("a", 1, "x"), ("a", 1, "x"), ("a", 1, "x")]
    assert least_by == [("a", 3, "x"), ("a", 1, "y"), ("a", 1, "y"), ("a", 1, "y")]
    assert most_by == [("a", 3, "x")] * 4


def test_rows_are_aggregated_by_field_name(env: EnvironmentFactory) -> None:
    stream = env(2).from_collection([Row(user="u", score=1), Row(user="v", score=5), Row(user="u", score=2)])
    rows = run_and_collect(stream.key_by(lambda row: row.user).sum("score"))
    assert sorted((row.user, row.score) for row in rows) == [("u", 1), ("u", 3), ("v", 5)]


class CountWithKey(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield ctx.get_current_key(), count


def test_a_keyed_process_function_has_state_and_knows_its_key(env: EnvironmentFactory) -> None:
    rows = run_and_collect(env(2, max_records=3).from_collection(PAIRS).key_by(first).process(CountWithKey()))
    counts = running([(key, 1) for key, _ in PAIRS], lambda old, new: old + new)
    assert {key: [row[1] for row in group] for key, group in by_key(rows).items()} == counts


class FirstOfKey(FilterFunction, MapFunction, FlatMapFunction):
    """Knows, from keyed state, whether a key was seen before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def filter(self, value: Any) -> bool:
        if self._seen.value():
            return False
        self._seen.update(True)
        return True

    def map(self, value: Any) -> Any:
        return value, self.filter(value)

    def flat_map(self, value: Any) -> Any:
        return [value, value] if self.filter(value) else None


def test_map_flat_map_and_filter_on_a_keyed_stream_may_use_state(env: EnvironmentFactory) -> None:
    environment = env(2, max_records=4)
    keyed = environment.from_collection(PAIRS).key_by(first)
    mapped, repeated, kept = run_and_gather(
        environment, keyed.map(FirstOfKey()), keyed.flat_map(FirstOfKey()), keyed.filter(FirstOfKey())
    )
    firsts = [("a", 3), ("b", 5), ("c", 4)]
    assert sorted(value for value, is_first in mapped if is_first) == firsts
    assert len(mapped) == len(PAIRS)
    assert sorted(repeated) == sorted(firsts * 2)
    assert sorted(kept) == firsts


@pytest.mark.parametrize(
    "keys",
    [
        [1, 1.0, True, 2],
        ["x", "ü", "", "x" * 600],
        [("a", 1), ("a", 2), ("a", 1)],
        [None, 0, None],
        [b"x", b"y", b"x"],
        [frozenset({1, 2}), frozenset({2, 1})],
    ],
    ids=["numbers", "texts", "tuples", "none", "bytes", "sets"],
)
def test_equal_keys_meet_whatever_their_type(env: EnvironmentFactory, keys: list[Any]) -> None:
    rows = run_and_collect(
        env(4, max_records=1).from_collection([(key,) for key in keys]).key_by(first).process(CountWithKey())
    )
    # The last count of each key is how often it came.
    assert {key: count for key, count in rows} == Counter(keys)


def test_key_by_after_key_by_partitions_by_the_later_key(env: EnvironmentFactory) -> None:
    stream = env(2).from_collection(PAIRS).key_by(first).key_by(lambda pair: pair[1]).process(CountWithKey())
    assert Counter(key for key, _ in run_and_collect(stream)) == Counter(number for _, number in PAIRS)


def test_two_keyed_operators_in_a_row_have_state_of_their_own(env: EnvironmentFactory) -> None:
    counts = env(2, max_records=3).from_collection(PAIRS).key_by(first).process(CountWithKey())
    rows = run_and_collect(counts.key_by(lambda row: row[1]).process(CountWithKey()))
    # 'a' has 5 records, 'b' 3 and 'c' 2: three keys reach a count of 1 and 2, two reach 3, one 4 and 5.
    assert Counter(count for count, _ in rows) == {1: 3, 2: 3, 3: 2, 4: 1, 5: 1}


# -- several streams -----------------------------------------------------------------------------------


def test_a_union_holds_the_records_of_all_its_streams(env: EnvironmentFactory) -> None:
    environment = env(2)
    streams = [environment.from_collection([100 * part + n for n in range(10)]) for part in range(3)]
    rows = run_and_collect(streams[0].union(streams[1], streams[2].map(lambda n: -n)))
    assert sorted(rows) == sorted([*range(10), *range(100, 110), *range(-209, -199)])


def test_a_stream_united_with_itself_comes_twice(env: EnvironmentFactory) -> None:
    source = numbers(env(2), 5)
    assert sorted(run_and_collect(source.union(source))) == sorted([*range(5)] * 2)


def test_a_keyed_operator_on_a_union_sees_both_streams(env: EnvironmentFactory) -> None:
    environment = env(2, max_records=3)
    left, right = environment.from_collection(PAIRS), environment.from_collection(PAIRS)
    rows = run_and_collect(left.union(right).key_by(first).sum(1))
    assert {key: max(row[1] for row in group) for key, group in by_key(rows).items()} == {
        key: 2 * sums[-1] for key, sums in running(PAIRS, lambda old, new: old + new).items()
    }


class TagSides(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "first", value

    def map2(self, value: Any) -> Any:
        return "second", value


class RepeatSides(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        yield value
        yield value

    def flat_map2(self, value: Any) -> Any:
        return None if value == "skip" else [value]


class Mixed(CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        yield 1, value, ctx.timestamp()

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        return [(2, value, ctx.timestamp())]


def test_connected_streams_call_one_method_for_each_side(env: EnvironmentFactory) -> None:
    environment = env(2)
    connected = numbers(environment, 3).connect(environment.from_collection(["x", "skip"]))
    mapped, repeated, processed = run_and_gather(
        environment, connected.map(TagSides()), connected.flat_map(RepeatSides()), connected.process(Mixed())
    )
    assert sorted(map(str, mapped)) == sorted(
        map(str, [("first", 0), ("first", 1), ("first", 2), ("second", "x"), ("second", "skip")])
    )
    assert sorted(map(str, repeated)) == sorted(map(str, [0, 0, 1, 1, 2, 2, "x"]))
    assert sorted(map(str, processed)) == sorted(
        str((*each, NO_TIMESTAMP)) for each in [(1, 0), (1, 1), (1, 2), (2, "x"), (2, "skip")]
    )


class CountBothSides(CoMapFunction, CoFlatMapFunction):
    """One count per key, which both sides of connected keyed streams share."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def _next(self) -> int:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        return count

    def map1(self, value: Any) -> Any:
        return value[0], self._next()

    def map2(self, value: Any) -> Any:
        return value, self._next()

    def flat_map1(self, value: Any) -> Any:
        yield self.map1(value)

    def flat_map2(self, value: Any) -> Any:
        yield self.map2(value)


class CountBothSidesInProcess(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield ctx.get_current_key(), count

    process_element2 = process_element1


def test_keyed_connected_streams_share_state_by_key(env: EnvironmentFactory) -> None:
    environment = env(2, max_records=3)
    pairs, keys = environment.from_collection(PAIRS), environment.from_collection(["a", "b", "b", "d"])
    connected = pairs.connect(keys).key_by(first, lambda key: key)
    results = run_and_gather(
        environment,
        connected.map(CountBothSides()),
        connected.flat_map(CountBothSides()),
        connected.process(CountBothSidesInProcess()),
        # Keyed before they are connected is the same.
        pairs.key_by(first).connect(keys.key_by(lambda key: key)).map(CountBothSides()),
    )
    for rows in results:
        counts = {key: [row[1] for row in group] for key, group in by_key(rows).items()}
        assert counts == {"a": [1, 2, 3, 4, 5, 6], "b": [1, 2, 3, 4, 5], "c": [1, 2], "d": [1]}


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class ApplyRules(BroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._index = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        factor = ctx.get_broadcast_state(RULES).get(value[0])
        yield value[0], None if factor is None else value[1] * factor

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put(*value)
        yield "rule seen by", self._index


def test_every_subtask_has_all_broadcast_rules(env: EnvironmentFactory) -> None:
    environment = env(4)
    rules = environment.from_collection([("a", 10), ("b", 100)])
    # Records come an epoch after the rules, so all rules are there.
    records = read(environment, ScriptedSource([EndEpoch(), *PAIRS])).rebalance()
    rows = run_and_collect(records.connect(rules.broadcast(RULES)).process(ApplyRules()))
    seen = [row for row in rows if row[0] == "rule seen by"]
    assert sorted(seen) == sorted(("rule seen by", index) for index in range(4) for _ in range(2))
    factors = {"a": 10, "b": 100}
    assert Counter(row for row in rows if row[0] != "rule seen by") == Counter(
        (key, number * factors[key] if key in factors else None) for key, number in PAIRS
    )


class SumWithRules(KeyedBroadcastProcessFunction):
    """Sums by key, each number times its key's factor."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        rules = ctx.get_broadcast_state(RULES)
        factor = rules.get(value[0]) if rules.contains(value[0]) else 1
        total = (self._sum.value() or 0) + value[1] * factor
        self._sum.update(total)
        yield ctx.get_current_key(), total

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put(*value)


def test_a_keyed_stream_meets_broadcast_rules_and_keeps_its_own_state(env: EnvironmentFactory) -> None:
    environment = env(2)
    rules = read(environment, ScriptedSource([("a", 10), EndEpoch(), EndEpoch(), ("a", 100)]))
    half = len(PAIRS) // 2
    records = read(
        environment, ScriptedSource([EndEpoch(), *PAIRS[:half], EndEpoch(), EndEpoch(), *PAIRS[half:]])
    )
    rows = run_and_collect(records.key_by(first).connect(rules.broadcast(RULES)).process(SumWithRules()))
    factors = [10] * half + [100] * half
    weighted = [(key, n * f if key == "a" else n) for (key, n), f in zip(PAIRS, factors, strict=True)]
    sums = {key: [row[1] for row in group] for key, group in by_key(rows).items()}
    assert sums == running(weighted, lambda old, new: old + new)


# -- side outputs --------------------------------------------------------------------------------------

EVEN, BIG = OutputTag("even", Types.INT()), OutputTag("big", Types.STRING())


class Split(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield value
        if value % 2 == 0:
            yield EVEN, value
        if value > 6:
            yield BIG, f"big {value}"


@pytest.mark.parametrize("parallelism", [1, 3], ids=["chained", "exchanged"])
def test_side_outputs_go_their_own_way(env: EnvironmentFactory, parallelism: int) -> None:
    environment = env(parallelism)
    split = numbers(environment, 10).process(Split())
    main, even, big, both = run_and_gather(
        environment,
        split.map(lambda n: n * 10),
        split.get_side_output(EVEN),
        split.get_side_output(BIG).map(str.upper),
        split.get_side_output(EVEN).map(str).union(split.get_side_output(BIG)),
    )
    assert sorted(main) == [n * 10 for n in range(10)]
    assert sorted(even) == [0, 2, 4, 6, 8]
    assert sorted(big) == ["BIG 7", "BIG 8", "BIG 9"]
    assert sorted(both) == ["0", "2", "4", "6", "8", "big 7", "big 8", "big 9"]


EVEN_PAIR, ODD_PAIR = OutputTag("even pair"), OutputTag("odd pair")


class SplitByKey(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield ODD_PAIR if value[1] % 2 else EVEN_PAIR, (ctx.get_current_key(), value[1])


class SplitSides(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        yield EVEN_PAIR, value

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        yield ODD_PAIR, value


def test_keyed_and_connected_functions_have_side_outputs_too(env: EnvironmentFactory) -> None:
    environment = env(2)
    pairs = environment.from_collection(PAIRS)
    split = pairs.key_by(first).process(SplitByKey())
    sides = pairs.connect(pairs).key_by(first, first).process(SplitSides())
    main, even, odd, firsts, seconds = run_and_gather(
        environment,
        split,
        split.get_side_output(EVEN_PAIR).key_by(first).sum(1),
        split.get_side_output(ODD_PAIR),
        sides.get_side_output(EVEN_PAIR),
        sides.get_side_output(ODD_PAIR),
    )
    assert main == []
    assert sorted(even) == [("b", 6), ("c", 4), ("c", 6)]
    assert Counter(odd) == Counter(pair for pair in PAIRS if pair[1] % 2 == 1)
    assert Counter(firsts) == Counter(seconds) == Counter(PAIRS)


def test_an_unread_side_output_is_dropped(env: EnvironmentFactory) -> None:
    environment = env(2)
    split = numbers(environment, 10).process(Split())
    assert sorted(run_and_collect(split)) == [*range(10)]
    environment = env(2)
    assert sorted(run_and_collect(numbers(environment, 10).process(Split()).get_side_output(EVEN))) == [
        0,
        2,
        4,
        6,
        8,
    ]


# -- partitioners --------------------------------------------------------------------------------------


def subtasks_of(rows: list[tuple[int, Any]]) -> dict[int, list[Any]]:
    return {index: [value for _, value in group] for index, group in by_key(rows).items()}


def test_rebalance_deals_records_out_evenly(env: EnvironmentFactory) -> None:
    stream = numbers(env(4), 100).rebalance().map(WithSubtask())
    assert {
        index: len(values) for index, values in subtasks_of(run_and_collect(stream)).items()
    } == dict.fromkeys(range(4), 25)


def test_rebalance_stays_even_over_many_short_epochs(env: EnvironmentFactory) -> None:
    stream = numbers(env(4, max_records=5), 60).rebalance().map(WithSubtask())
    sizes = [len(values) for values in subtasks_of(run_and_collect(stream)).values()]
    assert sum(sizes) == 60
    assert max(sizes) - min(sizes) <= 2


def test_rescale_to_more_subtasks_stays_near_the_producer(env: EnvironmentFactory) -> None:
    stream = read(env(2), NumberSequenceSource(0, 39)).rescale().map(WithSubtask()).set_parallelism(4)
    received = subtasks_of(run_and_collect(stream))
    assert sorted(received[0] + received[1]) == [*range(20)]
    assert sorted(received[2] + received[3]) == [*range(20, 40)]
    assert {len(values) for values in received.values()} == {10}


def test_rescale_to_fewer_subtasks_stays_near_the_producer(env: EnvironmentFactory) -> None:
    stream = read(env(4), NumberSequenceSource(0, 39)).rescale().map(WithSubtask()).set_parallelism(2)
    received = subtasks_of(run_and_collect(stream))
    assert {index: sorted(values) for index, values in received.items()} == {
        0: [*range(20)],
        1: [*range(20, 40)],
    }


def test_rescale_between_numbers_that_do_not_divide_loses_nothing(env: EnvironmentFactory) -> None:
    environment = env(2)
    source = read(environment, NumberSequenceSource(0, 29)).set_parallelism(3)
    up = source.rescale().map(WithSubtask()).set_parallelism(5)
    down = source.rescale().map(WithSubtask()).set_parallelism(2)
    for rows, subtasks in zip(run_and_gather(environment, up, down), (5, 2), strict=True):
        received = subtasks_of(rows)
        assert sorted(value for values in received.values() for value in values) == [*range(30)]
        assert set(received) == set(range(subtasks))


def test_shuffle_spreads_records_over_all_subtasks(env: EnvironmentFactory) -> None:
    stream = numbers(env(4), 1000).shuffle().map(WithSubtask())
    received = subtasks_of(run_and_collect(stream))
    assert sorted(value for values in received.values() for value in values) == [*range(1000)]
    assert all(150 < len(values) < 350 for values in received.values())
    # By chance and not in turn: some neighbours go to the same subtask.
    assert any(b - a == 1 for values in received.values() for a, b in pairwise(values))


def test_broadcast_shows_every_record_to_every_subtask_in_order(env: EnvironmentFactory) -> None:
    stream = numbers(env(4, max_records=9), 20).broadcast().map(WithSubtask())
    assert subtasks_of(run_and_collect(stream)) == {index: [*range(20)] for index in range(4)}


def test_forward_goes_from_subtask_to_subtask(env: EnvironmentFactory) -> None:
    source = read(env(3), NumberSequenceSource(0, 29)).map(WithSubtask())
    rows = run_and_collect(source.forward().map(WithSubtask()).disable_chaining())
    assert len(rows) == 30
    assert all(after == before == value // 10 for after, (before, value) in rows)


class ByRemainder(Partitioner):
    def partition(self, key: int, num_partitions: int) -> int:
        return key % num_partitions


def test_a_custom_partitioner_chooses_the_subtask(env: EnvironmentFactory) -> None:
    environment = env(3)
    source = numbers(environment, 12)
    modulo, everything_to_one = run_and_gather(
        environment,
        source.partition_custom(ByRemainder(), lambda n: n).map(WithSubtask()),
        source.partition_custom(lambda key, count: 0, lambda n: n).map(WithSubtask()),
    )
    assert subtasks_of(modulo) == {0: [0, 3, 6, 9], 1: [1, 4, 7, 10], 2: [2, 5, 8, 11]}
    assert subtasks_of(everything_to_one) == {0: [*range(12)]}


def test_all_records_of_a_key_come_to_one_subtask(env: EnvironmentFactory) -> None:
    stream = env(4, max_records=50).from_collection([f"key-{n % 40}" for n in range(200)])
    rows = run_and_collect(stream.key_by(lambda key: key).map(WithSubtask()))
    places = {(key, index) for index, key in rows}
    assert len(places) == 40
    assert {index for _, index in places} == {0, 1, 2, 3}


def test_more_records_than_a_buffer_holds_keep_their_order(env: EnvironmentFactory) -> None:
    environment = env(2, options={"headrace.exchange.buffer-records": 7})
    rows = run_and_collect(
        numbers(environment, 500).key_by(lambda n: n % 3).map(lambda n: (n % 3, n)).map(lambda pair: pair)
    )
    assert {key: [n for _, n in group] for key, group in by_key(rows).items()} == {
        key: list(range(key, 500, 3)) for key in range(3)
    }


# -- shapes of graphs ----------------------------------------------------------------------------------


def keyed_pipeline(environment: StreamExecutionEnvironment, shape: str) -> DataStream:
    mapped = environment.from_collection(PAIRS).map(lambda pair: (pair[0], pair[1] * 2)).name("Double")
    filtered = mapped.filter(lambda pair: pair[1] > 2)
    summed = filtered.key_by(first).sum(1)
    last = summed.map(lambda pair: pair)
    if shape == "disable_chaining":
        filtered.disable_chaining()
    elif shape == "start_new_chain":
        filtered.start_new_chain()
        last.start_new_chain()
    elif shape == "slot sharing groups":
        filtered.slot_sharing_group("middle")
        last.slot_sharing_group(SlotSharingGroup.builder("end").build())
    elif shape == "no chaining at all":
        environment.disable_operator_chaining()
    return last


@pytest.mark.parametrize(
    "shape", ["chained", "disable_chaining", "start_new_chain", "slot sharing groups", "no chaining at all"]
)
def test_results_do_not_depend_on_what_is_chained(env: EnvironmentFactory, shape: str) -> None:
    rows = run_and_collect(keyed_pipeline(env(2, max_records=4), shape))
    doubled = [(key, number * 2) for key, number in PAIRS if number > 1]
    assert {key: [row[1] for row in group] for key, group in by_key(rows).items()} == running(
        doubled, lambda old, new: old + new
    )


class Append(MapFunction):
    """Changes its records in place."""

    def __init__(self, what: str) -> None:
        self._what = what

    def map(self, value: list[Any]) -> list[Any]:
        value.append(self._what)
        return value


@pytest.mark.parametrize("parallelism", [1, 2], ids=["chained", "exchanged"])
def test_the_branches_of_a_diamond_do_not_see_each_others_changes(
    env: EnvironmentFactory, parallelism: int
) -> None:
    source = env(parallelism).from_collection([[1], [2], [3]]).map(lambda value: value)
    left, right = source.map(Append("left")), source.map(Append("right"))
    rows = run_and_collect(left.union(right).map(Append("joined")))
    assert sorted(rows) == sorted([n, side, "joined"] for n in (1, 2, 3) for side in ("left", "right"))


def test_an_edge_may_skip_levels_of_a_deep_graph(env: EnvironmentFactory) -> None:
    environment = env(2, max_records=6)
    source = numbers(environment, 20)
    deep = source
    for _ in range(4):  # four exchanges, hence five levels with the source's
        deep = deep.rebalance().map(lambda n: n + 100)
    skipping = source.map(lambda n: -n - 1)
    rows = run_and_collect(deep.union(skipping).key_by(lambda n: n % 2).map(lambda n: n))
    assert sorted(rows) == sorted([*(n + 400 for n in range(20)), *(-n - 1 for n in range(20))])


def test_one_stream_may_have_many_sinks(env: EnvironmentFactory, tmp_path: Path) -> None:
    environment = env(2, max_records=7)
    source = numbers(environment, 20)
    file_sinks = [tmp_path / name for name in ("one", "two")]
    for directory in file_sinks:
        source.map(str).sink_to(file_sink(directory))
    source.sink_to(BlackholeSink())
    gathered = run_and_gather(
        environment, *(source.map(lambda n, factor=factor: n * factor) for factor in (1, 2, 3))
    )
    assert [sorted(rows) for rows in gathered] == [[n * factor for n in range(20)] for factor in (1, 2, 3)]
    for directory in file_sinks:
        assert sorted(lines_of(directory), key=int) == [str(n) for n in range(20)]


def file_sink(directory: Path) -> FileSink:
    from headrace.common import Encoder

    return (
        FileSink.for_row_format(directory, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )


def lines_of(directory: Path) -> list[str]:
    files = [path for path in directory.rglob("*") if path.is_file() and ".staging" not in path.parts]
    return [line for path in files for line in path.read_text().splitlines()]


def test_parallelism_may_change_between_operators(env: EnvironmentFactory) -> None:
    environment = env(1, max_records=30)
    wide = numbers(environment, 100).map(WithSubtask()).set_parallelism(4)
    narrow = wide.map(WithSubtask()).set_parallelism(2)
    rows = run_and_collect(narrow)
    assert sorted(value for _, (_, value) in rows) == [*range(100)]
    assert {index for _, (index, _) in rows} == {0, 1, 2, 3}
    assert {index for index, _ in rows} == {0, 1}


def test_a_function_may_hold_the_same_program_values_in_every_subtask(env: EnvironmentFactory) -> None:
    table = {n: str(n) for n in range(50)}
    rows = run_and_collect(numbers(env(3), 50).rebalance().map(lambda n: table[n]))
    assert sorted(rows, key=int) == list(table.values())


# -- running jobs --------------------------------------------------------------------------------------


def test_execute_returns_when_the_job_has_finished(env: EnvironmentFactory, tmp_path: Path) -> None:
    environment = env(2)
    numbers(environment, 10).map(str).sink_to(file_sink(tmp_path / "out"))
    result = environment.execute("ten numbers")
    assert result.get_net_runtime() > 0
    assert len(lines_of(tmp_path / "out")) == 10


def test_a_job_started_asynchronously_can_be_watched(env: EnvironmentFactory, tmp_path: Path) -> None:
    environment = env(2)
    source = ScriptedSource([1, 2, Stop(), 3], directory=tmp_path)
    read(environment, source).sink_to(BlackholeSink())
    client = environment.execute_async("watched")
    wait_until(lambda: client.get_job_status().result() is JobStatus.RUNNING)
    result = client.get_job_execution_result()
    assert not result.done()
    source.resume()
    assert result.result(30).get_job_id() == client.get_job_id()
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.get_accumulators().result() == {}


def test_a_job_can_be_cancelled(env: EnvironmentFactory) -> None:
    environment = env(2, max_records=10)
    endless(environment).key_by(lambda n: n % 5).reduce(lambda a, b: a + b).sink_to(BlackholeSink())
    client = environment.execute_async()
    wait_until(lambda: client.get_job_status().result() is JobStatus.RUNNING)
    client.cancel().result(30)
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError, match="was cancelled"):
        client.get_job_execution_result().result(1)
    client.cancel().result(1)  # again does no harm


def test_a_job_can_be_cancelled_in_the_middle_of_an_epoch(env: EnvironmentFactory, tmp_path: Path) -> None:
    environment = env(2)
    started = tmp_path / "started"

    def sleep(n: int) -> int:
        started.touch()
        time.sleep(120)
        return n

    numbers(environment, 2).map(sleep).sink_to(BlackholeSink())
    client = environment.execute_async()
    wait_until(started.exists)
    client.cancel().result(30)
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_collecting_yields_rows_while_the_job_runs(env: EnvironmentFactory, tmp_path: Path) -> None:
    source = ScriptedSource([1, 2, Stop(), 3], directory=tmp_path)
    with read(env(2), source).map(lambda n: n * 10).execute_and_collect() as rows:
        assert {rows.next(), next(rows)} == {10, 20}
        assert rows._client.get_job_status().result() is JobStatus.RUNNING
        source.resume()
        assert list(rows) == [30]
        assert rows._client.get_job_status().result() is JobStatus.FINISHED


def test_closing_the_rows_early_cancels_the_job(env: EnvironmentFactory) -> None:
    rows = endless(env(2, max_records=10)).execute_and_collect()
    assert next(rows) == 0
    rows.close()
    assert rows._client.get_job_status().result() is JobStatus.CANCELED
    assert list(rows) == []


def test_a_limit_ends_an_endless_job(env: EnvironmentFactory) -> None:
    assert endless(env(2, max_records=10)).execute_and_collect(limit=25) == [*range(25)]


def test_an_environment_runs_one_job_after_the_other(env: EnvironmentFactory) -> None:
    environment = env(2)
    for count in (3, 5):
        assert sorted(run_and_collect(numbers(environment, count).map(lambda n: n))) == [*range(count)]


def test_collecting_reports_what_the_job_failed_with(env: EnvironmentFactory) -> None:
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        run_and_collect(numbers(env(1), 3).map(lambda n: 1 // n))


def test_two_jobs_run_at_the_same_time(env: EnvironmentFactory) -> None:
    def count(modulus: int) -> Any:
        stream = numbers(env(2, max_records=10), 60).map(lambda n: (n % modulus, 1)).key_by(first).sum(1)
        return lambda: run(stream)

    outcomes = in_threads(count(3), count(4))
    for outcome, modulus in zip(outcomes, (3, 4), strict=True):
        assert {key: [row[1] for row in group] for key, group in by_key(outcome.rows).items()} == {
            key: list(range(1, 60 // modulus + 1)) for key in range(modulus)
        }
    assert len({outcome.client.get_job_id() for outcome in outcomes}) == 2


def test_batch_reductions_emit_only_final_results(env: EnvironmentFactory) -> None:
    environment = env(2, max_records=4).set_runtime_mode(RuntimeExecutionMode.BATCH)
    keyed = environment.from_collection(PAIRS).key_by(first)
    sums, most = run_and_gather(environment, keyed.sum(1), keyed.reduce(lambda a, b: a if a[1] > b[1] else b))
    assert sorted(sums) == [("a", 23), ("b", 20), ("c", 6)]
    assert sorted(most) == [("a", 9), ("b", 9), ("c", 4)]


def test_automatic_mode_is_batch_for_bounded_input(env: EnvironmentFactory) -> None:
    environment = env(2).set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    rows = run_and_collect(environment.from_collection(PAIRS).key_by(first).sum(1))
    assert sorted(rows) == [("a", 23), ("b", 20), ("c", 6)]
