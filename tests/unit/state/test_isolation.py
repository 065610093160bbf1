from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from headrace.common.types import Row
from headrace.state.isolation import is_immutable, isolated


class Pair(NamedTuple):
    left: Any
    right: Any


class Text(str):
    """A string that can carry more."""


@dataclasses.dataclass
class Box:
    items: list[int]


@pytest.mark.parametrize(
    "value",
    [1, "a", 1.5, True, None, b"a", 1j, Decimal(1), dt.date(2024, 1, 1), (), (1, "a"), (1, (2, (3, "x")))],
    ids=repr,
)
def test_what_cannot_change_is_shared(value: Any) -> None:
    assert is_immutable(value)
    assert isolated(value) is value


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, {1}, (1, [2]), Pair(1, [2]), Box([1]), Row("a", [1]), bytearray(b"a")], ids=repr
)
def test_what_can_change_is_copied_deeply(value: Any) -> None:
    copied = isolated(value)
    assert copied == value
    assert type(copied) is type(value)
    assert copied is not value


def test_changes_to_the_original_do_not_reach_the_copy() -> None:
    value: Any = (1, [2, [3]])
    copied = isolated(value)
    value[1].append("later")
    value[1][1].append("later")
    assert copied == (1, [2, [3]])


def test_a_subclass_of_an_atom_may_carry_more_and_is_copied() -> None:
    text = Text("a")
    text.note = []  # type: ignore[attr-defined]
    assert not is_immutable(text)
    assert isolated(text) is not text
