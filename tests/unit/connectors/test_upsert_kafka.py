"""Tables of Kafka whose rows change: upserts by key, change events, and options that are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headrace.catalog.objects import CatalogTable, MetadataColumn, PhysicalColumn, PrimaryKey
from headrace.common.changelog import ALL, INSERT_ONLY
from headrace.common.types import Row, RowKind
from headrace.config.table_options import TableOptions
from headrace.connectors.base import SinkWriter
from headrace.connectors.kafka import KafkaSink, KafkaSource
from headrace.connectors.kafka._reducing import ReducingWriter
from headrace.connectors.kafka.factory import KafkaFactory
from headrace.connectors.kafka.records import KafkaConsumerRecord
from headrace.connectors.kafka.upsert import UpsertKafkaFactory
from headrace.connectors.tables import TableRequest
from headrace.elements import Batch
from headrace.errors import HeadraceError
from headrace.types import DataTypes

COLUMNS = (
    PhysicalColumn("page", DataTypes.STRING().not_null()),
    PhysicalColumn("visits", DataTypes.BIGINT()),
)
UPSERT = {
    "connector": "upsert-kafka",
    "topic": "t",
    "properties.bootstrap.servers": "localhost:1",
    "key.format": "json",
    "value.format": "json",
}
EVENTS = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "localhost:1",
    "scan.startup.mode": "earliest-offset",
    "value.format": "debezium-json",
}


def request(options: dict[str, str], *more: Any, key: str | None = "page") -> TableRequest:
    primary = None if key is None else PrimaryKey("pk", (key,))
    table = CatalogTable((*COLUMNS, *more), options, primary_key=primary)
    return TableRequest("t", table, TableOptions("t", options))


def rows(source: Any, key: str | None, value: str | None) -> list[str]:
    assert isinstance(source, KafkaSource)
    data = [None if each is None else each.encode() for each in (key, value)]
    record = KafkaConsumerRecord(
        topic="t", partition=0, offset=7, key=data[0], value=data[1], timestamp=1_000, headers=()
    )
    found = source.deserializer.deserialize(record)
    return [f"{row.get_row_kind()} {list(row)}" if isinstance(row, Row) else str(row) for row in found]


def written(sink: Any, row: Row) -> tuple[Any, Any]:
    assert isinstance(sink, KafkaSink)
    record = sink.serializer.to_record(row, None, lambda topic: 3)
    return (
        None if record.key is None else json.loads(record.key),
        None if record.value is None else json.loads(record.value),
    )


def test_a_record_replaces_the_row_of_its_key_and_a_tombstone_deletes_it() -> None:
    asked = request(UPSERT)
    source = UpsertKafkaFactory().source(asked)
    asked.options.check()
    assert rows(source, '{"page": "a"}', '{"page": "b", "visits": 3}') == ["+U ['a', 3]"]
    assert rows(source, '{"page": "a"}', None) == ["-D ['a', None]"]
    assert rows(source, None, None) == []
    assert str(UpsertKafkaFactory().mode(asked)) == "[UA,D]"


def test_a_deleted_row_is_written_as_a_tombstone() -> None:
    asked = request(UPSERT)
    sink = UpsertKafkaFactory().sink(asked)
    asked.options.check()
    assert written(sink, Row("a", 3)) == ({"page": "a"}, {"page": "a", "visits": 3})
    assert written(sink, Row.of_kind(RowKind.UPDATE_AFTER, "a", 4))[1] == {"page": "a", "visits": 4}
    assert written(sink, Row.of_kind(RowKind.DELETE, "a", 4)) == ({"page": "a"}, None)


def test_a_buffer_keeps_the_last_row_of_each_key() -> None:
    sent: list[str] = []

    class Recorder(SinkWriter):
        def write(self, value: Any, timestamp: int | None) -> None:
            sent.append(f"{value.get_row_kind()} {list(value)} @{timestamp}")

        def prepare_commit(self) -> list[str]:
            return ["done"]

    flush = {"sink.buffer-flush.max-rows": "3", "sink.buffer-flush.interval": "1 h"}
    sink = UpsertKafkaFactory().sink(request({**UPSERT, **flush}))
    assert isinstance(sink, KafkaSink)
    assert sink.flush_mode is not None
    assert sink.waits_for_barriers
    writer = ReducingWriter(Recorder(), sink.flush_mode)
    writer.write_batch(Batch([Row("a", 1), Row("b", 1), Row("a", 2)], [1, 2, 3]))
    writer.write_batch(Batch([Row.of_kind(RowKind.DELETE, "b", 1)]))
    assert sent == []
    writer.write_batch(Batch([Row("c", 1)]))
    assert sent == ["+U ['a', 2] @3", "-D ['b', 1] @None", "+U ['c', 1] @None"], "three keys fill it"
    writer.write_batch(Batch([Row("d", 1)]))
    assert writer.prepare_commit() == ["done"]
    assert sent[3:] == ["+U ['d', 1] @None"], "a checkpoint empties it"
    hurried = ReducingWriter(Recorder(), replace(sink.flush_mode, interval_s=0))
    hurried.write_batch(Batch([Row("e", 1), Row("e", 2)]))
    assert sent[4:] == ["+U ['e', 2] @None"], "time empties it"
    hurried.write(Row("f", 1), None)
    hurried.abort()
    hurried.prepare_commit()
    assert len(sent) == 5, "what a failed epoch wrote is forgotten"


def test_upserts_are_read_from_all_topics_of_a_pattern() -> None:
    options: dict[str, str] = {**UPSERT, "topic-pattern": "clicks-.*"}
    del options["topic"]
    options["scan.topic-partition-discovery.interval"] = "7 s"
    asked = request(options)
    source = UpsertKafkaFactory().source(asked)
    asked.options.check()
    assert isinstance(source, KafkaSource)
    assert source.subscription.pattern == "clicks-.*"
    assert source.discovery_interval_s == 7


def test_the_value_may_be_without_the_key() -> None:
    options = {**UPSERT, "value.fields-include": "EXCEPT_KEY", "key.fields-prefix": "pa"}
    assert written(UpsertKafkaFactory().sink(request(options)), Row("a", 3)) == ({"ge": "a"}, {"visits": 3})
    source = UpsertKafkaFactory().source(request(options))
    assert rows(source, '{"ge": "a"}', '{"visits": 5}') == ["+U ['a', 5]"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"key.fields": "page"}, "the primary key"),
        ({"value.format": "debezium-json"}, "a format of rows"),
        ({"key.format": "canal-json"}, "a format of rows"),
        ({"sink.buffer-flush.max-rows": "100"}, "must both be greater than zero, or neither"),
        ({"sink.buffer-flush.interval": "1s"}, "must both be greater than zero, or neither"),
        ({"sink.parallelism": "3"}, "one parallelism"),
        ({"sink.delivery-guarantee": "exactly-once"}, "sink.transactional-id-prefix"),
        ({"scan.startup.mode": "latest-offset"}, "has no option 'scan.startup.mode'"),
        ({"topic": "a;b"}, "rows can go to several topics, and no column says to which"),
        ({"topic-pattern": "a.*"}, "give either 'topic' or 'topic-pattern'"),
    ],
)
def test_options_of_upserts_that_cannot_be_honoured_are_refused(
    options: dict[str, str], problem: str
) -> None:
    asked = request({**UPSERT, **options})
    with pytest.raises(HeadraceError, match=problem):
        UpsertKafkaFactory().sink(asked)
        asked.options.check()


def test_upserts_need_a_primary_key() -> None:
    with pytest.raises(HeadraceError, match="primary key"):
        UpsertKafkaFactory().source(request(UPSERT, key=None))


def test_change_events_are_rows_with_kinds_and_metadata() -> None:
    asked = request(
        EVENTS,
        MetadataColumn("origin", DataTypes.STRING(), "value.source.table", True),
        MetadataColumn("offset", DataTypes.BIGINT(), None, True),
        key=None,
    )
    assert KafkaFactory().mode(asked) == ALL
    assert KafkaFactory().ability(asked.table).accepts == ALL
    source = KafkaFactory().source(asked)
    asked.options.check()
    event = {
        "before": {"page": "a", "visits": 1},
        "after": {"page": "a"},
        "op": "u",
        "source": {"table": "p"},
    }
    assert rows(source, None, json.dumps(event)) == ["-U ['a', 1, 'p', 7]", "+U ['a', None, 'p', 7]"]
    assert rows(source, None, None) == []


def test_change_events_are_written_by_the_kind_of_a_row() -> None:
    sink = KafkaFactory().sink(request(EVENTS, key=None))
    assert written(sink, Row.of_kind(RowKind.UPDATE_BEFORE, "a", 3))[1] == {
        "before": {"page": "a", "visits": 3},
        "after": None,
        "op": "d",
    }


def test_tables_of_plain_rows_take_new_rows_only() -> None:
    asked = request({**EVENTS, "value.format": "json"}, key=None)
    assert KafkaFactory().mode(asked) == INSERT_ONLY
    assert KafkaFactory().ability(asked.table).accepts == INSERT_ONLY


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (MetadataColumn("m", DataTypes.STRING(), "value.nothing", True), "no metadata 'value.nothing'"),
        (MetadataColumn("m", DataTypes.INT(), "value.source.table", True), "is INT, but metadata"),
    ],
)
def test_metadata_that_a_format_does_not_have_is_refused(column: MetadataColumn, problem: str) -> None:
    with pytest.raises(HeadraceError, match=problem):
        KafkaFactory().source(request(EVENTS, column, key=None))


def test_records_go_to_one_partition_after_the_other() -> None:
    options = {**EVENTS, "value.format": "json", "sink.partitioner": "round-robin"}
    sink = KafkaFactory().sink(request(options, key=None))
    assert isinstance(sink, KafkaSink)
    found = [sink.serializer.to_record(Row("a", 1), None, lambda topic: 3).partition for _ in range(4)]
    assert found == [0, 1, 2, 0]
    first = [
        sink.serializer.in_subtask(1, epoch).to_record(Row("a", 1), None, lambda topic: 3).partition
        for epoch in range(4)
    ]
    assert first == [1, 2, 0, 1], "epochs of one record go round, too"


def test_each_subtask_writes_to_one_partition() -> None:
    options = {**EVENTS, "value.format": "json", "sink.partitioner": "fixed"}
    sink = KafkaFactory().sink(request(options, key=None))
    assert isinstance(sink, KafkaSink)
    found = [
        sink.serializer.in_subtask(subtask, 7).to_record(Row("a", 1), None, lambda topic: 3).partition
        for subtask in (0, 4, 4, 2)
    ]
    assert found == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"sink.partitioner": "org.example.Mine"}, "classes in Java"),
        (
            {"sink.partitioner": "round-robin", "key.fields": "page", "key.format": "json"},
            "cannot be used with 'key.fields'",
        ),
        ({"scan.parallelism": "2"}, "one parallelism"),
        ({"sink.transaction-naming-strategy": "pooling"}, "one transactional id"),
    ],
)
def test_options_of_kafka_that_cannot_be_honoured_are_refused(options: dict[str, str], problem: str) -> None:
    asked = request({**EVENTS, **options}, key=None)
    with pytest.raises(HeadraceError, match=problem):
        KafkaFactory().sink(asked)
        asked.options.check()
