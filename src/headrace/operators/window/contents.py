"""What is kept of a window's elements: one reduced value, one accumulator, or the elements themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from headrace.operators.functions import method_of
from headrace.operators.window.spec import WindowComputation
from headrace.state.isolation import isolated
from headrace.state.keyed import KeyedStateScope
from headrace.state.tables import EntryTable, ListTable

_CONTENTS = "_contents"


class WindowContents(Protocol):
    """State of the current key and window (set in the scope's current key)."""

    def add(self, value: Any, timestamp: int | None) -> None:
        """Take an element in."""

    def elements(self) -> list[Any] | None:
        """Return what the window function gets; None when there is nothing."""

    def clear(self) -> None:
        """Delete the contents of the window."""

    def merge_from(self, scope: KeyedStateScope, key: Any, windows: Iterable[Any]) -> None:
        """Take over the contents of other windows of the key, which end empty."""


class _OneValue:
    """Contents that are one value; `merge` makes one of those of two windows."""

    def __init__(self, scope: KeyedStateScope, merge: Callable[[Any, Any], Any]) -> None:
        self._table: EntryTable = scope.entry_table(_CONTENTS)
        self._merge = merge

    def clear(self) -> None:
        self._table.put(None)

    def merge_from(self, scope: KeyedStateScope, key: Any, windows: Iterable[Any]) -> None:
        target = scope.current.key
        for window in windows:
            scope.current.key = (key, window)
            value = self._table.get()
            if value is None:
                continue
            self._table.put(None)
            scope.current.key = target
            current = self._table.get()
            self._table.put(value if current is None else self._merge(current, value))
        scope.current.key = target


class ReducedContents(_OneValue):
    """One value, into which every element is reduced."""

    def __init__(self, scope: KeyedStateScope, function: Any) -> None:
        super().__init__(scope, method_of(function, "reduce"))

    def add(self, value: Any, timestamp: int | None) -> None:
        current = self._table.get()
        # What the function keeps is this window's own: the record may lie in others as well.
        value = isolated(value)
        self._table.put(value if current is None else self._merge(current, value))

    def elements(self) -> list[Any] | None:
        value = self._table.get()
        return None if value is None else [value]


class AggregatedContents(_OneValue):
    """One accumulator, to which every element is added."""

    def __init__(self, scope: KeyedStateScope, function: Any) -> None:
        super().__init__(scope, self._merged)
        self._function = function

    def add(self, value: Any, timestamp: int | None) -> None:
        accumulator = self._table.get()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._table.put(self._function.add(isolated(value), accumulator))

    def elements(self) -> list[Any] | None:
        accumulator = self._table.get()
        return None if accumulator is None else [self._function.get_result(accumulator)]

    def _merged(self, accumulator: Any, other: Any) -> Any:
        return self._function.merge(accumulator, other)


class BufferedContents:
    """The elements themselves, with their timestamps: for window functions that want all, and for evictors."""

    def __init__(self, scope: KeyedStateScope, computation: WindowComputation) -> None:
        self._table: ListTable = scope.list_table(_CONTENTS)
        self._computation = computation

    def add(self, value: Any, timestamp: int | None) -> None:
        self._table.add_all(((isolated(value), timestamp),))

    def elements(self) -> list[Any] | None:
        stored = self._table.read()
        return self.computed([value for value, _ in stored]) if stored else None

    def timed_elements(self) -> list[tuple[Any, int | None]]:
        """Return the elements with their timestamps, for an evictor."""
        return list(self._table.read())

    def replace(self, elements: list[tuple[Any, int | None]]) -> None:
        """Replace the contents of the window."""
        self._table.replace(elements)

    def computed(self, values: list[Any]) -> list[Any]:
        """Return what the window function gets for these elements: they may have to be reduced first."""
        if self._computation.kind == "buffer":
            return values
        function = self._computation.incremental
        # The function may change what it is given; the elements are still needed when the window fires again.
        values = [isolated(value) for value in values]
        if self._computation.kind == "reduce":
            if not values:
                return []
            reduce = method_of(function, "reduce")
            reduced = values[0]
            for value in values[1:]:
                reduced = reduce(reduced, value)
            return [reduced]
        accumulator = function.create_accumulator()
        for value in values:
            accumulator = function.add(value, accumulator)
        return [function.get_result(accumulator)]

    def clear(self) -> None:
        self._table.replace([])

    def merge_from(self, scope: KeyedStateScope, key: Any, windows: Iterable[Any]) -> None:
        target = scope.current.key
        for window in windows:
            scope.current.key = (key, window)
            elements = list(self._table.read())
            self._table.replace([])
            scope.current.key = target
            self._table.add_all(elements)
        scope.current.key = target


def make_contents(
    scope: KeyedStateScope, computation: WindowComputation, *, has_evictor: bool
) -> WindowContents:
    """Return the kind of contents a computation needs."""
    if has_evictor or computation.kind == "buffer":
        return BufferedContents(scope, computation)
    if computation.kind == "reduce":
        return ReducedContents(scope, computation.incremental)
    return AggregatedContents(scope, computation.incremental)
