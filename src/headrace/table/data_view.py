"""Lists and maps in accumulators of aggregate functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

__all__ = ["DataView", "ListView", "MapView"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView(ABC):
    """A collection in an accumulator. It is kept in state with the accumulator that it is in."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all elements from the state of the group."""


class ListView(DataView, Generic[T]):
    """A list in an accumulator.

    Example:
        >>> names = ListView()
        >>> names.add("Ada")
        >>> names.add_all(["Grace", "Edsger"])
        >>> list(names)
        ['Ada', 'Grace', 'Edsger']
    """

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """Return the elements in the order in which they were added."""
        return self._list

    def add(self, value: T) -> None:
        """Put an element after the others."""
        self._list.append(value)

    def add_all(self, values: list[T]) -> None:
        """Put elements after the others."""
        self._list.extend(values)

    def clear(self) -> None:
        """Remove all elements from the state of the group."""
        self._list = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self._list))

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapView(DataView, Generic[K, V]):
    """A map in an accumulator.

    Example:
        >>> seen = MapView()
        >>> seen.put("tea", 2)
        >>> seen["tea"], "rum" in seen
        (2, False)
    """

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V:
        """Return the value of a key.

        Raises:
            KeyError: If the key does not exist.
        """
        return self._dict[key]

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._dict[key] = value

    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set the values of several keys."""
        self._dict.update(dict_value)

    def remove(self, key: K) -> None:
        """Remove a key and its value."""
        del self._dict[key]

    def contains(self, key: K) -> bool:
        """Whether the key exists."""
        return key in self._dict

    def items(self) -> Iterable[tuple[K, V]]:
        """Return keys and values."""
        return self._dict.items()

    def keys(self) -> Iterable[K]:
        """Return the keys of all entries."""
        return self._dict.keys()

    def values(self) -> Iterable[V]:
        """Return the values of all entries."""
        return self._dict.values()

    def is_empty(self) -> bool:
        """Whether the map is empty."""
        return not self._dict

    def clear(self) -> None:
        """Remove all elements from the state of the group."""
        self._dict.clear()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, MapView) and self._dict == other._dict

    def __hash__(self) -> int:
        return hash(frozenset(self._dict))

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())
