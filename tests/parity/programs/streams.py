"""Transformations of streams."""

from pyflink.common import Row, Types
from pyflink.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
)
from pyflink.datastream.functions import AggregateFunction
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

from . import failing, stream, values

_PAIRS = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)]
_PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


def _pairs(env):
    return env.from_collection(_PAIRS, _PAIR)


def _keyed(env):
    return _pairs(env).key_by(lambda pair: pair[0], Types.STRING())


class Double(MapFunction):
    def map(self, value):
        return value * 2


class Twice(FlatMapFunction):
    def flat_map(self, value):
        yield value
        yield value


class Odd(FilterFunction):
    def filter(self, value):
        return value % 2 == 1


class First(KeySelector):
    def get_key(self, value):
        return value[0]


class Sum(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


class Both(CoMapFunction):
    def map1(self, value):
        return f"one {value}"

    def map2(self, value):
        return f"two {value}"


class Spread(CoFlatMapFunction):
    def flat_map1(self, value):
        yield value
        yield value + 1

    def flat_map2(self, value):
        if value != "b":
            yield len(value)


_ODD = OutputTag("odd", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2:
            yield _ODD, value
        else:
            yield value


class Counted(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.INT()))
        self.parts = runtime_context.get_map_state(MapStateDescriptor("parts", Types.INT(), Types.STRING()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.seen.add(value[1])
        self.parts.put(value[1], value[0])
        yield ctx.get_current_key(), self.count.value(), list(self.seen.get()), sorted(self.parts.items())


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Rolling(KeyedProcessFunction):
    def open(self, runtime_context):
        self.least = runtime_context.get_reducing_state(ReducingStateDescriptor("least", min, Types.INT()))
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value, ctx):
        self.least.add(value[1])
        self.mean.add(value[1])
        yield ctx.get_current_key(), self.least.get(), self.mean.get()


class Cleared(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        yield value[1], self.count.value()
        self.count.update(value[1])
        if value[1] == 3:
            self.count.clear()


@stream
def map_function(env):
    return env.from_collection([1, 2], Types.INT()).map(Double(), Types.INT())


@stream
def flat_map_function(env):
    return env.from_collection([1, 2], Types.INT()).flat_map(Twice(), Types.INT())


@stream
def flat_map_lambda(env):
    return env.from_collection(["a b", "c"], Types.STRING()).flat_map(
        lambda line: line.split(), Types.STRING()
    )


@stream
def flat_map_generator(env):
    def spread(value):
        for each in range(value):
            yield value, each

    return env.from_collection([1, 3]).flat_map(spread)


@stream
def filter_function(env):
    return env.from_collection([1, 2, 3], Types.INT()).filter(Odd())


@stream
def filter_lambda(env):
    return env.from_collection([1, 2, 3]).filter(lambda n: n > 1)


@stream
def keyed_map(env):
    return _keyed(env).map(lambda pair: pair[1])


@stream
def keyed_filter(env):
    return _keyed(env).filter(lambda pair: pair[1] > 2)


@stream
def key_selector(env):
    return _pairs(env).key_by(First(), Types.STRING()).reduce(Sum())


@stream
def reduce_lambda(env):
    return _keyed(env).reduce(lambda one, other: (one[0], one[1] + other[1]))


@stream
def sum_by_position(env):
    return _keyed(env).sum(1)


@stream
def min_by_position(env):
    return _keyed(env).min(1)


@stream
def max_by_position(env):
    return _keyed(env).max(1)


@stream
def min_by_record(env):
    return _keyed(env).min_by(1)


@stream
def max_by_record(env):
    return _keyed(env).max_by(1)


@stream
def sum_of_numbers(env):
    return env.from_collection([1, 2, 3], Types.INT()).key_by(lambda n: n % 2, Types.INT()).sum()


@stream
def sum_of_rows(env):
    kinds = Types.ROW_NAMED(["key", "n"], [Types.STRING(), Types.INT()])
    return (
        env.from_collection([Row("a", 1), Row("a", 2)], kinds)
        .key_by(lambda row: row[0], Types.STRING())
        .sum("n")
    )


@stream
def union_streams(env):
    return env.from_collection([1, 2], Types.INT()).union(env.from_collection([3], Types.INT()))


@stream
def union_itself(env):
    numbers = env.from_collection([1, 2], Types.INT()).map(lambda n: n, Types.INT())
    return numbers.union(numbers)


@stream
def connect_map(env):
    one, two = env.from_collection([1, 2], Types.INT()), env.from_collection(["a"], Types.STRING())
    return one.connect(two).map(Both(), Types.STRING())


@stream
def connect_flat_map(env):
    one, two = env.from_collection([1, 5], Types.INT()), env.from_collection(["a", "b"], Types.STRING())
    return one.connect(two).flat_map(Spread(), Types.INT())


@stream
def side_output(env):
    return env.from_collection([1, 2, 3, 4], Types.INT()).process(Split(), Types.INT()).get_side_output(_ODD)


@stream
def main_output(env):
    processed = env.from_collection([1, 2, 3, 4], Types.INT()).process(Split(), Types.INT())
    processed.get_side_output(_ODD)
    return processed


@stream
def keyed_state(env):
    return _keyed(env).process(Counted())


@stream
def keyed_reducing_state(env):
    return _keyed(env).process(Rolling())


@stream
def keyed_cleared_state(env):
    return _keyed(env).process(Cleared())


@stream
def rebalanced(env):
    return env.from_collection([1, 2, 3], Types.INT()).rebalance().map(lambda n: n + 1, Types.INT())


@stream
def broadcast_plain(env):
    return env.from_collection([1, 2], Types.INT()).broadcast().map(lambda n: n, Types.INT())


@stream
def shuffled(env):
    return env.from_collection([1, 2], Types.INT()).shuffle().map(lambda n: n, Types.INT())


@stream
def rescaled(env):
    return env.from_collection([1, 2], Types.INT()).rescale().map(lambda n: n, Types.INT())


@stream
def forwarded(env):
    return (
        env.from_collection([1, 2], Types.INT())
        .map(lambda n: n, Types.INT())
        .forward()
        .map(lambda n: n, Types.INT())
    )


@stream
def partitioned(env):
    numbers = env.from_collection([1, 2], Types.INT())
    return numbers.partition_custom(lambda key, count: key % count, lambda n: n).map(lambda n: n, Types.INT())


@stream
def count_windows(env):
    return _keyed(env).count_window(2).reduce(lambda one, other: (one[0], one[1] + other[1]))


@stream
def numbers_from_to(env):
    return env.from_collection(list(range(3)), Types.LONG()).map(lambda n: n * n, Types.LONG())


@stream
def keyed_twice(env):
    return _keyed(env).key_by(lambda pair: pair[1] % 2, Types.INT()).map(lambda pair: pair)


@stream
def none_is_filtered(env):
    return env.from_collection([1, 2, 3]).map(lambda n: n if n > 1 else None).filter(lambda n: n is not None)


@failing
def map_raises(env):
    return env.from_collection([1]).map(lambda n: n / 0)


@failing
def flat_map_returns_number(env):
    return env.from_collection([1]).flat_map(lambda n: n)


@failing
def key_is_missing(env):
    return env.from_collection([(1,)]).key_by(lambda pair: pair[5]).map(lambda pair: pair)


values(
    value_descriptor_name=lambda: ValueStateDescriptor("a", Types.INT()).get_name(),
    list_descriptor_name=lambda: ListStateDescriptor("a", Types.INT()).get_name(),
    map_descriptor_name=lambda: MapStateDescriptor("a", Types.INT(), Types.INT()).get_name(),
    tag_id=lambda: _ODD.tag_id,
    tag_without_id=lambda: OutputTag(""),
    tag_none=lambda: OutputTag(None),
)
