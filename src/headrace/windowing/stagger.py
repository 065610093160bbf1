"""Staggered windows: those of different subtasks start at different times.

ALIGNED   subtask 0  |........|........|        RANDOM   subtask 0  |........|........|
subtask 1  |........|........|                 subtask 1     |........|........|
"""

from __future__ import annotations

import zlib
from enum import Enum
from typing import Any, Protocol

from headrace.errors import JobDefinitionError, shorten


class WindowStagger(Enum):
    """When the windows of a subtask start, against those of others: all results at once load what comes after them."""

    #: Windows of all subtasks start at the same time.
    ALIGNED = "aligned"
    #: Each subtask starts its windows at another time, which follows from its number: a repeated epoch uses the same.
    RANDOM = "random"
    #: When the first record came. Refused, because it would differ when an epoch is repeated.
    NATURAL = "natural"

    def offset_of(self, subtask: RuntimeContextLike, size_ms: int) -> int:
        """Return by how many milliseconds windows of a subtask are shifted."""
        name = f"{subtask.get_task_name()}/{subtask.get_index_of_this_subtask()}"
        return zlib.crc32(name.encode()) % size_ms


class RuntimeContextLike(Protocol):
    """What a stagger asks of a runtime context."""

    def get_task_name(self) -> str:
        """Return the name of the task."""

    def get_index_of_this_subtask(self) -> int:
        """Return the number of the subtask, from 0."""


def check_stagger(owner: str, given: Any) -> WindowStagger:
    """Return a stagger that can be used.

    Raises:
        JobDefinitionError: It is not valid, or NATURAL.
    """
    if not isinstance(given, WindowStagger):
        raise JobDefinitionError(f"{owner}: window_stagger must be a WindowStagger, got {shorten(given)}")
    if given is WindowStagger.NATURAL:
        raise JobDefinitionError(
            f"{owner}: WindowStagger.NATURAL is not supported: where windows start would depend on when the first "
            "record came, and results would differ when an epoch is repeated",
            hint="use WindowStagger.RANDOM, which spreads the windows of subtasks as well",
        )
    return given
