"""Late records in a side output; the pace of the input lets watermarks pass between records."""

import time

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

READING = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
LATE = OutputTag("late", READING)
READINGS = [("a", 1_000, 1), ("b", 2_000, 2), ("a", 12_000, 3), ("a", 3_000, 4), ("b", 11_500, 5), ("a", 25_000, 6),
            ("b", 13_000, 7), ("b", 24_000, 8)]  # fmt: skip


class ReadingTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def paced(value):
    time.sleep(0.4)
    return value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.get_config().set_auto_watermark_interval(50)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(
        ReadingTime()
    )
    sums = (
        env.from_collection(READINGS, type_info=READING)
        .map(paced, output_type=READING)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda reading: reading[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .side_output_late_data(LATE)
        .reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]))
    )
    sums.print()
    sums.get_side_output(LATE).map(lambda reading: f"late {reading}", output_type=Types.STRING()).print()
    env.execute("late data")


if __name__ == "__main__":
    main()
