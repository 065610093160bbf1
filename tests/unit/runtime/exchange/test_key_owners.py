from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import KeyTypeError
from headrace.runtime.exchange.key_owners import KeyOwners
from headrace.state.key_groups import key_group_of, subtask_of
from headrace.state.keys import hash_key

GROUPS, CHANNELS = 128, 3


def expected(keys: Sequence[Any]) -> list[int]:
    return [subtask_of(key_group_of(hash_key(key), GROUPS), GROUPS, CHANNELS) for key in keys]


@given(
    st.lists(
        st.lists(
            st.one_of(
                st.text(max_size=2),
                st.integers(),
                st.booleans(),
                st.binary(max_size=2),
                st.none(),
                st.floats(allow_nan=False),
                st.tuples(st.integers(0, 3), st.text(max_size=1)),
            )
        ),
        max_size=4,
    )
)
def test_keys_have_the_same_owner_in_every_batch(batches: list[list[Any]]) -> None:
    owners = KeyOwners(GROUPS, CHANNELS)
    for keys in (*batches, *batches):
        assert owners.of(keys) == expected(keys)


@pytest.mark.parametrize(
    "key_of", [str, int, lambda number: (number, "x"), lambda number: "\ud800" + str(number)]
)
def test_more_keys_than_are_kept_have_the_same_owners(key_of: Any) -> None:
    owners = KeyOwners(GROUPS, CHANNELS)
    keys = [key_of(number) for number in range(25_000)]
    right = expected(keys)
    for _ in range(2):
        found = [
            owner for start in range(0, 25_000, 5_000) for owner in owners.of(keys[start : start + 5_000])
        ]
        assert found == right


class AnyCase:
    """Equal to others whose bytes differ."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyCase) and other.name.lower() == self.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


@pytest.mark.parametrize("wrap", [lambda key: key, lambda key: (key,)])
def test_keys_of_classes_with_their_own_equality_are_compared_by_their_bytes(wrap: Any) -> None:
    owners = KeyOwners(GROUPS, CHANNELS)
    lower, upper = ([wrap(AnyCase(letter)) for letter in letters] for letters in ("abcdefgh", "ABCDEFGH"))
    assert expected(lower) != expected(upper)
    assert owners.of(lower) == expected(lower)
    assert owners.of(upper) == expected(upper)


def test_a_key_that_cannot_be_is_refused_whatever_was_seen_before() -> None:
    owners = KeyOwners(GROUPS, CHANNELS)
    owners.of(["a", "b"])
    for bad, why in (([1], "list is not hashable"), (math.nan, "NaN"), ((1, [2]), "list is not hashable")):
        with pytest.raises(KeyTypeError, match=why):
            owners.of(["a", bad])
        with pytest.raises(KeyTypeError, match=why):
            owners.of([bad])
