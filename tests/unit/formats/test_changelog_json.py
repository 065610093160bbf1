"""Change events of databases in JSON: which rows they are, what is written, and what is refused."""

from __future__ import annotations

import datetime
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.common.types import Row, RowKind
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError, SqlValidationError, UnsupportedFeatureError
from headrace.formats.canal import CanalJsonFormat
from headrace.formats.changelog_json import ChangelogJsonFormat
from headrace.formats.debezium import DebeziumJsonFormat
from headrace.formats.maxwell import MaxwellJsonFormat
from headrace.formats.ogg import OggJsonFormat
from headrace.formats.tables import ChangelogFormat, message_format
from headrace.types import DataTypes

TYPE = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("name", DataTypes.STRING())])
WIDE = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.INT()),
        DataTypes.FIELD("name", DataTypes.STRING()),
        DataTypes.FIELD("weight", DataTypes.DOUBLE()),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
    ]
)
#: What Flink 2.3 reads and writes with these formats, as tables with 'connector' = 'filesystem'.
FLINK = json.loads(Path(__file__).with_name("flink_changelogs.json").read_text(encoding="utf-8"))
FORMATS: dict[str, type[ChangelogJsonFormat]] = {
    "debezium-json": DebeziumJsonFormat,
    "canal-json": CanalJsonFormat,
    "maxwell-json": MaxwellJsonFormat,
    "ogg-json": OggJsonFormat,
}


def made(name: str, **options: str) -> ChangelogJsonFormat:
    given = {f"{name}.{key.replace('__', '.').replace('_', '-')}": value for key, value in options.items()}
    found = message_format(TableOptions("t", {"format": name, **given}), "format")
    assert isinstance(found, FORMATS[name])
    assert isinstance(found, ChangelogFormat)
    return found


def shown(rows: list[Row]) -> list[str]:
    return [f"{row.get_row_kind()} {list(row)}" for row in rows]


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_is_read_again(name: str) -> None:
    table = made(name)
    writer = pickle.loads(pickle.dumps(table.writer(TYPE)))
    reader = pickle.loads(pickle.dumps(table.reader(TYPE)))
    for kind, expected in {
        RowKind.INSERT: "+I",
        RowKind.UPDATE_AFTER: "+I",
        RowKind.UPDATE_BEFORE: "-D",
        RowKind.DELETE: "-D",
    }.items():
        rows = reader.parse(writer.serialize(Row.of_kind(kind, 1, None)))
        assert shown(rows) == [f"{expected} [1, None]"]
    without = made(name, encode__ignore_null_fields="true").writer(TYPE)
    assert b"name" not in without.serialize(Row(1, None))


@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_those_that_flink_reads(name: str) -> None:
    recorded = FLINK["read"][name]
    reader = made(name).reader(WIDE)
    rows = [row for line in recorded["lines"] for row in reader.parse(line.encode())]
    assert [
        [str(row.get_row_kind()), *row[:3], row[3] and f"{row[3]:%Y-%m-%d %H:%M:%S.%f}"] for row in rows
    ] == recorded["rows"]


@pytest.mark.parametrize("name", FORMATS)
def test_messages_are_those_that_flink_writes(name: str) -> None:
    kinds = {each.short_string(): each for each in RowKind}
    writer = made(name).writer(WIDE)
    written = []
    for kind, *values, at in FLINK["read"]["debezium-json"]["rows"]:
        time = None if at is None else datetime.datetime.fromisoformat(at)
        written.append(writer.serialize(Row.of_kind(kinds[kind], *values, time)).decode())
    assert written == FLINK["written"][name]


@pytest.mark.parametrize("name", FORMATS)
def test_what_flink_refuses_is_refused(name: str) -> None:
    reader, lenient = made(name).reader(WIDE), made(name, ignore_parse_errors="true").reader(WIDE)
    rows = []
    for line in FLINK["refused"][name]:
        with pytest.raises(FormatError):
            reader.deserialize(line.encode())
        rows += lenient.deserialize(line.encode())
    assert [[str(row.get_row_kind()), *row] for row in rows] == FLINK["ignored"][name]


@pytest.mark.parametrize("name", FORMATS)
def test_tombstones_are_not_events(name: str) -> None:
    assert made(name).reader(TYPE).parse(b"") == []


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("canal-json", b'{"type": "X", "data": []}'),
        ("canal-json", b'{"type": "INSERT"}'),
        ("canal-json", b'{"type": "UPDATE", "data": [{"id": 1}]}'),
        ("canal-json", b'{"type": "UPDATE", "data": [{"id": 1}], "old": [null]}'),
        ("canal-json", b'{"type": "INSERT", "data": [1]}'),
        ("maxwell-json", b'{"type": "X"}'),
        ("maxwell-json", b'{"type": "insert"}'),
        ("maxwell-json", b'{"type": "update", "data": {"id": 1}}'),
        ("ogg-json", b'{"op_type": "T"}'),
        ("ogg-json", b'{"op_type": "U", "after": {"id": 1}}'),
        ("ogg-json", b'{"op_type": "D"}'),
        ("debezium-json", b'{"op": "x"}'),
        ("debezium-json", b'"text"'),
        ("debezium-json", b"\xff"),
    ],
)
def test_messages_that_are_not_events_are_refused_or_skipped(name: str, event: bytes) -> None:
    with pytest.raises(FormatError):
        made(name).reader(TYPE).deserialize(event)
    assert made(name, ignore_parse_errors="true").reader(TYPE).deserialize(event) == []


def test_an_update_of_canal_and_maxwell_names_the_fields_that_have_changed() -> None:
    event = b'{"type": "UPDATE", "data": [{"id": "1", "name": "b"}], "old": [{"name": null}]}'
    assert shown(made("canal-json").reader(TYPE).parse(event)) == ["-U [1, None]", "+U [1, 'b']"]
    event = b'{"type": "update", "data": {"id": 1, "name": "b"}, "old": {"id": 2}}'
    assert shown(made("maxwell-json").reader(TYPE).parse(event)) == ["-U [2, 'b']", "+U [1, 'b']"]


def test_canal_reads_only_databases_and_tables_that_are_included() -> None:
    reader = made("canal-json", database__include="shop|test", table__include="orders_.*").reader(TYPE)
    row = '{"type": "INSERT", "data": [{"id": 1}], "database": "%s", "table": "%s"}'
    assert len(reader.parse((row % ("shop", "orders_1")).encode())) == 1
    assert reader.parse((row % ("shop2", "orders_1")).encode()) == []
    assert reader.parse((row % ("shop", "orders")).encode()) == []
    with pytest.raises(SqlValidationError, match="regular expression"):
        made("canal-json", table__include="(").reader(TYPE)


TIME = datetime.datetime(2020, 5, 13, 15, 40, 6, 100_000)  # noqa: DTZ001 - of no zone


@pytest.mark.parametrize(
    ("name", "event", "expected"),
    [
        (
            "debezium-json",
            b'{"after": {"id": 1}, "op": "c", "ts_ms": 1589384406100, "source": {"db": "shop", "schema": "public", '
            b'"table": "t", "ts_ms": 1589384406100, "lsn": 7, "snapshot": null}}',
            {
                "schema": None,
                "ingestion-timestamp": TIME,
                "source.timestamp": TIME,
                "source.database": "shop",
                "source.schema": "public",
                "source.table": "t",
                "source.properties": {
                    "db": "shop",
                    "schema": "public",
                    "table": "t",
                    "ts_ms": "1589384406100",
                    "lsn": "7",
                    "snapshot": None,
                },
            },
        ),
        (
            "canal-json",
            b'{"data": [{"id": 1}], "type": "INSERT", "database": "shop", "table": "t", "sqlType": {"id": 4}, '
            b'"pkNames": ["id"], "ts": 1589384406100, "es": 1589384406100}',
            {
                "database": "shop",
                "table": "t",
                "sql-type": {"id": 4},
                "pk-names": ["id"],
                "ingestion-timestamp": TIME,
                "event-timestamp": TIME,
            },
        ),
        (
            "maxwell-json",
            b'{"data": {"id": 1}, "type": "insert", "database": "shop", "table": "t", "ts": 1589384406, '
            b'"primary_key_columns": ["id"]}',
            {
                "database": "shop",
                "table": "t",
                "primary-key-columns": ["id"],
                "ingestion-timestamp": TIME.replace(microsecond=0),
            },
        ),
        (
            "ogg-json",
            b'{"after": {"id": 1}, "op_type": "I", "table": "SHOP.T", "primary_keys": ["id"], '
            b'"op_ts": "2020-05-13 15:40:06.1", "current_ts": "2020-05-13T15:40:06.100000"}',
            {
                "table": "SHOP.T",
                "primary-keys": ["id"],
                "ingestion-timestamp": TIME,
                "event-timestamp": TIME,
            },
        ),
    ],
)
def test_metadata_follows_the_fields_of_a_row(name: str, event: bytes, expected: dict[str, Any]) -> None:
    table = made(name)
    assert list(table.metadata) == list(expected)
    [row] = table.reader(TYPE, list(expected)).parse(event)
    assert row[0] == 1
    assert dict(zip(expected, row[2:], strict=True)) == expected


def test_the_schema_of_debezium_is_metadata() -> None:
    reader = made("debezium-json", schema_include="true").reader(TYPE, ["schema", "source.table"])
    event = b'{"schema": {"type": "struct"}, "payload": {"after": {"id": 1}, "op": "c", "source": {"table": "t"}}}'
    [row] = reader.parse(event)
    assert list(row) == [1, None, '{"type":"struct"}', "t"]
    with pytest.raises(UnsupportedFeatureError, match="with their schema"):
        made("debezium-json", schema_include="true").writer(TYPE)


def test_wrong_metadata_is_an_error() -> None:
    reader = made("debezium-json").reader(TYPE, ["ingestion-timestamp"])
    with pytest.raises(FormatError, match="ingestion-timestamp"):
        reader.parse(b'{"after": {"id": 1}, "op": "c", "ts_ms": "late"}')


def test_options_that_cannot_be_honoured_are_refused() -> None:
    with pytest.raises(SqlValidationError, match="FAIL, DROP, LITERAL"):
        made("ogg-json", map_null_key__mode="KEEP").writer(TYPE)
    with pytest.raises(SqlValidationError, match="SQL or ISO-8601"):
        made("ogg-json", timestamp_format__standard="RFC").reader(TYPE)


def test_options_of_json_change_what_is_written() -> None:
    types = DataTypes.ROW(
        [
            DataTypes.FIELD("n", DataTypes.DECIMAL(20, 10)),
            DataTypes.FIELD("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
        ]
    )
    row = Row(Decimal("0.0000000270"), {None: 1})
    options = {"encode__decimal_as_plain_number": "true", "map_null_key__mode": "LITERAL"}
    written = made("debezium-json", **options).writer(types).serialize(row)
    assert written == b'{"before":null,"after":{"n":0.0000000270,"m":{"null":1}},"op":"c"}'
    options = {"encode__ignore_null_fields": "true", "map_null_key__mode": "DROP"}
    written = made("debezium-json", **options).writer(types).serialize(row)
    assert written == b'{"after":{"n":2.7E-8,"m":{}},"op":"c"}'
