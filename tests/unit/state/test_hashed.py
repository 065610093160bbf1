"""Equal keys are brought together, also where one of their hashes is the same by chance."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.state.hashed import together

hashes = st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1])


@given(st.lists(st.tuples(hashes, hashes)))
def test_equal_keys_stand_beside_each_other(pairs: list[tuple[int, int]]):
    keys = np.array(pairs, np.int64).reshape(-1, 2)
    order, begins = together(keys)
    assert sorted(order.tolist()) == list(range(len(pairs)))
    ordered = [pairs[at] for at in order]
    runs = [pair for pair, is_first in zip(ordered, begins, strict=True) if is_first]
    assert len(runs) == len(set(runs)) == len(set(pairs))
    for at, is_first in enumerate(begins):
        assert is_first == (at == 0 or ordered[at] != ordered[at - 1])
