"""A report on sensors: a data stream, a table of it, and a data stream of the table's rows, in one job.

A process function with state drops readings that have not changed. SQL averages the rest over windows of event time.
The averages are a stream again, with the time of their windows, and a process function says how they have moved.

    headrace run examples/sql/sensor_report.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.common import Duration, Row, Types, WatermarkStrategy
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor
from headrace.table import Schema, StreamTableEnvironment

READING = Types.ROW_NAMED(["sensor", "celsius", "at_ms"], [Types.STRING(), Types.DOUBLE(), Types.LONG()])
#: A reading of each of two sensors every five seconds, for two minutes.
READINGS = [
    (sensor, base + (at // 15) % 4, at * 1000)
    for at in range(0, 120, 5)
    for sensor, base in (("cellar", 8.0), ("roof", 20.0))
]
AVERAGES = """
    SELECT sensor, AVG(celsius) AS celsius, window_time
    FROM TUMBLE(TABLE readings, DESCRIPTOR(rowtime), INTERVAL '30' SECOND)
    GROUP BY sensor, window_start, window_end, window_time
"""


class AtMs(TimestampAssigner):
    """Finds the time of a reading."""

    def extract_timestamp(self, value: Row, record_timestamp: int) -> int:
        return int(value[2])


class OnlyChanges(KeyedProcessFunction):
    """Drops readings that are as the one before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        if self._last.value() != value[1]:
            self._last.update(value[1])
            yield value


class Movement(KeyedProcessFunction):
    """Says by how much an average has moved since the window before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._before = runtime_context.get_state(ValueStateDescriptor("before", Types.DOUBLE()))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        before, now = self._before.value(), value.celsius
        self._before.update(now)
        moved = "" if before is None else f" ({now - before:+.1f})"
        yield f"{(ctx.timestamp() + 1) // 1000:>3} s  {value.sensor}: {now:.1f}{moved}"


def build(env: StreamExecutionEnvironment, readings: Iterable[tuple[str, float, int]]) -> DataStream:
    """Return the report."""
    t_env = StreamTableEnvironment.create(env)
    timed = env.from_collection(list(readings), READING).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(AtMs())
    )
    changes = timed.key_by(lambda reading: reading[0]).process(OnlyChanges(), output_type=READING)
    schema = (
        Schema.new_builder()
        .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")
        .watermark("rowtime", "SOURCE_WATERMARK()")
        .build()
    )
    t_env.create_temporary_view("readings", changes, schema)
    averages = t_env.to_data_stream(t_env.sql_query(AVERAGES))
    return averages.key_by(lambda row: row.sensor).process(Movement(), output_type=Types.STRING())


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    build(env, READINGS).print()
    env.execute("sensor report")


if __name__ == "__main__":
    main()
