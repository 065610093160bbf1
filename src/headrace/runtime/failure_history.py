"""Why a job failed, in words: what REST shows as exception history. Bounded, and kept through restarts."""

from __future__ import annotations

import traceback
from collections import deque
from dataclasses import dataclass

from headrace.errors import HeadraceError, JobExecutionError


@dataclass(frozen=True)
class Failure:
    """One failure of a job."""

    #: The class of the error.
    name: str
    #: For people: the traceback of the user's function where there is one.
    text: str
    timestamp_ms: int
    #: The operator and subtask, as far as known: ``Map (2/4)``.
    task: str | None = None

    @classmethod
    def of(cls, error: BaseException, timestamp_ms: int) -> Failure:
        """Describe an error."""
        task = None
        if isinstance(error, JobExecutionError) and error.operator is not None:
            subtask = "" if error.subtask is None else f" (subtask {error.subtask})"
            task = f"{error.operator}{subtask}"
        text = str(error) if isinstance(error, HeadraceError) else "".join(traceback.format_exception(error))
        return cls(f"{type(error).__module__}.{type(error).__qualname__}", text, timestamp_ms, task)


class FailureHistory:
    """The last failures of a job, newest first."""

    def __init__(self, size: int) -> None:
        self._failures: deque[Failure] = deque(maxlen=size)
        #: How many there were in all.
        self.count = 0

    def add(self, error: BaseException, timestamp_ms: int) -> None:
        """Note a failure."""
        self.count += 1
        self._failures.appendleft(Failure.of(error, timestamp_ms))

    def latest(self, most: int | None = None) -> tuple[Failure, ...]:
        """Return the last ones, the newest first."""
        return tuple(self._failures)[:most]
