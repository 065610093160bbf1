"""Ids under which an operator's state is found again: 32 hex digits, the same on every start.

    uid("sum")     -> hash of the uid
    set_uid_hash() -> as given
    neither        -> hash of the place: order of the visit, how many consumers are chained, ids of the inputs

The bytes are those Flink computes (``StreamGraphHasherV2``: MurmurHash3, 128 bits, seed 0), so that an
operator has the same id here as in Flink's logs and REST answers. Names, parallelism and code do not count.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Set as AbstractSet

from headrace.errors import InvalidTopologyError
from headrace.graph.stream_graph import StreamGraph, StreamNode

_MASK = (1 << 64) - 1
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F
_INT = struct.Struct("<i")


def operator_ids(graph: StreamGraph, chained: AbstractSet[int]) -> dict[int, str]:
    """Return the id of each node, by node id.

    Args:
        graph: The operators.
        chained: Ids of the edges inside chains.

    Raises:
        InvalidTopologyError: If two operators share a uid or a uid hash.
    """
    _refuse_duplicates(graph)
    hashes = _place_hashes(graph, chained)
    return {node.id: (node.uid_hash or hashes[node.id].hex()).lower() for node in graph.nodes}


def hash_of_uid(uid: str) -> str:
    """Return the operator id of a uid.

    >>> hash_of_uid("sum")
    '239c254b5ff89532b198266322bc819f'
    """
    return murmur3_128(uid.encode()).hex()


def _refuse_duplicates(graph: StreamGraph) -> None:
    for attribute, call in (("uid", "uid"), ("uid_hash", "set_uid_hash")):
        seen: dict[str, StreamNode] = {}
        for node in graph.nodes:
            value = getattr(node, attribute)
            if value is None:
                continue
            if value in seen:
                raise InvalidTopologyError(
                    f"{call}({value!r}) is set on two operators, {seen[value].name!r} and {node.name!r}",
                    hint="give each operator its own uid: state is restored by uid",
                )
            seen[value] = node


def _place_hashes(graph: StreamGraph, chained: AbstractSet[int]) -> dict[int, bytes]:
    """Visit the graph breadth first from its sources; a node waits until all its inputs have their hash."""
    hashes: dict[int, bytes] = {}
    pending = deque(node.id for node in graph.nodes if node.kind == "source")
    visited = set(pending)
    while pending:
        node = graph.node(pending.popleft())
        if any(edge.source not in hashes for edge in graph.in_edges(node.id)):
            # Its last input will put it into the queue again.
            visited.discard(node.id)
            continue
        hashes[node.id] = _hash_node(node, graph, chained, hashes)
        for edge in graph.out_edges(node.id):
            if edge.target not in visited:
                visited.add(edge.target)
                pending.append(edge.target)
    return hashes


def _hash_node(
    node: StreamNode, graph: StreamGraph, chained: AbstractSet[int], hashes: dict[int, bytes]
) -> bytes:
    if node.uid is not None:
        return murmur3_128(node.uid.encode())
    # The number of nodes seen so far stands for the place, once for the node and once per chained consumer.
    times = 1 + sum(1 for edge in graph.out_edges(node.id) if edge.id in chained)
    digest = bytearray(murmur3_128(_INT.pack(len(hashes)) * times))
    for edge in graph.in_edges(node.id):
        for position, other in enumerate(hashes[edge.source]):
            digest[position] = (digest[position] * 37 ^ other) & 0xFF
    return bytes(digest)


def murmur3_128(data: bytes) -> bytes:
    """Hash bytes with MurmurHash3_x64_128, seed 0; the digest in the algorithm's byte order.

    >>> murmur3_128(b"").hex()
    '00000000000000000000000000000000'
    >>> murmur3_128(b"The quick brown fox jumps over the lazy dog").hex()
    '6c1b07bc7bbc4be347939ac4a93c437a'
    """
    h1 = h2 = 0
    whole = len(data) & ~15
    for k1, k2 in struct.iter_unpack("<QQ", data[:whole]):
        h1 = (_rotate(h1 ^ _mix_first(k1), 27) + h2) * 5 + 0x52DCE729 & _MASK
        h2 = (_rotate(h2 ^ _mix_second(k2), 31) + h1) * 5 + 0x38495AB5 & _MASK
    k1, k2 = struct.unpack("<QQ", data[whole:].ljust(16, b"\0"))
    h1 = h1 ^ _mix_first(k1) ^ len(data)
    h2 = h2 ^ _mix_second(k2) ^ len(data)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1, h2 = _finish(h1), _finish(h2)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    return struct.pack("<QQ", h1, h2)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _mix_first(k1: int) -> int:
    return _rotate(k1 * _C1 & _MASK, 31) * _C2 & _MASK


def _mix_second(k2: int) -> int:
    return _rotate(k2 * _C2 & _MASK, 33) * _C1 & _MASK


def _finish(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ h >> 33
