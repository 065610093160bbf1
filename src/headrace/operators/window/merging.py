"""Merging windows of a key: sessions grow together as records fill the gaps between them.

State is not moved every time windows merge: a merged window keeps the *state window* of one of its parts, and only the
contents of the others are brought there.

    windows        [a: 10-20]  [b: 40-50]  + [c: 15-42]   ->   [10-50], contents under a
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import InvariantViolation
from headrace.state.tables import EntryTable
from headrace.windowing.assigners import MergingWindowAssigner

#: Takes the merged window, the windows it was merged of, its state window, and the state windows to bring there.
OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]


class MergingWindows:
    """The windows of one key, each with the window under which its contents are kept."""

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], table: EntryTable) -> None:
        self._assigner = assigner
        self._table = table
        stored = table.get()
        self._state_windows: dict[Any, Any] = dict(stored) if stored is not None else {}
        self._is_changed = False

    def state_window(self, window: Any) -> Any:
        """Return where a window's contents are kept; None for one that has been merged away."""
        return self._state_windows.get(window)

    def add(self, new_window: Any, on_merge: OnMerge) -> Any:
        """Take a window in, merge what touches, and return the window it has become part of."""
        if new_window in self._state_windows:
            return new_window  # nothing to merge: those that are there do not touch
        merges: list[tuple[Any, list[Any]]] = []
        self._assigner.merge_windows(
            [*self._state_windows, new_window], _Collect(lambda parts, result: merges.append((result, parts)))
        )
        result = new_window
        for merged, parts in merges:
            olds = [part for part in parts if part in self._state_windows]
            if new_window in parts:
                result = merged
            if not olds:
                continue
            if olds == [merged]:
                continue  # it lies within a window that is there already
            state_window = self._state_windows[olds[0]]
            others = [self._state_windows[part] for part in olds[1:]]
            for part in olds:
                del self._state_windows[part]
            self._state_windows[merged] = state_window
            self._is_changed = True
            on_merge(merged, olds, state_window, others)
        if result == new_window and new_window not in self._state_windows:
            self._state_windows[new_window] = new_window
            self._is_changed = True
        if result not in self._state_windows:
            raise InvariantViolation(f"window {result} is missing after merging {new_window}")
        return result

    def retire(self, window: Any) -> None:
        """Forget a window whose time is over."""
        if self._state_windows.pop(window, None) is not None:
            self._is_changed = True

    def persist(self) -> None:
        """Write the windows back if they changed."""
        if self._is_changed:
            self._table.put(tuple(self._state_windows.items()) or None)
            self._is_changed = False


class _Collect:
    """The callback that merging assigners call."""

    def __init__(self, take: Callable[[list[Any], Any], None]) -> None:
        self._take = take

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self._take(list(to_be_merged), merge_result)
