"""LocalStore: what a state backend is. One copy of the keyed state of one operator subtask, on the host that runs it.

    catch_up(chain) -> get, get_many, reader, scan ... -> release     once an epoch, in the process that has the subtask
    close                                                             when the process gives the subtask up

The copy only ever holds committed versions: an epoch's changes go to a file, and reach the copy when a later epoch
starts from them. It can always be built again from the chain, so a store need not be durable; but what it answers must
be the version it was asked for, whatever became of the process that worked on it before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from headrace.state.handles import StateChain


class LocalStore(Protocol):
    """Tables of sorted byte keys, at one committed version."""

    def catch_up(self, chain: StateChain, groups: range) -> None:
        """Bring the copy to the chain's version; what is read until ``release`` is this version.

        Args:
            chain: The state to have; files that the copy lacks are read.
            groups: The key groups of the subtask; others in the files are passed over.

        Raises:
            StateError: If the copy is ahead of the chain, belongs to another run, or a file cannot be read.
        """

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the value under a key."""

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values under keys, in the order of the keys."""

    def reader(self, table: str) -> Callable[[bytes], bytes | None]:
        """Return ``get`` of one table, bound: the fastest way to single keys. It ends with ``release``."""

    def scan(
        self, table: str, prefix: bytes = b"", start: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries whose key starts with a prefix, in key order, from ``start`` on.

        Entries are read as they are asked for: a table may be larger than memory.
        """

    def release(self) -> None:
        """The epoch is over: other processes may have the copy."""

    def close(self) -> None:
        """Release everything; the copy stays for the next worker."""
