"""Keys of rows as two numbers, computed in a worker: the same ones that Spark computes (`spark/row_keys.py`).

Both must compute the same numbers, because they identify state, and an epoch may use either of them.
`tests/spark/test_packed_exchange.py` compares them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.operators.table.pair_conditions import whole_numbers
from headrace.state.columns import Ints
from headrace.state.key_secret import KeySecret
from headrace.util.xxhash64 import DIGITS, SEED, hash_digits, hash_longs

#: Columns up to which one byte says which of them are NULL.
_FLAGS = 7


def is_fixed(kind: pa.DataType) -> bool:
    """Whether values are numbers of at most 64 bits to a key."""
    return bool(pa.types.is_signed_integer(kind)) or kind == pa.timestamp("us")


def can_be_key(kinds: Sequence[pa.DataType]) -> bool:
    """Whether the numbers of a key of these types are known here."""
    are_known = all(is_fixed(kind) or kind in (pa.string(), pa.binary()) for kind in kinds)
    return are_known and len(kinds) <= _FLAGS


def is_digest(kinds: Sequence[pa.DataType]) -> bool:
    """Whether the numbers of a key of these types are always those of a digest."""
    return len(kinds) > 2 or not all(map(is_fixed, kinds))


@dataclass(frozen=True)
class NumberedKeys:
    """Keys of rows, each different one once."""

    #: Which key each row has.
    codes: Ints
    #: The columns of the keys.
    columns: Sequence[pa.Array]
    #: Both numbers of each.
    numbers: Ints


class KeyNumbers:
    """Computes keys with the secret of a job."""

    def __init__(self, secret: KeySecret) -> None:
        self._secret = secret

    def of(self, columns: Sequence[pa.Array], rows: int) -> Ints:
        """Return both numbers of the keys of rows."""
        numbers = np.zeros((rows, 2), np.int64)
        if not columns or not rows:
            return numbers
        if is_digest([_type_of(column) for column in columns]):
            return self._of_digests(columns)
        values = [_longs(column) for column in columns]
        if len(values) == 1:
            numbers[:, 0] = hash_longs(values[0], SEED).view(np.int64)
        else:
            first = hash_longs(values[1], hash_longs(values[0], SEED))
            numbers[:, 0] = first.view(np.int64)
            numbers[:, 1] = hash_longs(values[1], SEED).view(np.int64)
        has_null = np.zeros(rows, np.bool_)
        for column in columns:
            if column.null_count:
                has_null |= column.is_null().to_numpy(zero_copy_only=False)
        at = np.flatnonzero(has_null)
        if len(at):
            numbers[at] = self._of_digests([column.take(pa.array(at)) for column in columns])
        return numbers

    def within(self, keys: Ints, columns: Sequence[pa.Array]) -> Ints:
        """Return both numbers of keys whose first columns are known by the numbers of a digest."""
        one, other = (self.of(columns, len(keys))[:, at] for at in (0, 1))
        first = hash_longs(keys[:, 0], hash_longs(other, hash_longs(one, SEED)))
        second = hash_longs(other, hash_longs(one, hash_longs(keys[:, 1], SEED)))
        return np.stack([first.view(np.int64), second.view(np.int64)], axis=1)

    def _of_digests(self, columns: Sequence[pa.Array]) -> Ints:
        """Return halves of digests; there are often few keys, and each is looked at once."""
        found = self.numbered(columns)
        numbers: Ints = found.numbers[found.codes]
        return numbers

    def numbered(self, columns: Sequence[pa.Array]) -> NumberedKeys:
        """Number the keys of rows, which are known by digests."""
        codes = np.zeros(len(columns[0]), np.int64)
        for number, column in enumerate(columns):
            found = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            if number > 1:  # so that numbers stay small
                _, codes = np.unique(codes, return_inverse=True)
            size = len(found.dictionary)
            codes = codes * (size + 1) + found.indices.fill_null(size).to_numpy()
        _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
        unique = [_plain(column.take(pa.array(firsts))) for column in columns]
        digests = b"".join(
            hashlib.sha256(self._secret.value + encoded).hexdigest().encode() for encoded in _encoded(unique)
        )
        lanes = np.frombuffer(digests, "<u8").reshape(len(firsts), DIGITS // 8)
        one = hash_longs(np.array([1], np.int64), SEED)[0]
        halves = np.stack([hash_digits(lanes, SEED), hash_digits(lanes, one)], axis=1)
        return NumberedKeys(codes, unique, halves.view(np.int64))


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _type_of(column: pa.Array) -> pa.DataType:
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def _longs(column: pa.Array) -> Ints:
    return whole_numbers(column).astype(np.int64, copy=False)


def _encoded(columns: Sequence[pa.Array]) -> list[bytes]:
    """Return the bytes of keys: which values are NULL, then each in a form that says where it ends."""
    flags = np.zeros(len(columns[0]), np.uint8)
    bodies: list[list[bytes]] = []
    for at, column in enumerate(columns):
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        flags |= is_null.astype(np.uint8) << np.uint8(at)
        if is_fixed(column.type):
            hashed = np.where(is_null, SEED, hash_longs(_longs(column), SEED))
            packed = hashed.astype(">u8").tobytes()
            bodies.append([packed[place : place + 8] for place in range(0, len(packed), 8)])
        else:
            values = column.cast(pa.binary()).to_pylist()
            bodies.append(
                [b"" if value is None else len(value).to_bytes(4, "big") + value for value in values]
            )
    return [bytes([flag]) + b"".join(parts) for flag, *parts in zip(flags.tolist(), *bodies, strict=True)]
