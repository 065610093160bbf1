"""Savepoints, which do not depend on other files: the files that they name are copies next to them.

<target>/savepoint-<job id's first 6>-<random>/
    _metadata                        written last: without it the savepoint is not complete
    ...
"""

from __future__ import annotations

import logging
from uuid import uuid4

import msgspec

from headrace.errors import HeadraceError, StateError
from headrace.runtime.checkpoint.metadata import CheckpointMetadata, encode_metadata
from headrace.runtime.checkpoint.storage import StoredCheckpoint, copy_all, load_checkpoint, not_written
from headrace.storage.files import delete_directory, delete_files, make_directory, publish_file, sync_files
from headrace.storage.paths import absolute_path, join_path
from headrace.util.disk_space import watching_space

_log = logging.getLogger(__name__)


def write_savepoint(metadata: CheckpointMetadata, target: str) -> StoredCheckpoint:
    """Write a savepoint below a directory: copies of all state files, then metadata that names them.

    Raises:
        CheckpointError: If it could not be written; nothing is left of it then.
    """
    name = f"savepoint-{metadata.job_id[:6]}-{uuid4().hex[:12]}"
    path = join_path(absolute_path(target), name)
    copies: dict[str, str] = {}
    for index, file in enumerate(dict.fromkeys(each.path for each in metadata.files())):
        copies[file] = join_path(path, f"{index:06d}-{file.rpartition('/')[2]}")
    savepoint = msgspec.structs.replace(metadata.with_paths(copies.__getitem__), kind="savepoint")
    stored = StoredCheckpoint(path, savepoint)
    try:
        with watching_space(path, "the savepoint", "name another directory for it"):
            make_directory(path)
            copy_all(copies, {file.path: file.size for file in metadata.files()})
            sync_files(copies.values())
            publish_file(stored.metadata_path, encode_metadata(savepoint, path))
    except (OSError, ValueError, HeadraceError) as error:
        _discard(path)
        raise not_written("the savepoint", path, error) from error
    return stored


def delete_savepoint(path: str) -> None:
    """Delete a savepoint and all that is in its directory.

    Raises:
        StateError: If there is none: nothing but a savepoint is ever deleted.
    """
    stored = load_checkpoint(path)
    if not stored.metadata.is_savepoint:
        raise StateError(
            f"{stored.path} is a checkpoint, whose files others may share; only savepoints are disposed of",
            hint="delete the job's whole directory when no job needs its checkpoints any more",
        )
    delete_files([stored.metadata_path])
    delete_directory(stored.path)


def _discard(path: str) -> None:
    try:
        delete_directory(path)
    except OSError as error:
        _log.warning("%s is incomplete and could not be deleted: %s", path, error)
