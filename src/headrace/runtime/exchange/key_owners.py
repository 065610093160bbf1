"""KeyOwners: which channel the records of a key take, for a batch of keys at a time.

    keys   "ann" "bob" "ann"  ->  bytes  ->  hash  ->  key group  ->  owner 0 1 0
                              ->  keys that were seen before  ----->  owner

A job with few keys sees each of them in every batch, so what was computed is kept. A job with many keys would only fill
the memory: it computes, in numpy if the batch is large enough.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

import numpy as np

from headrace.state.key_groups import SPREAD, key_groups_of, subtask_of
from headrace.state.keys import hash_keys

#: Keys of these types have equal bytes exactly if they are equal, whatever is kept of them.
_PLAIN = frozenset({str, int, bool, bytes, type(None)})
#: Of more keys than these, none are kept: looking them up would take as long as computing.
_MOST_KNOWN = 20_000
#: From so many keys on, numpy is faster than a loop.
_ENOUGH_FOR_NUMPY = 200


class KeyOwners:
    """Maps keys to the channels of the subtasks that own their key groups.

    Args:
        max_parallelism: The number of key groups.
        channels: How many subtasks there are.
    """

    def __init__(self, max_parallelism: int, channels: int) -> None:
        self._groups = max_parallelism
        self._of_group = [subtask_of(group, max_parallelism, channels) for group in range(max_parallelism)]
        self._of_group_array = np.array(self._of_group)
        self._known: dict[Any, int] = {}
        #: Whether owners are kept: not if there are too many keys.
        self._keeps = True

    def of(self, keys: Sequence[Any]) -> list[int]:
        """Return the channel of each key.

        Raises:
            KeyTypeError: If one of them cannot be a key.
        """
        if not self._keeps or not _is_plain(keys):
            return self._computed(keys)
        known = self._known
        try:
            return list(map(known.__getitem__, keys))
        except KeyError:
            new = list(set(keys).difference(known))
        if len(known) + len(new) > _MOST_KNOWN:
            self._keeps = False
            known.clear()
            return self._computed(keys)
        known.update(zip(new, self._computed(new), strict=True))
        return list(map(known.__getitem__, keys))

    def _computed(self, keys: Collection[Any]) -> list[int]:
        hashes = hash_keys(keys)
        if len(keys) < _ENOUGH_FOR_NUMPY:
            of_group, groups = self._of_group, self._groups
            return [of_group[(key_hash * SPREAD >> 16) % groups] for key_hash in hashes]
        owners: list[int] = self._of_group_array[key_groups_of(hashes, len(keys), self._groups)].tolist()
        return owners


def _is_plain(keys: Sequence[Any]) -> bool:
    """Whether equal keys have equal bytes for certain: classes may define equality as they like."""
    kinds = set(map(type, keys))
    if kinds == {tuple}:
        kinds = set(map(type, chain.from_iterable(keys)))
    return kinds <= _PLAIN
