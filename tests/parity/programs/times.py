"""Spans and points of time, and windows."""

from pyflink.common import Duration, Instant, Time
from pyflink.datastream.window import (
    CountWindow,
    EventTimeSessionWindows,
    GlobalWindow,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

from . import values

_WINDOW = TimeWindow(0, 10)


def _assigned(assigner, timestamp):
    return sorted((window.start, window.end) for window in assigner.assign_windows("x", timestamp, None))


values(
    milliseconds=lambda: Time.milliseconds(5).to_milliseconds(),
    seconds=lambda: Time.seconds(5).to_milliseconds(),
    minutes=lambda: Time.minutes(5).to_milliseconds(),
    hours=lambda: Time.hours(5).to_milliseconds(),
    days=lambda: Time.days(5).to_milliseconds(),
    equal_times=lambda: Time.seconds(60) == Time.minutes(1),
    instant_of_milli=lambda: (Instant.of_epoch_milli(1500).seconds, Instant.of_epoch_milli(1500).nanos),
    instant_to_milli=lambda: Instant(1, 500000000).to_epoch_milli(),
    instant_repr=lambda: repr(Instant(1, 5)),
    instants_equal=lambda: Instant(1, 5) == Instant(1, 5),
    duration_equal=lambda: Duration.of_seconds(60) == Duration.of_minutes(1),
    window_start=lambda: (_WINDOW.start, _WINDOW.end),
    window_max=_WINDOW.max_timestamp,
    window_repr=lambda: repr(_WINDOW),
    window_equal=lambda: TimeWindow(0, 10) == _WINDOW,
    window_intersects=lambda: (_WINDOW.intersects(TimeWindow(9, 12)), _WINDOW.intersects(TimeWindow(11, 12))),
    window_touches=lambda: _WINDOW.intersects(TimeWindow(10, 12)),
    window_cover=lambda: (_WINDOW.cover(TimeWindow(5, 20)).start, _WINDOW.cover(TimeWindow(5, 20)).end),
    window_start_with_offset=lambda: TimeWindow.get_window_start_with_offset(17, 3, 10),
    window_start_negative=lambda: TimeWindow.get_window_start_with_offset(-1, 0, 10),
    count_window=lambda: CountWindow(3).id,
    count_window_max=lambda: CountWindow(3).max_timestamp(),
    global_window_max=lambda: GlobalWindow().max_timestamp(),
    tumbling=lambda: _assigned(TumblingEventTimeWindows.of(Time.milliseconds(10)), 17),
    tumbling_offset=lambda: _assigned(
        TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3)), 17
    ),
    tumbling_negative=lambda: _assigned(TumblingEventTimeWindows.of(Time.milliseconds(10)), -1),
    tumbling_no_time=lambda: _assigned(
        TumblingEventTimeWindows.of(Time.milliseconds(10)), -9223372036854775808
    ),
    tumbling_is_event_time=lambda: TumblingEventTimeWindows.of(Time.seconds(1)).is_event_time(),
    tumbling_bad_offset=lambda: TumblingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(5)),
    tumbling_zero=lambda: TumblingEventTimeWindows.of(Time.milliseconds(0)),
    processing_is_event_time=lambda: TumblingProcessingTimeWindows.of(Time.seconds(1)).is_event_time(),
    sliding=lambda: _assigned(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)), 17),
    sliding_gaps=lambda: _assigned(
        SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(10)), 17
    ),
    sliding_bad_slide=lambda: SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(0)),
    session=lambda: _assigned(EventTimeSessionWindows.with_gap(Time.milliseconds(5)), 17),
    session_zero=lambda: EventTimeSessionWindows.with_gap(Time.milliseconds(0)),
)
