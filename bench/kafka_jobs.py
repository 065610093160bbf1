"""Kafka in, count, Kafka out: as a job, as a loop over confluent-kafka, and the topics they read and write."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from bench.jobs import environment
from headrace.common import Time, Types, WatermarkStrategy
from headrace.common.serialization import SimpleStringSchema
from headrace.datastream import AggregateFunction, ProcessWindowFunction
from headrace.datastream.connectors import DeliveryGuarantee
from headrace.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from headrace.datastream.window import TumblingEventTimeWindows
from tests.kafka import KafkaBroker

PARTITIONS = 4
KEYS = 1_000


def fill(kafka: KafkaBroker, records: int, partitions: int = PARTITIONS) -> str:
    """Write records such as `user-17,1234` in turn to the partitions, at one time for all."""
    topic = kafka.create_topic(partitions)
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 50, "log_level": 0})
    now = int(time.time() * 1000)
    for number in range(records):
        value = f"user-{number % KEYS},{number}"
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions, timestamp=now)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return topic


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithKey(ProcessWindowFunction[int, str, str, Any]):
    def process(self, key: str, context: Any, elements: Any) -> Iterator[str]:
        for count in elements:
            yield f"{key}: {count}"


def key_of(value: str) -> str:
    return value.partition(",")[0]


def source_of(kafka: KafkaBroker, topic: str) -> KafkaSource:
    """Return a source that reads what is there."""
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.address)
        .set_topics(topic)
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )


def sink_to(kafka: KafkaBroker, topic: str, guarantee: DeliveryGuarantee) -> KafkaSink:
    """Return a sink of texts."""
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.address)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(guarantee)
        .set_transactional_id_prefix(f"bench-{topic}")
        .build()
    )


def run_count(kafka: KafkaBroker, topic: str, records: int, parallelism: int) -> float:
    """Count per key in one window; returns records per second of the whole job."""
    env = environment(parallelism)
    target = kafka.create_topic(1)
    stream = env.from_source(
        source_of(kafka, topic), WatermarkStrategy.for_monotonous_timestamps(), "records"
    )
    (
        stream.key_by(key_of)
        .window(TumblingEventTimeWindows.of(Time.days(1)))
        .aggregate(Count(), WithKey(), output_type=Types.STRING())
        .sink_to(sink_to(kafka, target, DeliveryGuarantee.EXACTLY_ONCE))
    )
    started = time.perf_counter()
    env.execute("bench")
    elapsed = time.perf_counter() - started
    assert sum(int(each.rpartition(" ")[2]) for each in kafka.values(target)) == records
    return records / elapsed


def run_copy(
    kafka: KafkaBroker,
    topic: str,
    records: int,
    parallelism: int,
    guarantee: DeliveryGuarantee,
    partitions: int = PARTITIONS,
    options: Mapping[str, str] | None = None,
) -> float:
    """Copy a topic; returns records per second of the whole job."""
    env = environment(parallelism, options)
    stream = env.from_source(source_of(kafka, topic), WatermarkStrategy.no_watermarks(), "records")
    stream.map(str.upper).sink_to(sink_to(kafka, kafka.create_topic(partitions), guarantee))
    started = time.perf_counter()
    env.execute("bench")
    return records / (time.perf_counter() - started)


# --- the bare loop --------------------------------------------------------------------------------


def _values(kafka: KafkaBroker, topic: str) -> Iterator[str]:
    consumer = Consumer(
        {
            **{"bootstrap.servers": kafka.address, "group.id": uuid.uuid4().hex, "log_level": 0},
            **{"enable.auto.commit": False, "enable.partition.eof": True},
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    ended = 0
    while ended < PARTITIONS:
        for message in consumer.consume(5_000, 0.1):
            error, value = message.error(), message.value()
            if error is None and value is not None:
                yield value.decode()
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                ended += 1
    consumer.close()


def _producer(kafka: KafkaBroker) -> Producer:
    return Producer({"bootstrap.servers": kafka.address, "linger.ms": 20, "log_level": 0})


def bare_count(kafka: KafkaBroker, topic: str, records: int) -> float:
    """Count per key in a loop of one process."""
    target = kafka.create_topic(1)
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    for value in _values(kafka, topic):
        counts[key_of(value)] += 1
    producer = _producer(kafka)
    for key, count in counts.items():
        producer.produce(target, f"{key}: {count}")
    producer.flush()
    return records / (time.perf_counter() - started)


def bare_copy(kafka: KafkaBroker, topic: str, records: int) -> float:
    """Copy a topic in a loop of one process."""
    target = kafka.create_topic(PARTITIONS)
    started = time.perf_counter()
    producer = _producer(kafka)
    for value in _values(kafka, topic):
        while True:
            try:
                producer.produce(target, value.upper())
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return records / (time.perf_counter() - started)
