"""Tables of Kafka, without a broker: what is made of options, of records and of rows."""

from __future__ import annotations

import datetime
import io
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from headrace.common.types import Row
from headrace.connectors.base import Boundedness, DeliveryGuarantee
from headrace.connectors.kafka import KafkaOffsetsInitializer, KafkaTopicPartition
from headrace.connectors.kafka._reader import _decoder_for
from headrace.connectors.kafka.records import KafkaConsumerRecord
from headrace.errors import ConnectorError, FormatError, HeadraceError, SqlValidationError
from headrace.formats.avro_types import avro_schema
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.table import DataTypes, EnvironmentSettings, TableEnvironment

pytest.importorskip("confluent_kafka", reason="no client of Kafka: pip install 'headrace[kafka]'")

BASE = {
    "connector": "kafka",
    "topic": "clicks",
    "properties.bootstrap.servers": "localhost:1",
    "scan.startup.mode": "earliest-offset",
    "format": "json",
}
AT = datetime.datetime.fromisoformat("2024-02-29 12:30:00.005")
AT_MS = 1_709_209_800_005


def table_environment(columns: str, options: dict[str, str | None]) -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    given = ", ".join(f"'{key}' = '{each}'" for key, each in (BASE | options).items() if each is not None)
    t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({given})")
    return t_env


def source(columns: str, **options: str | None) -> Any:
    t_env = table_environment(columns, {key.replace("__", "."): each for key, each in options.items()})
    jobs = t_env._jobs
    graph = jobs.job_graph(jobs.plan_query(t_env.from_path("t")._plan), "t")
    return pickle.loads(pickle.dumps(graph.vertices[0].head.declaration.source))


def sink(columns: str, values: str, **options: str | None) -> Any:
    t_env = table_environment(columns, {key.replace("__", "."): each for key, each in options.items()})
    jobs = t_env._jobs
    insert = t_env._bind_one(f"INSERT INTO t VALUES ({values})")
    graph = jobs.job_graph(jobs.plan_inserts([insert.sink]), "t")
    return pickle.loads(pickle.dumps(graph.vertices[-1].head.declaration.sink))


def record(value: bytes | None, key: bytes | None = None) -> KafkaConsumerRecord:
    headers = (("from", b"a"), ("from", b"b"))
    return KafkaConsumerRecord("clicks", 2, 17, key, value, AT_MS, headers)


def written(made: Any, row: Row) -> tuple[Any, ...]:
    found = made.serializer.to_record(row, None, lambda topic: 1)
    return found.topic, found.key, found.value, found.timestamp, dict(found.headers)


def test_values_keys_and_metadata_become_columns() -> None:
    made = source(
        "k_id BIGINT, name STRING, tags ARRAY<STRING>, place ROW<x INT, y INT>, "
        "`at` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', `partition` INT METADATA VIRTUAL, "
        "`offset` BIGINT METADATA VIRTUAL, topic STRING METADATA VIRTUAL, "
        "headers MAP<STRING, BYTES> METADATA",
        **{"key.format": "raw", "key.fields": "k_id", "key.fields-prefix": "k_"},
        **{"value.fields-include": "EXCEPT_KEY"},
    )
    value = b'{"name": "ann", "tags": ["a"], "place": {"x": 1, "y": 2}}'

    [row] = made.deserializer.deserialize(record(value, (7).to_bytes(8, "big")))

    assert row[:4] == (7, "ann", ["a"], {"x": 1, "y": 2})
    assert dict(zip(("at", "partition", "offset", "topic", "headers"), row[4:], strict=True)) == {
        **{"at": AT, "partition": 2, "offset": 17, "topic": "clicks"},
        "headers": [("from", b"b")],
    }
    assert made.deserializer.deserialize(record(None)) == ()


def test_csv_is_read_and_written_with_its_options() -> None:
    options = {"format": "csv", "csv.field-delimiter": "|", "csv.null-literal": "-"}

    [row] = source("a INT, b STRING", **options).deserializer.deserialize(record(b"1|-"))
    assert row == (1, None)
    made = sink("a INT, b STRING", "1, 'x'", **options)
    assert written(made, Row(1, None)) == ("clicks", None, b"1|-", None, {})


def test_avro_is_read_and_written_with_the_schema_of_the_columns() -> None:
    types = {
        **{"id": "BIGINT", "name": "STRING", "price": "DECIMAL(10, 2)", "d": "DATE", "t": "TIME(0)"},
        **{"ts": "TIMESTAMP(3)", "micros": "TIMESTAMP(6)", "tags": "ARRAY<STRING>"},
        **{"place": "ROW<x INT, y ROW<z DOUBLE>>", "b": "BYTES", "f": "FLOAT", "s": "SMALLINT"},
    }
    columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
    values = ", ".join(f"CAST(NULL AS {kind})" for kind in types.values())
    row = Row(
        *(7, "ann", Decimal("3.50"), AT.date(), datetime.time(8, 30), AT, AT.replace(microsecond=123456)),
        *(["a", None], {"x": 1, "y": {"z": 0.5}}, b"bytes", 0.5, 3),
    )

    _, _, value, _, _ = written(sink(columns, values, format="avro"), row)

    # What others read of the first field: records are one field after the other.
    schema = json.loads(avro_schema(DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT())])))
    assert fastavro.schemaless_reader(io.BytesIO(value), schema, None) == {"id": 7}
    [found] = source(columns, format="avro").deserializer.deserialize(record(value))
    assert found == tuple(row)


def test_protobuf_messages_are_read_and_written_by_a_descriptor_set(tmp_path: Path) -> None:
    descriptor_pb2: Any = pytest.importorskip("google.protobuf.descriptor_pb2")
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="a.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type="TYPE_INT32", label="LABEL_OPTIONAL")
    path = tmp_path / "shop.desc"
    path.write_bytes(files.SerializeToString())
    options = {
        "format": "protobuf",
        "protobuf.message-class-name": "shop.Order",
        "protobuf.descriptor-set": str(path),
    }
    _, _, value, _, _ = written(sink("id INT", "1", **options), Row(150))
    assert value == b"\x08\x96\x01"
    assert source("id INT", **options).deserializer.deserialize(record(value)) == [(150,)]


def test_parse_errors_fail_or_are_left_out() -> None:
    with pytest.raises(FormatError, match="JSON"):
        source("a INT").deserializer.deserialize(record(b"oops"))
    lenient = source("a INT", **{"json.ignore-parse-errors": "true"})
    assert list(lenient.deserializer.deserialize(record(b"oops"))) == []


@pytest.mark.parametrize("included", ["ALL", "EXCEPT_KEY"])
def test_keys_that_cannot_be_read_fail_or_are_left_out_as_their_own_format_says(included: str) -> None:
    key = {"format": None, "value.format": "json", "key.format": "json", "key.fields": "id"}
    key["value.fields-include"] = included
    wrong, right = record(b'{"id": 1, "a": 2}', b"oops"), record(b'{"id": 1, "a": 2}', b'{"id": 1}')
    for ignoring in ({}, {"value.json.ignore-parse-errors": "true"}):
        strict = source("id INT, a INT", **key, **ignoring).deserializer
        with pytest.raises(FormatError, match="JSON"):
            strict.deserialize(wrong)
        assert strict.deserialize(right) == [(1, 2)]
    lenient = source("id INT, a INT", **key, **{"key.json.ignore-parse-errors": "true"}).deserializer
    assert list(lenient.deserialize(wrong)) == []
    assert lenient.deserialize(right) == [(1, 2)]
    with pytest.raises(FormatError, match="JSON"):
        lenient.deserialize(record(b"oops", b'{"id": 1}'))


class Message:
    """A message as the client of Kafka delivers it."""

    def __init__(self, offset: int, value: bytes, time_ms: int = AT_MS) -> None:
        self._offset, self._value, self._time_ms = offset, value, time_ms

    def topic(self) -> str:
        return "clicks"

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return self._value

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, self._time_ms

    def leader_epoch(self) -> int:
        return 4


def decoded(made: Any, *messages: Message) -> tuple[list[Any], int]:
    """Return the rows of some messages, and how many of those were counted as bad."""
    metrics = InMemoryMetricGroup()
    batch = _decoder_for(made, metrics, None).decode(list(messages), KafkaTopicPartition("clicks", 2))
    return batch.values, metrics.counter("numRecordsInErrors").get_count()


BAD = [b"oops", b'{"a": "\xff"}', b"[" * 100_000, b'{"a": 1e99999999}', b'{"d": 99999.5}']


@pytest.mark.parametrize("bad", BAD)
def test_ignored_parse_errors_are_counted(bad: bytes) -> None:
    made = source("a INT, d DECIMAL(5, 2)", **{"json.ignore-parse-errors": "true"})

    rows, errors = decoded(made, Message(0, b'{"a": 1}'), Message(1, bad), Message(2, b'{"a": 2}'))

    assert [row for row in rows if row != (None, None)] == [(1, None), (2, None)]
    assert errors == 1


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_record_is_named_by_its_partition_and_offset(bad: bytes) -> None:
    with pytest.raises(FormatError, match=r"clicks.*2, offset 17: "):
        decoded(source("a INT, d DECIMAL(5, 2)"), Message(17, bad))


def test_the_term_of_the_leader_and_the_kind_of_a_time_are_metadata() -> None:
    made = source(
        "a INT, e INT METADATA FROM 'leader-epoch' VIRTUAL, k STRING METADATA FROM 'timestamp-type' VIRTUAL"
    )
    [row], _ = decoded(made, Message(1, b'{"a": 5}'))
    assert tuple(row) == (5, 4, "CreateTime")


def test_decimals_are_rounded_to_their_scale() -> None:
    rows, _ = decoded(source("d DECIMAL(5, 2)"), Message(0, b'{"d": 1.005}'), Message(1, b'{"d": 999.994}'))
    assert rows == [(Decimal("1.01"),), (Decimal("999.99"),)]


def test_a_time_of_a_record_that_no_timestamp_can_hold_is_named() -> None:
    made = source("a INT, ts TIMESTAMP(3) METADATA FROM 'timestamp'")
    with pytest.raises(FormatError, match="offset 3: metadata timestamp"):
        decoded(made, Message(3, b'{"a": 1}', 2**62))


def test_rows_become_records_with_key_time_and_headers() -> None:
    made = sink(
        "id BIGINT, name STRING, ts TIMESTAMP(3) METADATA FROM 'timestamp', "
        "headers MAP<STRING, BYTES> METADATA, `offset` BIGINT METADATA VIRTUAL",
        "1, 'a', TIMESTAMP '2024-02-29 12:30:00.005', CAST(NULL AS MAP<STRING, BYTES>)",
        **{"key.format": "json", "key.fields": "id", "sink.delivery-guarantee": "exactly-once"},
        **{"sink.transactional-id-prefix": "p", "properties.group.id": "readers"},
    )

    assert made.guarantee is DeliveryGuarantee.EXACTLY_ONCE
    assert written(made, Row(1, "a", AT, {"h": b"x"})) == (
        *("clicks", b'{"id":1}', b'{"id":1,"name":"a"}', AT_MS),
        {"h": b"x"},
    )


@pytest.mark.parametrize(
    ("options", "starting"),
    [
        ({}, KafkaOffsetsInitializer.earliest()),
        ({"scan.startup.mode": "latest-offset"}, KafkaOffsetsInitializer.latest()),
        ({"scan.startup.mode": "LATEST-offset"}, KafkaOffsetsInitializer.latest()),
        (
            {"scan.startup.mode": None, "properties.group.id": "g"},
            KafkaOffsetsInitializer.committed_offsets(),
        ),
        (
            {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "5"},
            KafkaOffsetsInitializer.timestamp(5),
        ),
        (
            {
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": "partition:0,offset:42;partition:1,offset:300",
            },
            KafkaOffsetsInitializer.offsets(
                {KafkaTopicPartition("clicks", 0): 42, KafkaTopicPartition("clicks", 1): 300}
            ),
        ),
    ],
)
def test_reading_begins_where_the_options_say(options: dict[str, str | None], starting: Any) -> None:
    made = source("a INT", **options)

    assert made.starting == starting
    assert made.boundedness is Boundedness.CONTINUOUS_UNBOUNDED


def test_a_table_may_end() -> None:
    made = source("a INT", **{"scan.bounded.mode": "latest-offset"})

    assert made.boundedness is Boundedness.BOUNDED
    assert made.stopping == KafkaOffsetsInitializer.latest()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"format": "xml"},
            "option 'format' must be one of avro, avro-confluent, .*raw; got 'xml'",
        ),
        ({"topic": None}, "give either 'topic' or 'topic-pattern'"),
        ({"properties.bootstrap.servers": None}, "requires the option 'properties.bootstrap.servers'"),
        ({"scan.startup.mode": None}, "which needs 'properties.group.id'"),
        ({"scan.startup.mode": "first"}, "option 'scan.startup.mode' must be one of earliest-offset"),
        ({"scan.startup.mode": "timestamp"}, "requires the option 'scan.startup.timestamp-millis'"),
        (
            {"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": "0:42"},
            "must be partitions with offsets such as 'partition:0,offset:42",
        ),
        (
            {
                "topic": "a;b",
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": "partition:0,offset:42",
            },
            "possible with one 'topic' only",
        ),
        (
            {"topic": None, "topic-pattern": "a.*", "scan.bounded.mode": "specific-offsets"},
            "possible with one 'topic' only",
        ),
        ({"scan.bounded.mode": "group-offsets"}, "or set 'scan.bounded.mode' = 'latest-offset'"),
        (
            {"scan.bounded.mode": "earliest-offset"},
            "option 'scan.bounded.mode' must be one of unbounded, latest",
        ),
        ({"topic": None, "topic-pattern": "a["}, "option 'topic-pattern' must be a regular expression"),
        ({"topic": " ; "}, "option 'topic' must be the name of a topic"),
        ({"key.format": "json"}, "'key.format' and 'key.fields' must be given together"),
        ({"key.format": "json", "key.fields": "b"}, "option 'key.fields' must be a list of columns"),
        ({"scan.startup.mod": "x"}, "has no option 'scan.startup.mod'"),
        ({"properties.max.poll.records": "5"}, "max.poll.records is not supported"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str | None], message: str) -> None:
    with pytest.raises(HeadraceError, match=message):
        source("a INT", **options)


def test_a_sink_that_cannot_be_is_refused() -> None:
    with pytest.raises(SqlValidationError, match=r"requires the option 'sink.transactional-id-prefix'"):
        sink("a INT", "1", **{"sink.delivery-guarantee": "exactly-once"})
    with pytest.raises(SqlValidationError, match="metadata 'offset' cannot be written to Kafka"):
        sink("a INT, `offset` BIGINT METADATA", "1, CAST(2 AS BIGINT)")
    with pytest.raises(
        SqlValidationError, match="rows can go to several topics, and no column says to which"
    ):
        sink("a INT", "1", topic="a;b")
    with pytest.raises(SqlValidationError, match="with the format 'json' cannot have a primary key"):
        sink("a INT, PRIMARY KEY (a) NOT ENFORCED", "1")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"topic": "clicks; views"}, "is one of clicks, views"),
        ({"topic": None, "topic-pattern": "clicks|vi.ws"}, r"matches 'clicks\|vi.ws'"),
    ],
)
def test_a_row_names_the_topic_it_is_written_to(options: dict[str, str | None], expected: str) -> None:
    made = sink("a INT, topic STRING METADATA", "1, 'clicks'", **options)

    assert [written(made, Row(1, topic))[0] for topic in ("views", "clicks")] == ["views", "clicks"]
    with pytest.raises(ConnectorError, match=f"{expected}; it names 'viewsx'") as refused:
        written(made, Row(1, "viewsx"))
    assert not refused.value.retryable
    with pytest.raises(ConnectorError, match="is NULL"):
        written(made, Row(1, None))


def test_one_topic_is_written_whatever_a_row_names() -> None:
    made = sink("a INT, topic STRING METADATA", "1, 'views'")
    assert written(made, Row(1, "views"))[0] == "clicks"
