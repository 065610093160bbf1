"""The memory that a Python worker may allocate, held by the operating system.

Beyond it, allocations fail: Python raises MemoryError in the function that asked, which reaches the user with the
function's traceback. Without it the kernel or the cluster manager kills the executor, and nobody learns why. Files that
are mapped, such as copies of state, do not count.
"""

from __future__ import annotations

import resource

from headrace.errors.causes import with_causes

__all__ = ["apply_memory_limit", "explain_memory_error"]

_MB = 1 << 20
_HINT = (
    "this Python worker may allocate {limit} MB: raise headrace.python.memory-per-worker, or "
    "taskmanager.memory.managed.size, or lower taskmanager.numberOfTaskSlots; or keep less in memory at once"
)


def apply_memory_limit(limit: int | None) -> None:
    """Let this process allocate so many bytes, in all; None for as many as there are."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if limit is None else limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    # The hard limit stays as it is: a worker may serve another job next.
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def explain_memory_error(error: BaseException) -> str | None:
    """Return what to do about an error that comes from the limit; None if it does not."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or not any(
        isinstance(each, MemoryError) for each in with_causes(error)
    ):
        return None
    return _HINT.format(limit=soft // _MB)
