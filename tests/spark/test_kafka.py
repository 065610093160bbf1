"""Kafka -> keyed window -> Kafka on Spark, with workers killed and the broker restarted; every window comes out once.

What came out is read by a plain consumer that sees committed transactions only.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Time, Types, WatermarkStrategy
from headrace.common.serialization import SimpleStringSchema
from headrace.connectors.base import DeliveryGuarantee
from headrace.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from headrace.connectors.kafka._transactions import TransactionalWriter
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import MapFunction, OutputTag, ProcessWindowFunction
from headrace.datastream.formats.json import JsonRowDeserializationSchema
from headrace.datastream.window import TumblingEventTimeWindows
from headrace.graph.job_graph import JobGraph
from headrace.metrics.reports import CounterReport, MetricName
from headrace.runtime.run.job_run import EpochSummary
from headrace.spark.executor import Listeners
from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.kafka import KafkaBroker
from tests.spark.sql_support import result_of, run_together
from tests.spark.support import RECORDER
from tests.watching import EXECUTOR

pytestmark = pytest.mark.spark

WINDOW_MS = 100
KEYS = 5


class BetweenEpochs:
    """Does something in the driver when a job has completed so many epochs."""

    def __init__(self) -> None:
        self._plan: dict[str, tuple[set[int], Callable[[], None]]] = {}
        self._seen: Counter[str] = Counter()

    def at(self, job_name: str, epochs: set[int], act: Callable[[], None]) -> None:
        self._plan[job_name] = (set(epochs), act)

    def __call__(self, job: JobGraph, summary: EpochSummary) -> None:
        epochs, act = self._plan.get(job.name, (set(), lambda: None))
        self._seen[job.name] += 1
        if self._seen[job.name] in epochs:
            act()


BETWEEN_EPOCHS = BetweenEpochs()
EXECUTOR.listeners.append(Listeners(epoch_completed=BETWEEN_EPOCHS))


class Deadly(MapFunction):
    """Kills its worker at some records, at each of them once."""

    def __init__(self, records: set[int], directory: Path) -> None:
        self._records = records
        self._directory = directory

    def map(self, value: str) -> tuple[int, int]:
        number = int(value)
        if number in self._records:
            try:
                (self._directory / str(number)).touch(exist_ok=False)
            except FileExistsError:
                return number % KEYS, number
            os.kill(os.getpid(), signal.SIGKILL)
        return number % KEYS, number


class CountOfWindow(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Any) -> Iterator[str]:
        numbers = sorted(number for _, number in elements)
        yield f"{key}@{context.window().start}: {len(numbers)} {sum(numbers)}"


def fill(kafka: KafkaBroker, records: int, partitions: int) -> str:
    """Write numbers in turn to the partitions, each at the time that it says."""
    from confluent_kafka import Producer

    topic = kafka.create_topic(partitions)
    with Producer({"bootstrap.servers": kafka.address, "log_level": 0}) as producer:
        for number in range(records):
            producer.produce(topic, str(number), partition=number % partitions, timestamp=number + 1)
        assert producer.flush(30) == 0
    return topic


def expected_windows(records: int) -> list[str]:
    """Count by hand: the oracle."""
    windows: dict[tuple[int, int], list[int]] = {}
    for number in range(records):
        start = (number + 1) // WINDOW_MS * WINDOW_MS
        windows.setdefault((number % KEYS, start), []).append(number)
    return sorted(f"{key}@{start}: {len(found)} {sum(found)}" for (key, start), found in windows.items())


def run_windows(
    env: EnvironmentFactory,
    kafka: KafkaBroker,
    directory: Path,
    *,
    records: int,
    kills: set[int],
    restarts: set[int],
    max_records: int,
) -> tuple[list[str], list[str]]:
    """Run the job and return what came out, and what should have."""
    topic, target = fill(kafka, records, 2), kafka.create_topic(2)
    name = f"windows-{target}"
    BETWEEN_EPOCHS.at(name, restarts, kafka.restart)
    environment = env(
        max_records=max_records,
        options={
            "execution.checkpointing.interval": "1 ms",
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "20",
            "restart-strategy.fixed-delay.delay": "10 ms",
        },
    )
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.address)
        .set_topics(topic)
        .set_group_id(name)
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(target)
        .set_key_serialization_schema(SimpleStringSchema())
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.address)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(name)
        .build()
    )
    stream = environment.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "numbers")
    (
        stream.map(Deadly(kills, directory))
        .key_by(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .process(CountOfWindow(), Types.STRING())
        .sink_to(sink)
    )
    environment.execute(name)
    assert kafka.committed(name, topic) == dict.fromkeys(range(2), records // 2)
    expected = expected_windows(records)
    return sorted(kafka.values(target, at_least=len(expected))), expected


def test_windows_come_out_once_though_a_worker_is_killed_and_the_broker_restarted(env, kafka, tmp_path):
    found, expected = run_windows(
        env, kafka, tmp_path, records=1000, kills={300}, restarts={2}, max_records=150
    )

    assert found == expected


def test_workers_write_what_is_too_much_for_the_driver(env, kafka, tmp_path, monkeypatch):
    def refuse(*arguments: Any) -> None:
        raise AssertionError("large shares are written by workers")

    monkeypatch.setattr(TransactionalWriter, "write", refuse)  # in this process, which is the driver's
    target = kafka.create_topic(2)
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(target)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.address)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(target)
        .build()
    )
    options = {
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
    }
    environment = env(parallelism=2, max_records=2_000, options=options)
    numbers = environment.from_source(
        NumberSequenceSource(0, 7_999), WatermarkStrategy.no_watermarks(), "numbers"
    )
    numbers.map(lambda number: f"{number:>100}").sink_to(sink).uid("copies")
    environment.execute(target)
    assert sorted(map(int, kafka.values(target, at_least=8_000))) == list(range(8_000))
    groups = [group.group_id for group in kafka.admin().list_consumer_groups().result(20).valid]
    assert len({group for group in groups if group.startswith(f"{target}-")}) == 2


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_windows_come_out_once_whatever_is_killed(env, kafka, tmp_path, seed):
    rng = random.Random(seed)

    found, expected = run_windows(
        env,
        kafka,
        tmp_path,
        records=4000,
        kills=set(rng.sample(range(4000), 6)),
        restarts=set(rng.sample(range(2, 20), 4)),
        max_records=150,
    )

    assert found == expected


def test_records_that_cannot_be_read_go_to_a_side_output_and_are_counted(env, kafka):
    topic, target = kafka.create_topic(1), kafka.create_topic(1)
    kafka.produce(topic, ['{"n": 1}', "oops", '{"n": 2}'], 0)
    tag = OutputTag("bad")
    row_type = Types.ROW_NAMED(["n"], [Types.INT()])
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.address)
        .set_topics(topic)
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(row_type).build())
        .set_dead_letter_tag(tag)
        .build()
    )
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(target)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.address).set_record_serializer(serializer)
    sink = builder.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).build()
    environment = env(parallelism=1)
    stream = environment.from_source(source, WatermarkStrategy.no_watermarks(), "rows")

    stream.map(lambda row: json.dumps(["row", row.n])).sink_to(sink)
    letters = stream.get_side_output(tag)
    letters.map(lambda it: json.dumps(["bad", it.data.decode(), it.position])).sink_to(sink)
    client = environment.execute_async("dead-letters")
    client.get_job_execution_result().result()

    assert sorted(map(json.loads, kafka.values(target))) == [
        ["bad", "oops", f"topic {topic}, partition 0, offset 1"],
        *(["row", 1], ["row", 2]),
    ]
    reports = [report for epoch in RECORDER.of(client) for report in epoch.reports]
    errors = [
        each.increment
        for report in reports
        for metrics in report.user_metrics.values()
        for name, each in metrics.items()
        if name.name == "numRecordsInErrors"
    ]
    assert sum(errors) == 1


def test_the_example_counts_clicks_per_minute(env, kafka, monkeypatch):
    prefix = kafka.create_topic(2)
    targets = [kafka.create_topic(1, f"{prefix}-{name}") for name in ("per-minute", "unreadable")]
    clicks = [("ann", "12:00:01"), ("bob", "12:00:30"), ("ann", "12:00:59"), ("ann", "12:01:00")]
    for user, at in clicks:
        kafka.produce(prefix, [json.dumps({"user": user, "at": f"2024-05-01T{at}Z"})], len(user) % 2)
    kafka.produce(prefix, ["what?"], 0)
    monkeypatch.setattr(
        "sys.argv", ["kafka_windows.py", "--servers", kafka.address, "--prefix", prefix, "--bounded"]
    )

    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "kafka_windows.py"), run_name="__main__")

    assert sorted(kafka.values(targets[0])) == [
        '{"user":"ann","minute":"2024-05-01T12:00:00Z","clicks":2}',
        '{"user":"ann","minute":"2024-05-01T12:01:00Z","clicks":1}',
        '{"user":"bob","minute":"2024-05-01T12:00:00Z","clicks":1}',
    ]
    [unreadable] = kafka.values(targets[1])
    assert unreadable.startswith(f"topic {prefix}, partition 0, offset 0: expected JSON")


def source_metrics(client: Any) -> dict[str, int]:
    """Return what the subtasks of a Kafka source count together, and where their gauges stand at the end."""
    counts: Counter[str] = Counter()
    gauges: dict[tuple[str, int], int] = {}
    for report in (report for epoch in RECORDER.of(client) for report in epoch.reports):
        for metrics in report.user_metrics.values():
            if MetricName("pendingRecords") not in metrics:
                continue
            for name, each in metrics.items():
                if isinstance(each, CounterReport):
                    counts[name.dotted] += each.increment
                elif not name.name.startswith(("commit", "current")) or name.name == "currentOffset":
                    gauges[name.dotted, report.subtask.subtask] = each.value
    return {**counts, **{name: value for (name, _), value in sorted(gauges.items())}}


@pytest.mark.timeout(300)
def test_tables_of_topics_and_of_a_database_are_read_and_written_in_sql(env, kafka, tmp_path):
    clicks, counts = kafka.create_topic(2), kafka.create_topic(1)
    for number in range(40):
        value = {"user": number % 3, "at": f"2024-05-01 12:00:{number:02}", "place": {"x": number}}
        kafka.produce(clicks, [json.dumps(value)], number % 2)
    with closing(sqlite3.connect(tmp_path / "users.db")) as database:
        database.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
        database.execute("INSERT INTO users VALUES (0, 'ann'), (1, 'bob'), (2, 'eve')")
        database.commit()
    t_env = StreamTableEnvironment.create(env(max_records=12))
    of_kafka = f"'connector' = 'kafka', 'format' = 'json', 'properties.bootstrap.servers' = '{kafka.address}'"
    t_env.execute_sql(
        "CREATE TABLE clicks (`user` BIGINT, `at` TIMESTAMP(3), place ROW<x INT>, "
        "`partition` INT METADATA VIRTUAL, `offset` BIGINT METADATA VIRTUAL, "
        "WATERMARK FOR `at` AS `at` - INTERVAL '2' SECOND) "
        f"WITH ({of_kafka}, 'topic' = '{clicks}', 'scan.startup.mode' = 'earliest-offset', "
        "'scan.bounded.mode' = 'latest-offset')"
    )
    t_env.execute_sql(
        "CREATE TABLE counts (begun TIMESTAMP(3), clicks BIGINT, x BIGINT) "
        f"WITH ({of_kafka}, 'topic' = '{counts}', 'key.format' = 'json', 'key.fields' = 'begun', "
        f"'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{counts}')"
    )
    t_env.execute_sql(
        "CREATE TABLE users (id BIGINT, name STRING) WITH ('connector' = 'jdbc', 'table-name' = 'users', "
        f"'url' = 'jdbc:sqlite:{tmp_path}/users.db')"
    )

    inserted = t_env.execute_sql(
        "INSERT INTO counts SELECT window_start, COUNT(*), SUM(CAST(place.x AS BIGINT)) FROM "
        "TUMBLE(TABLE clicks, DESCRIPTOR(`at`), INTERVAL '10' SECOND) GROUP BY window_start, window_end"
    )
    inserted.wait()
    [joined] = run_together(
        t_env,
        [
            "SELECT name, COUNT(*), MAX(`offset`) FROM clicks JOIN users ON `user` = id "
            "WHERE `partition` = 1 GROUP BY name"
        ],
    )

    windows = [(message.key(), json.loads(message.value())) for message in kafka.messages(counts)]
    begun = [f"2024-05-01 12:00:{second:02}" for second in range(0, 40, 10)]
    assert sorted((value["begun"], value["clicks"], value["x"]) for _, value in windows) == [
        (at, 10, sum(range(10 * number, 10 * number + 10))) for number, at in enumerate(begun)
    ]
    assert all(json.loads(key) == {"begun": value["begun"]} for key, value in windows)
    assert source_metrics(inserted.get_job_client()) == {
        "numRecordsIn": 40,
        "numRecordsOut": 40,
        "numRecordsInErrors": 0,
        "pendingRecords": 0,
        "KafkaSourceReader.KafkaConsumer.records-lag-max": 0,
        f"KafkaSourceReader.topic.{clicks}.partition.0.currentOffset": 19,
        f"KafkaSourceReader.topic.{clicks}.partition.1.currentOffset": 19,
    }
    odd = range(1, 40, 2)
    assert result_of(joined) == {
        (name, len([n for n in odd if n % 3 == user]), max(n for n in odd if n % 3 == user) // 2): 1
        for user, name in enumerate(["ann", "bob", "eve"])
    }
