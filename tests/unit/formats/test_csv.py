"""Rows as CSV: Python's own csv module is the oracle for what a line is."""
# ruff: noqa: DTZ001 - timestamps in rows have no zone

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common.typeinfo import Types
from headrace.common.types import Row
from headrace.errors import FormatError, JobDefinitionError
from headrace.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


def reader(type_info=PERSON):
    return CsvRowDeserializationSchema.Builder(type_info)


def writer(type_info=PERSON):
    return CsvRowSerializationSchema.Builder(type_info)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b"a,1", Row("a", 1)),
        (b"a,1\n", Row("a", 1)),
        (b"a,1\r\n", Row("a", 1)),
        (b'"a, b",1', Row("a, b", 1)),
        (b'"say ""a""",1', Row('say "a"', 1)),
        (b'"two\nlines",1', Row("two\nlines", 1)),
        (b"a, 1 ", Row("a", 1)),
        (b",", Row("", None)),
        ("ü,1".encode(), Row("ü", 1)),
        (b"#a,1", Row("#a", 1)),
    ],
)
def test_a_line_becomes_a_row(line, row):
    schema = pickle.loads(pickle.dumps(reader().build()))

    assert schema.deserialize(line) == row


def test_columns_are_read_by_their_types():
    types = [
        *(Types.BOOLEAN(), Types.DOUBLE(), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIMESTAMP()),
        *(
            Types.OBJECT_ARRAY(Types.INT()),
            Types.ROW([Types.STRING(), Types.INT()]),
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
        ),
    ]

    row = (
        reader(Types.ROW(types))
        .build()
        .deserialize(b"true,1.5,1.10,2020-01-02,2020-01-02 03:04:05,1;2;3,a;1,raw")
    )

    assert row == Row(
        *(True, 1.5, Decimal("1.10"), datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5)),
        *([1, 2, 3], Row("a", 1), b"raw"),
    )


def test_settings_of_the_reader():
    schema = (
        reader(Types.ROW([Types.STRING(), Types.STRING(), Types.OBJECT_ARRAY(Types.STRING())]))
        .set_field_delimiter("|")
        .set_quote_character("'")
        .set_escape_character("\\")
        .set_null_literal("n/a")
        .set_array_element_delimiter(":")
        .set_allow_comments(True)
        .build()
    )

    assert schema.deserialize(rb"'a|b'|c\|d|x:n/a") == Row("a|b", "c|d", ["x", None])
    assert schema.deserialize(b"n/a||n/a") == Row(None, "", None)
    assert schema.deserialize(b"# a remark") is None


def test_an_empty_column_is_an_empty_array_unless_that_stands_for_null():
    row_type = Types.ROW([Types.STRING(), Types.OBJECT_ARRAY(Types.INT())])
    schema = reader(row_type).build()
    first, second = schema.deserialize(b"a,"), schema.deserialize(b"b,")

    assert first == Row("a", [])
    assert first[1] is not second[1]
    assert reader(row_type).set_null_literal("").build().deserialize(b"a,") == Row("a", None)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"a", "expected 2 fields; got 1"),
        (b"", "expected 2 fields; got 1"),
        (b"a,1,2", "expected 2 fields; got 3"),
        (b"a,old", "field 'age'"),
        (b'"a,1', "CSV"),
        (b"a,1\nb,2", "expected one line"),
        (b"\xff,1", "UTF-8"),
    ],
)
def test_a_line_that_is_wrong_is_refused(line, problem):
    with pytest.raises(FormatError, match=problem):
        reader().build().deserialize(line)


def test_ignoring_errors_keeps_what_is_right_of_a_line():
    schema = reader().set_ignore_parse_errors(True).build()

    assert schema.deserialize(b"a,old") == Row("a", None)
    assert schema.deserialize(b"a") == Row("a", None)
    assert schema.deserialize(b"a,1,2") == Row("a", 1)
    assert schema.deserialize(b"\xff") is None


def test_settings_of_the_writer():
    row_type = Types.ROW([Types.STRING(), Types.BOOLEAN(), Types.OBJECT_ARRAY(Types.INT())])
    schema = (
        writer(row_type)
        .set_field_delimiter("|")
        .set_quote_character("'")
        .set_null_literal("n/a")
        .set_array_element_delimiter(":")
        .set_line_delimiter("")
        .build()
    )

    assert pickle.loads(pickle.dumps(schema)).serialize(Row("a|'b", True, [1, None])) == b"'a|''b'|true|1:n/a"
    assert schema.serialize(Row(None, None, None)) == b"n/a|n/a|n/a"


def test_without_quotes_a_column_that_needs_them_cannot_be_written():
    schema = writer().disable_quote_character().build()

    assert schema.serialize(Row("a", 1)) == b"a,1\n"
    with pytest.raises(FormatError):
        schema.serialize(Row("a,b", 1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: reader(Types.INT()),
        lambda: reader().set_field_delimiter(";;").build(),
        lambda: writer().set_line_delimiter("|").build(),
        lambda: reader(Types.ROW([Types.MAP(Types.STRING(), Types.INT())])).build(),
        lambda: writer(Types.ROW([Types.MAP(Types.STRING(), Types.INT())])).build(),
        lambda: reader(Types.ROW([Types.OBJECT_ARRAY(Types.OBJECT_ARRAY(Types.INT()))])).build(),
    ],
)
def test_settings_that_cannot_be_are_refused_when_the_format_is_made(make):
    with pytest.raises(JobDefinitionError):
        make()


@given(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")),
    st.integers(-(2**31), 2**31 - 1),
)
def test_what_is_written_is_read_again(name, age):
    written = writer().build().serialize(Row(name, age))

    assert reader().build().deserialize(written) == Row(name, age)
