"""Kafka in, counts per minute, Kafka out, exactly once.

Each message of the topic `clicks` is a JSON object such as `{"user": "ann", "at": "2024-05-01T12:00:00Z"}`. For every
user and minute one message with the number of clicks goes to the topic `clicks-per-minute`. What cannot be read goes to
the topic `clicks-unreadable`. Make the topics, then:

    headrace run examples/kafka_windows.py --servers localhost:9092
"""

import argparse
import datetime

from headrace.common import Duration, Row, Time, Types, WatermarkStrategy
from headrace.common.serialization import SimpleStringSchema
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from headrace.datastream.connectors import DeliveryGuarantee
from headrace.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from headrace.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from headrace.datastream.window import TumblingEventTimeWindows

CLICK = Types.ROW_NAMED(["user", "at"], [Types.STRING(), Types.SQL_TIMESTAMP()])
COUNT = Types.ROW_NAMED(["user", "minute", "clicks"], [Types.STRING(), Types.SQL_TIMESTAMP(), Types.LONG()])
UNREADABLE = OutputTag("unreadable")


class TimeOfClick(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return int(value.at.replace(tzinfo=datetime.UTC).timestamp() * 1000)


class CountClicks(ProcessWindowFunction):
    def process(self, key, context, elements):
        start = datetime.datetime.fromtimestamp(context.window().start / 1000, datetime.UTC)
        yield Row(key, start, len(list(elements)))


def source_of(servers, topic, *, is_bounded):
    builder = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(topic)
        .set_group_id("kafka-windows")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(CLICK).build())
        .set_dead_letter_tag(UNREADABLE)
    )
    return (builder.set_bounded(KafkaOffsetsInitializer.latest()) if is_bounded else builder).build()


def sink_to(servers, topic, value_schema):
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(value_schema)
        .build()
    )
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"kafka-windows-{topic}")
        .build()
    )


def build(env: StreamExecutionEnvironment, servers: str, prefix: str, *, is_bounded: bool) -> None:
    times = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    clicks = env.from_source(
        source_of(servers, prefix, is_bounded=is_bounded),
        times.with_timestamp_assigner(TimeOfClick()).with_idleness(Duration.of_seconds(30)),
        "clicks",
    ).uid("clicks")
    counts = (
        clicks.key_by(lambda click: click.user)
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .process(CountClicks(), COUNT)
        .uid("per-minute")
    )
    as_json = JsonRowSerializationSchema.builder().with_type_info(COUNT).build()
    counts.sink_to(sink_to(servers, f"{prefix}-per-minute", as_json))
    unreadable = clicks.get_side_output(UNREADABLE).map(lambda letter: f"{letter.position}: {letter.reason}")
    unreadable.sink_to(sink_to(servers, f"{prefix}-unreadable", SimpleStringSchema()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", default="localhost:9092")
    parser.add_argument("--prefix", default="clicks", help="what the names of the topics begin with")
    parser.add_argument("--bounded", action="store_true", help="end with what is there now")
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(1000)
    build(env, arguments.servers, arguments.prefix, is_bounded=arguments.bounded)
    env.execute("clicks per minute")


if __name__ == "__main__":
    main()
