"""Scratch space on a host: where local state copies live, shared by all workers of one run, removed at its end."""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib

from headrace.runtime.task.settings import TaskSettings

_MEMORY_FILESYSTEM = "/dev/shm"  # noqa: S108 - a mount point; the directory below it carries the run's unique name
#: Less free space than this on the memory file system (containers often give 64 MB) sends us to the disk.
_LEAST_FREE = 512 << 20


def copy_directory(settings: TaskSettings, *names: str) -> str:
    """Return where the host has a copy of state; every worker finds the same place.

    Args:
        settings: The run's.
        names: What the copy is of, such as operator and subtask.
    """
    copy = os.path.join(*names)
    directories = scratch_directories(settings)
    return os.path.join(directories[zlib.crc32(copy.encode()) % len(directories)], copy)


def scratch_directories(settings: TaskSettings) -> list[str]:
    """Return this run's directories on the host: those that are configured, or in memory or on disk as the store is."""
    parents = (settings.scratch_parent,) if settings.scratch_parent else settings.store.directories
    if not parents:
        name = settings.scratch_name
        parents = (_memory_parent(name) if settings.store.prefers_memory else tempfile.gettempdir(),)
    return [os.path.join(parent, settings.scratch_name) for parent in parents]


def remove_scratch(settings: TaskSettings) -> None:
    """Remove this run's directories from the host."""
    for directory in scratch_directories(settings):
        shutil.rmtree(directory, ignore_errors=True)


def _memory_parent(name: str) -> str:
    """Return the memory file system where there is room on it, else the disk."""
    if os.path.isdir(os.path.join(_MEMORY_FILESYSTEM, name)):
        return _MEMORY_FILESYSTEM  # another worker chose it when there was still room
    if os.access(_MEMORY_FILESYSTEM, os.W_OK):
        free = shutil.disk_usage(_MEMORY_FILESYSTEM).free
        if free >= _LEAST_FREE:
            return _MEMORY_FILESYSTEM
    return tempfile.gettempdir()
