"""The classes of a program's main script, where jobs of several programs share a process and its `__main__`.

Records and state are pickled by reference: `__main__.Order`. In a session two programs may each have a class of that
name, and neither must get the other's. A worker runs one task at a time, so the classes of the task's program are put
into its `__main__` for as long as the task runs (`enter_program`). A driver runs jobs side by side, each in a thread;
there `__main__` looks a name up in the program of the thread that asks (`program_of`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_MISSING = object()
#: The classes that are in this worker's `__main__` now, and what they have taken the place of.
_entered: Mapping[str, type] = {}
_hidden: dict[str, Any] = {}


def enter_program(classes: Mapping[str, type]) -> None:
    """Make `__main__` that of a program, instead of the one that was entered before; for workers."""
    global _entered, _hidden  # noqa: PLW0603 - a process has one `__main__`
    if classes is _entered:
        return
    main = vars(sys.modules["__main__"])
    for name, value in _hidden.items():
        if value is _MISSING:
            main.pop(name, None)
        else:
            main[name] = value
    _hidden = {name: main.get(name, _MISSING) for name in classes}
    main.update(classes)
    _entered = classes


class _ThreadsProgram(threading.local):
    """The program whose job a thread runs."""

    classes: Mapping[str, type] | None = None


_threads_program = _ThreadsProgram()


@contextmanager
def program_of(classes: Mapping[str, type] | None) -> Iterator[None]:
    """While it lasts, `__main__` also has the classes of a program, in this thread alone; for drivers.

    Args:
        classes: By name; None if the program runs in this process, whose `__main__` has them.
    """
    before = _threads_program.classes
    if classes:
        vars(sys.modules["__main__"]).setdefault("__getattr__", _look_up)
    _threads_program.classes = classes
    try:
        yield
    finally:
        _threads_program.classes = before


def _look_up(name: str) -> Any:
    """Find what `__main__` itself does not have (its `__getattr__`)."""
    found = (_threads_program.classes or {}).get(name)
    if found is None:
        raise AttributeError(f"module '__main__' has no attribute {name!r}")
    return found
