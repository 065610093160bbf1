"""Scratch space on a host: where local state copies live, shared by all workers of one job, removed at its end.

<parent>/<job's name>-<uid>/          held by every worker that has copies there (`util/host_directories.py`)
<run>-<boot>/<operator>/<subtask>/    one copy; of the last run only, and of this boot of the host
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from contextlib import suppress
from functools import cache

import msgspec

from headrace.runtime.task.settings import TaskSettings
from headrace.util.disk_space import watching_space
from headrace.util.host_directories import MEMORY, HeldDirectory, Owner, sweep, usual_parents

#: Less free space than this on the memory file system (containers often give 64 MB) sends us to the disk.
_LEAST_FREE = 512 << 20
#: The directories that this process uses, by path.
_held: dict[str, HeldDirectory] = {}


def copy_directory(settings: TaskSettings, run: str, *names: str) -> str:
    """Return where the host has a copy of state; every worker finds the same place.

    The directory of the job is held from now on; copies of its earlier runs are removed.

    Args:
        settings: The job's.
        run: The lineage of the run.
        names: What the copy is of, such as operator and subtask.
    """
    run = _of_this_boot(run)
    copy = os.path.join(run, *names)
    directories = scratch_directories(settings)
    directory = directories[zlib.crc32(copy.encode()) % len(directories)]
    with watching_space(directory, "the copy of state", settings.store.elsewhere):
        _hold(directory, settings.owner, sweeps=settings.scratch_parent is None)
        if not os.path.isdir(os.path.join(directory, run)):
            _remove_other_runs(directory, run)
    return os.path.join(directory, copy)


def renew_scratch(settings: TaskSettings) -> None:
    """Say that this process still has copies of the job's state."""
    for directory in scratch_directories(settings):
        held = _held.get(directory)
        if held is not None:
            held.renew()


def hold_scratch_for_driver(settings: TaskSettings) -> None:
    """Make the job's directories on the driver's host and hold them while the driver lives.

    They say so: if the driver is killed, whoever starts next need not wait to be sure. Where its host has no such
    place, nothing is made; workers say what is wrong, if there are any.
    """
    owner = msgspec.structs.replace(settings.owner, holds_lease=True)
    for directory in scratch_directories(settings):
        if os.path.isdir(os.path.dirname(directory)):
            with suppress(OSError):
                _hold(directory, owner, sweeps=False)


def scratch_directories(settings: TaskSettings) -> list[str]:
    """Return this job's directories on the host: those that are configured, or in memory or on disk as the store is."""
    # A driver and its workers may be of different users, and each has to have its own.
    name = f"{settings.scratch_name}-{os.geteuid()}"
    parents = (settings.scratch_parent,) if settings.scratch_parent else settings.store.directories
    if not parents:
        parents = (_memory_parent(name) if settings.store.prefers_memory else tempfile.gettempdir(),)
    return [os.path.join(parent, name) for parent in parents]


def remove_scratch(settings: TaskSettings) -> None:
    """Remove this job's directories from the host."""
    for directory in scratch_directories(settings):
        held = _held.pop(directory, None)
        if held is not None:
            held.let_go()
        shutil.rmtree(directory, ignore_errors=True)


def remove_run(settings: TaskSettings, run: str) -> None:
    """Remove the copies of one run from the host; the job may begin another."""
    for directory in scratch_directories(settings):
        shutil.rmtree(os.path.join(directory, _of_this_boot(run)), ignore_errors=True)


def sweep_scratch(settings: TaskSettings) -> None:
    """Remove from the host what others have left that are gone."""
    sweep([*usual_parents(), *settings.store.directories])


def _hold(directory: str, owner: Owner, *, sweeps: bool) -> None:
    held = _held.get(directory)
    if held is not None:
        held.renew()
        return
    for path in [path for path in _held if not os.path.isdir(path)]:
        _held.pop(path).let_go()  # of a job that is over
    if sweeps:
        sweep([*usual_parents(), os.path.dirname(directory)])
    _held[directory] = HeldDirectory(directory, owner)


def _remove_other_runs(directory: str, run: str) -> None:
    """Remove the copies that former runs of the job have left on this host: a job that restarts often would fill it."""
    with os.scandir(directory) as entries:
        others = [entry.path for entry in entries if entry.is_dir() and entry.name != run]
    for path in others:
        shutil.rmtree(path, ignore_errors=True)


def _of_this_boot(run: str) -> str:
    """Name a run as of this boot: copies are not synced, so a host that lost its power may have kept them torn."""
    return f"{run}-{_boot_id()}"


@cache
def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(8)
    except OSError:
        return "0"  # not Linux: the host is a person's own machine


def _memory_parent(name: str) -> str:
    """Return the memory file system where there is room on it, else the disk."""
    if os.path.isdir(os.path.join(MEMORY, name)):
        return MEMORY  # another worker chose it when there was still room
    if os.access(MEMORY, os.W_OK):
        free = shutil.disk_usage(MEMORY).free
        if free >= _LEAST_FREE:
            return MEMORY
    return tempfile.gettempdir()
