"""The recording of a job: what `headrace replay` needs to run one of its last epochs again, anywhere.

    <directory>/replay/<job id>/
        job-<lineage>                      the job as workers get it, once per run
        files/<name>                       copies of the state files that recorded plans and reports name
        <epoch>/plan-<attempt>             what a try at the epoch was told, and when it was planned
        <epoch>/done                       the reports, if it was completed
        <epoch>/failed-<attempt>           the error, if it was not
        <epoch>/task-..., input-...        what workers write: the clock of a task that failed, records of a source

The recording stands alone, so it can be copied, and nothing that the job deletes is missed. It never grows beyond the
number of epochs asked for. If a recording cannot be written, the job continues: it is logged and left out.
"""

from __future__ import annotations

import logging
import pickle
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from headrace.config.configuration import Configuration
from headrace.config.options import checkpointing, replay
from headrace.errors import ConfigurationError, HeadraceError, StateError
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.state.handles import StateFile
from headrace.storage.files import (
    copy_file,
    delete_directory,
    delete_files,
    list_directory,
    read_file,
    read_if_there,
    write_new_file,
)
from headrace.storage.paths import absolute_path, join_path

_log = logging.getLogger(__name__)

_PLAN, _FAILED, _DONE, _JOB, _FILES = "plan-", "failed-", "done", "job-", "files"
#: The directory of recordings below the configured one, and in savepoints.
FOLDER = "replay"


@dataclass(frozen=True)
class RecordingSettings:
    """What workers are told about the recording."""

    #: That of the job.
    directory: str
    #: Whether records of sources are kept.
    keeps_inputs: bool = False
    #: How many bytes a live subtask keeps between two barriers.
    live_bytes: int = 0


def recording_directory(configuration: Configuration, job_id: str) -> str | None:
    """Return where a job is recorded; None if it is not.

    Raises:
        ConfigurationError: If epochs are to be kept, and nothing says where.
    """
    if configuration.get(replay.KEEP) <= 0:
        return None
    directory = configuration.get(replay.DIRECTORY) or configuration.get(checkpointing.DIRECTORY)
    if directory is None:
        raise ConfigurationError(
            f"{replay.KEEP.key} is {configuration.get(replay.KEEP)}, and there is no directory for recorded epochs",
            hint=f"set {replay.DIRECTORY.key} or {checkpointing.DIRECTORY.key}",
        )
    return join_path(absolute_path(directory), FOLDER, job_id)


def recording_settings(configuration: Configuration, job_id: str) -> RecordingSettings | None:
    """Return what workers of a job are told; None if it is not recorded."""
    directory = recording_directory(configuration, job_id)
    if directory is None:
        return None
    live_bytes = configuration.get(replay.LIVE_BYTES).get_bytes()
    return RecordingSettings(directory, configuration.get(replay.INPUTS), live_bytes)


def epoch_directory(directory: str, epoch: int) -> str:
    """Return where an epoch of a recording is."""
    return join_path(directory, f"{epoch:010d}")


def task_file(kind: str, subtask: SubtaskId, plan: EpochPlan, attempt: str) -> str:
    """Name a file that a worker writes about its task."""
    return f"{_start_of(kind, subtask)}{plan.attempt}-{attempt}"


def _start_of(kind: str, subtask: SubtaskId) -> str:
    return f"{kind}-{subtask.vertex_id}-{subtask.subtask}-"


@dataclass(frozen=True)
class _Entry:
    """What is written about a try at an epoch: what the driver must know about it, and content of the job's classes."""

    lineage: str
    #: The try at the epoch, 0 for the first.
    attempt: int
    #: The state files that it names.
    files: tuple[str, ...]
    #: Pickled: an EpochPlan, or the reports. Only a process that has the job's classes can load it.
    content: bytes
    #: When it was written, ms since 1970.
    written_ms: int
    #: Whether the subtasks last from epoch to epoch.
    is_live: bool = False


@dataclass(frozen=True)
class PlannedEpoch:
    """A try at an epoch."""

    lineage: str
    plan: EpochPlan
    #: When it was planned, ms since 1970.
    planned_ms: int
    #: Whether it is the span between two barriers of a live run.
    is_live: bool = False


@dataclass(frozen=True)
class RecordedEpoch:
    """An epoch that can be replayed."""

    directory: str
    planned: PlannedEpoch
    #: One per subtask; none if the epoch was not completed.
    reports: Mapping[SubtaskId, SubtaskReport] = field(default_factory=dict)
    #: What it failed with; None if it was completed, or the driver was lost.
    error: HeadraceError | None = None

    @property
    def epoch(self) -> int:
        return self.planned.plan.epoch

    def task_files(self, kind: str, subtask: SubtaskId) -> list[str]:
        """Return what workers wrote about a subtask in this try: the attempt that was reported, or all there were."""
        report = self.reports.get(subtask)
        start, end = task_file(kind, subtask, self.planned.plan, ""), ""
        if report is not None:
            # Regions of a live job count their tries by themselves.
            start, end = _start_of(kind, subtask), f"-{report.attempt_id}"
        return [
            join_path(self.directory, name)
            for name in list_directory(self.directory)
            if name.startswith(start) and name.endswith(end)
        ]


# -- writing ---------------------------------------------------------------------------------------------------


class EpochRecorder:
    """Writes the recording of one job; in the driver.

    Args:
        directory: The job's recording.
        keep: How many epochs are kept.
        now_ms: The clock.
        is_live: Whether epochs are spans between barriers.
    """

    def __init__(
        self, directory: str, keep: int, now_ms: Callable[[], int], *, is_live: bool = False
    ) -> None:
        self.directory = directory
        self._is_live = is_live
        self._keep = keep
        self._now_ms = now_ms
        self._lineage = ""
        #: The copies that each kept epoch needs, by epoch.
        self._needed: dict[int, set[str]] = {}
        self._copied = set(list_directory(join_path(directory, _FILES)))
        self._runs: dict[int, str] = {}
        for epoch in recorded_epochs(directory):
            self._note_former(epoch)

    def begin_run(self, lineage: str, packed: bytes) -> None:
        """Write down the job as its workers get it, before the epochs of a run."""
        self._lineage = lineage
        self._try(lambda: write_new_file(join_path(self.directory, f"{_JOB}{lineage}"), packed))

    def planned(self, plan: EpochPlan) -> None:
        """Keep what an epoch is told, and the state it starts from."""

        def write() -> None:
            files = state_files(plan)
            self._copy(plan.epoch, files)
            name = f"{_PLAN}{plan.attempt}"
            self._write(plan.epoch, name, self._entry(plan.attempt, files, plan))
            self._runs[plan.epoch] = self._lineage
            self._forget(plan.epoch)

        self._try(write)

    def completed(self, epoch: int, reports: Sequence[SubtaskReport]) -> None:
        """Keep what an epoch did."""

        def write() -> None:
            files = [file.path for report in reports for file in report.changes.values()]
            self._copy(epoch, files)
            attempt = next((report.epoch[1] for report in reports if report.epoch is not None), 0)
            self._write(epoch, _DONE, self._entry(attempt, files, tuple(reports)))

        self._try(write)

    def failed(self, plan: EpochPlan, error: HeadraceError) -> None:
        """Keep what an epoch failed with."""
        self._try(lambda: self._write(plan.epoch, f"{_FAILED}{plan.attempt}", error))

    def abandoned(self, epoch: int) -> None:
        """Drop an epoch that has come to no end, unless it failed."""
        inside = epoch_directory(self.directory, epoch)

        def drop() -> None:
            if not _has_outcome(list_directory(inside)):
                self._needed.pop(epoch, None)
                self._runs.pop(epoch, None)
                delete_directory(inside)

        self._try(drop)

    def copy_to(self, target: str) -> None:
        """Copy the recording, for a savepoint that stands alone."""

        def copy(path: str) -> None:
            copy_file(join_path(self.directory, path), join_path(target, path))

        for name in list_directory(self.directory):
            if name.startswith(_JOB):
                self._try(partial(copy, name))
                continue
            inside = list_directory(join_path(self.directory, name))
            if name.isdecimal() and not _has_outcome(inside):
                continue  # it is still under way
            for inner in inside:
                self._try(partial(copy, f"{name}/{inner}"))

    def _entry(self, attempt: int, files: Iterable[str], content: object) -> _Entry:
        packed = pickle.dumps(content, protocol=5)
        return _Entry(self._lineage, attempt, tuple(files), packed, self._now_ms(), self._is_live)

    def _write(self, epoch: int, name: str, content: object) -> None:
        path = join_path(epoch_directory(self.directory, epoch), name)
        write_new_file(path, pickle.dumps(content, protocol=5))

    def _copy(self, epoch: int, paths: Iterable[str]) -> None:
        needed = self._needed.setdefault(epoch, set())
        for path in paths:
            name = copy_name(path)
            needed.add(name)
            if name not in self._copied:
                copy_file(path, join_path(self.directory, _FILES, name))
                self._copied.add(name)

    def _forget(self, epoch: int) -> None:
        """Drop what newer epochs have replaced."""
        for old in [number for number in self._needed if number <= epoch - self._keep]:
            del self._needed[old]
            self._runs.pop(old, None)
            delete_directory(epoch_directory(self.directory, old))
        unneeded = self._copied - set().union(*self._needed.values())
        delete_files(join_path(self.directory, _FILES, name) for name in unneeded)
        self._copied -= unneeded
        jobs = {f"{_JOB}{lineage}" for lineage in (*self._runs.values(), self._lineage)}
        for name in list_directory(self.directory):
            if name.startswith(_JOB) and name not in jobs:
                delete_files([join_path(self.directory, name)])

    def _note_former(self, epoch: int) -> None:
        """Take over an epoch that a driver before has recorded."""
        self._needed[epoch] = set()
        done = _done(self.directory, epoch)
        for entry in (*_tries(self.directory, epoch), *([] if done is None else [done])):
            self._runs[epoch] = entry.lineage
            self._needed[epoch] |= {copy_name(path) for path in entry.files}

    def _try(self, write: Callable[[], None]) -> None:
        try:
            write()
        except (OSError, HeadraceError) as error:
            _log.warning("the recording for replay is not complete: %s", error)


def state_files(plan: EpochPlan) -> list[str]:
    """Return the state files that a plan names."""
    chains = (chain for subtask in plan.subtasks.values() for chain in subtask.keyed.values())
    return list(dict.fromkeys(file.path for chain in chains for file in chain.files))


def copy_name(path: str) -> str:
    """Name the copy of a state file: those of savepoints may share their last names."""
    directory, _, name = path.rpartition("/")
    return f"{zlib.crc32(directory.encode()):08x}-{name}"


# -- reading ---------------------------------------------------------------------------------------------------


def recorded_epochs(directory: str) -> list[int]:
    """Return the numbers of the epochs that a recording has."""
    return [int(name) for name in list_directory(directory) if name.isdecimal()]


def read_epoch(
    directory: str, epoch: int, enter_job: Callable[[str], object], *, failed: bool = False
) -> RecordedEpoch:
    """Read an epoch: the try that was completed, or else the last one.

    Args:
        directory: The recording.
        epoch: The epoch's number.
        enter_job: Called with a lineage, before anything is loaded that needs the classes of that job.
        failed: Read the last try that failed instead.

    Raises:
        StateError: If it is not in the recording.
    """
    tries = _tries(directory, epoch)
    if not tries:
        known = recorded_epochs(directory)
        span = f"epochs {known[0]} to {known[-1]}" if known else "no epochs"
        raise StateError(
            f"epoch {epoch} is not recorded in {directory}, which has {span}",
            hint="raise headrace.replay.keep to keep more epochs",
        )
    inside = epoch_directory(directory, epoch)
    done = None if failed else _done(directory, epoch)
    last = next((entry for entry in tries if done is not None and entry.attempt == done.attempt), tries[-1])
    enter_job(last.lineage)
    planned = PlannedEpoch(last.lineage, pickle.loads(last.content), last.written_ms, last.is_live)
    if done is not None:
        reports = {report.subtask: report for report in pickle.loads(done.content)}
        return RecordedEpoch(inside, _with_copies(planned, directory), reports)
    pickled = read_if_there(join_path(inside, f"{_FAILED}{last.attempt}"))
    error = None if pickled is None else pickle.loads(pickled)
    return RecordedEpoch(inside, _with_copies(planned, directory), error=error)


def has_failed(directory: str, epoch: int) -> bool:
    """Whether the last try at an epoch has failed, or a region of a live job in it, and then run again."""
    names = list_directory(epoch_directory(directory, epoch))
    has_failed_task = any(name.startswith("task-") for name in names)
    return any(name.startswith(_FAILED) for name in names) and (_DONE not in names or has_failed_task)


def has_outcome(directory: str, epoch: int) -> bool:
    """Whether an epoch is not under way: it was completed, or has failed."""
    return _has_outcome(list_directory(epoch_directory(directory, epoch)))


def _has_outcome(names: Iterable[str]) -> bool:
    return any(name.startswith((_DONE, _FAILED)) for name in names)


def read_job(directory: str, lineage: str) -> bytes:
    """Return the job of a run, packed."""
    return read_file(join_path(directory, f"{_JOB}{lineage}"))


def copy_path(directory: str, path: str) -> str:
    """Return where a recording has its copy of a state file."""
    return join_path(directory, _FILES, copy_name(path))


def _tries(directory: str, epoch: int) -> list[_Entry]:
    inside = epoch_directory(directory, epoch)
    names = sorted((name for name in list_directory(inside) if name.startswith(_PLAN)), key=len)
    return [pickle.loads(read_file(join_path(inside, name))) for name in names]


def _done(directory: str, epoch: int) -> _Entry | None:
    content = read_if_there(join_path(epoch_directory(directory, epoch), _DONE))
    return None if content is None else pickle.loads(content)


def _with_copies(entry: PlannedEpoch, directory: str) -> PlannedEpoch:
    """Return an entry whose plan starts from the recording's own copies."""
    subtasks = {subtask: _moved(each, directory) for subtask, each in entry.plan.subtasks.items()}
    return replace(entry, plan=replace(entry.plan, subtasks=subtasks))


def _moved(plan: SubtaskPlan, directory: str) -> SubtaskPlan:
    def moved(file: StateFile) -> StateFile:
        return replace(file, path=copy_path(directory, file.path))

    keyed = {
        operator_id: replace(chain, files=tuple(map(moved, chain.files)))
        for operator_id, chain in plan.keyed.items()
    }
    return replace(plan, keyed=keyed)
