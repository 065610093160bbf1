"""Unpickles plain data from files that may come from anyone.

`pickle.loads` calls whatever the bytes name, so bytes that somebody else wrote can run any code. `loads` here knows a
fixed list of harmless classes and refuses all others. It is for those who look at a checkpoint, and for text in which
anybody's data may stand; a job that restores its own state uses `pickle.loads`.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

#: Makes an object of its pickle: `loads` here, or pickle's own.
Loads: TypeAlias = Callable[[bytes], Any]

_DATETIME: Final = ("date", "datetime", "time", "timedelta", "timezone")
_WINDOWS: Final = ("CountWindow", "GlobalWindow", "TimeWindow")
#: Module to names. Calling any of these with any arguments makes a value, and does nothing else. Nothing may be added
#: that takes a function, imports, opens something, or looks attributes up.
_HARMLESS: Final[dict[str, frozenset[str]]] = {
    "builtins": frozenset({"bytearray", "complex", "frozenset", "range", "set", "slice"}),
    "collections": frozenset({"Counter", "OrderedDict", "deque"}),
    "datetime": frozenset(_DATETIME),
    "decimal": frozenset({"Decimal"}),
    "fractions": frozenset({"Fraction"}),
    "uuid": frozenset({"SafeUUID", "UUID"}),
    "headrace.common.time": frozenset({"Duration", "Instant", "Time"}),
    "headrace.common.types": frozenset({"Row", "RowKind", "make_row"}),
    "headrace.windowing.windows": frozenset(_WINDOWS),
}


class ForeignClassError(pickle.UnpicklingError):
    """The bytes name a class or function that is not plain data."""


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, more: Mapping[str, Collection[str]]) -> None:
        super().__init__(io.BytesIO(data))
        self._more = more

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if global_name in _HARMLESS.get(module_name, ()) or global_name in self._more.get(module_name, ()):
            return super().find_class(module_name, global_name)
        raise ForeignClassError(f"it needs {module_name}.{global_name}, which is only loaded on request")


def loads(data: bytes, more: Mapping[str, Collection[str]] | None = None) -> Any:
    """Return the object of a pickle that consists of plain data.

    >>> loads(pickle.dumps({"a": (1, 2.0, None)}))
    {'a': (1, 2.0, None)}

    Args:
        data: The pickle.
        more: Module to names that are harmless here, too.

    Raises:
        ForeignClassError: If it names anything else; nothing of it was called.
    """
    return _PlainUnpickler(data, more or {}).load()
