"""Values in the form of their declared type, and as Java writes them."""

from __future__ import annotations

import datetime
import math
import pickle
from decimal import Decimal
from typing import Any

import pytest

from headrace.common import Configuration, Row, RowKind, Types
from headrace.common.serialization import Encoder
from headrace.common.time import Instant
from headrace.common.typed_text import double_text, float_text, in_hash_order, text_writer
from headrace.common.typed_values import conformer, namer
from headrace.common.typeinfo import TypeInformation
from headrace.datastream import StreamExecutionEnvironment
from tests.engines import MINI_EXECUTOR


def _conform(type_info: TypeInformation, *values: Any) -> list[Any]:
    conform = conformer(type_info)
    assert conform is not None
    return conform(list(values))


def test_a_float_has_32_bits() -> None:
    assert _conform(Types.FLOAT(), 0.1, 1, None) == [0.10000000149011612, 1.0, None]
    assert _conform(Types.DOUBLE(), 0.1, 1) == [0.1, 1.0]


@pytest.mark.parametrize(
    ("type_info", "largest"),
    [(Types.BYTE(), 2**7), (Types.SHORT(), 2**15), (Types.INT(), 2**31), (Types.LONG(), 2**63)],
)
def test_a_number_that_does_not_fit_is_refused(type_info: TypeInformation, largest: int) -> None:
    assert _conform(type_info, largest - 1, -largest) == [largest - 1, -largest]
    with pytest.raises(
        TypeError, match=rf"a value of type {type_info.summary()} must be an int of \d+ bits; got int"
    ):
        _conform(type_info, 1, largest)


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (Types.INT(), "1"),
        (Types.INT(), 1.5),
        (Types.STRING(), 1),
        (Types.DOUBLE(), "1.5"),
        (Types.FLOAT(), "1.5"),
        (Types.TUPLE([Types.INT()]), 1),
        (Types.TUPLE([Types.INT()]), (1, 2)),
        (Types.ROW([Types.INT(), Types.INT()]), Row(1)),
        (Types.MAP(Types.STRING(), Types.INT()), ["a"]),
        (Types.LIST(Types.INT()), 1),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), "ab"),
        (Types.SQL_DATE(), "2020-01-01"),
    ],
)
def test_a_value_of_another_type_is_refused(type_info: TypeInformation, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        _conform(type_info, value)


def test_tuples_and_rows_take_the_form_of_their_type() -> None:
    pair = Types.TUPLE([Types.STRING(), Types.FLOAT()])
    assert _conform(pair, ["a", 0.5], ("b", 0.1), Row("c", 1)) == [
        ("a", 0.5),
        ("b", 0.10000000149011612),
        ("c", 1.0),
    ]
    named = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])
    rows = _conform(named, Row("a", 1), Row.of_kind(RowKind.DELETE, "b", 2))
    assert [row.as_dict() for row in rows] == [{"name": "a", "n": 1}, {"name": "b", "n": 2}]
    assert rows[1].get_row_kind() is RowKind.DELETE
    assert _conform(named, ("c", 3), {"n": 4, "name": "d"}) == [Row("c", 3), Row("d", 4)]


def test_values_that_are_right_are_not_copied() -> None:
    values = [("a", 1), ("b", 2)]
    conform = conformer(Types.TUPLE([Types.STRING(), Types.INT()]))
    assert conform is not None
    assert conform(values) is values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100, "100.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_written_as_in_java(value: float, text: str) -> None:
    assert double_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (110.1, "110.1"),
        (1 / 3, "0.33333334"),
        (123456789.0, "1.23456792E8"),
        (16777216.0, "1.6777216E7"),
        (1e-45, "1.4E-45"),
        (3.4e38, "3.4E38"),
        (1e300, "Infinity"),
    ],
)
def test_floats_are_written_as_in_java(value: float, text: str) -> None:
    assert float_text(value) == text


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (Types.STRING(), "a b", "a b"),
        (Types.STRING(), None, "null"),
        (Types.BOOLEAN(), True, "true"),
        (Types.BIG_DEC(), Decimal("1.50"), "1.50"),
        (Types.SQL_DATE(), datetime.date(2020, 1, 2), "2020-01-02"),
        (Types.SQL_TIME(), datetime.time(1, 2, 3), "01:02:03"),
        (Types.INSTANT(), Instant(1, 500_000_000), "1970-01-01T00:00:01.500Z"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("hi", 1), "(hi,1)"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), (None, None), "(null,null)"),
        (Types.ROW([Types.INT(), Types.STRING()]), Row(1, "Hello"), "+I[1, Hello]"),
        (Types.ROW([Types.INT()]), Row.of_kind(RowKind.UPDATE_BEFORE, 1), "-U[1]"),
        (Types.LIST(Types.BOOLEAN()), [True, None], "[true, null]"),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), {"a": 1.5}, "{a=1.5}"),
        (None, ("hi", True, None), "('hi', True, None)"),
        (Types.PICKLED_BYTE_ARRAY(), ("hi", True), "('hi', True)"),
    ],
)
def test_values_are_written_by_their_declared_type(
    type_info: TypeInformation | None, value: Any, text: str
) -> None:
    assert text_writer(type_info)(value) == text


def test_maps_are_written_in_the_order_of_a_hash_map() -> None:
    assert in_hash_order(["m", "Ähre", "hello world", "zebra", "a"]) == [
        "zebra",
        "a",
        "hello world",
        "m",
        "Ähre",
    ]


def test_lines_of_files_are_written_by_the_declared_type() -> None:
    import io

    encoder = Encoder.simple_string_encoder().for_type(Types.TUPLE([Types.STRING(), Types.BOOLEAN()]))
    stream = io.BytesIO()
    pickle.loads(pickle.dumps(encoder)).encode(("a", True), stream)
    assert stream.getvalue() == b"(a,true)\n"


def test_rows_get_the_names_of_their_type_where_they_have_none():
    name = namer(Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()]))
    rows = [Row(1, "a"), Row(x=2, y="b"), Row(3), (4, "d"), None]
    assert name is not None
    name(rows)
    assert list(map(repr, rows)) == ["Row(id=1, word='a')", "Row(x=2, y='b')", "<Row(3)>", "(4, 'd')", "None"]
    assert namer(Types.TUPLE([Types.INT()])) is None


def test_a_function_of_the_same_chain_sees_the_names_of_the_declared_type():
    configuration = Configuration().set_string("execution.target", MINI_EXECUTOR)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    kinds = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
    rows = env.from_collection([1, 2], Types.INT()).map(lambda number: Row(number, "x"), kinds)
    assert list(rows.map(lambda row: row.word * row.id, Types.STRING()).execute_and_collect()) == ["x", "xx"]
