"""The fields of a user function: what it was shipped with and what `open` set holds in every epoch.

A worker gets a subtask in some epochs and not in others, so fields cannot carry anything from one to the next,
and must not seem to. They are put back before every epoch: names that were bound anew, and what was put into
the containers that came with the function. What `open` made (models, connections, caches) stays as it is.
"""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

_CONTAINERS = frozenset({list, dict, set, bytearray, deque, defaultdict, Counter, OrderedDict})


class FunctionFields:
    """Remembers the fields of one function; made before it is opened."""

    def __init__(self, function: Any) -> None:
        self._live: dict[str, Any] = getattr(function, "__dict__", {})
        #: The containers the function was shipped with, and shallow copies of them.
        self._shipped = {
            name: (value, copy.copy(value))
            for name, value in self._live.items()
            if type(value) in _CONTAINERS
        }
        self._opened: dict[str, Any] = {}
        #: Lengths of the containers that `open` made.
        self._lengths: dict[str, int] = {}

    def opened(self) -> None:
        """Remember what `open` left."""
        self._opened = dict(self._live)
        # What it did to a container it was shipped with is part of that.
        self._shipped = {
            name: (value, copy.copy(value))
            for name, (value, _) in self._shipped.items()
            if self._holds(name, value)
        }
        self._lengths = {
            name: len(value)
            for name, value in self._opened.items()
            if type(value) in _CONTAINERS and name not in self._shipped
        }

    def reset(self) -> None:
        """Restore the fields to their values after `open()`."""
        self._live.clear()
        self._live.update(self._opened)
        for value, content in self._shipped.values():
            if _differ(value, content):
                _refill(value, content)

    def changed(self) -> list[str]:
        """Return the names of fields that `reset` would put back."""
        names = [name for name, value in self._live.items() if not self._holds(name, value)]
        altered = [name for name, (value, content) in self._shipped.items() if _differ(value, content)]
        return names + [name for name in altered if name not in names]

    def filled(self) -> list[str]:
        """Return the names of containers that `open` made and that hold more or less since."""
        return [name for name, length in self._lengths.items() if len(self._opened[name]) != length]

    def _holds(self, name: str, value: Any) -> bool:
        return name in self._opened and self._opened[name] is value


def _differ(container: Any, content: Any) -> bool:
    if len(container) != len(content):
        return True
    try:
        return bool(container != content)
    except Exception:  # noqa: BLE001 - elements that cannot be compared are other ones than before
        return True


def _refill(container: Any, content: Any) -> None:
    container.clear()
    fill = container.update if hasattr(container, "update") else container.extend
    fill(content)
