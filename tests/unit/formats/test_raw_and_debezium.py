"""Single values as bytes, and the change events of databases."""

from __future__ import annotations

import json
import pickle
import struct

import pytest

from headrace.common.typeinfo import Types
from headrace.common.types import Row, RowKind, changelog_text
from headrace.errors import FormatError, JobDefinitionError
from headrace.formats.debezium import DebeziumJsonDeserializationSchema, DebeziumJsonSerializationSchema
from headrace.formats.raw import RawDeserializationSchema, RawSerializationSchema

ITEM = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])


@pytest.mark.parametrize("endianness", ["big-endian", "little-endian"])
@pytest.mark.parametrize(
    ("type_info", "value", "code"),
    [
        (Types.BOOLEAN(), True, "?"),
        (Types.BYTE(), -3, "b"),
        (Types.SHORT(), -300, "h"),
        (Types.INT(), 70_000, "i"),
        (Types.LONG(), 2**40, "q"),
        (Types.FLOAT(), 1.5, "f"),
        (Types.DOUBLE(), 0.1, "d"),
    ],
)
def test_numbers_are_as_wide_as_their_type(type_info, value, code, endianness):
    data = struct.pack((">" if endianness == "big-endian" else "<") + code, value)
    read = pickle.loads(pickle.dumps(RawDeserializationSchema(type_info, endianness=endianness)))

    assert RawSerializationSchema(type_info, endianness=endianness).serialize(value) == data
    assert read.deserialize(data) == value
    with pytest.raises(FormatError, match="bytes"):
        read.deserialize(data + b"x")


def test_texts_have_a_charset_and_bytes_are_as_they_are():
    assert RawDeserializationSchema(Types.STRING(), charset="latin-1").deserialize(b"\xfc") == "ü"
    assert RawSerializationSchema(Types.STRING(), charset="latin-1").serialize("ü") == b"\xfc"
    assert RawDeserializationSchema(Types.PRIMITIVE_ARRAY(Types.BYTE())).deserialize(b"\xfc") == b"\xfc"
    with pytest.raises(FormatError, match="UTF-8"):
        RawDeserializationSchema(Types.STRING()).deserialize(b"\xfc")
    assert RawDeserializationSchema(Types.STRING(), ignore_parse_errors=True).deserialize(b"\xfc") is None


def test_a_row_of_one_field_is_its_field():
    row_type = Types.ROW_NAMED(["line"], [Types.STRING()])

    row = RawDeserializationSchema(row_type).deserialize(b"a")

    assert (row, row.line) == (Row("a"), "a")
    assert RawSerializationSchema(row_type).serialize(Row("a")) == b"a"


@pytest.mark.parametrize("type_info", [ITEM, Types.SQL_DATE(), Types.OBJECT_ARRAY(Types.INT())])
def test_types_without_a_raw_form_are_refused(type_info):
    with pytest.raises(JobDefinitionError, match="raw"):
        RawDeserializationSchema(type_info)


def event(before, after, op):
    return json.dumps(
        {"before": before, "after": after, "op": op, "source": {"db": "shop"}, "ts_ms": 1}
    ).encode()


OLD, NEW = {"id": 1, "name": "old"}, {"id": 1, "name": "new"}


@pytest.mark.parametrize(
    ("message", "rows"),
    [
        (event(None, NEW, "c"), ["+I[1, new]"]),
        (event(None, NEW, "r"), ["+I[1, new]"]),
        (event(OLD, NEW, "u"), ["-U[1, old]", "+U[1, new]"]),
        (event(OLD, None, "d"), ["-D[1, old]"]),
        (b"", []),
    ],
)
def test_an_event_becomes_rows_with_kinds(message, rows):
    schema = pickle.loads(pickle.dumps(DebeziumJsonDeserializationSchema(ITEM)))

    assert list(map(changelog_text, schema.deserialize(message))) == rows


def test_messages_may_carry_their_schema():
    message = json.dumps(
        {"schema": {"type": "struct"}, "payload": json.loads(event(None, NEW, "c"))}
    ).encode()

    assert DebeziumJsonDeserializationSchema(ITEM, schema_include=True).deserialize(message) == [
        Row(1, "new")
    ]
    with pytest.raises(FormatError, match="before, after and op") as caught:
        DebeziumJsonDeserializationSchema(ITEM).deserialize(message)
    assert "schema_include" in caught.value.hint


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (event(None, NEW, "u"), '"before" field'),
        (event(OLD, None, "c"), '"after" field'),
        (event(OLD, NEW, "x"), "c, r, u or d"),
        (event(None, {"id": "one"}, "c"), "field 'id'"),
        (b"[]", "a JSON object"),
        (b"{", "expected JSON"),
    ],
)
def test_incomplete_events_are_refused_or_skipped(message, problem):
    with pytest.raises(FormatError, match=problem):
        DebeziumJsonDeserializationSchema(ITEM).deserialize(message)
    # A field that is wrong is None, as in Flink; what is not an event is left out.
    expected = [Row(None, None)] if problem == "field 'id'" else []
    assert DebeziumJsonDeserializationSchema(ITEM, ignore_parse_errors=True).deserialize(message) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (RowKind.INSERT, {"before": None, "after": NEW, "op": "c"}),
        (RowKind.UPDATE_AFTER, {"before": None, "after": NEW, "op": "c"}),
        (RowKind.UPDATE_BEFORE, {"before": NEW, "after": None, "op": "d"}),
        (RowKind.DELETE, {"before": NEW, "after": None, "op": "d"}),
    ],
)
def test_rows_are_written_as_creations_and_deletions(kind, expected):
    schema = pickle.loads(pickle.dumps(DebeziumJsonSerializationSchema(ITEM)))

    assert json.loads(schema.serialize(Row.of_kind(kind, 1, "new"))) == expected
