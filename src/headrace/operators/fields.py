"""The fields of a user function: what it stores in `self` lasts if it can be pickled.

A worker gets a subtask in some epochs and not in others, so fields that were changed travel with the subtask, in its
operator state. They are compared with what `open` left, whenever an epoch ends:

    numbers, strings, tuples of them      the same object or not
    other values, below 64 KB             their pickled form
    larger ones                           not at all: models, reference data and caches belong to a worker

What was changed once is pickled with every epoch from then on. A field that cannot be pickled begins every epoch as
`open` left it, but what `open` itself made (connections, for example) stays as it is in each worker.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from headrace.state.isolation import is_immutable

_CONTAINERS = frozenset({list, dict, set, bytearray, deque, defaultdict, Counter, OrderedDict})
#: Bytes up to which a value that `open` left is pickled in every epoch, to see whether it was changed.
_COMPARED_BYTES = 64 * 1024
#: Modules of ours whose objects are values; others hold on to a worker: state, metrics, contexts.
_VALUE_MODULES = frozenset({"headrace.common.types", "headrace.common.time", "headrace.windowing.windows"})


class FunctionFields:
    """Remembers the fields of one function; made before it is opened.

    Args:
        function: Whose fields they are.
        apart_from: Objects that are looked after elsewhere: functions around this one, or within it.
    """

    def __init__(self, function: Any, apart_from: Iterable[Any] = ()) -> None:
        self._live: dict[str, Any] = getattr(function, "__dict__", {})
        self._class_name = type(function).__qualname__
        self._apart = {id(each) for each in apart_from}
        #: The containers the function was shipped with, and shallow copies of them.
        self._shipped = self._containers(self._live)
        self._opened: dict[str, Any] = {}
        #: Values that `open` left and that may be changed in place: their pickled form.
        self._pickled: dict[str, bytes] = {}
        #: Containers that `open` made and that are too large for that, or cannot be pickled: their lengths.
        self._lengths: dict[str, int] = {}
        #: Fields that have been changed since `open`, and can be pickled.
        self._kept: set[str] = set()
        #: Fields that have been changed in this epoch, and cannot be pickled.
        self._lost: list[str] = []
        #: Fields that the function sets up itself at the beginning of every epoch.
        self._own: frozenset[str] = frozenset()
        #: What the live fields correspond to; not valid in the middle of an epoch.
        self._current: bytes | None = None
        self._is_settled = True

    def opened(self) -> None:
        """Remember what `open` left."""
        self._opened = dict(self._live)
        self._pickled, self._lengths = {}, {}
        # What `open` did to a container the function was shipped with is part of that.
        self._shipped = self._containers(
            {name: value for name, (value, _) in self._shipped.items() if self._holds(name, value)}
        )
        for name, value in self._opened.items():
            if is_immutable(value) or id(value) in self._apart:
                continue
            pickled = _pickled(value, _COMPARED_BYTES)
            if pickled is not None:
                self._pickled[name] = pickled
                self._shipped.pop(name, None)
            elif type(value) in _CONTAINERS and name not in self._shipped:
                self._lengths[name] = len(value)

    def begin(self, stored: bytes | None, initialize: Callable[[], None] | None = None) -> list[str]:
        """Put the fields where an epoch starts from.

        Args:
            stored: What `end` returned for the epoch before, in whichever worker; None if there was none.
            initialize: Called with the fields as `open` left them; what it sets up is the function's own business.

        Returns:
            The names of fields that cannot be restored and are as `open` left them.
        """
        if self._is_settled and stored == self._current and initialize is None:
            self._put_back(self._lost)
            self._is_settled = False
            return []
        self._is_settled = False
        self._put_back_all()
        self._kept, self._own = set(), frozenset()
        if initialize is not None:
            initialize()
            self._own = frozenset(self._changed())
        return [] if stored is None else self._take(stored)

    def end(self) -> tuple[bytes | None, list[str], list[str]]:
        """Return what the next epoch starts from.

        Returns:
            The fields that were changed since `open`, None if there are none; the names of those that cannot be
            pickled; and of containers that were changed, but only in this worker.
        """
        changed = self._changed()
        deleted = [name for name in self._opened if name not in self._live and name not in self._own]
        self._lost = []
        stored = None
        if changed or deleted:
            # Together, because one may refer to another.
            content = _pickled({name: self._live[name] for name in changed})
            if content is None:
                self._lost = [name for name in changed if _pickled(self._live[name]) is None]
                changed = [name for name in changed if name not in self._lost]
                content = _pickled({name: self._live[name] for name in changed})
            if changed or deleted:
                stored = pickle.dumps((self._class_name, changed, deleted, content), protocol=5)
        self._kept = {*changed, *deleted}
        self._current = stored
        self._is_settled = True
        only_here = [
            name
            for name, length in self._lengths.items()
            if self._is_as_opened(name) and len(self._live[name]) != length
        ]
        return stored, self._lost, only_here

    def _take(self, stored: bytes) -> list[str]:
        class_name, names, deleted, content = pickle.loads(stored)
        if class_name != self._class_name:
            return []  # another function in the place of the one that had these fields
        try:
            fields = pickle.loads(content)
        except Exception:  # noqa: BLE001 - classes that are gone or changed may raise anything
            return list(names)
        self._live.update({name: value for name, value in fields.items() if name not in self._own})
        for name in set(deleted) - self._own:
            self._live.pop(name, None)
        self._kept = {*names, *deleted}
        return []

    # -- what was changed --------------------------------------------------------------------------------------

    def _changed(self) -> list[str]:
        return [name for name, value in self._live.items() if self._is_changed(name, value)]

    def _is_changed(self, name: str, value: Any) -> bool:
        if name in self._own:
            return False
        if name in self._kept or not self._holds(name, value):
            return True
        if name in self._pickled:
            return _pickled(value) != self._pickled[name]
        return name in self._shipped and _differ(*self._shipped[name])

    def _holds(self, name: str, value: Any) -> bool:
        return name in self._opened and self._opened[name] is value

    def _is_as_opened(self, name: str) -> bool:
        return name in self._live and self._holds(name, self._live[name])

    def _containers(self, named: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        return {
            name: (value, copy.copy(value)) for name, value in named.items() if type(value) in _CONTAINERS
        }

    # -- back to what `open` left ------------------------------------------------------------------------------

    def _put_back_all(self) -> None:
        for name in [name for name in self._live if name not in self._opened]:
            del self._live[name]
        self._put_back(self._opened)

    def _put_back(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._opened:
                self._live.pop(name, None)
                continue
            value = self._live[name] = self._opened[name]
            if name in self._pickled and _pickled(value) != self._pickled[name]:
                content = pickle.loads(self._pickled[name])
                if type(value) in _CONTAINERS:
                    _refill(value, content)
                else:
                    self._live[name] = self._opened[name] = content
            elif name in self._shipped and _differ(*self._shipped[name]):
                _refill(*self._shipped[name])


class _Full(Exception):
    """More bytes than are worth comparing."""


class _Limited(io.BytesIO):
    """A file that refuses to become larger than it may."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._room = limit

    def write(self, data: Any, /) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise _Full
        return super().write(data)


class _ValuePickler(pickle.Pickler):
    """Refuses what belongs to a worker: state, metrics and contexts of ours would be copies without effect."""

    def reducer_override(self, obj: Any) -> Any:
        module = type(obj).__module__
        if module.startswith("headrace.") and module not in _VALUE_MODULES:
            raise pickle.PicklingError(f"{type(obj).__name__} belongs to a worker")
        return NotImplemented


def _pickled(value: Any, limit: int | None = None) -> bytes | None:
    """Return a value's pickled form, None if it has none, or one that is too large."""
    target = io.BytesIO() if limit is None else _Limited(limit)
    try:
        _ValuePickler(target, protocol=5).dump(value)
    except Exception:  # noqa: BLE001 - a value's own methods may raise anything
        return None
    return target.getvalue()


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
