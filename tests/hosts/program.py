"""The program of `tests/hosts`: counts by key, into files that all hosts share, S3, PostgreSQL and Kafka.

headrace run program.py DIRECTORY

`DIRECTORY/sinks.json` says which sinks there are. What happens on the way is told and asked by other files there:

    epochs      a line for each epoch: the epoch, and the hosts that it ran on
    hold        while it exists, the driver stops after as many epochs as it says
    gate        while it exists, a worker stops in the middle of an epoch, and says in `waiting` which host it is on
    fail        while it exists, a worker fails
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.common import Encoder, Types, WatermarkStrategy
from headrace.common.serialization import SimpleStringSchema
from headrace.config import Configuration
from headrace.connectors.base import DeliveryGuarantee
from headrace.connectors.file import BucketAssigner, FileSink, RollingPolicy
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from headrace.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from headrace.datastream.state import ValueStateDescriptor
from headrace.spark.executor import Listeners, SparkExecutor

NUMBERS = 80
KEYS = 9
#: The number that may be made to wait or to fail: in the middle of the second half, which has a source of its own.
MIDDLE = 60


class Tally(KeyedProcessFunction):
    """Counts the numbers of each key; one of them may be made to wait, or to fail."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value == MIDDLE:
            self._stop_if_asked(Path(self._directory))
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield ctx.get_current_key(), value, count

    @staticmethod
    def _stop_if_asked(directory: Path) -> None:
        if (directory / "fail").exists():
            raise ValueError("asked to fail")
        while (directory / "gate").exists():
            (directory / "waiting").write_text(socket.gethostname())
            time.sleep(0.02)


def tell_epochs(directory: Path) -> None:
    """Have the driver write down its epochs, and wait after them if it is asked to."""
    epochs = 0

    def is_held() -> bool:
        try:
            return epochs >= int((directory / "hold").read_text())
        except FileNotFoundError:
            return False

    def tell(_: Any, summary: Any) -> None:
        nonlocal epochs
        epochs += 1
        hosts = sorted({report.host for report in summary.reports if report.host})
        with open(directory / "epochs", "a") as stream:
            stream.write(f"{summary.epoch} {' '.join(hosts)}\n")
        while is_held():
            time.sleep(0.02)

    executor = ExecutionContext.current().executor_for(Configuration())
    assert isinstance(executor, SparkExecutor)
    executor.listeners.append(Listeners(epoch_completed=tell))


def add_sinks(rows: DataStream, sinks: dict[str, Any]) -> None:
    """Write rows to every sink that there is, exactly once."""
    for name in ("files", "objects"):
        if name in sinks:
            files = FileSink.for_row_format(sinks[name], Encoder.simple_string_encoder())
            files = files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            policy = RollingPolicy.on_checkpoint_rolling_policy()
            rows.sink_to(files.with_rolling_policy(policy).build()).uid(name)
    if "postgres" in sinks:
        place = sinks["postgres"]
        connection = JdbcConnectionOptions(place["url"], place["user"], place["password"])
        insert = f"INSERT INTO {place['table']} VALUES (?, ?, ?)"
        rows.sink_to(JdbcSink.exactly_once_sink(insert, None, connection)).uid("postgres")
    if "kafka" in sinks:
        records = KafkaRecordSerializationSchema.builder().set_topic(sinks["kafka"]["topic"])
        sink = (
            KafkaSink.builder()
            .set_bootstrap_servers(sinks["kafka"]["address"])
            .set_record_serializer(records.set_value_serialization_schema(SimpleStringSchema()).build())
            .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .set_transactional_id_prefix(sinks["kafka"]["topic"])
            .build()
        )
        rows.map(repr).uid("texts").sink_to(sink).uid("kafka")


def main(directory: Path) -> None:
    tell_epochs(directory)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    numbers = env.from_source(
        NumberSequenceSource(0, NUMBERS - 1), WatermarkStrategy.no_watermarks(), "numbers"
    ).uid("numbers")
    rows = numbers.key_by(lambda n: n % KEYS).process(Tally(str(directory))).uid("tally")
    add_sinks(rows, json.loads((directory / "sinks.json").read_text()))
    env.execute("tally")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
