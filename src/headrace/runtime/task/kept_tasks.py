"""Tasks that a worker keeps from epoch to epoch, because opening them again is expensive.

A task is out of here while it runs. It comes back only if it did not fail and has not ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

_log = logging.getLogger(__name__)

#: Tasks a worker keeps. With more subtasks per worker than this, some are opened again in each epoch.
KEPT_TASKS = 64


class Closeable(Protocol):
    """What has to be closed."""

    def close(self) -> None:
        """Let go of everything."""


class Task(Closeable, Protocol):
    """A task that is kept from epoch to epoch."""

    @property
    def has_ended(self) -> bool:
        """Whether no epoch will need it any more."""


K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Task)


class KeptTasks(Generic[K, T]):
    """Tasks by the subtask they run.

    Args:
        is_orphan: Whether the job of a task is over; asked of all tasks whenever a new one is made.
    """

    def __init__(self, is_orphan: Callable[[T], bool] = lambda task: False) -> None:
        self._is_orphan = is_orphan
        #: The one that was used least recently comes first.
        self._kept: dict[K, T] = {}

    @contextmanager
    def task(self, key: K, make: Callable[[], T]) -> Iterator[T]:
        """Lend a task for an epoch."""
        task = self._kept.pop(key, None)
        if task is None:
            self.close_if(lambda _, kept: self._is_orphan(kept))
            task = make()
        try:
            yield task
        except BaseException:
            close_quietly(task)
            raise
        if task.has_ended:
            close_quietly(task)  # now or never: Spark's workers end without a word to us
            return
        self._kept[key] = task
        while len(self._kept) > KEPT_TASKS:
            close_quietly(self._kept.pop(next(iter(self._kept))))

    def close_if(self, is_over: Callable[[K, T], bool]) -> None:
        """Close the tasks that are not needed any more."""
        for key in [key for key, task in self._kept.items() if is_over(key, task)]:
            close_quietly(self._kept.pop(key))

    def close(self) -> None:
        self.close_if(lambda key, task: True)


def close_quietly(task: Closeable) -> None:
    """Close what is not needed any more. A failure is logged: it must not be taken for one of another task."""
    try:
        task.close()
    except Exception:  # noqa: BLE001 - from a function's close(), which may raise anything
        _log.warning("a task could not be closed", exc_info=True)
