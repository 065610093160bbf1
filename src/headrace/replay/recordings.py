"""Finds the recording of a job, from its directory, a checkpoint, a savepoint or a running job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.errors import JobDefinitionError, StateError
from headrace.runtime.epoch.recording import (
    FOLDER,
    RecordedEpoch,
    copy_path,
    has_failed,
    has_outcome,
    read_epoch,
    read_job,
    recorded_epochs,
)
from headrace.runtime.task.level import JobCode
from headrace.spark.main_script import enter_program
from headrace.spark.user_code import unpack_job
from headrace.storage.files import list_directory
from headrace.storage.paths import absolute_path, join_path

_JOB_ID = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class JobRecording:
    """The recorded epochs of one job."""

    directory: str

    @property
    def epochs(self) -> Sequence[int]:
        """The numbers of the epochs it has, in order."""
        return recorded_epochs(self.directory)

    def epoch(self, number: int) -> RecordedEpoch:
        """Read an epoch.

        Raises:
            StateError: If it is not recorded.
        """
        return read_epoch(self.directory, number, self.code_of)

    def last(self) -> RecordedEpoch:
        """Return the last epoch that was completed, or has failed; one under way if there is no other."""
        numbers = self.epochs
        ended = (number for number in reversed(numbers) if has_outcome(self.directory, number))
        return self.epoch(next(ended, numbers[-1]))

    def last_failure(self) -> RecordedEpoch:
        """Return the last epoch that failed.

        Raises:
            StateError: If none did.
        """
        for number in reversed(self.epochs):
            if has_failed(self.directory, number):
                return read_epoch(self.directory, number, self.code_of, failed=True)
        raise StateError(
            f"no epoch recorded in {self.directory} has failed",
            hint="name an epoch with --epoch; failures of the driver, such as of a committer, cannot be replayed",
        )

    def code_of(self, lineage: str) -> JobCode:
        """Load the job of a run, and its classes. This runs code of the recording: open only what you trust.

        Raises:
            JobDefinitionError: If a module is missing here.
        """
        try:
            code = unpack_job(read_job(self.directory, lineage))
        except ImportError as error:
            raise JobDefinitionError(
                f"the recorded job cannot be loaded: {error}",
                hint="run `headrace replay` where the modules of the program can be imported (PYTHONPATH), with the "
                "packages it uses",
            ) from error
        enter_program(code.job.main_classes or {})
        return code

    def copy_of(self, path: str) -> str:
        """Return where the recording has its copy of a state file."""
        return copy_path(self.directory, path)


def find_recording(place: str) -> JobRecording:
    """Return the recording that belongs to a path or URI.

    Args:
        place: The recording itself, the directory of checkpoints (of all jobs or of one), a checkpoint, or a savepoint.

    Raises:
        StateError: If there is none, or there are several.
    """
    path = absolute_path(place)
    parent, _, name = path.rpartition("/")
    above, _, parent_name = parent.rpartition("/")
    candidates = [
        path,
        join_path(path, FOLDER),
        join_path(parent, FOLDER, name),
        join_path(above, FOLDER, parent_name),  # of a checkpoint, chk-17
    ]
    for candidate in candidates:
        if recorded_epochs(candidate):
            return JobRecording(candidate)
        jobs = filter(_JOB_ID.fullmatch, list_directory(candidate))
        inside = [each for each in jobs if recorded_epochs(join_path(candidate, each))]
        if len(inside) > 1:
            raise StateError(
                f"{candidate} has recordings of {len(inside)} jobs: {', '.join(inside)}",
                hint=f"name one of them, such as {join_path(candidate, inside[0])}",
            )
        if inside:
            return JobRecording(join_path(candidate, inside[0]))
    raise StateError(
        f"no recorded epochs found at {place}",
        hint="epochs are recorded if headrace.replay.keep is set when the job runs. Name the directory of "
        "headrace.replay.dir or execution.checkpointing.dir, a checkpoint in it, or a savepoint of the job",
    )
