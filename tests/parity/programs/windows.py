"""Windows: assigners, triggers, functions, lateness and state, over records whose watermark follows each of them."""

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from pyflink.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ReduceFunction,
)
from pyflink.datastream.state import ListStateDescriptor, ReducingStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    MergingWindowAssigner,
    NeverTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TimeWindow,
    TimeWindowSerializer,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    WindowAssigner,
)

from . import stream

_RECORDS = [("a", 1), ("b", 2), ("a", 4), ("a", 12), ("b", 13), ("c", 27), ("a", 31), ("a", 33)]
_TYPE = Types.TUPLE([Types.STRING(), Types.LONG()])
_TEXTS = Types.TUPLE([Types.STRING(), Types.STRING()])


class Second(TimestampAssigner):
    """The second field is the time."""

    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def _timed(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    return env.from_collection(_RECORDS, _TYPE).assign_timestamps_and_watermarks(strategy)


def _keyed(env):
    return _timed(env).key_by(lambda value: value[0], Types.STRING())


def _tens(env):
    return _keyed(env).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))


class Sum(ReduceFunction):
    """Add the times."""

    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


class Mean(AggregateFunction):
    """The mean of the times."""

    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Shown(ProcessWindowFunction):
    """The key, the window and its elements."""

    def process(self, key, context, elements):
        window = context.window()
        yield key, f"{window.start}-{window.end} {window.max_timestamp()} {list(elements)}"

    def clear(self, context):
        pass


class ShownAll(ProcessAllWindowFunction):
    """The window and its elements, of all keys."""

    def process(self, context, elements):
        yield f"{context.window()} {sorted(elements)}"

    def clear(self, context):
        pass


class Applied(WindowFunction):
    """As `Shown`, the older way."""

    def apply(self, key, window, inputs):
        return [(key, f"{window.start} {len(list(inputs))}")]


class AppliedToAll(AllWindowFunction):
    """As `ShownAll`, the older way."""

    def apply(self, window, inputs):
        yield f"{window.start} {len(list(inputs))}"


class Remembering(ProcessWindowFunction):
    """State of the window and of the key."""

    def process(self, key, context, elements):
        own = context.window_state().get_state(ValueStateDescriptor("own", Types.INT()))
        all_windows = context.global_state().get_state(ValueStateDescriptor("all", Types.INT()))
        own.update((own.value() or 0) + 1)
        all_windows.update((all_windows.value() or 0) + 1)
        yield key, f"{context.window().start} {own.value()} {all_windows.value()}"

    def clear(self, context):
        context.window_state().get_state(ValueStateDescriptor("own", Types.INT())).clear()


@stream
def reduced(env):
    return _tens(env).reduce(Sum())


@stream
def reduced_by_lambda(env):
    return _tens(env).reduce(lambda one, other: (one[0], max(one[1], other[1])))


@stream
def reduced_with_window(env):
    return _tens(env).reduce(Sum(), window_function=Shown(), output_type=_TEXTS)


@stream
def reduced_with_apply(env):
    return _tens(env).reduce(Sum(), window_function=Applied(), output_type=_TEXTS)


@stream
def aggregated(env):
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    return _tens(env).aggregate(Mean(), accumulator_type=pair, output_type=Types.DOUBLE())


@stream
def aggregated_with_window(env):
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    return _tens(env).aggregate(Mean(), Shown(), accumulator_type=pair, output_type=_TEXTS)


@stream
def processed(env):
    return _tens(env).process(Shown(), _TEXTS)


@stream
def applied(env):
    return _tens(env).apply(Applied(), _TEXTS)


@stream
def remembered(env):
    return _tens(env).process(Remembering(), _TEXTS)


@stream
def slid(env):
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))
    return _keyed(env).window(sliding).process(Shown(), _TEXTS)


@stream
def slid_with_offset(env):
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4), Time.milliseconds(1))
    return _keyed(env).window(sliding).process(Shown(), _TEXTS)


@stream
def tumbled_with_offset(env):
    tumbling = TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3))
    return _keyed(env).window(tumbling).process(Shown(), _TEXTS)


@stream
def sessions(env):
    return _keyed(env).window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).process(Shown(), _TEXTS)


@stream
def sessions_reduced(env):
    return _keyed(env).window(EventTimeSessionWindows.with_gap(Time.milliseconds(10))).reduce(Sum())


class Gap(SessionWindowTimeGapExtractor):
    """Sessions of a are longer."""

    def extract(self, element):
        return 20 if element[0] == "a" else 3


@stream
def sessions_of_their_own_gap(env):
    return _keyed(env).window(EventTimeSessionWindows.with_dynamic_gap(Gap())).process(Shown(), _TEXTS)


@stream
def all_windows(env):
    windows = _timed(env).window_all(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windows.process(ShownAll(), Types.STRING())


@stream
def all_windows_reduced(env):
    return _timed(env).window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).reduce(Sum())


@stream
def all_windows_applied(env):
    windows = _timed(env).window_all(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windows.apply(AppliedToAll(), Types.STRING())


@stream
def all_windows_aggregated(env):
    windows = _timed(env).window_all(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    return windows.aggregate(Mean(), accumulator_type=pair, output_type=Types.DOUBLE())


@stream
def counted(env):
    windows = _keyed(env).window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    return windows.apply(_listed, Types.STRING())


class _Listed(WindowFunction):
    def apply(self, key, window, inputs):
        yield f"{key} {list(inputs)}"


_listed = _Listed()


@stream
def counted_and_purged(env):
    windows = _keyed(env).window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))
    return windows.apply(_listed, Types.STRING())


@stream
def counted_in_time(env):
    windows = _tens(env).trigger(CountTrigger.of(1))
    return windows.reduce(Sum())


@stream
def count_windows(env):
    return _keyed(env).window(CountTumblingWindowAssigner.of(2)).apply(_listed, Types.STRING())


@stream
def count_windows_sliding(env):
    return _keyed(env).window(CountSlidingWindowAssigner.of(3, 1)).apply(_listed, Types.STRING())


@stream
def count_windows_by_method(env):
    return _keyed(env).count_window(3, 2).apply(_listed, Types.STRING())


@stream
def continuously(env):
    windows = _keyed(env).window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    return windows.trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(10))).reduce(Sum())


@stream
def purged(env):
    return _tens(env).trigger(PurgingTrigger.of(EventTimeTrigger.create())).process(Shown(), _TEXTS)


@stream
def never(env):
    return _keyed(env).window(GlobalWindows.create()).trigger(NeverTrigger()).apply(_listed, Types.STRING())


class EveryLong(Trigger):
    """Fires for times above ten, and counts elements in its state."""

    def __init__(self):
        self._count = ReducingStateDescriptor("count", lambda one, other: one + other, Types.LONG())

    @staticmethod
    def create():
        return EveryLong()

    def on_element(self, element, timestamp, window, ctx):
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        ctx.register_event_time_timer(window.max_timestamp())
        if element[1] > 30 and count.get() >= 2:
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE_AND_PURGE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.get_partitioned_state(self._count).clear()


@stream
def own_trigger(env):
    return _tens(env).trigger(EveryLong()).process(Shown(), _TEXTS)


class ByKey(WindowAssigner):
    """Windows of a are twice as long."""

    def assign_windows(self, element, timestamp, context):
        size = 20 if element[0] == "a" else 10
        start = timestamp - timestamp % size
        return [TimeWindow(start, start + size)]

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


@stream
def own_assigner(env):
    return _keyed(env).window(ByKey()).process(Shown(), _TEXTS)


class Pairs(MergingWindowAssigner):
    """Windows that touch become one."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(timestamp, timestamp + 4)]

    def merge_windows(self, windows, callback):
        TimeWindow.merge_windows(windows, callback)

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


@stream
def own_merging_assigner(env):
    return _keyed(env).window(Pairs()).process(Shown(), _TEXTS)


class Stamped(ProcessFunction):
    """The timestamps of results of windows."""

    def process_element(self, value, ctx):
        yield f"{value} {ctx.timestamp()}"


@stream
def timestamps_of_results(env):
    return _tens(env).reduce(Sum()).process(Stamped(), Types.STRING())


@stream
def windows_of_windows(env):
    first = _tens(env).reduce(Sum())
    return first.window_all(TumblingEventTimeWindows.of(Time.milliseconds(20))).reduce(Sum())


class Ordered(KeyedProcessFunction):
    """Keeps records until the watermark has passed them."""

    def open(self, runtime_context):
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", _TYPE))

    def process_element(self, value, ctx):
        self.waiting.add(value)
        ctx.timer_service().register_event_time_timer(value[1] + 5)

    def on_timer(self, timestamp, ctx):
        ready = [each for each in self.waiting.get() if each[1] + 5 <= timestamp]
        self.waiting.update([each for each in self.waiting.get() if each[1] + 5 > timestamp])
        for each in ready:
            yield ctx.get_current_key(), f"{each[1]} at {timestamp} in {ctx.time_domain().name}"


@stream
def timers(env):
    return _keyed(env).process(Ordered(), _TEXTS)


class Cancelled(KeyedProcessFunction):
    """Timers that are deleted, or registered twice."""

    def process_element(self, value, ctx):
        service = ctx.timer_service()
        service.register_event_time_timer(value[1] + 100)
        service.register_event_time_timer(500)
        if value[1] == 4:
            service.delete_event_time_timer(104)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), str(timestamp)


@stream
def timers_cancelled(env):
    return _keyed(env).process(Cancelled(), _TEXTS)


@stream
def rows_in_windows(env):
    kinds = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
    rows = _timed(env).map(lambda value: Row(k=value[0], n=value[1]), kinds)
    windows = rows.key_by(lambda row: row.k, Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.milliseconds(10))
    )
    return windows.reduce(lambda one, other: Row(k=one.k, n=one.n + other.n))
