"""Buffers: what crosses the exchange. A header says where to, a payload holds elements in stream order.

    level, partition | edge, producer, its attempt, sequence number | pickled elements

The payload is a list of items: a pair (values, timestamps) for a batch, a number for a watermark, True or False for an
active or idle channel, a list for a latency marker, None for the end of input.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from headrace.elements import Batch, Element, EndOfInput, Event, LatencyMarker, StreamStatus, Watermark

_HEADER = struct.Struct(">HIIIQI")
#: Edge number of a report on its way to the driver.
REPORT_EDGE = 0xFFFFFFFF
#: Edge number of rows that cross the border between streams and tables.
TABLE_EDGE = 0xFFFFFFFE
#: Rows for a table begin with the id of the operator they are from.
_ID_BYTES = 32


class Header(NamedTuple):
    """Where a buffer goes and where it stands on its channel."""

    level: int
    partition: int
    edge_id: int
    producer: int
    #: Which attempt of the producer wrote it: consumers of one epoch must all have read the same one.
    attempt: int
    sequence: int


def pack(header: Header, payload: bytes) -> bytes:
    """Put header and payload together."""
    return _HEADER.pack(*header) + payload


def read_header(buffer: bytes) -> Header:
    """Read the header alone."""
    return Header(*_HEADER.unpack_from(buffer))


def pack_barrier(level: int, partition: int, edge_id: int, producer: int, epoch: int) -> bytes:
    """Return the end of an epoch on one channel of a live job: a buffer without elements."""
    return _HEADER.pack(level, partition, edge_id, producer, epoch, 0)


def barrier_in(header: Header, buffer: bytes) -> int | None:
    """Return the epoch that ends with a buffer, if it is a barrier."""
    return header.attempt if len(buffer) == _HEADER.size else None


def payload_of(buffer: bytes) -> memoryview:
    """Return the payload without copying it."""
    return memoryview(buffer)[_HEADER.size :]


def encode_items(items: list[Any]) -> bytes:
    """Serialize items for the wire."""
    return pickle.dumps(items, protocol=5)


class ItemEncoder:
    """Serializes items for the wire, buffer after buffer: a pickler that is used again need not grow its memo again."""

    def __init__(self) -> None:
        self._stream = io.BytesIO()
        self._pickler = pickle.Pickler(self._stream, protocol=5)

    def encode(self, items: list[Any]) -> bytes:
        """Return what `encode_items` would."""
        try:
            self._pickler.dump(items)
            return self._stream.getvalue()
        finally:
            self._pickler.clear_memo()
            self._stream.seek(0)
            self._stream.truncate()


def rest_of(buffer: bytes, batches: int, records: int) -> bytes:
    """Return what is left of a buffer when some of its batches are processed, and some records of the next one."""
    items = pickle.loads(payload_of(buffer))
    places = [place for place, item in enumerate(items) if type(item) is tuple]
    values, timestamps = items[places[batches]]
    left = (values[records:], None if timestamps is None else timestamps[records:])
    return buffer[: _HEADER.size] + encode_items([left, *items[places[batches] + 1 :]])


def event_item(event: Event) -> Any:
    """Return an event's form on the wire."""
    if isinstance(event, Watermark):
        return event.timestamp
    if isinstance(event, StreamStatus):
        return event.active
    if isinstance(event, LatencyMarker):
        return [event.marked_ms, event.source_id, event.source_subtask]
    return None


def decode(payload: memoryview | bytes) -> Iterator[Element]:
    """Yield the elements of a payload."""
    for item in pickle.loads(payload):
        if type(item) is tuple:
            yield Batch(item[0], item[1])
        elif item is None:
            yield EndOfInput()
        elif type(item) is bool:
            yield StreamStatus(item)
        elif type(item) is list:
            yield LatencyMarker(*item)
        else:
            yield Watermark(item)


def pack_table_rows(header: Header, operator_id: str, rows: bytes | memoryview) -> bytes:
    """Put rows that cross the border together with where they are from."""
    return pack(header, operator_id.encode() + bytes(rows))


def unpack_table_rows(buffer: bytes) -> tuple[str, memoryview]:
    """Return the operator that rows are from, and the rows."""
    payload = payload_of(buffer)
    return bytes(payload[:_ID_BYTES]).decode(), payload[_ID_BYTES:]
