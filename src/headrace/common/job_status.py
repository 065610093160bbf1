"""The states of a job, under PyFlink's name."""

from __future__ import annotations

from enum import Enum

__all__ = ["JobStatus"]


class JobStatus(Enum):
    """Where a job stands.

    CREATED -> RUNNING -> FINISHED
                 |  ^
                 v  |
          RESTARTING or FAILING -> FAILED;  CANCELLING -> CANCELED;  SUSPENDED when its master steps down

    Example:
        >>> JobStatus.FINISHED.is_terminal_state(), JobStatus.SUSPENDED.is_globally_terminal_state()
        (True, False)
    """

    #: Received; nothing runs yet.
    CREATED = 0
    #: Some or all tasks run, or have run.
    RUNNING = 1
    #: Failed for good; tasks are being stopped.
    FAILING = 2
    #: Failed, and over.
    FAILED = 3
    #: Being cancelled.
    CANCELLING = 4
    #: Cancelled, and over.
    CANCELED = 5
    #: Done, and over.
    FINISHED = 6
    #: About to start again after a failure.
    RESTARTING = 7
    #: Stopped here, to be taken over by another master.
    SUSPENDED = 8
    #: A new master is finding out what still runs.
    RECONCILING = 9

    def is_globally_terminal_state(self) -> bool:
        """Whether the job has ended and will not be continued."""
        return self in _OVER

    def is_terminal_state(self) -> bool:
        """Whether this master has finished with the job; another one may continue it."""
        return self in _OVER or self is JobStatus.SUSPENDED


_OVER = frozenset({JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED})
