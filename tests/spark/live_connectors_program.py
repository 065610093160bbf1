"""A program for `test_live_connectors`: one live job for each connector, whose worker is killed once.

All jobs run on one Spark, because starting it takes longer than running them. Prints what was seen, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from headrace.common import Configuration, Types, WatermarkStrategy
from headrace.common.serialization import Encoder, SimpleStringSchema
from headrace.connectors.base import DeliveryGuarantee
from headrace.connectors.file import FileSource, StreamFormat
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from headrace.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.connectors.file_system import FileSink
from headrace.datastream.state import ValueStateDescriptor

RECORDS = 1_000
KEYS = 5
#: The record that kills its worker, the first time it comes.
DEADLY = 600


def environment(settings: dict[str, Any], name: str) -> StreamExecutionEnvironment:
    values = {
        "headrace.spark.master": "local[2]",
        "headrace.exchange.kind": "pipelined",
        "headrace.epoch.max-records": "50",
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.dir": f"{settings['directory']}/{name}-checkpoints",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "0 ms",
        "restart-strategy.fixed-delay.attempts": "5",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(values))
    return env.set_parallelism(2)


class Count(KeyedProcessFunction):
    """Numbers the records of each key; kills its worker at one of them, once."""

    def __init__(self, marker: str) -> None:
        self._marker = Path(marker)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Any:
        number = int(value)
        if number == DEADLY and not self._marker.exists():
            self._marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield f"{number % KEYS} {count}"


def counted(settings: dict[str, Any], name: str, stream: DataStream) -> DataStream:
    marker = f"{settings['directory']}/{name}-killed"
    return stream.key_by(lambda value: int(value) % KEYS).process(Count(marker), Types.STRING())


def kafka(settings: dict[str, Any]) -> None:
    """Kafka to Kafka, exactly once."""
    env = environment(settings, "kafka")
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(settings["kafka"])
        .set_topics(settings["topic"])
        .set_group_id("live")
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(settings["target"])
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(settings["kafka"])
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("live")
        .build()
    )
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    counted(settings, "kafka", numbers).sink_to(sink)
    env.execute("kafka")


def jdbc(settings: dict[str, Any]) -> None:
    """Files to PostgreSQL, exactly once."""
    env = environment(settings, "jdbc")
    source = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), f"{settings['directory']}/input"
    ).build()
    connection = JdbcConnectionOptions(settings["jdbc"], settings["user"], settings["password"])
    sink = JdbcSink.exactly_once_sink("INSERT INTO live VALUES (?)", None, connection)
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    counted(settings, "jdbc", lines).map(lambda text: (text,), Types.TUPLE([Types.STRING()])).sink_to(sink)
    env.execute("jdbc")


def files(settings: dict[str, Any]) -> None:
    """Files to files."""
    env = environment(settings, "files")
    source = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), f"{settings['directory']}/input"
    ).build()
    output = f"{settings['directory']}/output"
    sink = FileSink.for_row_format(output, Encoder.simple_string_encoder()).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    counted(settings, "files", lines).sink_to(sink)
    env.execute("files")


def sockets(settings: dict[str, Any]) -> list[str]:
    """A socket, which cannot be read again: nobody is killed, and everything arrives."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall("".join(f"{number}\n" for number in range(RECORDS)).encode())

    threading.Thread(target=serve, daemon=True).start()
    env = environment(settings, "sockets")
    Path(f"{settings['directory']}/sockets-killed").touch()
    lines = env.socket_text_stream("127.0.0.1", server.getsockname()[1])
    return sorted(counted(settings, "sockets", lines).execute_and_collect("sockets"))


def main() -> None:
    settings = json.loads(sys.argv[1])
    kafka(settings)
    jdbc(settings)
    files(settings)
    print(json.dumps({"sockets": sockets(settings)}))


if __name__ == "__main__":
    main()
