"""Rows of `datagen` that a worker makes, in columns: those that Spark would make of the same numbers (`sql`).

For a few rows only. Spark makes many of them faster, but needs a plan for it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.connectors import base
from headrace.connectors.datagen.fields import BITS, GeneratedField
from headrace.types import logical
from headrace.util.xxhash64 import SEED, Words, hash_int, hash_longs

__all__ = ["MOST_ROWS", "GeneratedPiece", "can_make"]

#: Rows of a slice that workers make.
MOST_ROWS: Final = 100_000

_Numbers = npt.NDArray[np.int64]
_MOST_INT: Final = 2**31 - 1
#: Hexadecimal digits of a hash.
_HASH_DIGITS: Final = 16


@dataclass(frozen=True)
class GeneratedPiece(base.FilePiece):
    """Rows whose numbers come one after the other.

    Args:
        fields: How values are made.
        columns: The columns that they are for.
        start: The first number.
        end: The number after the last one.
        names: The columns to make; None: all.
    """

    fields: tuple[GeneratedField, ...]
    columns: tuple[tuple[str, pa.DataType], ...]
    start: int
    end: int
    names: tuple[str, ...] | None = None

    def read(self) -> Iterator[pa.Table]:
        numbers = np.arange(self.start, self.end, dtype=np.int64)
        with np.errstate(over="ignore"):
            yield pa.table(
                {
                    name: _column(field, kind, numbers)
                    for field, (name, kind) in zip(self.fields, self.columns, strict=True)
                    if self.names is None or name in self.names
                }
            )

    def only(self, names: Collection[str]) -> GeneratedPiece:
        return replace(self, names=tuple(names))


def can_make(field: GeneratedField) -> bool:
    """Whether workers can make values of a field."""
    bits = BITS.get(type(field.type))
    if field.sequence is not None:
        return bits is not None and all(-(1 << bits - 1) <= end < 1 << bits - 1 for end in field.sequence)
    return bits is not None or isinstance(field.type, tuple(_MADE))


def _column(field: GeneratedField, kind: pa.DataType, numbers: _Numbers) -> pa.Array:
    if field.sequence is not None:
        return pa.array(numbers + field.sequence[0]).cast(kind)
    values = _whole(field, numbers) if type(field.type) in BITS else _MADE[type(field.type)](field, numbers)
    seed = _seed(field)
    is_null = _unit(f"{seed}/null", numbers) < field.null_rate if field.null_rate else None
    return pa.array(values, mask=is_null).cast(kind)


def _seed(field: GeneratedField) -> str:
    return "/".join(field.path)


def _hash(seed: str, numbers: _Numbers) -> Words:
    """Return what Spark has for ``xxhash64(id, number of the seed)``."""
    number, first = zlib.crc32(seed.encode()), hash_longs(numbers, SEED)
    if number <= _MOST_INT:
        return hash_int(number, first)
    return hash_longs(np.full(len(numbers), number, np.int64), first)


def _share(seed: str, numbers: _Numbers, width: int) -> _Numbers:
    """Return hashes as numbers from 0 up to a width."""
    return _hash(seed, numbers).view(np.int64) % width


def _unit(seed: str, numbers: _Numbers) -> npt.NDArray[np.float64]:
    return _share(seed, numbers, 2**53) / 2.0**53


def _whole(field: GeneratedField, numbers: _Numbers) -> _Numbers:
    assert field.least is not None
    assert field.most is not None
    least, width = int(field.least), int(field.most) - int(field.least) + 1
    if width >= 2**63:
        return _hash(_seed(field), numbers).view(np.int64)
    return least + _share(_seed(field), numbers, width)


def _fraction(field: GeneratedField, numbers: _Numbers) -> npt.NDArray[np.float64]:
    least = -1e9 if field.least is None else field.least
    most = 1e9 if field.most is None else field.most
    return least + _unit(_seed(field), numbers) * (most - least)


def _is_even(field: GeneratedField, numbers: _Numbers) -> npt.NDArray[np.bool_]:
    even: npt.NDArray[np.bool_] = _share(_seed(field), numbers, 2) == 0
    return even


def _text(field: GeneratedField, numbers: _Numbers) -> npt.NDArray[np.object_]:
    seed, digits = _seed(field), field.length
    hashes = [_hash(f"{seed}/{at}", numbers).tolist() for at in range(-(-digits // _HASH_DIGITS))]
    texts = [
        "".join(f"{each:x}" for each in row)[:digits].rjust(digits, "0")
        for row in (zip(*hashes, strict=True) if hashes else [()] * len(numbers))
    ]
    if field.is_varying and digits:
        lengths = 1 + _share(f"{seed}/length", numbers, digits)
        texts = [text[:length] for text, length in zip(texts, lengths.tolist(), strict=True)]
    return np.array(texts, dtype=object)


_MADE: Final[dict[type[logical.DataType], Callable[[GeneratedField, _Numbers], npt.NDArray[np.generic]]]] = {
    logical.FloatType: _fraction,
    logical.DoubleType: _fraction,
    logical.BooleanType: _is_even,
    logical.CharType: _text,
    logical.VarCharType: _text,
}
