"""Keys as rows of 64-bit numbers, and how equal ones are found.

The first two are what Spark makes of a key (`spark/row_keys.py`), and are different for different keys. Further ones
tell rows of one key apart, such as the end of a window. All of them are compared.
"""

from __future__ import annotations

import numpy as np

from headrace.state.columns import Bools, Ints

#: Spreads numbers over all their bits.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


def scattered(keys: Ints) -> Ints:
    """Return a number for each key, to sort or to place it by: the same for the same key, and rarely for others."""
    if keys.shape[1] <= 2:
        return keys[:, 0]  # Spark has scattered it
    number = keys[:, 0].astype(np.uint64)
    for word in range(2, keys.shape[1]):
        number = (number ^ keys[:, word].astype(np.uint64)) * SPREAD
        number ^= number >> np.uint64(32)
    return number.view(np.int64)


def together(keys: Ints) -> tuple[Ints, Bools]:
    """Return an order in which equal keys are adjacent, and where in it another key begins."""
    # Sorting by one number is several times as fast as by all of them, and nearly always enough.
    numbers = scattered(keys)
    order = np.argsort(numbers)
    numbers = numbers[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = numbers[1:] != numbers[:-1]
    if (_differ(keys[order]) & ~begins[1:]).any():
        order = in_order(keys)
        begins[1:] = _differ(keys[order])
    return order, begins


def in_order(keys: Ints) -> Ints:
    """Return where the keys stand when they are sorted; of equal ones, the first comes first."""
    return np.lexsort([keys[:, word] for word in reversed(range(keys.shape[1]))])


def last_of_each(keys: Ints) -> Ints:
    """Return the position of the last row of each key, in order."""
    order = in_order(keys)
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = _differ(keys[order])
    return np.sort(order[is_last])


def _differ(keys: Ints) -> Bools:
    """Return for each key but the first whether it is another one than the one before."""
    differ = np.zeros(max(len(keys) - 1, 0), np.bool_)
    for word in range(keys.shape[1]):
        differ |= keys[1:, word] != keys[:-1, word]
    return differ
