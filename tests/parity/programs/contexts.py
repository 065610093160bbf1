"""What functions see of their records, timers and windows besides the values."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
)
from pyflink.datastream.state import MapStateDescriptor, StateTtlConfig
from pyflink.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    TumblingEventTimeWindows,
)

from . import stream, values

_PAIRS = [("a", 1), ("b", 5), ("a", 3), ("a", 20)]


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def _pairs(env):
    return env.from_collection(_PAIRS, Types.TUPLE([Types.STRING(), Types.LONG()]))


def _timed(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    return _pairs(env).assign_timestamps_and_watermarks(strategy)


class Clocks(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp(), ctx.timer_service().current_watermark()


class KeyedClocks(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp(), ctx.timer_service().current_watermark()


class BothClocks(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, value, ctx.timestamp()

    def process_element2(self, value, ctx):
        yield 2, value, ctx.timestamp()


class BothKeyedClocks(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, value, ctx.timestamp()

    def process_element2(self, value, ctx):
        yield 2, value, ctx.timestamp()


_RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class BroadcastClocks(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()

    def process_broadcast_element(self, value, ctx):
        yield value, ctx.timestamp()


class Timers(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] + 10)

    def on_timer(self, timestamp, ctx):
        yield timestamp, ctx.get_current_key(), ctx.timestamp(), ctx.timer_service().current_watermark()


class Windows(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, str(context.window()), [value for _, value in elements], context.current_watermark()


class KeyedMap(KeyedProcessFunction):
    def open(self, runtime_context):
        self.parts = runtime_context.get_map_state(MapStateDescriptor("parts", Types.STRING(), Types.LONG()))

    def process_element(self, value, ctx):
        self.parts.put_all([(value[0] + "1", value[1]), (value[0] + "2", 0)])
        yield sorted(self.parts.items())


@stream
def no_timestamps(env):
    return _pairs(env).process(Clocks())


@stream
def no_timestamps_keyed(env):
    return _pairs(env).key_by(lambda pair: pair[0]).process(KeyedClocks())


@stream
def no_timestamps_connected(env):
    return env.from_collection([1], Types.INT()).connect(env.from_collection(["x"])).process(BothClocks())


@stream
def no_timestamps_connected_keyed(env):
    one = env.from_collection([1], Types.INT()).key_by(lambda n: 0)
    return one.connect(env.from_collection([2], Types.INT()).key_by(lambda n: 0)).process(BothKeyedClocks())


@stream
def no_timestamps_broadcast(env):
    rules = env.from_collection(["rule"], Types.STRING()).broadcast(_RULES)
    return env.from_collection([1], Types.INT()).connect(rules).process(BroadcastClocks())


@stream
def timestamps(env):
    return _timed(env).process(Clocks())


@stream
def timestamps_out_of_order(env):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    return (
        _pairs(env)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Second()))
        .process(Clocks())
    )


@stream
def watermark_of_timers(env):
    return _timed(env).key_by(lambda pair: pair[0]).process(Timers())


@stream
def watermark_of_tumbling_windows(env):
    return (
        _timed(env)
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .process(Windows())
    )


@stream
def watermark_of_sessions(env):
    return (
        _timed(env)
        .key_by(lambda pair: pair[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(4)))
        .process(Windows())
    )


@stream
def global_windows(env):
    windows = (
        _pairs(env).key_by(lambda pair: pair[0]).window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    )
    return windows.process(Windows()).map(lambda result: result[:3])


@stream
def map_state_from_pairs(env):
    return _pairs(env).key_by(lambda pair: pair[0]).process(KeyedMap())


values(
    time_to_live=lambda: StateTtlConfig.new_builder(Time.seconds(1)).build(),
    time_to_live_on_read=lambda: (
        StateTtlConfig.new_builder(Time.hours(1))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .build()
    ),
)
