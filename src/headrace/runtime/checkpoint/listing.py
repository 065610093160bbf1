"""Lists the checkpoints and savepoints below a directory, for the command line."""

from __future__ import annotations

import re

from headrace.runtime.checkpoint.fence import CheckpointName
from headrace.storage.files import list_directory
from headrace.storage.paths import absolute_path, join_path

_SAVEPOINT_NAME = re.compile(r"savepoint-[0-9a-f]{6}-[0-9a-f]{12}")


def find_snapshots(directory: str) -> list[str]:
    """Return the directories of checkpoints and savepoints, also of incomplete ones, in a directory or one below it.

    Those of one job come in order, checkpoints by their number.
    """
    home = absolute_path(directory)
    here = [
        name for name in list_directory(home) if CheckpointName.parse(name) or _SAVEPOINT_NAME.fullmatch(name)
    ]
    if not here:
        below = [
            join_path(home, job, name) for job in list_directory(home) for name in _snapshots_in(home, job)
        ]
        return sorted(below, key=_snapshot_order)
    return sorted((join_path(home, name) for name in here), key=_snapshot_order)


def _snapshots_in(home: str, job: str) -> list[str]:
    try:
        names = list_directory(join_path(home, job))
    except NotADirectoryError:
        return []
    return [name for name in names if CheckpointName.parse(name)]


def _snapshot_order(path: str) -> tuple[str, CheckpointName, str]:
    parent, _, name = path.rpartition("/")
    return parent, CheckpointName.parse(name) or CheckpointName(0), name
