from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import pytest

from headrace.common import Row, RowKind
from headrace.datastream.rolling import AccumulateType, FieldAggregation
from headrace.errors import JobDefinitionError

SUM, MIN, MAX, MIN_BY, MAX_BY = (
    AccumulateType.SUM,
    AccumulateType.MIN,
    AccumulateType.MAX,
    AccumulateType.MIN_BY,
    AccumulateType.MAX_BY,
)


class Named(NamedTuple):
    key: str
    n: int
    tag: str


@dataclass(frozen=True)
class Frozen:
    key: str
    n: int


class Thing:
    def __init__(self, n: int) -> None:
        self.n = n


#: Three records of one key: key, number, where it stood.
RECORDS = [("a", 3, "first"), ("a", 1, "second"), ("a", 5, "third"), ("a", 1, "fourth")]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (SUM, ("a", 10, "first")),
        (MIN, ("a", 1, "first")),
        (MAX, ("a", 5, "first")),
        (MIN_BY, ("a", 1, "second")),
        (MAX_BY, ("a", 5, "third")),
    ],
)
def test_only_the_by_kinds_take_the_whole_record(kind: AccumulateType, expected: Any) -> None:
    assert reduce(FieldAggregation(kind, 1).reduce, RECORDS) == expected
    assert reduce(FieldAggregation(kind, 1).reduce, [Row(*r) for r in RECORDS]) == Row(*expected)
    assert reduce(FieldAggregation(kind, "n").reduce, [Named(*r) for r in RECORDS]) == Named(*expected)


@pytest.mark.parametrize(("kind", "expected"), [(SUM, 9), (MIN, 1), (MAX, 5), (MIN_BY, 1), (MAX_BY, 5)])
def test_position_0_of_a_plain_number_is_the_number(kind: AccumulateType, expected: int) -> None:
    assert reduce(FieldAggregation(kind, 0).reduce, [3, 1, 5]) == expected


@pytest.mark.parametrize(
    ("position", "one", "two", "expected"),
    [
        ("n", Row(key="a", n=1), Row(key="a", n=2), Row(key="a", n=3)),
        (1, Named("a", 1, "x"), Named("a", 2, "y"), Named("a", 3, "x")),
        ("n", Frozen("a", 1), Frozen("a", 2), Frozen("a", 3)),
        ("n", {"n": 1, "m": 0}, {"n": 2}, {"n": 3, "m": 0}),
        (0, [1, 9], [2], [3, 9]),
    ],
)
def test_fields_are_found_in_many_kinds_of_records(position: Any, one: Any, two: Any, expected: Any) -> None:
    before = repr(one)
    result = FieldAggregation(SUM, position).reduce(one, two)
    assert result == expected
    assert type(result) is type(one)
    assert repr(one) == before, "the record may still be in use elsewhere"


def test_plain_objects_are_copied() -> None:
    one = Thing(1)
    result = FieldAggregation(SUM, "n").reduce(one, Thing(2))
    assert (result.n, one.n) == (3, 1)


def test_rows_keep_names_and_kind() -> None:
    one = Row.of_kind(RowKind.UPDATE_AFTER, key="a", n=1)
    result = FieldAggregation(SUM, "n").reduce(one, Row(key="a", n=2))
    assert result.as_dict() == {"key": "a", "n": 3}
    assert result.get_row_kind() is RowKind.UPDATE_AFTER


@pytest.mark.parametrize(
    ("position", "record"), [(2, ("a", 1)), ("n", Row(1)), ("n", {}), ("n", 1), (1, 5), ("x", Frozen("a", 1))]
)
def test_a_missing_field_is_named(position: Any, record: Any) -> None:
    with pytest.raises(
        JobDefinitionError, match=f"there is no field {position!r} in {type(record).__name__}"
    ):
        FieldAggregation(SUM, position).reduce(record, record)
