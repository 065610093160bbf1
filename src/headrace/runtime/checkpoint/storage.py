"""Where checkpoints and savepoints are kept.

    <dir>/<job id>/shared/...            state files, written by tasks, named by any number of checkpoints
    <dir>/<job id>/chk-<n>/_metadata     checkpoint n: complete as soon as this file is there
    <dir>/<job id>/chk-<n>-<token>/...   the same of a job with high availability: it carries its leader's token
    <dir>/<job id>/fence-<token>, dropped-...   which checkpoints of former leaders count: see `fence`

Savepoints stand alone, in directories of their own: see `savepoints`.

Metadata is written last, whole, and never replaced. So a directory without it is a checkpoint that was not completed,
and two masters that think they both lead a job cannot overwrite each other's: they write under different names.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from uuid import uuid4

import msgspec

from headrace.errors import CheckpointError, DamagedStateError, DiskFullError, HeadraceError, StateError
from headrace.runtime.checkpoint.failure_reason import CheckpointFailureReason
from headrace.runtime.checkpoint.fence import (
    CheckpointName,
    Fence,
    announce_drops,
    announced_drops,
    read_fence,
    write_fence,
)
from headrace.runtime.checkpoint.metadata import CheckpointMetadata, decode_metadata, encode_metadata
from headrace.runtime.epoch.messages import state_files_dir
from headrace.state.changes import ChangeReader
from headrace.storage.files import (
    copy_file,
    delete_directory,
    delete_files,
    delete_for_good,
    file_sizes,
    list_directory,
    publish_file,
    read_file,
    read_if_there,
    secure_directory,
    sync_files,
    sync_names,
)
from headrace.storage.paths import absolute_path, join_path
from headrace.storage.store import SyncError
from headrace.util.disk_space import watching_space

_log = logging.getLogger(__name__)

METADATA_FILE = "_metadata"
#: Files of a savepoint that are copied at a time: on object stores most of the time is waiting.
_COPIES = 8
#: What to do where there is no space for checkpoints.
_ELSEWHERE = "set execution.checkpointing.dir to a larger disk"
#: How many of the missing files a message names.
_NAMED = 3


@dataclass(frozen=True)
class StoredCheckpoint:
    """A completed checkpoint or savepoint, and its directory."""

    path: str
    metadata: CheckpointMetadata

    @property
    def metadata_path(self) -> str:
        return join_path(self.path, METADATA_FILE)


@dataclass(frozen=True)
class Skipped:
    """A checkpoint that cannot be used."""

    path: str
    reason: str
    #: Whether its metadata is there: then it was completed, and its output may have been published.
    was_complete: bool = True
    #: Whether it was completed by a former leader after another one had taken over: then its output was not.
    is_fenced: bool = False


@dataclass(frozen=True)
class Recovery:
    """What there is to continue from."""

    #: The newest checkpoint that is whole; None if there is none.
    checkpoint: StoredCheckpoint | None
    #: Newer ones that are not, newest first.
    skipped: tuple[Skipped, ...] = ()


class DoubtfulFileError(OSError):
    """A state file could not be synced, so no checkpoint can name it: the job has to write another one."""


class CheckpointDirectory:
    """The checkpoints of one job below a configured directory.

    Args:
        directory: The configured one.
        job_id: The job.
        leader: The fencing token of who writes here, 0 without high availability.
        ensure_leader: Raises if another process leads the job by now; called before everything that is deleted.
    """

    def __init__(
        self,
        directory: str,
        job_id: str,
        leader: int = 0,
        *,
        ensure_leader: Callable[[], None] = lambda: None,
    ) -> None:
        self.job_id = job_id
        self._leader = leader
        self._ensure_leader = ensure_leader
        self.path = join_path(absolute_path(directory), job_id)
        self._configured = directory
        #: Local files known to survive a power loss.
        self._synced: frozenset[str] = frozenset()
        #: Files that could not be synced. The kernel may have dropped what it could not write, and calls them clean.
        self._doubtful: frozenset[str] = frozenset()
        #: Checkpoints that do not count but could not be deleted, by their paths. The next driver may find them.
        self._withdrawn: dict[str, StoredCheckpoint] = {}

    @property
    def shared_directory(self) -> str:
        """Where state files go."""
        return state_files_dir(self.path)

    def checkpoint_directory(self, checkpoint_id: int) -> str:
        """Where a checkpoint of this process goes."""
        return join_path(self.path, str(CheckpointName(checkpoint_id, self._leader)))

    def ensure_writable(self) -> None:
        """Write and delete a file, so that a job that could never complete a checkpoint does not start.

        Raises:
            CheckpointError: If that fails; it names the directory and what to do.
            DiskFullError: If there is no space.
        """
        probe = join_path(self.shared_directory, f"probe-{uuid4().hex}")
        try:
            publish_file(probe, b"headrace")
            secure_directory(self.shared_directory)
            delete_files([probe])
        # pyarrow raises its own kinds for URIs it cannot make sense of.
        except (OSError, ValueError, NotImplementedError) as error:
            raise CheckpointError(
                f"the checkpoint directory {self._configured} cannot be written: {error}",
                reason=CheckpointFailureReason.IO_EXCEPTION.name,
                hint="set execution.checkpointing.dir to a place that the driver and every executor can write: "
                "a shared directory, or a URI such as s3://bucket/path. Check that it exists, has room, and "
                "that credentials are set",
                retryable=False,
            ) from error

    # -- leadership --------------------------------------------------------------------------------------------

    def take_over(self) -> None:
        """Write down which checkpoints there are: from now on, none of a former leader comes to count.

        One that was stopped while it wrote a checkpoint may complete it when it wakes. By then others have gone on
        from the one before, and what that checkpoint names may be gone.

        Raises:
            StateError: If storage does not answer, or the fence of the leader before is damaged.
        """
        if not self._leader:
            return
        before = read_fence(self.path)
        drops = announced_drops(self.path)
        found = []
        for name, path in self._names():
            if str(name) in drops.values():
                continue
            try:
                written_by = load_checkpoint(path).metadata.leader
            except StateError as error:
                if not is_damage(error):
                    raise
                continue
            if before.admits(name._replace(leader=written_by)):
                found.append(str(name))
        write_fence(self.path, Fence(self._leader, tuple(found)))
        # What a former leader was about to delete is deleted, and only then the word of it.
        for dropped in sorted(set(drops.values())):
            self._delete_directory(join_path(self.path, dropped))
        delete_files(list(drops))

    def latest_leader(self) -> int:
        """Return the fencing token of the last leader that took the job over, 0 if there was none.

        Raises:
            DamagedStateError: If the file that says so is damaged.
        """
        return read_fence(self.path).leader

    # -- writing -----------------------------------------------------------------------------------------------

    def write(self, metadata: CheckpointMetadata) -> StoredCheckpoint:
        """Complete a checkpoint: from its return on, it is there for good.

        Raises:
            CheckpointError: If it could not be written, or another one has its number.
        """
        metadata = msgspec.structs.replace(metadata, leader=self._leader)
        path = self.checkpoint_directory(metadata.checkpoint_id)
        files = frozenset(file.path for file in metadata.files())
        try:
            with watching_space(path, "a checkpoint", _ELSEWHERE):
                # 1. What it names is safe ...
                self._sync(files - self._synced)
                # 2. ... before it names it.
                publish_file(join_path(path, METADATA_FILE), encode_metadata(metadata, path))
        except FileExistsError as error:
            raise CheckpointError(
                f"checkpoint {metadata.checkpoint_id} of job {metadata.job_id} already exists: {path}",
                reason=CheckpointFailureReason.FINALIZE_CHECKPOINT_FAILURE.name,
                hint="another process runs a job with the same id and directory: end one of them, or give each "
                "its own execution.checkpointing.dir",
                retryable=False,
            ) from error
        except (OSError, HeadraceError) as error:
            self._withdraw(StoredCheckpoint(path, metadata))
            raise not_written(f"checkpoint {metadata.checkpoint_id}", path, error) from error
        self._synced = files
        return StoredCheckpoint(path, metadata)

    def trust(self, stored: StoredCheckpoint) -> None:
        """Take the files of a complete checkpoint for safe: they were synced then, and need not be again."""
        self._synced |= {file.path for file in stored.metadata.files()}

    def _sync(self, files: frozenset[str]) -> None:
        doubtful = self._doubtful & files
        if doubtful:
            raise DoubtfulFileError(
                errno.EIO, "an earlier checkpoint could not sync it, so it may be damaged", min(doubtful)
            )
        try:
            sync_files(files)
        except SyncError as error:
            self._doubtful |= {error.filename}
            raise

    def _withdraw(self, stored: StoredCheckpoint) -> None:
        """Delete a checkpoint that was said to have failed and is there all the same."""
        try:
            found = read_if_there(stored.metadata_path)
            if found == encode_metadata(stored.metadata, stored.path):
                self.withdraw([stored])
        except (OSError, HeadraceError):  # perhaps it is there
            self._withdrawn[stored.path] = stored

    # -- deleting ----------------------------------------------------------------------------------------------

    def withdraw(self, checkpoints: Iterable[StoredCheckpoint]) -> None:
        """Delete checkpoints that were written and do not count.

        They are newer than what the job continues from, so none of them may be found again after a power loss either.
        One that cannot be deleted does not count for this process. The next one may start from it: nothing is published
        after it until a later checkpoint is complete. So its files must stay until then: see `withdrawn`.

        Raises:
            LeadershipError: If this process does not lead any more.
        """
        checkpoints = tuple(checkpoints)
        gone = self.discard(checkpoints, (), for_good=True)
        self._withdrawn |= {stored.path: stored for stored in checkpoints if stored not in gone}

    @property
    def withdrawn(self) -> tuple[StoredCheckpoint, ...]:
        """Checkpoints that were withdrawn, and may be there all the same."""
        return tuple(self._withdrawn.values())

    def discard(
        self, checkpoints: Iterable[StoredCheckpoint], files: Iterable[str], *, for_good: bool = False
    ) -> tuple[StoredCheckpoint, ...]:
        """Delete checkpoints, then files that nothing else names; what cannot be deleted is logged, and left.

        Args:
            checkpoints: What is deleted first. If one of them may still be there, all files stay.
            files: State files.
            for_good: Whether the checkpoints must not be there after a power loss, either.

        Returns:
            The checkpoints that are gone.

        Raises:
            LeadershipError: If this process is no longer the leader: the current one may need files that we do not.
        """
        checkpoints, files = tuple(checkpoints), tuple(files)
        gone: tuple[StoredCheckpoint, ...] = ()
        if not (checkpoints or files):
            return gone
        self._ensure_leader()
        announced: list[str] = []
        own = [stored.path.rpartition("/")[2] for stored in checkpoints if self._is_own(stored.path)]
        try:
            if own and self._leader:
                announced = announce_drops(self.path, self._leader, own)
                # Only if it leads still have all who come later seen that.
                self._ensure_leader()
            delete = delete_for_good if for_good else delete_files
            delete([stored.metadata_path for stored in checkpoints])
            gone = checkpoints
            for stored in gone:
                self._withdrawn.pop(stored.path, None)
            _delete_contents(checkpoints, files)
            delete_files(announced)
        except (OSError, DiskFullError) as error:
            _log.warning("files of checkpoints that are no longer needed could not be deleted: %s", error)
        return gone

    def _is_own(self, path: str) -> bool:
        return path.startswith(self.path + "/")

    def delete_all(self) -> None:
        """Delete everything of the job: checkpoints, then state files and the rest.

        Nobody may start the job from here on: that it has ended must have been written down before.

        Raises:
            LeadershipError: If this process does not lead any more.
        """
        for _, path in self._names():
            self._ensure_leader()
            self._delete_directory(path)
        for name in list_directory(self.path):
            self._ensure_leader()
            _delete_either(join_path(self.path, name))
        sync_names(self.path)  # how the job ended may be forgotten next: then nothing of it may be found
        delete_directory(self.path)

    @staticmethod
    def _delete_directory(path: str) -> None:
        # First what makes it a checkpoint: one that is half deleted must not look whole.
        delete_for_good([join_path(path, METADATA_FILE)])
        delete_directory(path)

    # -- reading -----------------------------------------------------------------------------------------------

    def list_checkpoints(self) -> list[tuple[int, str]]:
        """Return number and directory of all checkpoints, also of incomplete ones, newest first."""
        return [(name.number, path) for name, path in self._names()]

    def _names(self) -> list[tuple[CheckpointName, str]]:
        found = [name for each in list_directory(self.path) if (name := CheckpointName.parse(each))]
        return [(name, join_path(self.path, str(name))) for name in sorted(found, reverse=True)]

    def highest_id(self) -> int:
        """Return the highest number a checkpoint ever tried to have here, 0 if none: go on above it."""
        return max((number for number, _ in self.list_checkpoints()), default=0)

    def latest_valid(self, *, thorough: bool = False) -> Recovery:
        """Find the newest checkpoint that is whole, with all files it names; say aloud which ones are not.

        Args:
            thorough: Whether to read all files, and not only to see that they are there in their size.

        Raises:
            StateError: If storage does not answer, or the newest is in a format of a later headrace: going back
                further than needed is not for this function to decide.
        """
        fence = read_fence(self.path)
        skipped: list[Skipped] = []
        for name, path in self._names():
            if path in self._withdrawn:
                continue
            stored = self._load_if_usable(name, path, fence, skipped, thorough=thorough)
            if stored is None:
                continue
            damaged = [each.path for each in skipped if each.was_complete and not each.is_fenced]
            if damaged:
                _log.error(
                    "recovery goes back to checkpoint %d (epoch %d); %d newer ones cannot be used: %s. Results that "
                    "sinks published since then are published again",
                    name.number,
                    stored.metadata.epoch,
                    len(damaged),
                    ", ".join(damaged),
                )
            return Recovery(stored, tuple(skipped))
        return Recovery(None, tuple(skipped))

    def _load_if_usable(
        self, name: CheckpointName, path: str, fence: Fence, skipped: list[Skipped], *, thorough: bool
    ) -> StoredCheckpoint | None:
        """Read a checkpoint; if it cannot be used, log why, add it to those that are skipped and return None."""
        try:
            stored = load_checkpoint(path)
            if not fence.admits(name._replace(leader=stored.metadata.leader)):
                _log.warning(
                    "checkpoint %d was written by a driver that no longer led, and is ignored", name.number
                )
                skipped.append(
                    Skipped(path, f"{path} was written by a driver that no longer led", is_fenced=True)
                )
                return None
            check_files(stored)
            if thorough:
                read_files(stored)
        except StateError as error:
            if not is_damage(error):
                raise
            was_complete = METADATA_FILE in list_directory(path)
            if was_complete:
                _log.error("checkpoint %d is ignored by recovery: %s", name.number, error.message)
            else:
                _log.warning("checkpoint %d was not completed, and is ignored by recovery", name.number)
            skipped.append(Skipped(path, error.message, was_complete))
            return None
        return stored

    def valid(self) -> list[StoredCheckpoint]:
        """Return all checkpoints that are whole, newest first; the others are passed over in silence."""
        fence = read_fence(self.path)
        found = []
        for name, path in self._names():
            try:
                stored = load_checkpoint(path)
                check_files(stored)
            except StateError as error:
                if not is_damage(error):
                    raise
                continue
            if fence.admits(name._replace(leader=stored.metadata.leader)):
                found.append(stored)
        return found

    def orphans(self, named: Iterable[str], being_written: Iterable[str] = ()) -> list[str]:
        """Return the shared files that are not among those named, nor begun to be written under such a name."""
        kept = {absolute_path(path) for path in named}
        begun = tuple(f"{absolute_path(path)}." for path in being_written)
        paths = [join_path(self.shared_directory, name) for name in list_directory(self.shared_directory)]
        return [path for path in paths if path not in kept and not path.startswith(begun)]


def load_checkpoint(path: str) -> StoredCheckpoint:
    """Read a checkpoint or savepoint from its directory or its metadata file, given as a path or URI.

    Raises:
        StateError: If there is none, or it cannot be used; it says why.
    """
    directory = absolute_path(path)
    if directory.endswith("/" + METADATA_FILE):
        directory = directory.removesuffix("/" + METADATA_FILE)
    file = join_path(directory, METADATA_FILE)
    try:
        data = read_file(file)
    except StateError as error:
        raise _missing(path, directory) from error
    except (OSError, ValueError) as error:
        raise StateError(f"{file} cannot be read: {error}") from error
    return StoredCheckpoint(directory, decode_metadata(data, directory, path=file))


def copy_all(copies: Mapping[str, str], sizes: Mapping[str, int]) -> None:
    """Copy state files, several at a time, and see that they are whole.

    Args:
        copies: Files, and what their copies are called.
        sizes: How large each of the files is.

    Raises:
        OSError: If one cannot be read or written; StateError if a copy is not as large as its file should be.
    """
    with ThreadPoolExecutor(_COPIES, thread_name_prefix="state-copies") as pool:
        list(pool.map(copy_file, copies.keys(), copies.values()))
    _check_sizes({copy: sizes[path] for path, copy in copies.items()}, "what was copied")


def check_files(stored: StoredCheckpoint) -> None:
    """Make sure that the files a checkpoint names are there, each with its size.

    Raises:
        StateError: If not; it names the first of them.
    """
    _check_sizes({file.path: file.size for file in stored.metadata.files()}, stored.path)


def _check_sizes(expected: Mapping[str, int], whose: str) -> None:
    problems = []
    try:
        sizes = file_sizes(expected)
    except (OSError, ValueError) as error:
        raise StateError(f"files of {whose} cannot be checked: {error}") from error
    for path, size in sizes.items():
        if size is None:
            problems.append(f"{path} is missing")
        elif size != expected[path]:
            problems.append(f"{path} has {size} bytes instead of {expected[path]}")
    if problems:
        more = f", and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        raise DamagedStateError(
            f"{whose} names files that are not as it left them: {', '.join(problems[:_NAMED])}{more}",
            hint="start from another checkpoint or savepoint",
        )


def read_files(stored: StoredCheckpoint) -> None:
    """Read the files that a checkpoint names, so that their checksums are looked at.

    Raises:
        StateError: If one is damaged.
    """
    for path in dict.fromkeys(file.path for file in stored.metadata.files()):
        try:
            with closing(ChangeReader(path)) as reader:
                for group in reader.groups:
                    reader.section(group)
        except (OSError, ValueError) as error:
            raise StateError(f"{path} cannot be read: {error}") from error


def secure(stored: StoredCheckpoint) -> StoredCheckpoint:
    """Make a checkpoint survive a power loss whose driver was lost after it named it, and before it synced the name."""
    sync_names(stored.path)
    sync_names(stored.path.rpartition("/")[0])
    return stored


def _delete_contents(checkpoints: Iterable[StoredCheckpoint], files: Iterable[str]) -> None:
    """Delete files, and directories of deleted checkpoints that no other checkpoint has files in."""
    delete_files(files)
    for stored in checkpoints:
        if not list_directory(stored.path):
            delete_directory(stored.path)


def _delete_either(path: str) -> None:
    """Delete a file, or a directory with all that is in it."""
    try:
        delete_files([path])
    except OSError:  # a directory
        delete_directory(path)


def not_written(what: str, path: str, error: Exception) -> CheckpointError:
    """Return an error that says that something could not be written, and what to do."""
    text = error.message if isinstance(error, HeadraceError) else str(error)
    room = "check that the directory exists, can be written and has free space"
    return CheckpointError(
        f"{what} could not be written to {path}: {text}",
        reason=CheckpointFailureReason.FINALIZE_CHECKPOINT_FAILURE.name,
        hint=error.hint if isinstance(error, DiskFullError) else room,
    )


def _missing(path: str, directory: str) -> StateError:
    found = [name for each in list_directory(directory) if (name := CheckpointName.parse(each))]
    if found:
        hint = f"this is a job's directory; its newest checkpoint is {join_path(directory, str(max(found)))}"
    elif list_directory(directory):
        hint = "a checkpoint or savepoint that was not completed has no such file; use an earlier one"
    else:
        hint = "check the path; it must be on storage that this host can reach"
    return StateError(
        f"no checkpoint or savepoint found at {path}: it has no {METADATA_FILE} file",
        hint=hint,
        retryable=False,
    )


def is_damage(error: StateError) -> bool:
    """Whether an error says that a checkpoint is not whole, not that it cannot be read now or by this headrace."""
    return not error.retryable and error.domain != "user"
