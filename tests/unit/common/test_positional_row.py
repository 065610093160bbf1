"""Rows of results look like PyFlink's and still have names."""

from __future__ import annotations

import pickle

import pytest

from headrace.common.positional_row import by_position
from headrace.common.types import Row, RowKind

NAMED = Row(name="Ann", at=Row(x=1, y=[Row(z=2)]), more={"k": Row(v=3)})


def test_rows_show_no_names_at_any_depth() -> None:
    row = by_position(NAMED)
    assert repr(row) == "<Row('Ann', <Row(1, [<Row(2)>])>, {'k': <Row(3)>})>"
    assert repr(NAMED).startswith("Row(name='Ann'"), "the row that it was made of is as it was"


def test_values_can_be_asked_for_by_name_and_by_position() -> None:
    row = by_position(NAMED)
    assert (row.name, row["name"], row[0], row.at.y[0].z, row.more["k"].v) == ("Ann", "Ann", "Ann", 2, 3)
    assert row.as_dict(recursive=True)["at"] == {"x": 1, "y": [{"z": 2}]}
    assert "Ann" in row
    assert "name" not in row


def test_kind_equality_and_hash_are_those_of_rows() -> None:
    deleted = by_position(Row.of_kind(RowKind.DELETE, id=1))
    assert deleted.get_row_kind() is RowKind.DELETE
    assert deleted == Row.of_kind(RowKind.DELETE, 1)
    assert {deleted} == {Row.of_kind(RowKind.DELETE, 1)}


def test_a_pickled_row_stays_what_it_is() -> None:
    again = pickle.loads(pickle.dumps(by_position(NAMED)))
    assert repr(again) == repr(by_position(NAMED))
    assert again.name == "Ann"


def test_names_that_the_program_sets_are_shown() -> None:
    row = by_position(Row(a=1))
    row.set_field_names(["b"])
    assert repr(row) == "Row(b=1)"
    with pytest.raises(AttributeError):
        _ = row.a
