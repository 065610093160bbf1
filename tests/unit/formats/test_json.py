"""Rows as JSON: Python's own json module is the oracle for what is JSON."""
# ruff: noqa: DTZ001 - timestamps in rows have no zone

from __future__ import annotations

import base64
import datetime
import json
import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common.time import Instant
from headrace.common.typeinfo import Types
from headrace.common.types import Row
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError, JobDefinitionError, SqlValidationError
from headrace.formats._json_writers import JsonEncoding
from headrace.formats.json import JsonFormat, JsonRowDeserializationSchema, JsonRowSerializationSchema
from headrace.types import DataTypes

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())


def reader(type_info=PERSON, **options):
    # Pickled, as on its way to a worker.
    return pickle.loads(pickle.dumps(JsonRowDeserializationSchema(type_info, **options)))


def writer(type_info=PERSON, **options):
    return pickle.loads(pickle.dumps(JsonRowSerializationSchema(type_info, **options)))


def field(type_info, node):
    """Read one field."""
    return reader(Types.ROW_NAMED(["x"], [type_info])).deserialize(json.dumps({"x": node}).encode())[0]


@pytest.mark.parametrize(
    ("type_info", "node", "value"),
    [
        (Types.STRING(), "a", "a"),
        (Types.STRING(), 7, "7"),
        (Types.STRING(), True, "true"),
        (Types.STRING(), {"a": [1]}, '{"a":[1]}'),
        (Types.BOOLEAN(), True, True),
        (Types.BOOLEAN(), "TRUE", True),
        (Types.BOOLEAN(), "yes", False),
        (Types.INT(), 7, 7),
        (Types.INT(), " 7 ", 7),
        (Types.INT(), 7.9, 7),
        (Types.LONG(), 2**63 - 1, 2**63 - 1),
        (Types.BIG_INT(), 10**30, 10**30),
        (Types.DOUBLE(), 1, 1.0),
        (Types.DOUBLE(), "1.5", 1.5),
        (Types.BIG_DEC(), 0.1, Decimal("0.1")),
        (Types.BIG_DEC(), "12345678901234567890.123456789", Decimal("12345678901234567890.123456789")),
        (Types.SQL_DATE(), "2020-02-29", datetime.date(2020, 2, 29)),
        (Types.SQL_TIME(), "12:30:01Z", datetime.time(12, 30, 1)),
        (Types.SQL_TIMESTAMP(), "2020-02-29T12:30:01.5Z", datetime.datetime(2020, 2, 29, 12, 30, 1, 500_000)),
        (Types.SQL_TIMESTAMP(), "2020-02-29 12:30:01", datetime.datetime(2020, 2, 29, 12, 30, 1)),
        (Types.SQL_TIMESTAMP(), "2020-02-29T12:30:01+02:00", datetime.datetime(2020, 2, 29, 10, 30, 1)),
        (Types.INSTANT(), "1970-01-01T00:00:01.5Z", Instant(1, 500_000_000)),
        (BYTES, base64.b64encode(b"\x00\xff").decode(), b"\x00\xff"),
        (Types.OBJECT_ARRAY(Types.INT()), [1, None, "3"], [1, None, 3]),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [1, 2], [1, 2]),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1}, {"a": 1}),
        (Types.MAP(Types.INT(), Types.INT()), {"1": 1}, {1: 1}),
        (Types.TUPLE([Types.INT(), Types.STRING()]), [1, "a"], (1, "a")),
        (PERSON, {"age": 3, "name": "b", "more": 1}, Row("b", 3)),
        (Types.PICKLED_BYTE_ARRAY(), {"any": [1, "thing"]}, {"any": [1, "thing"]}),
        (Types.INT(), None, None),
    ],
)
def test_a_node_becomes_a_value_of_the_declared_type(type_info, node, value):
    found = field(type_info, node)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("type_info", "node", "problem"),
    [
        (Types.INT(), 2**31, "does not fit INT"),
        (Types.BYTE(), 128, "does not fit BYTE"),
        (Types.INT(), "seven", "field 'x'"),
        (Types.INT(), True, "expected a number; got a boolean"),
        (Types.BIG_DEC(), "x", "is not a decimal number"),
        (Types.SQL_DATE(), "yesterday", "field 'x'"),
        (Types.SQL_DATE(), 7, "expected a string"),
        (BYTES, "%%%", "expected base64"),
        (Types.OBJECT_ARRAY(Types.INT()), {"a": 1}, "expected an array"),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [None], "expected a number; got null"),
        (Types.MAP(Types.STRING(), Types.INT()), [1], "expected an object"),
        (PERSON, {"age": "x"}, "field 'x': field 'age'"),
    ],
)
def test_a_node_of_another_type_is_refused_and_the_field_named(type_info, node, problem):
    with pytest.raises(FormatError, match=problem):
        field(type_info, node)


@pytest.mark.parametrize("message", [b"{", b"", b"NaN", b"\xff", b"[1]", b"3", b"null"])
def test_a_value_that_is_not_a_json_object_is_refused(message):
    with pytest.raises(FormatError) as caught:
        reader().deserialize(message)

    assert caught.value.example is not None


def test_a_missing_field_is_none_unless_it_is_to_fail():
    assert reader().deserialize(b'{"name": "a"}') == Row("a", None)
    with pytest.raises(FormatError, match="missing field age"):
        reader(fail_on_missing_field=True).deserialize(b'{"name": "a"}')
    assert reader(fail_on_missing_field=True).deserialize(b'{"name": "a", "age": null}') == Row("a", None)


def test_ignoring_errors_keeps_valid_fields_and_drops_lines_that_are_not_json():
    schema = reader(ignore_parse_errors=True)

    assert schema.deserialize(b'{"name": "a", "age": "old"}') == Row("a", None)
    assert schema.deserialize(b"{") is None
    assert schema.deserialize(b"[]") is None


def test_failing_and_ignoring_exclude_each_other():
    builder = JsonRowDeserializationSchema.builder().type_info(PERSON).fail_on_missing_field()

    with pytest.raises(JobDefinitionError, match="both"):
        builder.ignore_parse_errors().build()


def test_a_builder_without_a_type_says_what_to_call():
    with pytest.raises(JobDefinitionError, match="type_info"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(JobDefinitionError, match="expected the type of a row"):
        JsonRowSerializationSchema.builder().with_type_info(Types.INT())


def test_a_json_schema_gives_the_type():
    schema = {
        "type": "object",
        "definitions": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
        "properties": {
            "id": {"type": "integer"},
            "price": {"type": ["number", "null"]},
            "ok": {"type": "boolean"},
            "at": {"type": "string", "format": "date-time"},
            "data": {"type": "string", "contentEncoding": "base64"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "boolean"}]},
            "home": {"$ref": "#/definitions/place"},
            "maybe": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        },
    }
    builder = JsonRowDeserializationSchema.builder().json_schema(json.dumps(schema))
    message = (
        b'{"id": 1, "price": 1.10, "ok": true, "at": "2020-01-01T00:00:00Z", "data": "AA==", "tags": ["x"],'
        b' "pair": ["p", false], "home": {"city": "Rome"}, "maybe": null}'
    )

    assert builder.build().deserialize(message) == Row(
        *(
            1,
            Decimal("1.10"),
            True,
            datetime.datetime(2020, 1, 1),
            b"\x00",
            ["x"],
            ("p", False),
            Row("Rome"),
            None,
        )
    )


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        '{"type": "string"}',
        '{"type": "object"}',
        '{"type": "object", "properties": {"a": {"type": "x"}}}',
    ],
)
def test_a_json_schema_that_describes_no_row_is_refused(schema):
    with pytest.raises(JobDefinitionError, match="JSON schema"):
        JsonRowDeserializationSchema.builder().json_schema(schema)


def test_a_row_is_written_as_any_json_parser_reads_it():
    row_type = Types.ROW_NAMED(
        ["s", "i", "d", "dec", "date", "time", "at", "b", "list", "map", "row", "none"],
        [
            *(
                Types.STRING(),
                Types.LONG(),
                Types.DOUBLE(),
                Types.BIG_DEC(),
                Types.SQL_DATE(),
                Types.SQL_TIME(),
            ),
            *(Types.SQL_TIMESTAMP(), BYTES, Types.OBJECT_ARRAY(Types.INT())),
            *(Types.MAP(Types.INT(), Types.STRING()), PERSON, Types.INT()),
        ],
    )
    row = Row(
        *('a"ü', 2**40, 0.1, Decimal("1.10"), datetime.date(2020, 1, 2), datetime.time(3, 4, 5)),
        *(datetime.datetime(2020, 1, 2, 3, 4, 5), b"\x00\xff", [1, None], {1: "x"}, Row("n", 1), None),
    )

    found = json.loads(writer(row_type).serialize(row), parse_float=Decimal)

    assert found == {
        **{"s": 'a"ü', "i": 2**40, "d": Decimal("0.1"), "dec": Decimal("1.10"), "date": "2020-01-02"},
        **{"time": "03:04:05Z", "at": "2020-01-02T03:04:05Z", "b": "AP8=", "list": [1, None]},
        **{"map": {"1": "x"}, "row": {"name": "n", "age": 1}, "none": None},
    }


@pytest.mark.parametrize(
    ("timestamp_format", "text"),
    [
        ("RFC-3339", "2020-01-02T03:04:05Z"),
        ("SQL", "2020-01-02 03:04:05"),
        ("ISO-8601", "2020-01-02T03:04:05"),
    ],
)
def test_timestamps_are_written_as_asked(timestamp_format, text):
    schema = writer(Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()]), encoding=JsonEncoding(timestamp_format))

    assert json.loads(schema.serialize(Row(datetime.datetime(2020, 1, 2, 3, 4, 5)))) == {"at": text}


@pytest.mark.parametrize("row", [Row("a"), Row("a", "b"), Row(1, 2), 7, "ab", Row("a", 1.5)])
def test_a_row_of_another_type_is_not_written(row):
    with pytest.raises(FormatError):
        writer().serialize(row)


def test_dictionaries_and_tuples_are_rows_too():
    assert (
        writer().serialize({"age": 1, "name": "a"})
        == writer().serialize(("a", 1))
        == writer().serialize(Row("a", 1))
    )


scalars = {
    "s": (Types.STRING(), st.text()),
    "i": (Types.LONG(), st.integers(-(2**63), 2**63 - 1)),
    "f": (Types.DOUBLE(), st.floats(allow_nan=False, allow_infinity=False)),
    "d": (Types.BIG_DEC(), st.decimals(allow_nan=False, allow_infinity=False)),
    "b": (BYTES, st.binary()),
    "t": (Types.SQL_TIMESTAMP(), st.datetimes()),
    "l": (Types.OBJECT_ARRAY(Types.STRING()), st.lists(st.none() | st.text())),
    "m": (Types.MAP(Types.STRING(), Types.INT()), st.dictionaries(st.text(), st.integers(-5, 5))),
}


@given(st.tuples(*(st.none() | values for _, values in scalars.values())))
def test_what_is_written_is_read_again(values):
    row_type = Types.ROW_NAMED(list(scalars), [type_info for type_info, _ in scalars.values()])

    written = JsonRowSerializationSchema(row_type).serialize(Row(*values))

    assert JsonRowDeserializationSchema(row_type).deserialize(written) == Row(*values)


NUMBERS = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.DECIMAL(38, 10))])
LABELS = DataTypes.ROW([DataTypes.FIELD("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()))])
NESTED = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("n", NUMBERS)])


def written(row_type, row, **options):
    """Write a row of a table with options of the format."""
    given = {f"json.{key}": value for key, value in options.items()}
    options = TableOptions("t", {"format": "json", **given}).below("json.")
    return pickle.loads(pickle.dumps(JsonFormat(options).writer(row_type))).serialize(row).decode()


@pytest.mark.parametrize(
    ("number", "short", "plain"),  # recorded with Flink 2.3
    [
        ("100.00", "1E+2", "100.00"),
        ("0.0000000270", "2.7E-8", "0.0000000270"),
        ("0.0", "0", "0.0"),
        ("12.50", "12.5", "12.50"),
        ("1000000", "1E+6", "1000000"),
        ("1234567890123456789012345678.9012345670", "1234567890123456789012345678.901234567", None),
    ],
)
def test_decimals_have_an_exponent_unless_they_are_to_be_plain(number, short, plain):
    row = Row(Decimal(number))

    assert written(NUMBERS, row) == f'{{"n":{short}}}'
    plainly = written(NUMBERS, row, **{"encode.decimal-as-plain-number": "true"})
    assert plainly == f'{{"n":{plain or number}}}'
    assert JsonFormat(TableOptions("t", {})).reader(NUMBERS).deserialize(plainly.encode()) == row


def test_entries_of_maps_without_a_key_are_refused_dropped_or_named():
    row = Row({None: 1, "x": 2})

    with pytest.raises(FormatError, match=r"map-null-key\.mode"):
        written(LABELS, row)
    assert written(LABELS, row, **{"map-null-key.mode": "drop"}) == '{"m":{"x":2}}'
    assert written(LABELS, row, **{"map-null-key.mode": "LITERAL"}) == '{"m":{"null":1,"x":2}}'
    named = {"map-null-key.mode": "LITERAL", "map-null-key.literal": "x"}
    assert written(LABELS, row, **named) == '{"m":{"x":2}}'
    with pytest.raises(SqlValidationError, match="FAIL, DROP, LITERAL"):
        written(LABELS, row, **{"map-null-key.mode": "KEEP"})


def test_fields_without_a_value_are_left_out_of_inner_rows_too():
    row = Row(None, Row(None))

    assert written(NESTED, row) == '{"a":null,"n":{"n":null}}'
    assert written(NESTED, row, **{"encode.ignore-null-fields": "true"}) == '{"n":{}}'


def test_the_choice_of_a_parser_must_be_a_boolean():
    with pytest.raises(SqlValidationError, match="json-parser"):
        written(LABELS, Row({}), **{"decode.json-parser.enabled": "maybe"})
