"""Scratch space on a host: where local state copies live, shared by all workers of one run, removed at its end."""

from __future__ import annotations

import os
import shutil
import tempfile

from headrace.runtime.task.settings import TaskSettings

_MEMORY_FILESYSTEM = "/dev/shm"  # noqa: S108 - a mount point; the directory below it carries the run's unique name
#: Less free space than this on the memory file system (containers often give 64 MB) sends us to the disk.
_LEAST_FREE = 512 << 20


def scratch_directory(settings: TaskSettings) -> str:
    """Return this run's directory on the host, in memory where there is room."""
    parent = settings.scratch_parent or _default_parent(settings.scratch_name)
    return os.path.join(parent, settings.scratch_name)


def remove_scratch(settings: TaskSettings) -> None:
    """Remove this run's directory from the host."""
    shutil.rmtree(scratch_directory(settings), ignore_errors=True)


def _default_parent(name: str) -> str:
    if os.path.isdir(os.path.join(_MEMORY_FILESYSTEM, name)):
        return _MEMORY_FILESYSTEM  # another worker chose it when there was still room
    if os.access(_MEMORY_FILESYSTEM, os.W_OK):
        free = shutil.disk_usage(_MEMORY_FILESYSTEM).free
        if free >= _LEAST_FREE:
            return _MEMORY_FILESYSTEM
    return tempfile.gettempdir()
