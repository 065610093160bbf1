"""Errors of a running job's state and of its checkpoints."""

from __future__ import annotations

from typing import Unpack

from headrace.errors.base import RecoveryAction
from headrace.errors.execution import JobErrorDetails, JobExecutionError


class CheckpointError(JobExecutionError):
    """A checkpoint or savepoint failed.

    Cause:
        The checkpoint exceeded its timeout, its storage failed, or a task could not write its part. `reason` is one of
        the failure reasons listed at the end of the errors reference.

    Remedy:
        Check the checkpoint directory and its free space, or raise `execution.checkpointing.timeout`. The job continues
        until more consecutive checkpoints fail than `execution.checkpointing.tolerable-failed-checkpoints` allows.

    Args:
        message: What happened.
        reason: The name of the failure reason, from the closed set of the checkpoint coordinator.
        job: Name of the job.
        operator: Name of the operator that could not take part, if it was one.
        subtask: Index of the subtask, from 0.
        attempt: Number of the attempt, from 0.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        **common: Unpack[JobErrorDetails],
    ) -> None:
        super().__init__(message, **common)
        self.reason = reason

    def _details(self) -> list[str]:
        return [*super()._details(), *([f"  reason: {self.reason}"] if self.reason else [])]


class StateError(JobExecutionError):
    """State could not be read, written or restored.

    Cause:
        A checkpoint or savepoint is damaged or missing, the program no longer has an operator whose state is in it, or
        the max parallelism has changed.

    Remedy:
        Give operators the uid they had, or start with `--allow-non-restored-state` to discard their state. If a
        snapshot is damaged, restore an earlier one with `headrace run -s`.
    """


class DamagedStateError(StateError):
    """A file that a job is restored from was damaged or lost after it was written.

    Cause:
        The file was changed, truncated or deleted: by a disk or network fault, or by someone. Its checksum or size does
        not match. Reading it again does not help.

    Remedy:
        None while an older checkpoint is complete: the job is restored from it. Otherwise the job fails; restore the
        file from a backup, or start the job from a savepoint as the hint says.
    """

    domain = "external"
    retryable = False
    _recovery = RecoveryAction.RESTORE


class StateTypeError(StateError):
    """A value does not have the type its state declares.

    Cause:
        The program stores a value in a state whose descriptor declares another type.

    Remedy:
        Store a value of the declared type, or declare the type that the values have.
    """

    domain = "user"


class StateMigrationError(StateTypeError):
    """State was written with another kind or type than the program declares now.

    Cause:
        A descriptor has changed in a way that cannot be migrated, for example from a string to a number. Nothing has
        been modified.

    Remedy:
        Declare the state as it was, or give the new state another name. To convert the values, rewrite the savepoint
        with `headrace.state_processor`.
    """

    retryable = False
