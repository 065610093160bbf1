"""Values of state as bytes."""

from __future__ import annotations

import datetime
import decimal
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common import Row, Types
from headrace.common.codec import value_codec
from headrace.errors import StateTypeError

_BITS = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}


def _round_trip(type_info, value):
    encode, decode = value_codec(type_info)
    encoded = encode(value)
    assert type(encoded) is bytes
    return decode(encoded)


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_any_string_survives(value):
    assert _round_trip(Types.STRING(), value) == value


@given(st.sampled_from(sorted(_BITS)), st.data())
def test_whole_numbers_survive_within_their_width(name, data):
    limit = 1 << (_BITS[name] - 1)
    value = data.draw(st.integers(min_value=-limit, max_value=limit - 1))
    assert _round_trip(getattr(Types, name)(), value) == value


@pytest.mark.parametrize("name", sorted(_BITS))
def test_whole_numbers_beyond_their_width_are_refused(name):
    encode, _ = value_codec(getattr(Types, name)())
    limit = 1 << (_BITS[name] - 1)
    for value in (limit, -limit - 1):
        with pytest.raises(
            StateTypeError, match=f"type {name} must be an int of {_BITS[name]} bits; got int"
        ):
            encode(value)


@pytest.mark.parametrize("name", sorted(_BITS))
@pytest.mark.parametrize("value", ["1", 1.5, None, [1], math.nan])
def test_a_value_that_is_not_a_whole_number_is_refused(name, value):
    encode, _ = value_codec(getattr(Types, name)())
    with pytest.raises(
        StateTypeError, match=f"must be an int of {_BITS[name]} bits; got {type(value).__name__}"
    ):
        encode(value)


def test_whole_numbers_can_be_declared_wider_later():
    narrow, wide = value_codec(Types.INT()), value_codec(Types.LONG())
    assert wide[1](narrow[0](-5)) == -5


@given(st.sampled_from([Types.DOUBLE(), Types.FLOAT()]), st.floats(allow_nan=False))
def test_floats_survive_exactly(type_info, value):
    assert _round_trip(type_info, value) == value


def test_floats_take_whole_numbers_and_nan():
    assert _round_trip(Types.DOUBLE(), 3) == 3.0
    assert math.isnan(_round_trip(Types.DOUBLE(), math.nan))


@pytest.mark.parametrize("value", ["1.5", None, 10**400, 1j])
def test_a_value_that_is_not_a_float_is_refused(value):
    encode, _ = value_codec(Types.DOUBLE())
    with pytest.raises(StateTypeError, match="type DOUBLE must be a float; got"):
        encode(value)


@pytest.mark.parametrize("value", [True, False])
def test_truth_values_survive(value):
    assert _round_trip(Types.BOOLEAN(), value) is value


@pytest.mark.parametrize("value", ["true", None, 2, [True]])
def test_a_value_that_is_not_a_truth_value_is_refused(value):
    with pytest.raises(StateTypeError, match="type BOOLEAN must be True or False"):
        value_codec(Types.BOOLEAN())[0](value)


@given(st.binary())
def test_bytes_survive(value):
    type_info = Types.PRIMITIVE_ARRAY(Types.BYTE())
    assert _round_trip(type_info, value) == value
    assert _round_trip(type_info, bytearray(value)) == value


@pytest.mark.parametrize("value", [5, "abc", None, [1, 2]])
def test_a_value_that_is_not_bytes_is_refused(value):
    with pytest.raises(StateTypeError, match="must be bytes"):
        value_codec(Types.PRIMITIVE_ARRAY(Types.BYTE()))[0](value)


@pytest.mark.parametrize("value", [5, None, b"x", ["x"]])
def test_a_value_that_is_not_a_string_is_refused_with_a_hint(value):
    with pytest.raises(StateTypeError, match=r"(?s)type STRING must be a str.*hint: declare the type"):
        value_codec(Types.STRING())[0](value)


_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.dates()
    | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(_ANYTHING)
def test_without_a_type_anything_that_pickles_survives(value):
    assert _round_trip(None, value) == value
    assert _round_trip(Types.PICKLED_BYTE_ARRAY(), value) == value


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", 1)),
        (Types.ROW_NAMED(["a"], [Types.INT()]), Row(a=1)),
        (Types.LIST(Types.LONG()), [1, 2]),
        (Types.MAP(Types.STRING(), Types.LONG()), {"a": 1}),
        (Types.PRIMITIVE_ARRAY(Types.LONG()), [1, 2]),
        (Types.BIG_INT(), 10**50),
        (Types.BIG_DEC(), decimal.Decimal("1.50")),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)),
        (Types.CHAR(), "x"),
    ],
    ids=repr,
)
def test_values_of_other_types_survive(type_info, value):
    assert _round_trip(type_info, value) == value
