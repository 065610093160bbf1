"""Broadcast state, two inputs, and side outputs."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    BroadcastProcessFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    OutputTag,
    ProcessFunction,
)
from pyflink.datastream.state import (
    MapStateDescriptor,
    ValueStateDescriptor,
)

from . import stream

_PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
_PAIRS = [("a", 1), ("b", 5), ("a", 3), ("a", 20), ("b", 22), ("a", 31)]
_RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
_BIG = OutputTag("big", _PAIR)
_TEXTS = OutputTag("texts", Types.STRING())


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def _pairs(env):
    return env.from_collection(_PAIRS, _PAIR)


def _timed(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    return _pairs(env).assign_timestamps_and_watermarks(strategy)


def _keyed(env):
    return _timed(env).key_by(lambda pair: pair[0], Types.STRING())


# --- broadcast state --------------------------------------------------------------------------------------------


class Applied(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.get_broadcast_state(_RULES).get(value[0])
        yield "element"

    def process_broadcast_element(self, value, ctx):
        state = ctx.get_broadcast_state(_RULES)
        state.put(value, len(value))
        if state.contains("long"):
            yield f"rules {sorted(state.items())} {state.is_empty()}"


@stream
def broadcast_state_methods(env):
    rules = env.from_collection(["x", "long", "yy"], Types.STRING()).broadcast(_RULES)
    done = _pairs(env).connect(rules).process(Applied(), Types.STRING())
    return done.filter(lambda text: text != "element")


class ReadOnly(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        state = ctx.get_broadcast_state(_RULES)
        yield hasattr(state, "put"), hasattr(state, "get"), hasattr(state, "contains")

    def process_broadcast_element(self, value, ctx):
        yield from ()


@stream
def broadcast_state_is_read_only(env):
    rules = env.from_collection(["x"], Types.STRING()).broadcast(_RULES)
    return _pairs(env).connect(rules).process(ReadOnly())


class KeyedApplied(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(_RULES).put(value, 1)


@stream
def broadcast_keyed(env):
    rules = env.from_collection(["x"], Types.STRING()).broadcast(_RULES)
    return _keyed(env).connect(rules).process(KeyedApplied(), Types.TUPLE([Types.STRING(), Types.INT()]))


# --- two inputs -------------------------------------------------------------------------------------------------


class Named(CoMapFunction):
    def map1(self, value):
        return f"one {value}"

    def map2(self, value):
        return f"two {value[0]}"


@stream
def co_map_of_two_types(env):
    return env.from_collection([1, 2], Types.INT()).connect(_pairs(env)).map(Named(), Types.STRING())


class Apart(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value
        yield _TEXTS, f"first {value}"

    def process_element2(self, value, ctx):
        yield _TEXTS, f"second {value[0]}"


@stream
def co_process_side_output(env):
    done = env.from_collection([7], Types.INT()).connect(_pairs(env)).process(Apart(), Types.INT())
    return done.get_side_output(_TEXTS)


@stream
def connected_streams_keyed_together(env):
    both = env.from_collection([("a", "ann")]).connect(_pairs(env))
    return both.key_by(lambda name: name[0], lambda pair: pair[0]).map(Named(), Types.STRING())


# --- side outputs -----------------------------------------------------------------------------------------------


class Sorted(ProcessFunction):
    def process_element(self, value, ctx):
        if value[1] > 20:
            yield _BIG, value
        yield _TEXTS, f"{value[0]}{value[1]}"
        yield value[1]


@stream
def side_output_of_tuples(env):
    return _pairs(env).process(Sorted(), Types.LONG()).get_side_output(_BIG)


@stream
def side_output_of_texts(env):
    return _pairs(env).process(Sorted(), Types.LONG()).get_side_output(_TEXTS)


@stream
def side_output_goes_on(env):
    big = _pairs(env).process(Sorted(), Types.LONG()).get_side_output(_BIG)
    return big.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@stream
def side_output_beside_main(env):
    main = _pairs(env).process(Sorted(), Types.LONG())
    return main.map(lambda n: f"main {n}", Types.STRING()).union(main.get_side_output(_TEXTS))
