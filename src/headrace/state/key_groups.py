"""Key groups: the fixed grains in which keyed state is cut, and their assignment to subtasks.

The number of groups is the max parallelism and never changes for a job; which subtask has which groups follows from
the parallelism alone, by Flink's formulas (``KeyGroupRangeAssignment``), so any parallelism can restore any state.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

#: Knuth's multiplicative constant: spreads the hash of short keys, which a checksum alone leaves in a few groups.
SPREAD = 2654435761


def key_group_of(key_hash: int, max_parallelism: int) -> int:
    """Return the key group of a key with this stable hash.

    Loops over many records write ``(key_hash * SPREAD >> 16) % max_parallelism`` out, to save the call.
    """
    return (key_hash * SPREAD >> 16) % max_parallelism


def key_groups_of(hashes: Iterable[int], count: int, max_parallelism: int) -> npt.NDArray[np.intp]:
    """Return the key groups of many keys with these stable hashes."""
    # Two numbers of 32 bits have a product of 64.
    products = np.fromiter(hashes, np.uint64, count) * np.uint64(SPREAD)
    return ((products >> np.uint64(16)) % np.uint64(max_parallelism)).astype(np.intp)


def subtask_of(key_group: int, max_parallelism: int, parallelism: int) -> int:
    """Return the subtask that owns a key group."""
    return key_group * parallelism // max_parallelism


def key_group_range(subtask: int, max_parallelism: int, parallelism: int) -> range:
    """Return the key groups a subtask owns.

    >>> [list(key_group_range(i, 10, 3)) for i in range(3)]
    [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    """
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    end = ((subtask + 1) * max_parallelism - 1) // parallelism
    return range(start, end + 1)
