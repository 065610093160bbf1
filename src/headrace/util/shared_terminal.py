"""Who may write to the terminal: what is printed in several parts, such as the frame of a table, is not interrupted.

with holding():          print rows ... print the last border
when_free(say_finished)  at once, or when nobody holds it any more
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["holding", "when_free"]

_lock = threading.Lock()
_holders = 0
_waiting: list[Callable[[], None]] = []


@contextmanager
def holding() -> Iterator[None]:
    """Hold the terminal: what others have to say waits.

    Example:
        >>> with holding():
        ...     when_free(lambda: print("FINISHED"))
        ...     print("the last row")
        the last row
        FINISHED
    """
    global _holders  # noqa: PLW0603 - a process has one terminal
    with _lock:
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            said = _waiting[:] if not _holders else []
            if said:
                _waiting.clear()
        for say in said:
            say()


def when_free(say: Callable[[], None]) -> None:
    """Say something as soon as nobody holds the terminal."""
    with _lock:
        if _holders:
            _waiting.append(say)
            return
    say()
