"""Equal keys are brought together, and keys that share some of their numbers are kept apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.table.base import positions_in, with_numbers
from headrace.state.hashed import last_of_each, scattered, together

Keys = tuple[int, list[tuple[int, ...]]]

numbers = st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1])
#: How many numbers keys have, two to four, and the keys.
keys_of_any_width = st.integers(2, 4).flatmap(
    lambda width: st.tuples(st.just(width), st.lists(st.tuples(*[numbers] * width)))
)


def array_of(keys: list[tuple[int, ...]], width: int) -> np.ndarray:
    return np.array(keys, np.int64).reshape(-1, width)


@given(keys_of_any_width)
def test_equal_keys_are_adjacent(some: Keys):
    width, keys = some
    order, begins = together(array_of(keys, width))
    assert sorted(order.tolist()) == list(range(len(keys)))
    ordered = [keys[at] for at in order]
    runs = [key for key, is_first in zip(ordered, begins, strict=True) if is_first]
    assert len(runs) == len(set(runs)) == len(set(keys))
    for at, is_first in enumerate(begins):
        assert is_first == (at == 0 or ordered[at] != ordered[at - 1])


@given(keys_of_any_width)
def test_the_last_row_of_each_key_is_found(some: Keys):
    width, keys = some
    last = last_of_each(array_of(keys, width))
    assert last.tolist() == sorted({key: at for at, key in enumerate(keys)}.values())


@given(keys_of_any_width, st.data())
def test_keys_are_found_among_others(some: Keys, data: st.DataObject):
    width, wanted = some
    each = st.tuples(*[numbers] * width)
    others = data.draw(st.lists(each | st.sampled_from(wanted) if wanted else each, unique=True))
    found = positions_in(array_of(others, width), array_of(wanted, width))
    assert found.tolist() == [others.index(key) if key in others else -1 for key in wanted]


def test_rows_of_one_key_are_scattered():
    keys = with_numbers(np.full((10_000, 2), 7), np.arange(10_000) * 60_000)
    assert len(np.unique(scattered(keys))) == 10_000
