"""Errors of a running job, which name the operator and the subtask where they happened."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import TypedDict, Unpack

from headrace.errors.base import HeadraceError, RecoveryAction
from headrace.errors.describe import shorten


class JobErrorDetails(TypedDict, total=False):
    """What every error of a running job can be given beside its message; `JobExecutionError` says what it means."""

    job: str | None
    operator: str | None
    subtask: int | None
    attempt: int | None
    hint: str | None
    retryable: bool | None


class JobExecutionError(HeadraceError):
    """A running job failed.

    Cause:
        The first line says what happened; the lines below name the job, the operator and the subtask, and the chained
        exception is the cause.

    Remedy:
        Correct the cause. If the error is retryable, the restart strategy restarts the job from its last checkpoint.

    Args:
        message: What happened.
        job: Name of the job.
        operator: Name of the operator, as `explain` and the web UI show it.
        subtask: Index of the subtask, from 0.
        attempt: Number of the attempt, from 0.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.

    Example:
        >>> print(JobExecutionError("no space left", job="clicks", operator="sum", subtask=1))
        no space left
          in job 'clicks', operator 'sum', subtask 1
    """

    retryable = True
    #: The host and the executor where it happened; set by whoever hears of it from Spark.
    host: str | None = None
    executor: str | None = None
    #: What other subtasks failed with in the same failure of the job; set with these.
    concurrent: Sequence[JobExecutionError] = ()

    def __init__(
        self,
        message: str,
        *,
        job: str | None = None,
        operator: str | None = None,
        subtask: int | None = None,
        attempt: int | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.job = job
        self.operator = operator
        self.subtask = subtask
        self.attempt = attempt

    @property
    def location(self) -> str:
        """Where it happened, as far as known: `job 'a', operator 'b', subtask 0, attempt 1`."""
        named = (("job", self.job), ("operator", self.operator))
        counted = (("subtask", self.subtask), ("attempt", self.attempt))
        parts = [f"{what} '{name}'" for what, name in named if name is not None]
        parts += [f"{what} {number}" for what, number in counted if number is not None]
        return ", ".join(parts)

    def _details(self) -> list[str]:
        return [f"  in {self.location}"] if self.location else []


class UserFunctionError(JobExecutionError):
    """A function of your program raised an exception.

    Cause:
        The traceback of your function comes first, followed by the operator and the record it was called with.

    Remedy:
        Correct the function, or make it handle the record shown. The restart strategy restarts the job meanwhile, which
        helps only if the failure was temporary.

    Args:
        message: One line: the type and text of what was raised.
        user_traceback: The formatted traceback, without headrace's frames.
        record: The element the function was called with; kept as a shortened repr.
        job: Name of the job.
        operator: Name of the operator that holds the function.
        subtask: Index of the subtask, from 0.
        attempt: Number of the attempt, from 0.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.
    """

    domain = "user"

    def __init__(
        self,
        message: str,
        *,
        user_traceback: str = "",
        record: object = None,
        **common: Unpack[JobErrorDetails],
    ) -> None:
        super().__init__(message, **common)
        self.user_traceback = user_traceback
        self.record = None if record is None else shorten(record)
        #: The function and where it is defined, for an error without a traceback that would lead to it.
        self.function: str | None = None

    @classmethod
    def from_exception(
        cls,
        error: BaseException,
        *,
        record: object = None,
        job: str | None = None,
        operator: str | None = None,
        subtask: int | None = None,
        attempt: int | None = None,
    ) -> UserFunctionError:
        """Wrap what a user's function raised; raise the result `from error`.

        An error that is wrapped already comes back unchanged: of chained operators the innermost knows best.
        """
        if isinstance(error, UserFunctionError):
            return error
        return cls(
            "".join(traceback.format_exception_only(error)).strip(),
            user_traceback=_format_user_traceback(error),
            record=record,
            job=job,
            operator=operator,
            subtask=subtask,
            attempt=attempt,
        )

    def __str__(self) -> str:
        lines = [self.user_traceback.rstrip() or self.message, *self._details()]
        if self.function is not None:
            lines.append(f"  function: {self.function}")
        if self.record is not None:
            lines.append(f"  record: {self.record}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


def _format_user_traceback(error: BaseException) -> str:
    """Format a traceback from the first frame that is not headrace's own."""
    first: TracebackType | None = error.__traceback__
    while first is not None and _is_ours(first):
        first = first.tb_next
    return "".join(traceback.format_exception(type(error), error, first or error.__traceback__))


def _is_ours(entry: TracebackType) -> bool:
    module = str(entry.tb_frame.f_globals.get("__name__", ""))
    return module == "headrace" or module.startswith("headrace.")


class TaskLostError(JobExecutionError):
    """A worker, executor or host was lost together with the task that ran there.

    Cause:
        The host or executor went down, the system killed a worker that used too much memory, or a worker process
        crashed.

    Remedy:
        None for a single loss: headrace runs the epoch again. If it repeats, look at the executor's log and its memory.
    """

    domain = "external"
    _recovery = RecoveryAction.RUN_EPOCH_AGAIN


class NoResourceAvailableError(JobExecutionError):
    """The job did not get the slots it needs in time.

    Cause:
        The cluster has fewer free cores than the job's parallelism needs, or executors have not started yet.

    Remedy:
        Add executors, lower the parallelism, or stop another job. `slot.request.timeout` sets how long a job waits.
    """

    domain = "external"


class DiskFullError(JobExecutionError):
    """A file system has no space left for something that headrace has to write.

    Cause:
        The disk or the memory file system in the message is full, out of inodes, or the user's quota on it is used up.
        Nothing that was written before is lost: checkpoints stay valid, and unfinished files are removed.

    Remedy:
        Free space in the directory that the message names, or set the option in its hint to a directory on a larger
        disk. Then start the job again; a restart strategy also tries again by itself. `headrace doctor` shows the space
        on this host, and what jobs that were killed have left.

    Args:
        message: What could not be written, where, and on which host.
        directory: Where it was to be written.
        needed: How many bytes it would have taken, if that is known.
        free: How many bytes there are, if that is known.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.
    """

    domain = "external"

    def __init__(
        self,
        message: str,
        *,
        directory: str | None = None,
        needed: int | None = None,
        free: int | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.directory = directory
        self.needed = needed
        self.free = free


class LeadershipError(JobExecutionError):
    """Another process leads the job, or may have taken it over.

    Cause:
        Two drivers have the same `high-availability.cluster-id`, or this one could not renew its lease in time. It has
        stopped writing, so nothing is published twice.

    Remedy:
        Look at the process that leads: the job continues there. Jobs that have nothing to do with each other need
        different cluster ids.
    """

    domain = "external"
    retryable = False
    _recovery = RecoveryAction.HAND_OVER


class JobCancelledError(JobExecutionError):
    """The job was cancelled; raised where its result is awaited.

    Cause:
        `headrace cancel`, the web UI, `JobClient.cancel()`, or Ctrl-C.

    Remedy:
        None: someone asked for it.
    """

    domain = "user"
    retryable = False
    _recovery = RecoveryAction.CANCEL
