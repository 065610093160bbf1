"""Spark's xxhash64, against what Spark answers."""

from __future__ import annotations

import numpy as np

from headrace.util.xxhash64 import SEED, hash_int, hash_longs


def test_numbers_have_the_hashes_that_spark_gives_them() -> None:
    # SELECT xxhash64(1), xxhash64(1L)
    seeds = np.full(2, SEED)
    assert hash_int(1, seeds).view(np.int64).tolist() == [-6698625589789238999] * 2
    assert hash_longs(np.array([1], np.int64), SEED).view(np.int64).tolist() == [-7001672635703045582]


def test_a_hash_continues_from_the_one_before() -> None:
    first = hash_longs(np.array([1, 2], np.int64), SEED)
    both = hash_int(7, first)
    assert both.tolist() == [hash_int(7, first[at : at + 1])[0] for at in range(2)]
    assert len(set(both.tolist())) == 2
