"""State of an operator subtask that belongs to no key: lists, broadcast state, and what operators keep for themselves.

It is small, so it is kept whole in memory, written whole when it was changed, and travels with the subtask's report.
What happens to a part when a job is restored, maybe with another parallelism, is in the first word of its name:

    list/       elements are dealt out again if the number of subtasks has changed, as in Flink
    union/      every subtask gets the elements of all
    broadcast/  every subtask has the same
    own/        stays with its subtask, or goes with it
    subtask/    stays with its subtask as long as the operator has as many; else goes with it

Elements are encoded one by one, so that they can be dealt out without being understood. The parts are msgpack around
them, so that a checkpoint can be looked at without unpickling what is in it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from headrace.errors import StateDescriptorError, StateError, StateMigrationError
from headrace.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from headrace.state.interfaces import BroadcastState, ListState, OperatorStateStore, ReadOnlyBroadcastState

_OWN = "own/"
_SUBTASK = "subtask/"
_LIST = "list/"
_UNION = "union/"
_BROADCAST = "broadcast/"
#: A part as it is stored: encoded as a whole, or element by element.
_Encoded = bytes | list[bytes]
_Parts = dict[str, _Encoded]
_parts_decoder = msgspec.msgpack.Decoder(_Parts)


class _Handle(Protocol):
    """State that was given out, and may be changed in place without a word to us."""

    def load(self, encoded: Any) -> None:
        """Take what was stored; None if nothing was."""

    def encoded(self) -> _Encoded | None:
        """Return what to store; None if there is nothing."""


class OperatorStateBackend(OperatorStateStore):
    """The operator state of one subtask."""

    def __init__(self) -> None:
        self._own: dict[str, Any] = {}
        #: Parts that are bytes already, by their full names.
        self._of_subtask: dict[str, bytes] = {}
        self._handles: dict[str, _Handle] = {}
        #: Called with the full name of each state of user functions, and the state, when it is made.
        self.on_handle: Callable[[str, Any], None] | None = None
        #: Parts that were restored and that were not asked for so far.
        self._waiting: _Parts = {}
        self._is_changed = False
        self._restored: _Parts = {}
        #: What the last snapshot had, or what was restored.
        self._written: _Parts = {}

    def restore(self, snapshot: bytes | None) -> None:
        """Take the state of an earlier version; handles that were given out stay valid."""
        self._restored = self._written = _parts_of(snapshot)
        self._own = {
            name.removeprefix(_OWN): pickle.loads(part)  # type: ignore[arg-type]
            for name, part in self._restored.items()
            if name.startswith(_OWN)
        }
        self._of_subtask = {
            name: part  # type: ignore[misc]
            for name, part in self._restored.items()
            if name.startswith(_SUBTASK)
        }
        for name, handle in self._handles.items():
            handle.load(self._restored.get(name))
        self._waiting = {
            name: part
            for name, part in self._restored.items()
            if not name.startswith((_OWN, _SUBTASK)) and name not in self._handles
        }
        self._is_changed = False

    def snapshot(self) -> bytes | None:
        """Return the whole state; None when it is as it was written last, or restored."""
        if not self._is_changed and not self._handles:
            return None
        parts: _Parts = {**self._waiting, **self._of_subtask}
        parts.update({_OWN + name: _encode(value) for name, value in self._own.items()})
        for name, handle in self._handles.items():
            encoded = handle.encoded()
            if encoded is not None:
                parts[name] = encoded
        if parts == self._written:
            return None
        # A live task continues without restoring: what comes back to its first value has changed all the same.
        self._written = parts
        return _encode_parts(parts)

    @property
    def has_restored(self) -> bool:
        """Whether there was any state to restore."""
        return bool(self._restored)

    # -- what operators keep for themselves --------------------------------------------------------------------

    def get(self, name: str, default: Any = None) -> Any:
        """Return a part of the subtask's own."""
        return self._own.get(name, default)

    def put(self, name: str, value: Any) -> None:
        """Set a part of the subtask's own; nothing is written if it is what it was."""
        if name not in self._own or self._own[name] != value:
            self._own[name] = value
            self._is_changed = True

    @property
    def has_parts_of_subtask(self) -> bool:
        """Whether there is any part that stays with its subtask: fields of functions."""
        return bool(self._of_subtask)

    def of_subtask(self, name: str) -> bytes | None:
        """Return a part that stays with its subtask as long as the operator has as many."""
        return self._of_subtask.get(_SUBTASK + name)

    def put_of_subtask(self, name: str, value: bytes | None) -> None:
        """Set such a part, or remove it; nothing is written if it is what it was."""
        if self._of_subtask.get(_SUBTASK + name) != value:
            self._is_changed = True
            if value is None:
                del self._of_subtask[_SUBTASK + name]
            else:
                self._of_subtask[_SUBTASK + name] = value

    # -- what user functions keep ------------------------------------------------------------------------------

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list_state(_LIST, state_descriptor)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list_state(_UNION, state_descriptor)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        refuse_ttl(state_descriptor)
        name = _BROADCAST + state_descriptor.name
        state = self._handles.get(name)
        if state is None:
            self._refuse_other_kind(state_descriptor.name, "broadcast state", _LIST, _UNION)
            state = self._add(name, DictBroadcastState())
        assert isinstance(state, DictBroadcastState)
        return state

    def _list_state(self, kind: str, descriptor: ListStateDescriptor) -> ListState[Any]:
        refuse_ttl(descriptor)
        other = _UNION if kind == _LIST else _LIST
        if other + descriptor.name in self._handles:
            raise StateDescriptorError(
                f"operator state '{descriptor.name}' is declared both as a list and as a union list",
                hint="give each state of a function its own name",
            )
        state = self._handles.get(kind + descriptor.name)
        if state is None:
            # One that was a union list before the job was changed may be a list now, and the other way round.
            stored = self._waiting.pop(other + descriptor.name, None)
            self._refuse_other_kind(descriptor.name, "a list", _BROADCAST)
            state = self._add(kind + descriptor.name, OperatorListState(), stored)
        assert isinstance(state, OperatorListState)
        return state

    def _refuse_other_kind(self, name: str, declared: str, *others: str) -> None:
        for other in others:
            if other + name in self._waiting:
                written = "broadcast state" if other == _BROADCAST else "a list"
                raise StateMigrationError(
                    f"operator state '{name}' was written as {written}, but is now declared as {declared}",
                    hint="declare it as before, or give it another name to start with empty state",
                    retryable=False,
                )

    def _add(self, name: str, handle: Any, stored: _Encoded | None = None) -> Any:
        handle.load(self._waiting.pop(name, stored))
        self._handles[name] = handle
        if self.on_handle is not None:
            self.on_handle(name, handle)
        return handle


def redistribute(
    snapshots: Sequence[bytes | None], parallelism: int, *, keeps_own: bool = False
) -> list[bytes | None]:
    """Return the operator state of each subtask after a restart, out of those before it, by subtask.

    Args:
        snapshots: What each subtask had.
        parallelism: How many subtasks there are now.
        keeps_own: Whether each subtask gets all of its own parts back; there must be as many as before.
    """
    before = [_parts_of(snapshot) for snapshot in snapshots]
    after: list[_Parts] = [{} for _ in range(parallelism)]
    names = sorted({name for parts in before for name in parts})
    for name in names:
        if name.startswith((_BROADCAST, _UNION, _LIST)):
            for parts, part in zip(after, _shared_out(name, before, parallelism), strict=True):
                if part:
                    parts[name] = part
        elif keeps_own or (name.startswith(_SUBTASK) and len(before) == parallelism):
            for old, new in zip(before, after, strict=True):
                if name in old:
                    new[name] = old[name]
    return [_encode_parts(parts) if parts else None for parts in after]


def _shared_out(name: str, before: Sequence[_Parts], parallelism: int) -> Sequence[_Encoded]:
    """Return what each subtask gets of a state that belongs to no subtask."""
    held = [parts[name] for parts in before if name in parts]
    if name.startswith(_BROADCAST):
        return [held[0]] * parallelism
    if name.startswith(_UNION):
        return [_concatenated(held)] * parallelism
    if len(before) == parallelism:
        # As in Flink: elements move only where the number of subtasks has changed.
        return [parts.get(name, []) for parts in before]
    return list(_dealt_out(_concatenated(held), parallelism))


def own_part(snapshot: bytes | None, name: str) -> Any:
    """Return a part of a subtask's own out of a snapshot, or None."""
    part = _parts_of(snapshot).get(_OWN + name)
    return None if part is None else pickle.loads(part)  # type: ignore[arg-type]


def with_own_part(snapshot: bytes | None, name: str, value: Any) -> bytes:
    """Return a snapshot with a part of the subtask's own put into it."""
    return _encode_parts({**_parts_of(snapshot), _OWN + name: _encode(value)})


def elements_of(snapshot: bytes | None) -> Iterator[tuple[str, str, bytes]]:
    """Yield what user functions keep in a snapshot: kind, name, and the pickled element.

    An element of broadcast state is a pair of key and value.
    """
    for full_name, part in _parts_of(snapshot).items():
        kind, _, name = full_name.partition("/")
        if isinstance(part, list):
            for element in part:
                yield kind, name, element


def _dealt_out(elements: list[bytes], parallelism: int) -> Iterator[list[bytes]]:
    """Yield even shares, the first ones getting what is left over."""
    share, rest = divmod(len(elements), parallelism)
    start = 0
    for subtask in range(parallelism):
        end = start + share + (subtask < rest)
        yield elements[start:end]
        start = end


def _concatenated(parts: Iterable[_Encoded]) -> list[bytes]:
    return [element for part in parts for element in part]  # type: ignore[misc]


def _parts_of(snapshot: bytes | None) -> _Parts:
    if not snapshot:
        return {}
    try:
        return _parts_decoder.decode(snapshot)
    except msgspec.MsgspecError as error:
        raise StateError(f"the state of an operator cannot be decoded: {error}", retryable=False) from error


def _encode_parts(parts: _Parts) -> bytes:
    return msgspec.msgpack.encode(parts)


def _encode(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)


def refuse_ttl(descriptor: StateDescriptor) -> None:
    """Say that state without a key does not end; as in Flink, only keyed state has a time to live."""
    if descriptor.ttl_config is not None:
        raise StateDescriptorError(
            f"state '{descriptor.name}' cannot have a time to live: only keyed state can",
            hint="leave out enable_time_to_live(), and remove old entries yourself; those of broadcast state in "
            "process_broadcast_element()",
        )


class OperatorListState(ListState[Any]):
    """A list of elements of one subtask."""

    def __init__(self) -> None:
        self._elements: list[Any] = []

    def load(self, encoded: list[bytes] | None) -> None:
        """Take what was stored."""
        self._elements = [pickle.loads(element) for element in encoded or ()]

    def encoded(self) -> list[bytes] | None:
        """Return what to store."""
        return [_encode(element) for element in self._elements] or None

    def get(self) -> Iterable[Any]:
        return list(self._elements)

    def add(self, value: Any) -> None:
        self._elements.append(value)

    def add_all(self, values: Iterable[Any]) -> None:
        self._elements.extend(values)

    def update(self, values: Iterable[Any]) -> None:
        self._elements = list(values)

    def clear(self) -> None:
        self._elements = []

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())


class DictBroadcastState(BroadcastState[Any, Any]):
    """Broadcast state over a dictionary; every subtask holds the same entries."""

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}

    def load(self, encoded: list[bytes] | None) -> None:
        """Take what was stored."""
        self.entries = dict(map(pickle.loads, encoded or ()))

    def encoded(self) -> list[bytes] | None:
        """Return what to store."""
        return list(map(_encode, self.entries.items())) or None

    def get(self, key: Any) -> Any:
        return self.entries.get(key)

    def contains(self, key: Any) -> bool:
        return key in self.entries

    def items(self) -> Iterable[tuple[Any, Any]]:
        return self.entries.items()

    def keys(self) -> Iterable[Any]:
        return self.entries.keys()

    def values(self) -> Iterable[Any]:
        return self.entries.values()

    def is_empty(self) -> bool:
        return not self.entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self.entries)

    def put(self, key: Any, value: Any) -> None:
        self.entries[key] = value

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        self.entries.update(dict_value)

    def remove(self, key: Any) -> None:
        self.entries.pop(key, None)

    def clear(self) -> None:
        self.entries.clear()


class ReadOnlyView(ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state as the non-broadcast side sees it: it cannot be written, so all subtasks keep agreeing."""

    def __init__(self, state: BroadcastState[Any, Any]) -> None:
        self._state = state

    def get(self, key: Any) -> Any:
        return self._state.get(key)

    def contains(self, key: Any) -> bool:
        return self._state.contains(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        return self._state.items()

    def keys(self) -> Iterable[Any]:
        return self._state.keys()

    def values(self) -> Iterable[Any]:
        return self._state.values()

    def is_empty(self) -> bool:
        return self._state.is_empty()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._state.keys())

    def clear(self) -> None:
        raise TypeError("broadcast state is read-only here: change it in process_broadcast_element()")
