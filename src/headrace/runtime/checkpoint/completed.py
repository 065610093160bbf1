"""The completed checkpoints of a job: how many stay, what they hold on to, and what goes when the job ends.

A state file is held by the live state, by checkpoints that stay, and by those being written. When its last holder
lets go it is free. The store only says what is free; whoever runs the job deletes it, after the new checkpoint is
written down.

    live state     retire() --.
    being written  unpin() ----+--> held by nobody any more: free, unless it is another job's
    retained       add() ------+
    undeleted      add() ------'

A checkpoint that is to go holds its files until `deleted` says that it is gone: the next driver may start from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from headrace.common.job_status import JobStatus
from headrace.config.options.checkpointing import ExternalizedCheckpointRetention
from headrace.errors import InvariantViolation
from headrace.runtime.checkpoint.storage import StoredCheckpoint

_NONE = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
_DELETE = ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION
_RETAIN = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION

#: How a job ended -> the policies under which its checkpoints stay. As Flink's CheckpointProperties has it.
KEPT_AFTER: Mapping[JobStatus, frozenset[ExternalizedCheckpointRetention]] = MappingProxyType(
    {
        JobStatus.FINISHED: frozenset(),
        JobStatus.CANCELED: frozenset({_RETAIN}),
        JobStatus.FAILED: frozenset({_RETAIN, _DELETE}),
        JobStatus.SUSPENDED: frozenset({_RETAIN}),
    }
)


@dataclass(frozen=True)
class Freed:
    """What nothing needs any more; to be deleted with `CheckpointDirectory.discard`."""

    checkpoints: tuple[StoredCheckpoint, ...] = ()
    files: tuple[str, ...] = ()


class CompletedCheckpointStore:
    """The checkpoints a job can go back to.

    Args:
        retained: How many stay.
        retention: What happens to them when the job ends.
    """

    def __init__(self, *, retained: int, retention: ExternalizedCheckpointRetention) -> None:
        self._retained = retained
        self._retention = retention
        #: Oldest first; ids rise.
        self._checkpoints: list[StoredCheckpoint] = []
        #: Files of checkpoints that are being written, by checkpoint id.
        self._pinned: dict[int, frozenset[str]] = {}
        #: Files that the live state has let go while a checkpoint held them.
        self._retired: set[str] = set()
        #: Files of a checkpoint or savepoint that belongs to somebody else.
        self._foreign: frozenset[str] = frozenset()
        #: Those that are to go and may still be there, by checkpoint id.
        self._undeleted: dict[int, StoredCheckpoint] = {}

    @property
    def checkpoints(self) -> tuple[StoredCheckpoint, ...]:
        """Those that are retained, newest first."""
        return tuple(reversed(self._checkpoints))

    @property
    def latest(self) -> StoredCheckpoint | None:
        """The one a recovery goes back to."""
        return self._checkpoints[-1] if self._checkpoints else None

    def named_files(self) -> frozenset[str]:
        """What retained checkpoints name, those being written, and those that may still be there: all of it stays."""
        return self._needed_files().union(*map(_files, self._undeleted.values()))

    def _needed_files(self) -> frozenset[str]:
        return frozenset().union(*map(_files, self._checkpoints), *self._pinned.values())

    # -- starting ----------------------------------------------------------------------------------------------

    def recover(self, checkpoints: Iterable[StoredCheckpoint], foreign: Iterable[str] = ()) -> None:
        """Take over the job's own checkpoints, in any order, after its master started again.

        Checkpoints being written are forgotten; they will never be complete.

        Args:
            checkpoints: Those that were found.
            foreign: Files among theirs that belong to somebody else, such as a savepoint the job once started from.
        """
        self._foreign |= frozenset(foreign)
        found = {each.metadata.checkpoint_id: each for each in checkpoints}
        self._checkpoints = [found[number] for number in sorted(found)]
        self._pinned.clear()
        self._retired.clear()

    def start_from(self, stored: StoredCheckpoint, *, claim: bool) -> None:
        """Note what a new job starts from: `execution.state-recovery.path`.

        Args:
            stored: A savepoint, or a retained checkpoint of another job.
            claim: Whether it is the job's own from now on, and goes when a later checkpoint takes its place. If not,
                nothing it names is ever deleted.
        """
        if claim:
            self._checkpoints.append(stored)
        else:
            self._foreign |= _files(stored)

    # -- running -----------------------------------------------------------------------------------------------

    def pin(self, checkpoint_id: int, files: Iterable[str]) -> None:
        """Hold on to the files of a checkpoint that is about to be written."""
        self._pinned[checkpoint_id] = frozenset(files)

    def unpin(self, checkpoint_id: int) -> Freed:
        """Release a checkpoint that failed."""
        self._pinned.pop(checkpoint_id, None)
        return self._free()

    def hold(self, withdrawn: Iterable[StoredCheckpoint]) -> None:
        """Hold on to the files of checkpoints that were withdrawn and may be there, until a later one is complete."""
        self._undeleted |= {each.metadata.checkpoint_id: each for each in withdrawn}

    def deleted(self, gone: Iterable[StoredCheckpoint]) -> None:
        """Release checkpoints that `add` has returned, and that are gone."""
        for each in gone:
            self._undeleted.pop(each.metadata.checkpoint_id, None)

    def add(self, stored: StoredCheckpoint) -> Freed:
        """Take a completed checkpoint; return the oldest ones, beyond as many as stay, and the files they held."""
        number = stored.metadata.checkpoint_id
        if self._checkpoints and number <= self._checkpoints[-1].metadata.checkpoint_id:
            raise InvariantViolation(
                f"checkpoint {number} completed after a later one",
                story=[f"completed {each.metadata.checkpoint_id}" for each in self._checkpoints],
            )
        self._pinned.pop(number, None)
        self._checkpoints.append(stored)
        self.hold(self._checkpoints[: -self._retained])
        self._checkpoints = self._checkpoints[-self._retained :]
        return self._free(before=number)

    def retire(self, files: Iterable[str]) -> tuple[str, ...]:
        """Take files that the live state needs no more; return those to delete now.

        The others come with `add` or `unpin` when the last checkpoint that names them goes.
        """
        self._retired |= set(files)
        return self._free().files

    # -- ending ------------------------------------------------------------------------------------------------

    def end(self, status: JobStatus, *, stays: bool = False) -> Freed:
        """Return what goes when the job has ended.

        Args:
            status: How it ended: FINISHED, CANCELED, FAILED or SUSPENDED.
            stays: Whether checkpoints stay in any case: the next start of the job continues from them.
        """
        if status not in KEPT_AFTER:
            raise InvariantViolation(f"the job has not ended: it is {status.name}")
        self._pinned.clear()
        if stays or self._retention in KEPT_AFTER[status]:
            return self._free()
        self.hold(self._checkpoints)
        self._checkpoints = []
        return self._free(before=inf)

    def _free(self, before: float = 0) -> Freed:
        """Return what is to go: checkpoints that are older than one, and files that nothing else holds."""
        dropped = tuple(self._undeleted[number] for number in sorted(self._undeleted) if number < before)
        later = [each for number, each in self._undeleted.items() if number >= before]
        held = self._needed_files().union(*map(_files, later))
        files = self._retired.union(*map(_files, dropped)) - held - self._foreign
        # What is foreign was never ours to remember.
        self._retired &= held
        return Freed(dropped, tuple(sorted(files)))


def _files(stored: StoredCheckpoint) -> frozenset[str]:
    return frozenset(file.path for file in stored.metadata.files())
