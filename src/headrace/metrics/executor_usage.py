"""The memory use of an executor, as Spark reports it and REST shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExecutorUsage:
    """What an executor takes of memory, in bytes, and how often Java has collected garbage; None if unknown."""

    heap_used: int | None = None
    heap_committed: int | None = None
    heap_max: int | None = None
    non_heap_used: int | None = None
    metaspace_used: int | None = None
    python_used: int | None = None
    gc_count: int | None = None
