"""Clicks of users, gathered to sessions by event time."""

from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows

CLICKS = [
    Row("ada", "/home", 1_000),
    Row("bob", "/home", 2_000),
    Row("ada", "/shop", 4_000),
    Row("bob", "/about", 9_500),
    Row("ada", "/cart", 8_000),
    Row("ada", "/home", 30_000),
    Row("cy", "/home", 31_000),
    Row("bob", "/shop", 33_000),
    Row("ada", "/shop", 34_999),
    Row("ada", "/pay", 39_999),
]
CLICK = Types.ROW_NAMED(["user", "page", "at"], [Types.STRING(), Types.STRING(), Types.LONG()])


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value.at


class Summary(ProcessWindowFunction):
    def process(self, key, context, elements):
        clicks = sorted(elements, key=lambda click: click.at)
        window = context.window()
        yield Row(key, window.start, window.end, len(clicks), " > ".join(click.page for click in clicks))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2)).with_timestamp_assigner(
        ClickTime()
    )
    (
        env.from_collection(CLICKS, type_info=CLICK)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda click: click.user)
        .window(EventTimeSessionWindows.with_gap(Time.seconds(5)))
        .process(
            Summary(),
            Types.ROW_NAMED(
                ["user", "start", "end", "clicks", "path"],
                [Types.STRING(), Types.LONG(), Types.LONG(), Types.INT(), Types.STRING()],
            ),
        )
        .print()
    )
    env.execute("click sessions")


if __name__ == "__main__":
    main()
