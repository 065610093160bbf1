"""Garbage ends in the dead-letter output or in an error that says where it is, in every format.

A format reads a message as a record of its type or raises FormatError: it never crashes, never raises anything else,
and never gives a value that is not of the declared type.
"""

from __future__ import annotations

import copy
import datetime
import io
import json
import math
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import NoneType
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from headrace.common.serialization import DeserializationSchema, SimpleStringSchema
from headrace.common.time import Instant
from headrace.common.typeinfo import RowTypeInfo, Types
from headrace.common.types import Row
from headrace.connectors.base import ReaderContext
from headrace.connectors.file import FileSource, StreamFormat
from headrace.connectors.file.avro import AvroBulkFormat, AvroSchema
from headrace.connectors.file.avro_parquet import AvroParquetReaders
from headrace.connectors.file.csv import CsvReaderFormat, CsvSchema
from headrace.connectors.file.orc import OrcColumnarRowInputFormat
from headrace.connectors.file.parquet import ParquetColumnarRowInputFormat
from headrace.connectors.file.table import FileTableSource
from headrace.errors import ConnectorError, FormatError
from headrace.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from headrace.formats.avro_confluent import ConfluentRegistryAvroRowDeserializationSchema
from headrace.formats.canal import CanalJsonDeserializationSchema
from headrace.formats.changelog_json import ChangelogJsonDeserializationSchema
from headrace.formats.csv import CsvRowDeserializationSchema
from headrace.formats.dead_letter import DeadLetter, RecordDecoder
from headrace.formats.debezium import DebeziumJsonDeserializationSchema
from headrace.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from headrace.formats.maxwell import MaxwellJsonDeserializationSchema
from headrace.formats.ogg import OggJsonDeserializationSchema
from headrace.formats.protobuf import ProtobufRowDeserializationSchema, ProtobufRowSerializationSchema
from headrace.formats.protobuf_types import MessageDefinition
from headrace.formats.raw import RawDeserializationSchema
from headrace.metrics.metricbase import InMemoryCounter
from headrace.storage.search import InputPath
from headrace.types import DataTypes
from headrace.types.logical import ArrayType, DataType, LocalZonedTimestampType, MapType
from tests.contracts.garbage import ODD_VALUES, garbage, mutated, odd_json

descriptor_pb2: Any = pytest.importorskip("google.protobuf.descriptor_pb2")
text_format: Any = pytest.importorskip("google.protobuf.text_format")

SEED = 20260
#: Messages for each format, besides those that have a name.
COUNT = 400
LONG_COUNT = 100_000

_FIELDS: dict[str, Any] = {
    "text": Types.STRING(),
    "byte": Types.BYTE(),
    "short": Types.SHORT(),
    "int": Types.INT(),
    "long": Types.LONG(),
    "bigint": Types.BIG_INT(),
    "float": Types.FLOAT(),
    "double": Types.DOUBLE(),
    "decimal": Types.BIG_DEC(),
    "truth": Types.BOOLEAN(),
    "timestamp": Types.SQL_TIMESTAMP(),
    "date": Types.SQL_DATE(),
    "time": Types.SQL_TIME(),
    "instant": Types.INSTANT(),
    "bytes": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "array": Types.OBJECT_ARRAY(Types.INT()),
    "row": Types.ROW_NAMED(["x"], [Types.INT()]),
}
_NESTED: dict[str, Any] = {
    "map": Types.MAP(Types.STRING(), Types.LONG()),
    "untyped": Types.PICKLED_BYTE_ARRAY(),
}


def row_type(fields: dict[str, Any]) -> RowTypeInfo:
    return Types.ROW_NAMED(list(fields), list(fields.values()))


FLAT = row_type(_FIELDS)
ALL = row_type(_FIELDS | _NESTED)
RECORD = json.dumps(
    {
        "text": "aé", "byte": 1, "short": 2, "int": 1, "long": -5, "bigint": 12, "float": 0.5, "double": 1.5,
        "decimal": 1.25, "truth": True, "timestamp": "2020-01-01 12:00:00", "date": "2020-01-01", "time": "12:00:00",
        "instant": "2020-01-01T00:00:00Z", "bytes": "AQI=", "array": [1, 2], "row": {"x": 3}, "map": {"k": 1},
        "untyped": [{}],
    }
).encode()  # fmt: skip
LINE = (
    b"a,1,2,1,-5,12,0.5,1.5,1.25,true,2020-01-01 12:00:00,2020-01-01,12:00:00,2020-01-01T00:00:00Z,AB,1;2,3\n"
)
EVENT = b'{"before": null, "after": ' + RECORD + b', "op": "c"}'

AVRO = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "text", "type": "string"},
            {"name": "long", "type": "long"},
            {"name": "union", "type": ["null", "string", "int"]},
            {"name": "array", "type": {"type": "array", "items": "int"}},
            {"name": "doubles", "type": {"type": "map", "values": "double"}},
            {"name": "int", "type": "int"},
            {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
            {"name": "date", "type": {"type": "int", "logicalType": "date"}},
            {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
            {
                "name": "decimal",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            },
            {"name": "enum", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
            {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 4}},
            {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "next", "type": ["null", "R"]},
        ],
    }
)


def avro_message() -> bytes:
    noon = datetime.datetime(2020, 1, 1, 12)  # noqa: DTZ001 - rows have timestamps of no zone
    uuid = "12345678-1234-5678-1234-567812345678"
    row = Row(
        "a",
        2,
        "x",
        [1, 2],
        {"k": 1.0},
        7,
        noon,
        noon,
        noon.date(),
        noon.time(),
        Decimal("1.25"),
        "A",
        b"abcd",
        uuid,
        None,
    )
    return AvroRowSerializationSchema(avro_schema_string=AVRO).serialize(row)


def odd_lines() -> list[bytes]:
    columns = LINE.decode().rstrip("\n").split(",")
    values = [
        "1e999",
        "9" * 5000,
        "9223372036854775808",
        "128",
        "NaN",
        "sNaN",
        "1_0",
        "x;y",
        "\x00",
        "1" + "0" * 400,
    ]
    values += ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2020-02-30", "25:00"]
    changed = [[*columns[:at], value, *columns[at + 1 :]] for at in range(len(columns)) for value in values]
    odd = [b"", b"\x00", b"\xff", b'"', b'a"b', b"," * 100_000, LINE[:-1] + b"\r", b"a\rb", b"a\nb", LINE * 2]
    return [*odd, *(",".join(each).encode() for each in changed)]


def change_format(
    schema: type[ChangelogJsonDeserializationSchema], event: bytes, row: bytes
) -> tuple[Make, list[bytes], list[bytes]]:
    """Return how to make a format of changes, and messages: an event, and odd JSON in place of its rows."""
    odd = [event.replace(row, each) for each in odd_json(list(_FIELDS | _NESTED))]
    return lambda lenient: schema(ALL, ignore_parse_errors=lenient), [event], odd


class OneSchema:
    """A registry with a single schema, of the number 7."""

    def schema(self, number: int) -> str:
        if number != 7:
            raise FormatError(f"no schema {number}")
        return AVRO


def confluent_format(lenient: bool) -> DeserializationSchema:
    schema = ConfluentRegistryAvroRowDeserializationSchema(
        AVRO, "http://127.0.0.1:1", ignore_parse_errors=lenient
    )
    schema._registry = OneSchema()  # type: ignore[assignment]
    return schema


def protobuf_format(syntax: str) -> tuple[Make, list[bytes], list[bytes]]:
    """Return how to make a protobuf format, and messages of its type."""
    files = descriptor_pb2.FileDescriptorSet()
    text_format.Parse(f'name: "r.proto" syntax: "{syntax}" {PROTOBUF}', files.file.add())
    definition = MessageDefinition("R", files.SerializeToString())
    fields = {
        "int": DataTypes.INT(), "long": DataTypes.BIGINT(), "text": DataTypes.STRING(), "bytes": DataTypes.BYTES(),
        "double": DataTypes.DOUBLE(), "truth": DataTypes.BOOLEAN(), "array": DataTypes.ARRAY(DataTypes.INT()),
        "short": DataTypes.SMALLINT(), "byte": DataTypes.TINYINT(),
        "row": DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT())]),
    }  # fmt: skip
    row: Any = DataTypes.ROW([DataTypes.FIELD(name, kind) for name, kind in fields.items()])
    values = Row(1, -1, "aé", b"\xff", 0.5, True, [1, 2], 1, 1, Row(3))
    valid = ProtobufRowSerializationSchema(definition, row).serialize(values)
    odd = [
        b"\x1a\x01\xff",  # a text that is none
        b"\x40\x80\x80\x04",  # a number of the enum that no SMALLINT has
        b"\x48\x80\x01",  # and one that no TINYINT has
        b"\x52" * 10_000,
        valid * 100,
    ]
    return (
        lambda lenient: ProtobufRowDeserializationSchema(definition, row, ignore_parse_errors=lenient),
        [valid],
        odd,
    )


#: A message type in the form of descriptors.
PROTOBUF = """
enum_type { name: "E" value { name: "NONE" number: 0 } value { name: "ONE" number: 1 } }
message_type { name: "R"
  field { name: "int" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
  field { name: "long" number: 2 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "text" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "bytes" number: 4 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "double" number: 5 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "truth" number: 6 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "array" number: 7 type: TYPE_INT32 label: LABEL_REPEATED }
  field { name: "short" number: 8 type: TYPE_ENUM label: LABEL_OPTIONAL type_name: ".E" }
  field { name: "byte" number: 9 type: TYPE_ENUM label: LABEL_OPTIONAL type_name: ".E" }
  field { name: "row" number: 10 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".Inner" } }
message_type { name: "Inner" field { name: "x" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
"""
CANAL = (
    b'{"data": [' + RECORD + b'], "old": [{"int": 2}], "type": "UPDATE", "database": "d", "table": "t", '
    b'"sqlType": {"int": 4}, "pkNames": ["int"], "ts": 1, "es": 2}'
)
MAXWELL = (
    b'{"data": ' + RECORD + b', "old": {"int": 2}, "type": "update", "database": "d", "table": "t", '
    b'"primary_key_columns": ["int"], "ts": 1}'
)
OGG = (
    b'{"before": null, "after": ' + RECORD + b', "op_type": "I", "table": "t", "primary_keys": ["int"], '
    b'"current_ts": "2020-05-13T13:39:35.766000", "op_ts": "2020-05-13 15:40:06.000000"}'
)
DEBEZIUM = (
    b'{"before": null, "after": ' + RECORD + b', "op": "c", "ts_ms": 5, "schema": {}, '
    b'"source": {"ts_ms": 4, "db": "d", "schema": "s", "table": "t"}}'
)

Make = Callable[[bool], DeserializationSchema]
#: By name: how to make the format (lenient or not), messages that it reads, odd ones.
FORMATS: dict[str, tuple[Make, list[bytes], list[bytes]]] = {
    "json": (
        lambda lenient: JsonRowDeserializationSchema(ALL, ignore_parse_errors=lenient),
        [RECORD, b"\xef\xbb\xbf" + RECORD],
        odd_json(list(_FIELDS | _NESTED)),
    ),
    "json without decimals": (
        lambda lenient: JsonRowDeserializationSchema(
            row_type({"int": Types.INT(), "double": Types.DOUBLE()}), ignore_parse_errors=lenient
        ),
        [b'{"int": 1, "double": 1.5}'],
        odd_json(["int", "double"]),
    ),
    "debezium": (
        lambda lenient: DebeziumJsonDeserializationSchema(ALL, ignore_parse_errors=lenient),
        [EVENT],
        [b'{"after": ' + each + b', "op": "c"}' for each in odd_json(list(_FIELDS | _NESTED))],
    ),
    "canal": change_format(CanalJsonDeserializationSchema, CANAL, RECORD),
    "maxwell": change_format(MaxwellJsonDeserializationSchema, MAXWELL, RECORD),
    "ogg": change_format(OggJsonDeserializationSchema, OGG, RECORD),
    "csv": (
        lambda lenient: CsvRowDeserializationSchema(FLAT, ignore_parse_errors=lenient),
        [LINE, b"\xef\xbb\xbf" + LINE],
        odd_lines(),
    ),
    "avro": (
        lambda lenient: AvroRowDeserializationSchema(avro_schema_string=AVRO, ignore_parse_errors=lenient),
        [avro_message()],
        [b"", b"\x00", b"\xff" * 100, avro_message()[:-1] + b"\x02" * 100_000],
    ),
    "avro-confluent": (
        confluent_format,
        [b"\x00\x00\x00\x00\x07" + avro_message()],
        [b"", b"\x00" * 4, b"\x00" * 5, b"\x01" + b"\x00" * 20, b"\x00\x00\x00\x00\x07"],
    ),
    "protobuf": protobuf_format("proto3"),
    "protobuf 2": protobuf_format("proto2"),
    "raw text": (
        lambda lenient: RawDeserializationSchema(Types.STRING(), ignore_parse_errors=lenient),
        [b"abc"],
        [b"\xff", b"\xed\xa0\x80", b"\x00"],
    ),
    "raw number": (
        lambda lenient: RawDeserializationSchema(Types.INT(), ignore_parse_errors=lenient),
        [b"\x00\x00\x00\x01"],
        [b"", b"\x00" * 3, b"\x00" * 5],
    ),
}


# --- what is of a type ----------------------------------------------------------------------------


def check_value(name: str, value: Any) -> None:
    """Fail for what is not of the type of a field; untyped ones may be anything that can continue."""
    if value is None:
        return
    bits = {"byte": 8, "short": 16, "int": 32, "long": 64}
    if name in bits:
        assert type(value) is int
        assert -(1 << bits[name] - 1) <= value < 1 << bits[name] - 1
    elif name in _CLASSES:
        assert type(value) is _CLASSES[name]
    elif name == "row":
        check_value("int", value[0])
    elif name == "array":
        for each in value:
            check_value("int", each)
    elif name == "map":
        for each in value.values():
            check_value("long", each)
    if name == "decimal":
        assert value.is_finite()
    if name == "text":
        value.encode()


_CLASSES = {
    "text": str,
    "bigint": int,
    "float": float,
    "double": float,
    "decimal": Decimal,
    "truth": bool,
    "timestamp": datetime.datetime,
    "date": datetime.date,
    "time": datetime.time,
    "instant": Instant,
    "bytes": bytes,
}


def check_record(record: Any) -> None:
    """Fail for a record with a value that is not of its type, or that could not continue to the next task."""
    for each in record if isinstance(record, list) else [record]:
        if isinstance(each, Row):
            for name, value in each.as_dict().items():
                check_value(name, value)
    pickle.loads(pickle.dumps(record, protocol=5))
    copy.deepcopy(record)


# --- formats --------------------------------------------------------------------------------------


def messages_of(name: str, count: int, seed: int) -> Iterable[bytes]:
    _, valid, odd = FORMATS[name]
    yield from valid
    yield from odd
    yield from garbage(random.Random(f"{seed} {name}"), valid, count)


def read_garbage(name: str, count: int, seed: int) -> None:
    make, valid, _ = FORMATS[name]
    strict, lenient = make(False), make(True)
    for message in valid:
        assert strict.deserialize(message) is not None
    for message in messages_of(name, count, seed):
        with suppress(FormatError):
            check_record(strict.deserialize(message))
        check_record(lenient.deserialize(message))


@pytest.mark.parametrize("name", FORMATS)
def test_garbage_is_a_record_of_the_type_or_a_format_error(name: str):
    read_garbage(name, COUNT, SEED)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_much_garbage_is_records_of_the_type_or_format_errors(name: str):
    read_garbage(name, LONG_COUNT, SEED + 1)


@pytest.mark.parametrize("name", FORMATS)
def test_every_bad_message_is_counted_and_named(name: str):
    """With a dead-letter output, with errors that are ignored, and with neither."""
    make, _, _ = FORMATS[name]
    messages = list(messages_of(name, 100, SEED))
    errors, letters = InMemoryCounter(), list[DeadLetter]()
    position_of = "line {}".format
    RecordDecoder(make(False), errors=errors, emit_dead_letter=letters.append).decode(
        messages, position_of=position_of
    )
    assert letters
    assert errors.get_count() == len(letters)
    assert all(each.reason for each in letters)
    ignored = InMemoryCounter()
    RecordDecoder(make(True), errors=ignored).decode(messages, position_of=position_of)
    assert ignored.get_count() == len(letters)
    at = messages.index(letters[0].data)
    with pytest.raises(FormatError, match=f"line {at}: "):
        RecordDecoder(make(False)).decode(messages, position_of=position_of)


@pytest.mark.parametrize(
    ("schema", "event"),
    [
        (CanalJsonDeserializationSchema, CANAL),
        (MaxwellJsonDeserializationSchema, MAXWELL),
        (OggJsonDeserializationSchema, OGG),
        (DebeziumJsonDeserializationSchema, DEBEZIUM),
    ],
)
def test_metadata_of_an_odd_event_is_of_its_type_or_an_error(
    schema: type[ChangelogJsonDeserializationSchema], event: bytes
):
    types = {key: each.type for key, each in schema.known_metadata.items()}
    reads = schema(row_type({"int": Types.INT()}), metadata=list(types))
    assert all(value is not None for row in reads.parse(event) for value in row), "the event has all of them"
    whole = json.loads(event)
    for field in whole:
        for value in [*ODD_VALUES, *(f"{'[' * depth}{']' * depth}" for depth in (300, 900, 990))]:
            odd = json.dumps(whole | {field: "odd value"}).replace('"odd value"', value)
            with suppress(FormatError):
                for row in reads.parse(odd.encode()):
                    for kind, found in zip(types.values(), list(row)[1:], strict=True):
                        assert is_of_type(found, kind), (field, value)


def is_of_type(value: Any, kind: DataType) -> bool:
    """Whether a value is one of a type that metadata have."""
    match kind:
        case ArrayType():
            return value is None or (
                type(value) is list and all(type(each) in (str, NoneType) for each in value)
            )
        case MapType():
            kinds = (str, NoneType) if kind.value_type == DataTypes.STRING() else (int, NoneType)
            return value is None or (
                type(value) is dict and all(type(each) in kinds for each in value.values())
            )
        case LocalZonedTimestampType():
            return value is None or (isinstance(value, datetime.datetime) and value.tzinfo is None)
    return value is None or type(value) is str


def test_text_of_another_charset_is_a_dead_letter():
    letters = list[DeadLetter]()
    decoder = RecordDecoder(SimpleStringSchema(), emit_dead_letter=letters.append)
    assert decoder.decode([b"a", b"\xff", b"b"], position_of=str).values == ["a", "b"]
    assert [each.position for each in letters] == ["1"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("1e999", "double"),
        ("1e99999999", "int"),
        ('"1_0"', "int"),
        ('"\\u0661"', "int"),
        ('"1_0"', "double"),
        ('"nan"', "double"),
        ('"NaN"', "decimal"),
        ('"Infinity"', "decimal"),
        ('"0001-01-01T00:00:00+23:59"', "timestamp"),
        ('"\\ud800"', "text"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(value: str, field: str):
    schema = JsonRowDeserializationSchema(ALL)
    with pytest.raises(FormatError, match=f"field '{field}'|expected JSON"):
        schema.deserialize(f'{{"{field}": {value}}}'.encode())


def test_numbers_that_are_not_finite_are_read_where_text_says_so():
    schema = JsonRowDeserializationSchema(row_type({"double": Types.DOUBLE()}))
    assert math.isnan(schema.deserialize(b'{"double": "NaN"}')[0])
    assert schema.deserialize(b'{"double": "-Infinity"}')[0] == -math.inf


def test_the_last_of_two_equal_keys_counts_and_a_byte_order_mark_does_not():
    schema = JsonRowDeserializationSchema(row_type({"int": Types.INT()}))
    assert schema.deserialize(b'\xef\xbb\xbf{"int": 1, "int": 2}') == Row(2)


@pytest.mark.parametrize("value", [[[[]]], {"a": {"b": 1}}])
def test_values_of_no_declared_type_may_be_nested(value: Any):
    schema = JsonRowDeserializationSchema(row_type({"untyped": Types.PICKLED_BYTE_ARRAY()}))
    assert schema.deserialize(json.dumps({"untyped": value}).encode())[0] == value


# --- writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["\ud800", 1 << 80, math.nan, math.inf, object(), b"\xff", [1], Decimal("NaN")]
)
@pytest.mark.parametrize("field", ["text", "int", "double", "decimal"])
def test_what_is_written_can_be_read_again_or_is_refused(value: Any, field: str):
    row = row_type({field: _FIELDS[field]})
    try:
        data = JsonRowSerializationSchema.builder().with_type_info(row).build().serialize(Row(value))
    except FormatError:
        return
    found = JsonRowDeserializationSchema(row).deserialize(data)[0]
    assert found == value or (math.isnan(found) and math.isnan(value))


# --- values that bytes of Avro can hold and a schema does not allow -------------------------------


@pytest.mark.parametrize(
    ("written", "read", "value", "problem"),
    [
        ("long", "int", 1 << 40, "does not fit int"),
        ("long", {"type": "int"}, 1 << 40, "does not fit int"),
        (
            "bytes",
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            (123_456_789).to_bytes(5, "big"),
            "more than 5 digits",
        ),
        ("long", {"type": "long", "logicalType": "timestamp-millis"}, 1 << 62, "OverflowError"),
        ("long", {"type": "int", "logicalType": "time-millis"}, 1 << 30, "ValueError"),
    ],
    ids=["int", "int as an object", "decimal", "timestamp", "time"],
)
def test_an_avro_value_that_is_too_large_is_refused(written: Any, read: Any, value: Any, problem: str):
    def schema(kind: Any) -> str:
        return json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]})

    message = AvroRowSerializationSchema(avro_schema_string=schema(written)).serialize(Row(value))
    with pytest.raises(FormatError, match=problem):
        AvroRowDeserializationSchema(avro_schema_string=schema(read)).deserialize(message)


# --- files ----------------------------------------------------------------------------------------


def table_bytes(write: Callable[[pa.Table, Any], None]) -> list[bytes]:
    count = 50
    table = pa.table({"id": range(count), "text": [f"x{n}" for n in range(count)]})
    stream = io.BytesIO()
    write(table, stream)
    return [stream.getvalue()]


def avro_files() -> list[bytes]:
    fields = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
    schema = fastavro.parse_schema({"type": "record", "name": "R", "fields": fields})
    found = []
    for codec in ("null", "deflate"):
        stream = io.BytesIO()
        records = [{"id": n, "text": f"x{n}"} for n in range(50)]
        fastavro.writer(stream, schema, records, codec=codec, sync_interval=100)
        found.append(stream.getvalue())
    return found


COLUMNS = DataTypes.ROW(
    [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("text", DataTypes.STRING())]
)
AVRO_COLUMNS = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
CSV_COLUMNS = CsvSchema.builder().add_number_column("id").add_string_column("text").build()
FILES: dict[str, tuple[Any, list[bytes]]] = {
    "parquet": (ParquetColumnarRowInputFormat(COLUMNS), table_bytes(pq.write_table)),
    "orc": (OrcColumnarRowInputFormat(COLUMNS), table_bytes(orc.write_table)),
    "avro": (AvroBulkFormat(None), avro_files()),
    "csv": (CsvReaderFormat.for_schema(CSV_COLUMNS), [b'1,a\n2,"b\nc"\n' * 25]),
    "json lines": (
        StreamFormat.schema_line_format(
            JsonRowDeserializationSchema(row_type({"id": Types.LONG(), "text": Types.STRING()}))
        ),
        [b'{"id": 1, "text": "x"}\n' * 50],
    ),
    "text": (StreamFormat.text_line_format(), [b"a line\n" * 50]),
}


class Retried(ReaderContext):
    """What a reader gets in the second try at a task."""

    attempt = 1


def read_file(format_: Any, path: Path, context: ReaderContext | None = None) -> list[Any]:
    """Read a file as a source does, or raise what it raises."""
    if isinstance(format_, StreamFormat):
        source = FileSource.for_record_stream_format(format_, str(path)).build()
    else:
        source = FileSource.for_bulk_file_format(format_, str(path)).build()
    enumerator, records = source.create_enumerator(1), []
    for split in enumerator.discover():
        position = enumerator.start_position(split)
        while (piece := enumerator.plan(split, position, 1000)) is not None:
            reader = source.create_reader()
            reader.open(context or ReaderContext())
            for batch in reader.read(piece):
                records += batch.values
            progress = reader.progress()
            position = progress.position
            if progress.is_finished:
                break
    return records


def read_bad_files(name: str, directory: Path, count: int, seed: int) -> None:
    format_, valid = FILES[name]
    random_ = random.Random(f"{seed} {name}")
    path = directory / "data"
    for data in valid:
        path.write_bytes(data)
        assert len(read_file(format_, path)) == 50
    for data in garbage(random_, valid, count):
        path.write_bytes(data)
        try:
            # The library that reads ORC may end the process; a second try looks out for that.
            records = read_file(format_, path, Retried() if name == "orc" else None)
        except (FormatError, ConnectorError) as error:
            if str(path) not in error.message:
                pytest.fail(f"{error} does not name the file")
        else:
            pickle.dumps(records, protocol=5)


@pytest.mark.parametrize("name", [name for name in FILES if name != "orc"])
def test_a_damaged_file_is_named_and_ends_no_worker(name: str, tmp_path: Path):
    read_bad_files(name, tmp_path, 100, SEED)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_damaged_files_are_named_and_end_no_worker(name: str, tmp_path: Path):
    read_bad_files(name, tmp_path, {"orc": 200}.get(name, 5000), SEED + 1)


def with_footer(file: bytes, footer: bytes) -> bytes:
    """Return a Parquet file with another footer."""
    data = file[: -8 - int.from_bytes(file[-8:-4], "little")]
    return data + footer + len(footer).to_bytes(4, "little") + file[-4:]


def damaged_footers(count: int, seed: int) -> Iterator[bytes]:
    """Yield Parquet files of numbers, texts and times whose footers are damaged."""
    random_ = random.Random(seed)
    times = pa.array(range(50), pa.timestamp("us"))
    table = pa.table({"id": range(50), "text": [f"x{n}" for n in range(50)], "at": times})
    stream = io.BytesIO()
    pq.write_table(table, stream, row_group_size=20)
    valid = stream.getvalue()
    footer = valid[-8 - int.from_bytes(valid[-8:-4], "little") : -8]
    for _ in range(count):
        yield with_footer(valid, mutated(random_, footer))


def read_damaged_footers(path: Path, files: Iterable[bytes]) -> int:
    """Read files as streams and tables do; return how often a file is refused by name."""
    refused = 0
    for data in files:
        path.write_bytes(data)
        table = FileTableSource(InputPath.parse(path, who="test"), "parquet")
        for read in (
            lambda: read_file(ParquetColumnarRowInputFormat(COLUMNS), path),
            table.create_enumerator(1).discover,
        ):
            try:
                read()
            except (FormatError, ConnectorError) as error:
                refused += str(path) in error.message
    return refused


def test_a_damaged_footer_ends_no_process(tmp_path: Path):
    assert read_damaged_footers(tmp_path / "data", damaged_footers(200, SEED)) > 100


@pytest.mark.slow
def test_many_damaged_footers_end_no_process(tmp_path: Path):
    assert read_damaged_footers(tmp_path / "data", damaged_footers(30_000, SEED + 1)) > 10_000


def wrong_metadata() -> bytes:
    """Return a Parquet file whose footer describes a column that is always there as one that may be missing."""
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([1, None, 3]), "text": ["a", "b", "c"]}), stream)
    valid = stream.getvalue()
    footer = valid[-8 - int.from_bytes(valid[-8:-4], "little") : -8]
    # Of the schema's element `id`: repetition OPTIONAL (2 as a varint) becomes REQUIRED (0).
    at = footer.index(b"\x02id") - 2
    assert footer[at] == 0x02
    return with_footer(valid, footer[:at] + b"\x00" + footer[at + 1 :])


def test_metadata_that_ends_the_process_is_refused(tmp_path: Path):
    path = tmp_path / "data"
    path.write_bytes(wrong_metadata())  # pyarrow 26 ends the process when it is asked for the first column
    with pytest.raises(FormatError, match="histogram size mismatch") as caught:
        read_file(ParquetColumnarRowInputFormat(COLUMNS), path)
    assert str(path) in caught.value.message


def test_statistics_that_end_the_process_name_the_file(tmp_path: Path):
    for name in ("a", "b", "c"):
        pq.write_table(pa.table({"at": pa.array([1, 258], pa.timestamp("us"))}), tmp_path / name)
    path = tmp_path / "b"
    data = path.read_bytes()
    low, high = (b"\x08" + value.to_bytes(8, "little") for value in (1, 258))
    assert data.count(high) > 1
    # The highest value of the column is a byte short: pyarrow 26 ends the process that asks for it.
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    short = footer.replace(high, b"\x07" + high[1:-1]).replace(low, b"\x07" + low[1:-1])
    path.write_bytes(with_footer(data, short))
    table = FileTableSource(InputPath.parse(tmp_path, who="test"), "parquet", has_event_time=True)
    with pytest.raises(ConnectorError, match=r"/b as parquet: the footer is damaged: .* killed by SIGABRT"):
        table.create_enumerator(1).discover()


def test_an_orc_file_that_ends_the_process_is_named_in_the_next_try(tmp_path: Path):
    format_, [valid] = FILES["orc"]
    path = tmp_path / "data"
    path.write_bytes(valid[:67] + bytes([123]) + valid[68:])  # pyarrow 26 crashes here
    with pytest.raises(FormatError) as caught:
        read_file(format_, path, Retried())
    assert str(path) in caught.value.message
    assert pickle.loads(pickle.dumps(format_)).opened(Retried())


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("orc", FILES["orc"][0]),
        ("parquet", FILES["parquet"][0]),
        ("parquet", AvroParquetReaders.for_generic_record(AvroSchema.parse_string(AVRO_COLUMNS))),
    ],
    ids=["orc", "parquet", "avro in parquet"],
)
def test_a_file_that_ends_the_process_is_named_in_the_next_try(
    name: str, format_: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    program = "import os, sys; sys.stdin.buffer.read(); os.kill(os.getpid(), 11)"
    monkeypatch.setattr(type(format_), "_reading_program", program)
    path = tmp_path / "data"
    path.write_bytes(FILES[name][1][0])
    with pytest.raises(FormatError, match="file is damaged: the process reading it was killed by SIGSEGV"):
        read_file(format_, path, Retried())


def test_an_avro_block_with_too_low_a_count_loses_no_records_silently(tmp_path: Path):
    path = tmp_path / "data"
    data = avro_files()[0]
    marker = data[-16:]
    count_at = data.index(marker) + len(marker)
    path.write_bytes(data[:count_at] + bytes([data[count_at] - 2]) + data[count_at + 1 :])
    with pytest.raises(FormatError, match="holds more than"):
        read_file(AvroBulkFormat(None), path)
