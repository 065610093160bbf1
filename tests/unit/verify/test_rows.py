"""Which rows count as equal."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from headrace.verify.rows import normal_form


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
