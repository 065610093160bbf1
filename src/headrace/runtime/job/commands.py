"""What is to be done for a job: the commands that `JobLifecycle` returns and `JobSteps` carries out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from headrace.common.job_status import JobStatus
from headrace.errors import JobExecutionError
from headrace.graph.execution_graph import ExecutionState

# -- what is done at once ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EnterStatus:
    """Change the job's status."""

    status: JobStatus
    cause: BaseException | None = None
    #: What happens to subtasks that have not ended yet; None if they continue as they are.
    subtasks: ExecutionState | None = None


@dataclass(frozen=True)
class FailPart:
    """Note that subtasks have failed: those of some vertices, or all."""

    vertices: frozenset[str] | None
    cause: BaseException


@dataclass(frozen=True)
class RecordFailure:
    """Add a failure to the job's history."""

    error: BaseException


@dataclass(frozen=True)
class InterruptEpoch:
    """Interrupt the running epoch, and every wait."""


@dataclass(frozen=True)
class RefuseRescaling:
    """Fail a request for another parallelism."""

    number: int
    error: JobExecutionError


@dataclass(frozen=True)
class AbortCheckpoints:
    """Abort pending checkpoints, because their run has failed."""

    error: BaseException


@dataclass(frozen=True)
class CloseRun:
    """Close the run and its committers."""


@dataclass(frozen=True)
class Drain:
    """Have sources end where they are."""


@dataclass(frozen=True)
class ReleaseSlots:
    """Give back the job's slots."""


@dataclass(frozen=True)
class RecordResult:
    """Write down how the job ended, and delete what does not stay."""

    status: JobStatus
    cause: BaseException | None


# -- steps, each of which reports an event when it is done -------------------------------------------------------


@dataclass(frozen=True)
class TakeSlots:
    """Reports `SlotsTaken` or `SlotsMissing`."""


@dataclass(frozen=True)
class WaitForSlots:
    """Wait for slots to come, then try to take them: reports as `TakeSlots` does."""

    #: Whether the log does not say yet that the job waits.
    is_first: bool


@dataclass(frozen=True)
class GiveUpOnSlots:
    """Reports `Failed`, with what the job would have needed."""

    waited_ms: int


@dataclass(frozen=True)
class Deploy:
    """Start the subtasks; reports `Deployed`."""


@dataclass(frozen=True)
class CheckRequests:
    """See whether to stop with a savepoint, or to follow a change of slots; reports `RequestsChecked`."""

    #: Whether to change the parallelism if slots were added or removed.
    follows_slots: bool


@dataclass(frozen=True)
class RescaleJob:
    """Continue with another parallelism, from where the run stands; reports `Rescaled`."""

    parallelism: Mapping[str, int]
    #: The number of the request, whose slots are not taken yet; None if the parallelism follows the slots.
    request: int | None = None


@dataclass(frozen=True)
class RunEpoch:
    """Run the next epoch; reports `EpochEnded`."""

    #: Whether sources were told to end where they are.
    is_drained: bool = False


@dataclass(frozen=True)
class FinishJob:
    """Publish all output and write down that the job has finished; reports `OutputPublished`."""

    #: Whether a last checkpoint has to cover the output first.
    takes_checkpoint: bool


@dataclass(frozen=True)
class WaitBeforeRestart:
    """Wait for the delay of the restart strategy; reports `DelayElapsed`."""

    delay_ms: int
    cause: BaseException


@dataclass(frozen=True)
class RestartPart:
    """Start the regions again that have failed: reports `PartRestarted`."""

    vertices: frozenset[str]


@dataclass(frozen=True)
class BeginRun:
    """Begin a run from the last checkpoint; reports `RunBegun`."""

    #: Why the run before it failed.
    cause: BaseException


JobStep: TypeAlias = (
    TakeSlots
    | WaitForSlots
    | GiveUpOnSlots
    | Deploy
    | CheckRequests
    | RescaleJob
    | RunEpoch
    | FinishJob
    | WaitBeforeRestart
    | RestartPart
    | BeginRun
)
JobCommand: TypeAlias = (
    EnterStatus
    | FailPart
    | RecordFailure
    | InterruptEpoch
    | RefuseRescaling
    | AbortCheckpoints
    | CloseRun
    | Drain
    | ReleaseSlots
    | RecordResult
    | JobStep
)
JobCommands: TypeAlias = tuple[JobCommand, ...]
