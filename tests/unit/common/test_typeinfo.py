"""Type information: equality, names, and conversion to and from internal forms."""

from __future__ import annotations

import datetime
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common import Instant, Row, RowKind, Types
from headrace.common.typeinfo import ExternalTypeInfo, LocalTimeTypeInfo, RowTypeInfo, TypeInformation
from headrace.errors import TypeInferenceError, UnsupportedFeatureError

ALL = [
    Types.STRING(),
    Types.BYTE(),
    Types.BOOLEAN(),
    Types.SHORT(),
    Types.INT(),
    Types.LONG(),
    Types.FLOAT(),
    Types.DOUBLE(),
    Types.CHAR(),
    Types.BIG_INT(),
    Types.BIG_DEC(),
    Types.INSTANT(),
    Types.SQL_DATE(),
    Types.SQL_TIME(),
    Types.SQL_TIMESTAMP(),
    Types.PICKLED_BYTE_ARRAY(),
    Types.ROW([Types.STRING(), Types.INT()]),
    Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()]),
    Types.TUPLE([Types.STRING(), Types.INT()]),
    Types.PRIMITIVE_ARRAY(Types.BYTE()),
    Types.BASIC_ARRAY(Types.STRING()),
    Types.OBJECT_ARRAY(Types.ROW([Types.INT()])),
    Types.MAP(Types.STRING(), Types.LONG()),
    Types.LIST(Types.LONG()),
    LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE),
    ExternalTypeInfo(Types.LONG()),
]


def test_types_are_equal_only_to_themselves():
    for i, one in enumerate(ALL):
        for j, other in enumerate(ALL):
            assert (one == other) is (i == j), (one, other)
    assert Types.STRING() != "STRING"


@pytest.mark.parametrize("type_info", ALL, ids=repr)
def test_types_pickle_hash_and_have_a_name(type_info):
    copy = pickle.loads(pickle.dumps(type_info))
    assert copy == type_info
    assert hash(copy) == hash(type_info)
    assert "object at" not in repr(type_info)
    with pytest.raises(UnsupportedFeatureError):
        type_info.get_java_type_info()


def test_types_have_a_summary_in_the_words_of_types():
    assert Types.ROW([Types.STRING(), Types.INT()]).summary() == "ROW<f0: STRING, f1: INT>"
    assert Types.TUPLE([Types.BASIC_ARRAY(Types.STRING())]).summary() == "TUPLE<BASIC_ARRAY<STRING>>"
    assert Types.SQL_TIMESTAMP().summary() == "TIMESTAMP"
    assert ExternalTypeInfo(Types.LIST(Types.INT())).summary() == "EXTERNAL<LIST<INT>>"


def test_types_print_as_in_pyflink():
    assert repr(Types.ROW_NAMED(["a"], [Types.MAP(Types.STRING(), Types.INT())])) == (
        "RowTypeInfo(a: MapTypeInfo<String, Integer>)"
    )
    assert repr(Types.TUPLE([Types.PICKLED_BYTE_ARRAY(), Types.SQL_DATE()])) == (
        "TupleTypeInfo(PickledByteArrayTypeInfo, DateTypeInfo)"
    )
    assert repr(ExternalTypeInfo(Types.INT())) == "ExternalTypeInfo<Integer>"


def test_rows_know_their_fields():
    row = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()])
    assert row.get_field_names() == ["a", "b"]
    assert row.get_field_types() == [Types.STRING(), Types.INT()]
    assert row.get_field_index("b") == 1
    with pytest.raises(ValueError, match="not in tuple"):
        row.get_field_index("c")
    assert Types.TUPLE([Types.INT()]).get_field_types() == [Types.INT()]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Types.ROW_NAMED(["a"], []), "as many names as types"),
        (lambda: Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()]), "names that differ"),
        (lambda: Types.ROW([Types.INT]), r"hint: call it: Types\.STRING"),
        (lambda: Types.TUPLE([int]), "a field of a TUPLE: expected type information"),
        (lambda: Types.LIST("STRING"), "the elements of a LIST: expected type information"),
        (lambda: Types.PRIMITIVE_ARRAY(Types.STRING()), "fixed size.*BASIC_ARRAY"),
        (lambda: Types.BASIC_ARRAY(Types.ROW([])), "basic type.*OBJECT_ARRAY"),
    ],
)
def test_wrong_types_are_refused_when_they_are_declared(make, message):
    with pytest.raises(TypeInferenceError, match=f"(?s){message}"):
        make()


@given(st.dates())
def test_dates_convert(date):
    assert Types.SQL_DATE().from_internal_type(Types.SQL_DATE().to_internal_type(date)) == date


@given(st.times())
def test_times_convert(time):
    assert Types.SQL_TIME().from_internal_type(Types.SQL_TIME().to_internal_type(time)) == time


@given(st.datetimes())
def test_timestamps_convert(timestamp):
    type_info = Types.SQL_TIMESTAMP()
    assert type_info.from_internal_type(type_info.to_internal_type(timestamp)) == timestamp


def test_internal_forms_are_counted_from_the_epoch():
    assert Types.SQL_DATE().to_internal_type(datetime.date(1970, 1, 11)) == 10
    assert Types.SQL_TIME().to_internal_type(datetime.time(0, 0, 1, 2)) == 1_000_002
    naive = datetime.datetime.fromisoformat("1970-01-01T00:00:01")
    assert Types.SQL_TIMESTAMP().to_internal_type(naive) == 1_000_000
    assert Types.INSTANT().to_internal_type(Instant(2, 3000)) == 2_000_003


def test_times_with_a_zone_are_taken_to_utc():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    assert Types.SQL_TIMESTAMP().to_internal_type(datetime.datetime(1970, 1, 1, 2, tzinfo=zone)) == 0
    assert Types.SQL_TIME().to_internal_type(datetime.time(2, tzinfo=zone)) == 0


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_instants_convert(micros):
    type_info = Types.INSTANT()
    assert type_info.to_internal_type(type_info.from_internal_type(micros)) == micros


@pytest.mark.parametrize("type_info", ALL, ids=repr)
def test_none_has_no_internal_form(type_info):
    assert type_info.to_internal_type(None) is None
    assert type_info.from_internal_type(None) is None


class _Person:
    def __init__(self) -> None:
        self.name = "Alice"
        self.born = datetime.date(1970, 1, 2)


@pytest.mark.parametrize(
    "value",
    [
        Row("Alice", datetime.date(1970, 1, 2)),
        {"born": datetime.date(1970, 1, 2), "name": "Alice"},
        ("Alice", datetime.date(1970, 1, 2)),
        ["Alice", datetime.date(1970, 1, 2)],
        _Person(),
    ],
)
def test_a_row_type_takes_rows_dicts_tuples_and_objects(value):
    type_info = RowTypeInfo([Types.STRING(), Types.SQL_DATE()], ["name", "born"])
    assert type_info.to_internal_type(value) == (0, "Alice", 1)
    row = type_info.from_internal_type((0, "Alice", 1))
    assert row.as_dict() == {"name": "Alice", "born": datetime.date(1970, 1, 2)}


def test_a_row_keeps_its_kind():
    type_info = Types.ROW([Types.INT()])
    internal = type_info.to_internal_type(Row.of_kind(RowKind.DELETE, 1))
    assert internal == (3, 1)
    assert type_info.from_internal_type(internal) == Row.of_kind(RowKind.DELETE, 1)


def test_rows_and_tuples_of_another_length_are_refused():
    with pytest.raises(TypeInferenceError, match="ROW<f0: INT>: expected 1 values; got 2"):
        Types.ROW([Types.INT()]).to_internal_type((1, 2))
    with pytest.raises(TypeInferenceError, match="expected a Row, dict or tuple; got 5"):
        Types.ROW([Types.INT()]).to_internal_type(5)
    with pytest.raises(TypeInferenceError, match="TUPLE<INT>: expected 1 values"):
        Types.TUPLE([Types.INT()]).to_internal_type(5)


def test_tuples_convert_their_fields():
    type_info = Types.TUPLE([Types.SQL_DATE(), Types.STRING()])
    assert type_info.need_conversion()
    assert not Types.TUPLE([Types.STRING()]).need_conversion()
    assert type_info.to_internal_type((datetime.date(1970, 1, 2), "x")) == (1, "x")
    assert type_info.from_internal_type((1, "x")) == (datetime.date(1970, 1, 2), "x")


def test_most_types_need_no_conversion():
    value = object()
    assert not TypeInformation().need_conversion()
    assert Types.STRING().to_internal_type(value) is Types.STRING().from_internal_type(value) is value
