"""SinkDigest: what a sink received in an epoch, as one short hash per record.

Hashes are small enough to keep for every recorded epoch, and tell which record of a replay differs.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from typing import Any

from headrace.elements import Batch

#: Bytes per record.
DIGEST_SIZE = 8


class SinkDigest:
    """Hashes the records of one sink, in their order."""

    def __init__(self) -> None:
        self._hashes: list[bytes] = []

    def begin_epoch(self) -> None:
        self._hashes = []

    def add(self, batch: Batch) -> None:
        """Take what the sink is given."""
        timestamps = batch.timestamps or [None] * len(batch)
        self._hashes += [digest_of(*item) for item in zip(batch.values, timestamps, strict=True)]

    def take(self) -> bytes:
        """Return the hashes of the epoch's records, one after the other."""
        return b"".join(self._hashes)


def digest_of(value: Any, timestamp: int | None) -> bytes:
    """Return the hash of a record."""
    return hashlib.blake2b(canonical_bytes((value, timestamp)), digest_size=DIGEST_SIZE).digest()


def canonical_bytes(value: Any) -> bytes:
    """Pickle a value so that equal parts look the same, whether they are one object or several."""
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=5)
    pickler.fast = True  # no references to what was written before
    try:
        pickler.dump(value)
    except (ValueError, RecursionError):  # it contains itself
        return pickle.dumps(value, protocol=5)
    return stream.getvalue()
