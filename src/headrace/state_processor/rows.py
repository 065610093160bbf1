"""From stored entries to readable rows: one row per value, list element, map entry and timer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.common import plain_pickle
from headrace.common.codec import Codec, named_codec
from headrace.common.plain_pickle import Loads
from headrace.operators.window.encoding import window_of
from headrace.operators.window.slices import unpack_slice_name
from headrace.state.changes import KEY_GROUP_BYTES
from headrace.state.entries import part_at, unpack_map_entry
from headrace.state.keys import decode_key
from headrace.state.schema import StateSchema
from headrace.state.slices import slice_entry
from headrace.state.timers import timer_of
from headrace.state.ttl import chunk_codec, stamped_codec


@dataclass(frozen=True, slots=True)
class StateRow:
    """One row of state."""

    #: The name of the state.
    state: str
    #: value, list, map, reducing, aggregating, timers, slices; or, of state without a key, list, union, broadcast.
    kind: str
    #: The key it belongs to; a `KeyDigest` where only that was stored, None for state without a key.
    key: Any
    #: The value, list element, map value or accumulator; `Unreadable` if it cannot be read here. None for timers.
    value: Any
    #: The window it is kept for, if any; of a slice, when it begins.
    namespace: Any = None
    #: Of a map or broadcast state: the key in the map.
    map_key: Any = None
    #: Of a timer: when it falls due. With a time to live: when it was last accessed. ms.
    time_ms: int | None = None
    #: The subtask that had it.
    subtask: int = 0
    #: None for state without a key.
    key_group: int | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A placeholder for a value that cannot be read here.

    Usually it is a pickle of a class of the program's: open the savepoint with ``allow_pickle=True`` if you trust who
    wrote it, where the class can be imported.
    """

    reason: str
    data: bytes

    def __repr__(self) -> str:
        return f"<unreadable, {len(self.data)} bytes: {self.reason}>"


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """Where an entry was found."""

    state: str
    schema: StateSchema
    subtask: int
    key_group: int
    #: Reads pickled values.
    loads: Loads = plain_pickle.loads

    @property
    def codec(self) -> Codec:
        """How the entries of the state are encoded."""
        return codec_of(self.schema, self.loads)


#: Decodes one stored entry.
EntryReader = Callable[[SnapshotPlace, bytes, bytes], Iterator[StateRow]]


def rows_of(place: SnapshotPlace, storage_key: bytes, value: bytes) -> Iterator[StateRow]:
    """Yield the rows of one stored entry."""
    return _READERS.get(place.schema.kind, _single)(place, storage_key, value)


def codec_of(schema: StateSchema, loads: Loads = plain_pickle.loads) -> Codec:
    """Return how the entries of a state are encoded: its values, or the chunks of a list."""
    if schema.kind == "list":
        return chunk_codec(named_codec(schema.type, loads)) if schema.has_ttl else named_codec(None, loads)
    values = named_codec(schema.type, loads)
    return stamped_codec(values) if schema.has_ttl else values


def split_key(schema: StateSchema, storage_key: bytes) -> tuple[Any, Any]:
    """Return the key and the namespace that a storage key names."""
    has_parts = schema.has_namespace or schema.kind in ("list", "map")
    if not has_parts:
        return decode_key(storage_key[KEY_GROUP_BYTES:]), None
    encoded, end = part_at(storage_key, KEY_GROUP_BYTES)
    if not schema.has_namespace:
        return decode_key(encoded), None
    return decode_key(encoded), window_of(part_at(storage_key, end)[0])


def readable(decode: Callable[[bytes], Any], data: bytes) -> Any:
    """Decode, or say why not."""
    try:
        return decode(data)
    except Exception as error:  # noqa: BLE001 - a pickle may raise anything, and the other rows are still wanted
        return Unreadable(f"{type(error).__name__}: {error}", data)


def _row(place: SnapshotPlace, key: Any, value: Any, **more: Any) -> StateRow:
    return StateRow(
        place.state,
        place.schema.kind,
        key,
        value,
        subtask=place.subtask,
        key_group=place.key_group,
        **more,
    )


def _stamped(schema: StateSchema, value: Any) -> tuple[int | None, Any]:
    return value if schema.has_ttl and not isinstance(value, Unreadable) else (None, value)


def _single(place: SnapshotPlace, storage_key: bytes, value: bytes) -> Iterator[StateRow]:
    key, namespace = split_key(place.schema, storage_key)
    time_ms, decoded = _stamped(place.schema, readable(place.codec[1], value))
    yield _row(place, key, decoded, namespace=namespace, time_ms=time_ms)


def _list(place: SnapshotPlace, storage_key: bytes, value: bytes) -> Iterator[StateRow]:
    key, namespace = split_key(place.schema, storage_key)
    elements = readable(place.codec[1], value)
    for element in [elements] if isinstance(elements, Unreadable) else elements:
        time_ms, decoded = _stamped(place.schema, element)
        yield _row(place, key, decoded, namespace=namespace, time_ms=time_ms)


def _map(place: SnapshotPlace, storage_key: bytes, value: bytes) -> Iterator[StateRow]:
    key, namespace = split_key(place.schema, storage_key)
    entry = readable(lambda data: unpack_map_entry(data, place.loads), value)
    if isinstance(entry, Unreadable):
        yield _row(place, key, entry, namespace=namespace)
        return
    map_key, encoded = entry
    time_ms, decoded = _stamped(place.schema, readable(place.codec[1], encoded))
    yield _row(place, key, decoded, namespace=namespace, map_key=map_key, time_ms=time_ms)


def _timers(place: SnapshotPlace, storage_key: bytes, value: bytes) -> Iterator[StateRow]:
    timer = readable(lambda data: timer_of(storage_key, data, place.loads), value)
    if isinstance(timer, Unreadable):
        yield _row(place, None, timer)
    else:
        yield _row(place, timer.key, None, namespace=timer.namespace, time_ms=timer.timestamp)


def _slices(place: SnapshotPlace, storage_key: bytes, value: bytes) -> Iterator[StateRow]:
    entry = readable(lambda data: slice_entry(storage_key, data, place.loads), value)
    if isinstance(entry, Unreadable):
        yield _row(place, None, entry)
    elif entry is not None:
        name, key, encoded = entry
        level, start = unpack_slice_name(name)
        if level == 0:  # blocks are made of slices, and made again from them
            yield _row(place, key, readable(place.loads, encoded), namespace=start)


_READERS: dict[str, EntryReader] = {"list": _list, "map": _map, "timers": _timers, "slices": _slices}
