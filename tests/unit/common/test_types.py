"""Rows: values by position and name, kinds, equality, pickling, printing."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common.types import Row, RowKind, changelog_text, make_row


def test_positional_values_are_reached_by_index_and_slice():
    row = Row(1, "a", None)
    assert (row[0], row[-1], row[0:2], len(row), list(row)) == (1, None, [1, "a"], 3, [1, "a", None])
    assert "a" in row
    assert "b" not in row


def test_named_values_are_reached_by_name_too():
    row = Row(name="Alice", age=11)
    assert row.name == row["name"] == row[0] == "Alice"
    row.age = 12
    row["name"] = "Bob"
    row[1] += 1
    assert row == Row("Bob", 13)


def test_positions_and_names_do_not_mix():
    with pytest.raises(ValueError, match="positional or named"):
        Row(1, a=2)


def test_a_row_of_names_makes_rows():
    Person = Row("name", "age")
    row = Person("Alice", 11)
    assert row.age == 11
    assert repr(row) == "Row(name='Alice', age=11)"
    assert repr(Person("Alice")) == "Row(name='Alice')"
    with pytest.raises(ValueError, match=r"expected 2 values for the fields \['name', 'age'\]; got 3"):
        Person("Alice", 11, "x")
    with pytest.raises(TypeError, match="not all field names"):
        Row(1, 2)(3, 4)


def test_missing_fields_name_those_there_are():
    row = Row(a=1, b=2)
    with pytest.raises(AttributeError, match="no field 'c'; the fields are a, b"):
        _ = row.c
    with pytest.raises(ValueError, match="no field 'c'; the fields are a, b"):
        row["c"]
    with pytest.raises(AttributeError, match="no field 'c'"):
        row.c = 1
    with pytest.raises(ValueError, match="has no field names"):
        Row(1)["a"]
    with pytest.raises(AttributeError, match="has no field names"):
        _ = Row(1).a


def test_field_names_can_be_given_later():
    row = Row(1, 2)
    row.set_field_names(["a", "b"])
    assert row.as_dict() == {"a": 1, "b": 2}
    assert row.get_fields_by_names(["b"]) == [2]
    with pytest.raises(ValueError, match="got the names"):
        row.set_field_names(["a"])


def test_as_dict_goes_into_values_when_asked():
    row = Row(a=Row(b=1), c=[Row(d=2)], e={"f": Row(g=3)})
    assert row.as_dict()["a"] == Row(1)
    assert row.as_dict(True) == {"a": {"b": 1}, "c": [{"d": 2}], "e": {"f": {"g": 3}}}
    with pytest.raises(TypeError, match="no field names"):
        Row(1).as_dict()


def test_a_new_row_is_an_insert_and_its_kind_can_change():
    row = Row(1)
    assert row.get_row_kind() is RowKind.INSERT
    row.set_row_kind(RowKind.DELETE)
    assert row == Row.of_kind(RowKind.DELETE, 1)
    with pytest.raises(TypeError, match="expected a RowKind"):
        row.set_row_kind("DELETE")


def test_rows_are_equal_by_kind_and_values():
    assert Row(1, "a") == Row(1, "a")
    assert Row(a=1) == Row(1)
    assert Row(1) != Row(2)
    assert Row(1) != Row.of_kind(RowKind.DELETE, 1)
    assert Row(1) != (1,)


def test_rows_can_be_keys():
    assert {Row(1, "a"): 1}[Row(x=1, y="a")] == 1
    assert hash(Row(1)) != hash(Row.of_kind(RowKind.DELETE, 1))


_VALUES = st.lists(st.none() | st.integers() | st.text() | st.binary() | st.lists(st.integers()))


@given(_VALUES, st.sampled_from(RowKind), st.booleans())
def test_rows_survive_pickling_with_kind_and_names(values, kind, named):
    names = tuple(f"f{i}" for i in range(len(values))) if named else None
    row = make_row(names, values, kind.value)
    copied = pickle.loads(pickle.dumps(row, protocol=5))
    assert copied == row
    assert repr(copied) == repr(row)


def test_copies_do_not_share_values():
    row = Row(a=1, b=[2])
    shallow, deep = copy.copy(row), copy.deepcopy(row)
    shallow.a = 5
    deep.b.append(3)
    assert row == Row(1, [2])
    assert shallow.b is row.b


def test_rows_print_as_in_flink_and_represent_themselves_as_python():
    row = Row.of_kind(RowKind.UPDATE_AFTER, "a", None, True, [1, "x"], {"k": 1.5})
    assert changelog_text(row) == "+U[a, null, true, [1, x], {k=1.5}]"
    assert (str(Row(1, "a")), str(Row(n=1))) == ("<Row(1, 'a')>", "Row(n=1)")
    assert repr(Row(1, "a")) == "<Row(1, 'a')>"
    assert str([Row(1)]) == "[<Row(1)>]"
    assert [kind.short_string() for kind in RowKind] == ["+I", "-U", "+U", "-D"]


def test_in_asks_for_a_field_if_a_row_has_names_and_else_for_a_value() -> None:
    named, plain = Row(name="ann"), Row("ann")

    assert ("name" in named, "ann" in named) == (True, False)
    assert ("name" in plain, "ann" in plain) == (False, True)
