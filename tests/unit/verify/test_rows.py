"""Which rows count as equal."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from headrace.common import Row
from headrace.errors import JobDefinitionError
from headrace.verify.rows import IGNORED, field_of, normal_form, without_fields


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Order:
    total: float
    tags: set[Any] = field(default_factory=set)
    next: Any = None


def test_objects_are_equal_whatever_the_order_of_a_set_in_them() -> None:
    # 0 and 8 collide in a small set, so the one that was added first comes first.
    assert list({0, 8}) != list({8, 0})
    assert normal_form(Order(0.1 + 0.2, {0, 8})) == normal_form(Order(0.3, {8, 0}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Order(1.0), Order(2.0)),
        (Order(1.0, {1}), Order(1.0, {2})),
        (Colour.RED, Colour.BLUE),
        (Decimal("1.0"), Decimal("1.1")),
        (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)),
        (datetime.timedelta(1), datetime.timedelta(2)),
        (int, str),
        (len, max),
        (range(3), range(4)),
    ],
)
def test_different_values_have_different_forms(one: object, other: object) -> None:
    assert normal_form(one) == normal_form(one)
    assert normal_form(one) != normal_form(other)
    assert hash(normal_form(one)) is not None


def test_an_object_that_contains_itself_has_a_form() -> None:
    order = Order(1.0)
    order.next = order
    assert hash(normal_form(order)) is not None


def test_a_field_is_found_in_every_kind_of_row() -> None:
    order = Order(1.5)
    assert [field_of(row, "total") for row in (Row(total=1.5), {"total": 1.5}, order)] == [1.5] * 3
    assert without_fields({"total": 1.5}, ["total"]) == {"total": IGNORED}
    assert without_fields(order, ["total"]).total == IGNORED
    assert without_fields((1, 2), ["0"]) == (IGNORED, 2)
    assert order.total == 1.5


@pytest.mark.parametrize(
    ("row", "name"), [((1, 2), "2"), ((1, 2), "total"), ({"a": 1}, "b"), (Order(1.0), "tax"), (5, "0")]
)
def test_a_field_that_a_row_does_not_have_is_named(row: object, name: str) -> None:
    with pytest.raises(JobDefinitionError, match=f"has no field '{name}' for --key"):
        field_of(row, name)
    with pytest.raises(JobDefinitionError, match=f"has no field '{name}' to ignore"):
        without_fields(row, [name])
