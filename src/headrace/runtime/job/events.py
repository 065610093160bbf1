"""What happens to a job: the events that `JobLifecycle` handles.

Requests for checkpoints and savepoints are not among them: `CheckpointCoordinator` decides about those, and is a state
machine of its own. The lifecycle hears of a stop with savepoint through `RequestsChecked` and `EpochEnded`.
"""

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
class RequestsChecked:
    """What has to be done before the next epoch is known."""

    #: Whether a stop with savepoint was requested that drains the sources first.
    drains: bool = False
    #: The parallelism to change to because slots were added or removed; its slots are already taken.
    parallelism: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Rescaled:
    """The job has the new parallelism, or keeps the old one because there are too few slots for the new one."""


@dataclass(frozen=True)
class EpochEnded:
    """An epoch is complete, or there was nothing to do for one."""

    #: Whether every subtask has done all it ever will.
    has_ended: bool = False
    #: Whether the savepoint of a stop with savepoint is complete.
    is_stopped: bool = False


@dataclass(frozen=True)
class OutputPublished:
    """All output is published, and the result store says that the job has finished."""


@dataclass(frozen=True)
class DelayElapsed:
    """The delay before a restart is over."""


@dataclass(frozen=True)
class RunBegun:
    """There is a new run, from a checkpoint or from the start."""

    now_ms: int
    is_over: bool = False


@dataclass(frozen=True)
class PartRestarted:
    """The regions of a live job that had failed run again."""


@dataclass(frozen=True)
class Failed:
    """A step ended with an error."""

    error: BaseException
    now_ms: int
    #: The vertices of the regions that have failed, if others run on.
    part: frozenset[str] | None = None


# -- requests, from any thread -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CancelAsked:
    """The job is to be cancelled."""


@dataclass(frozen=True)
class LeadershipLost:
    """Another process may lead the job by now."""

    error: LeadershipError


@dataclass(frozen=True)
class RescaleAsked:
    """The parallelism of some vertices is to change."""

    number: int
    #: By vertex id.
    parallelism: Mapping[str, int]


JobRequest: TypeAlias = CancelAsked | LeadershipLost | RescaleAsked
JobEvent: TypeAlias = (
    Started
    | SlotsTaken
    | SlotsMissing
    | Deployed
    | RequestsChecked
    | Rescaled
    | EpochEnded
    | OutputPublished
    | DelayElapsed
    | RunBegun
    | PartRestarted
    | Failed
    | JobRequest
)
