"""What happens to a job: the events that `JobLifecycle` handles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from headrace.errors import LeadershipError

# -- steps of the job that are done ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Started:
    """The job is to be run to its end."""

    now_ms: int
    #: Whether an earlier driver has run it to its end, and only publishing may be left.
    is_over: bool = False


@dataclass(frozen=True)
class SlotsTaken:
    """The job has its slots, and the shape that goes with them."""


@dataclass(frozen=True)
class SlotsMissing:
    """There are too few slots for the job."""

    now_ms: int


@dataclass(frozen=True)
class Deployed:
    """The job's tasks run."""

    has_ended: bool = False


@dataclass(frozen=True)
class Looked:
    """What there is to do before the next epoch."""

    #: Whether somebody wants the job to stop after its sources have ended where they are.
    drains: bool = False
    #: What the job changes to because slots came or went; they are taken.
    parallelism: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Rescaled:
    """The job has another parallelism, or goes on with the one it has because it did not get the slots."""


@dataclass(frozen=True)
class EpochEnded:
    """An epoch is complete, or there was nothing to do for one."""

    #: Whether every subtask has done all it ever will.
    has_ended: bool = False
    #: Whether the savepoint is complete that the job stops with.
    is_stopped: bool = False


@dataclass(frozen=True)
class OutputPublished:
    """All output is out, and it is written down that the job has finished."""


@dataclass(frozen=True)
class DelayElapsed:
    """The delay before a restart is over."""


@dataclass(frozen=True)
class RunBegun:
    """There is a new run, from a checkpoint or from the start."""

    now_ms: int
    is_over: bool = False


@dataclass(frozen=True)
class Failed:
    """A step ended with an error."""

    error: BaseException
    now_ms: int


# -- requests, from any thread -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CancelAsked:
    """Somebody wants the job to end here."""


@dataclass(frozen=True)
class LeadershipLost:
    """Another process may lead the job by now."""

    error: LeadershipError


@dataclass(frozen=True)
class RescaleAsked:
    """Somebody wants another parallelism."""

    number: int
    #: By vertex id.
    parallelism: Mapping[str, int]


Request: TypeAlias = CancelAsked | LeadershipLost | RescaleAsked
Event: TypeAlias = (
    Started
    | SlotsTaken
    | SlotsMissing
    | Deployed
    | Looked
    | Rescaled
    | EpochEnded
    | OutputPublished
    | DelayElapsed
    | RunBegun
    | Failed
    | Request
)
