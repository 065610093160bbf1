"""Spark's xxhash64, over arrays: what workers compute with it is what Spark would compute."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["DIGITS", "SEED", "Words", "hash_digits", "hash_int", "hash_longs"]

Words = npt.NDArray[np.uint64]

#: What Spark's xxhash64 begins with.
SEED = np.uint64(42)
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(each)
    for each in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
#: Bytes of a text that `hash_digits` takes, and of what the hash takes of it at a time.
DIGITS, _STRIPE = 64, 32


def hash_longs(values: npt.NDArray[np.int64], seed: np.uint64 | Words) -> Words:
    """Return Spark's xxhash64 of BIGINTs, which continues from a seed."""
    words = values.view(np.uint64)
    hashed = _rotated(words * _P2, 31) * _P1
    hashed ^= seed + (_P5 + np.uint64(8))
    hashed = _rotated(hashed, 27) * _P1 + _P4
    return _mixed(hashed)


def hash_int(value: int, seed: Words) -> Words:
    """Return Spark's xxhash64 of an INT that is the same in all rows, which continues from a seed."""
    with np.errstate(over="ignore"):
        hashed = (seed + (_P5 + np.uint64(4))) ^ (np.uint64(value & 0xFFFFFFFF) * _P1)
    return _mixed(_rotated(hashed, 23) * _P2 + _P3)


def hash_digits(lanes: Words, seed: np.uint64) -> Words:
    """Return Spark's xxhash64 of texts of 64 bytes, given as eight words each."""
    with np.errstate(over="ignore"):
        starts = (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)
    parts = [np.full(len(lanes), start, np.uint64) for start in starts]
    for stripe in range(DIGITS // _STRIPE):
        parts = [_rotated(part + lanes[:, 4 * stripe + at] * _P2, 31) * _P1 for at, part in enumerate(parts)]
    hashed = sum(
        (_rotated(part, bits) for part, bits in zip(parts, (1, 7, 12, 18), strict=True)),
        np.zeros(len(lanes), np.uint64),
    )
    for part in parts:
        hashed = (hashed ^ (_rotated(part * _P2, 31) * _P1)) * _P1 + _P4
    return _mixed(hashed + np.uint64(DIGITS))


def _mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(33))) * _P2
    words = (words ^ (words >> np.uint64(29))) * _P3
    mixed: Words = words ^ (words >> np.uint64(32))
    return mixed


def _rotated(words: Words, bits: int) -> Words:
    rotated: Words = (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
    return rotated
