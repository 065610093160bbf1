"""Rows as Avro; fastavro, used directly, is the oracle. The schema registry is one of the test's own."""
# ruff: noqa: DTZ001 - timestamps in rows have no zone

from __future__ import annotations

import datetime
import io
import json
import pickle
import struct
from decimal import Decimal

import pytest

from headrace.common.typeinfo import Types
from headrace.common.types import Row
from headrace.config.table_options import TableOptions
from headrace.errors import ConnectorError, FormatError, HeadraceError, JobDefinitionError
from headrace.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from headrace.formats.avro_confluent import (
    ConfluentRegistryAvroRowDeserializationSchema,
    ConfluentRegistryAvroRowSerializationSchema,
)
from headrace.formats.tables import RegistryFormat, message_format
from headrace.types import DataTypes

fastavro = pytest.importorskip("fastavro", reason="no fastavro: pip install 'headrace[avro]'")

PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"], "default": None}],
}
EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "long", "type": "long"},
        {"name": "double", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "fixed", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
        {"name": "date", "type": {"type": "int", "logicalType": "date"}},
        {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "people", "type": {"type": "array", "items": PERSON}},
        {"name": "by_name", "type": {"type": "map", "values": "Person"}},
        {"name": "boss", "type": ["null", "Person"]},
    ],
}


def written(schema, record) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), record)
    return stream.getvalue()


def reader(schema=PERSON, **options):
    return pickle.loads(
        pickle.dumps(AvroRowDeserializationSchema(avro_schema_string=json.dumps(schema), **options))
    )


def writer(schema=PERSON):
    return pickle.loads(pickle.dumps(AvroRowSerializationSchema(avro_schema_string=json.dumps(schema))))


def everything() -> Row:
    return Row(
        flag=True,
        long=2**40,
        double=0.5,
        raw=b"\x00",
        fixed=b"ab",
        color="BLUE",
        date=datetime.date(2020, 1, 2),
        time=datetime.time(3, 4, 5),
        at=datetime.datetime(2020, 1, 2, 3, 4, 5),
        price=Decimal("1.10"),
        tags=["a", "b"],
        people=[Row(name="x", age=1), Row(name="y", age=None)],
        by_name={"x": Row(name="x", age=1)},
        boss=Row(name="z", age=2),
    )


def test_a_record_is_a_row_and_back():
    data = written(PERSON, {"name": "a", "age": 3})

    row = reader().deserialize(data)

    assert (row, row.name) == (Row("a", 3), "a")
    assert writer().serialize(Row("a", 3)) == writer().serialize({"name": "a", "age": 3}) == data


def test_all_kinds_of_fields_come_through():
    row = everything()
    data = writer(EVERYTHING).serialize(row)

    assert data == written(
        EVERYTHING, {**row.as_dict(recursive=True), "at": row.at.replace(tzinfo=datetime.UTC)}
    )
    assert reader(EVERYTHING).deserialize(data) == row


def test_rows_without_names_inside_a_row_are_written_by_position():
    row = everything()
    row.people, row.boss = [Row("x", 1)], Row("z", 2)

    assert reader(EVERYTHING).deserialize(writer(EVERYTHING).serialize(row)) == row


def test_the_schema_gives_the_type():
    assert reader(PERSON).get_produced_type() == Types.ROW_NAMED(
        ["name", "age"], [Types.STRING(), Types.INT()]
    )


def test_a_record_that_contains_itself_is_read():
    schema = {
        "type": "record",
        "name": "Node",
        "fields": [
            {"name": "value", "type": "int"},
            {"name": "next", "type": ["null", "Node"], "default": None},
        ],
    }

    assert reader(schema).deserialize(
        written(schema, {"value": 1, "next": {"value": 2, "next": None}})
    ) == Row(1, Row(2, None))


def test_messages_of_an_older_schema_are_resolved():
    older = {**PERSON, "fields": PERSON["fields"][:1]}
    schema = reader(writer_schema_string=json.dumps(older))

    assert schema.deserialize(written(older, {"name": "a"})) == Row("a", None)


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x02a\x08", b"\x02a\x02\x02more"])
def test_invalid_records_are_refused_or_skipped(data):
    with pytest.raises(FormatError, match="avro"):
        reader().deserialize(data)
    assert reader(ignore_parse_errors=True).deserialize(data) is None


@pytest.mark.parametrize("row", [Row(1, 2), Row("a"), Row("a", "old"), 7])
def test_a_row_that_is_not_as_the_schema_says_is_not_written(row):
    with pytest.raises(FormatError):
        writer().serialize(row)


@pytest.mark.parametrize(
    "options",
    [{}, {"record_class": "com.shop.Person"}, {"avro_schema_string": "{"}, {"avro_schema_string": '"int"'}],
)
def test_without_the_schema_of_a_record_there_is_no_format(options):
    with pytest.raises(JobDefinitionError):
        AvroRowDeserializationSchema(**options)


# --- with a registry ------------------------------------------------------------------------------


def test_messages_name_their_schema_in_confluents_form(registry):
    state, url = registry
    write = pickle.loads(
        pickle.dumps(ConfluentRegistryAvroRowSerializationSchema("people-value", json.dumps(PERSON), url))
    )

    data = [write.serialize(Row(name, 1)) for name in "ab"]

    assert data[0] == struct.pack(">bI", 0, 1) + written(PERSON, {"name": "a", "age": 1})
    assert json.loads(state.schemas[0]) == PERSON
    assert state.requests == ["POST /subjects/people-value/versions"]


def test_each_message_is_read_by_the_schema_it_names(registry):
    state, url = registry
    older = {**PERSON, "fields": PERSON["fields"][:1]}
    state.schemas = [json.dumps(PERSON), json.dumps(older)]
    read = pickle.loads(pickle.dumps(ConfluentRegistryAvroRowDeserializationSchema(json.dumps(PERSON), url)))

    rows = [
        read.deserialize(struct.pack(">bI", 0, 1) + written(PERSON, {"name": "a", "age": 1})),
        read.deserialize(struct.pack(">bI", 0, 2) + written(older, {"name": "b"})),
        read.deserialize(struct.pack(">bI", 0, 2) + written(older, {"name": "c"})),
    ]

    assert rows == [Row("a", 1), Row("b", None), Row("c", None)]
    assert state.requests == ["GET /schemas/ids/1", "GET /schemas/ids/2"]


def test_a_message_without_a_schema_id_is_a_format_error_and_an_unknown_id_one_of_the_registry(registry):
    read = ConfluentRegistryAvroRowDeserializationSchema(json.dumps(PERSON), registry[1])

    with pytest.raises(FormatError, match="zero byte and a schema id"):
        read.deserialize(b"\x02a\x00")
    with pytest.raises(ConnectorError, match="schema 9: 404"):
        read.deserialize(struct.pack(">bI", 0, 9))


def test_credentials_are_sent_and_never_shown(registry):
    state, url = registry
    state.password = "me:s3cr3t"
    host = url.removeprefix("http://")
    right = ConfluentRegistryAvroRowSerializationSchema("s", json.dumps(PERSON), f"http://me:s3cr3t@{host}")
    wrong = ConfluentRegistryAvroRowSerializationSchema(
        "s", json.dumps(PERSON), url, basic_auth_user_info="me:wr0ng-s3cr3t"
    )

    assert right.serialize(Row("a", 1))
    with pytest.raises(ConnectorError, match="401") as caught:
        wrong.serialize(Row("a", 1))

    assert "s3cr3t" not in f"{caught.value}{wrong._address!r}{right._address!r}{right._address.url}"
    assert not caught.value.retryable


def test_a_registry_that_is_away_is_worth_another_try():
    read = ConfluentRegistryAvroRowDeserializationSchema(json.dumps(PERSON), "http://127.0.0.1:1")

    with pytest.raises(ConnectorError, match=r"127\.0\.0\.1:1") as caught:
        read.deserialize(struct.pack(">bI", 0, 1))
    assert caught.value.retryable


def test_tables_register_their_schema_under_the_subject_of_their_topic(registry):
    state, url = registry
    columns = DataTypes.ROW(
        [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("at", DataTypes.STRING())]
    )
    options = TableOptions("t", {"format": "avro-confluent", "avro-confluent.url": url})
    table = message_format(options, "format")
    assert isinstance(table, RegistryFormat)
    table.default_subject("clicks-value")

    message = table.writer(columns).serialize(Row(1, None))

    assert table.reader(columns).deserialize(message) == Row(1, None)
    assert state.requests == ["POST /subjects/clicks-value/versions", "GET /schemas/ids/1"]
    assert [field["name"] for field in json.loads(state.schemas[0])["fields"]] == ["id", "at"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "requires the option 'avro-confluent.url'"),
        ({"url": "http://h", "basic-auth.credentials-source": "SASL"}, "USER_INFO or URL"),
        ({"url": "http://h", "ssl.keystore.location": "/k"}, "cannot be honoured"),
        ({"url": "http://h"}, "requires the option 'avro-confluent.subject'"),
        ({"url": "http://h", "subject": "s", "schema": json.dumps(PERSON)}, "the fields id"),
    ],
)
def test_options_of_tables_with_a_registry_are_checked(options, problem):
    given = {"format": "avro-confluent", **{f"avro-confluent.{key}": value for key, value in options.items()}}
    columns = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT())])
    with pytest.raises(HeadraceError, match=problem):
        message_format(TableOptions("t", given), "format").writer(columns)
