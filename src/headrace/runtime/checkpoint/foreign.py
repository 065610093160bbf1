"""Files of a savepoint that a job started from and does not own: copied for the first checkpoint that needs them.

    NO_CLAIM   savepoint/a, b  --restore-->  live chains name savepoint/a, b
                                             checkpoint 1 begins: copies get their names a', b'
                                             checkpoint 1: copies shared/a', b', names those   (writer thread)
                                             complete: live chains name a', b'; the savepoint may go

State files never change, so a copy can take the place of the original at any time. A rescaling may tidy up `shared/`
while the writer copies. So copies have their names before the writer begins: a copy that the tidying thread has not
heard of would be deleted, and the checkpoint would be complete without it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from uuid import uuid4

from headrace.errors import CheckpointError, HeadraceError
from headrace.runtime.checkpoint.failure_reason import CheckpointFailureReason
from headrace.runtime.checkpoint.metadata import CheckpointMetadata
from headrace.runtime.checkpoint.storage import StoredCheckpoint, copy_all
from headrace.storage.paths import join_path


class ForeignFiles:
    """The files a job uses and does not own, and its copies of them.

    Args:
        directory: Where copies go.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._files: frozenset[str] = frozenset()
        #: One checkpoint at a time copies; the next one finds it done.
        self._copying = threading.Lock()
        self._names: dict[str, str] = {}
        self._copied: dict[str, str] = {}

    def add(self, stored: StoredCheckpoint) -> None:
        """The job starts from something that stays somebody else's."""
        self._files |= {file.path for file in stored.metadata.files()}

    def promise(self, metadata: CheckpointMetadata) -> None:
        """A checkpoint is about to be written: name the copies that it needs, in the thread that also tidies up."""
        for file in metadata.files():
            if file.path in self._files and file.path not in self._names:
                self._names[file.path] = join_path(self._directory, f"{uuid4().hex}.copy")

    def named(self) -> frozenset[str]:
        """Return the copies that there are, or will be."""
        return frozenset(self._names.values())

    @property
    def copies(self) -> Mapping[str, str]:
        """The files that were copied, and their copies."""
        return dict(self._copied)

    def forget(self) -> None:
        """The job starts over: copies that no checkpoint names are of no use. Nothing must be being written."""
        self._names, self._copied = {}, {}

    def replaced_in(self, metadata: CheckpointMetadata) -> CheckpointMetadata:
        """Return a snapshot that names copies instead of what is not ours; they are made if need be.

        Args:
            metadata: The snapshot. Its copies were promised before.

        Raises:
            CheckpointError: If a file could not be copied.
        """
        needed = {file.path: file.size for file in metadata.files() if file.path in self._files}
        if not needed:
            return metadata
        with self._copying:
            missing = {path: size for path, size in needed.items() if path not in self._copied}
            copies = {path: self._names[path] for path in missing}
            try:
                copy_all(copies, missing)
            except (OSError, ValueError, HeadraceError) as error:
                raise _not_copied(error) from error
            self._copied |= copies
        return metadata.with_paths(lambda path: self._copied.get(path, path))


def _not_copied(error: Exception) -> CheckpointError:
    text = error.message if isinstance(error, HeadraceError) else str(error)
    return CheckpointError(
        f"cannot copy the files of the savepoint that the job was restored from: {text}",
        reason=CheckpointFailureReason.FINALIZE_CHECKPOINT_FAILURE.name,
        hint="keep the savepoint until the first checkpoint is complete, and check that the checkpoint directory has "
        "space. With execution.state-recovery.claim-mode: CLAIM nothing is copied, and the job owns the savepoint",
    )
