"""State as a user's function sees it (PyFlink's ``pyflink.datastream.state``).

Keyed state is always that of the current key: the operator sets the key, then calls the function. Backends
implement these classes; functions get them from their runtime context with a descriptor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from headrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

__all__ = [
    "AggregatingState",
    "AppendingState",
    "BroadcastState",
    "KeyedStateStore",
    "ListState",
    "MapState",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "State",
    "ValueState",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Something a function remembers."""

    __slots__ = ()

    @abstractmethod
    def clear(self) -> None:
        """Forget it, for the current key."""


class ValueState(State, Generic[T]):
    """One value per key."""

    __slots__ = ()

    @abstractmethod
    def value(self) -> T | None:
        """Return the value, or None if there is none."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Set the value; None is the same as `clear`."""


class AppendingState(State, Generic[IN, OUT]):
    """State that elements are added to."""

    __slots__ = ()

    @abstractmethod
    def get(self) -> OUT | None:
        """Return what the elements added so far make."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value to the state of the current key."""


class MergingState(AppendingState[IN, OUT]):
    """State of which two can be made one, as session windows do."""

    __slots__ = ()


class ReducingState(MergingState[T, T]):
    """All elements, combined by a reduce function."""

    __slots__ = ()


class AggregatingState(MergingState[IN, OUT]):
    """All elements, combined by an aggregate function, whose result may have another type."""

    __slots__ = ()


class ListState(MergingState[T, Iterable[T]]):
    """A list of elements."""

    __slots__ = ()

    @abstractmethod
    def get(self) -> Iterable[T]:
        """Return the elements in the order they were added; nothing, if there are none."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replace the list of the current key with these elements."""

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None:
        """Add elements at the end."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class _ReadableMap(State, Generic[K, V]):
    """What maps that may be written and maps that may not have in common."""

    __slots__ = ()

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value under a key, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether the key is there."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all keys with their values."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Iterate over the keys of the map."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Iterate over the values of the map."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no key."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    __slots__ = ()

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value under a key."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the values of several keys, from a dict or from pairs of a key and a value."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Take a key out; nothing happens if it is not there."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map for each key; each entry is read and written by itself."""

    __slots__ = ()


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """Broadcast state as the other side of the connection sees it: it may be read only."""

    __slots__ = ()


class BroadcastState(ReadOnlyBroadcastState[K, V], _WritableMap[K, V]):
    """A map that every subtask has whole, and that each must change in the same way."""

    __slots__ = ()


class OperatorStateStore(ABC):
    """Where state lives that belongs to a subtask of an operator and not to a key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list whose elements are distributed evenly among the subtasks when the job is restored."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list of which every subtask gets all elements of all subtasks when the job is restored."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return the broadcast state under this descriptor."""


class KeyedStateStore(ABC):
    """Where keyed state is found by its descriptor. A name stands for one state of an operator."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """Return the value state under this descriptor."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return the list state under this descriptor."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """Return the map state under this descriptor."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """Return the reducing state under this descriptor."""

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]:
        """Return the aggregating state under this descriptor."""
