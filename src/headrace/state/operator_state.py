"""State of an operator subtask that belongs to no key: broadcast state, and what operators keep for themselves.

It is small, so it is kept whole in memory, written whole when it was changed, and travels with the subtask's report.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from headrace.state.descriptors import MapStateDescriptor
from headrace.state.interfaces import BroadcastState, ReadOnlyBroadcastState


class OperatorStateBackend:
    """The operator state of one subtask: named parts, each a picklable value."""

    def __init__(self) -> None:
        self._parts: dict[str, Any] = {}
        self._broadcasts: dict[str, DictBroadcastState] = {}
        self._is_changed = False
        #: What was restored: values of broadcast state may be changed in place, without a word to us.
        self._restored: bytes | None = None

    def restore(self, snapshot: bytes | None) -> None:
        """Take the state of an earlier version; handles that were given out stay valid."""
        parts = pickle.loads(snapshot) if snapshot else {}
        self._parts = {name: value for name, value in parts.items() if not name.startswith("broadcast/")}
        for name, state in self._broadcasts.items():
            state.entries = parts.get(f"broadcast/{name}", {})
        for name, value in parts.items():
            if name.startswith("broadcast/"):
                self._broadcast(name.removeprefix("broadcast/")).entries = value
        self._is_changed = False
        self._restored = snapshot

    def snapshot(self) -> bytes | None:
        """Return the whole state; None when it is as it was restored."""
        if not self._is_changed and not any(state.entries for state in self._broadcasts.values()):
            return None
        parts = dict(self._parts)
        parts.update({f"broadcast/{name}": state.entries for name, state in self._broadcasts.items()})
        encoded = pickle.dumps(parts, protocol=5)
        return encoded if self._is_changed or encoded != self._restored else None

    def get(self, name: str, default: Any = None) -> Any:
        """Return a part."""
        return self._parts.get(name, default)

    def put(self, name: str, value: Any) -> None:
        """Set a part; nothing is written if it is what it was."""
        if name not in self._parts or self._parts[name] != value:
            self._parts[name] = value
            self._is_changed = True

    def mark_changed(self) -> None:
        """Note that a state handle was written to."""
        self._is_changed = True

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return the broadcast state under this descriptor."""
        return self._broadcast(state_descriptor.name)

    def _broadcast(self, name: str) -> DictBroadcastState:
        state = self._broadcasts.get(name)
        if state is None:
            state = self._broadcasts[name] = DictBroadcastState(self)
        return state


class DictBroadcastState(BroadcastState[Any, Any]):
    """Broadcast state over a dictionary; every subtask holds the same entries."""

    def __init__(self, backend: OperatorStateBackend) -> None:
        self._backend = backend
        self.entries: dict[Any, Any] = {}

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
        self._backend.mark_changed()

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        self.entries.update(dict_value)
        self._backend.mark_changed()

    def remove(self, key: Any) -> None:
        self.entries.pop(key, None)
        self._backend.mark_changed()

    def clear(self) -> None:
        self.entries.clear()
        self._backend.mark_changed()


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
