"""Which checkpoints of former leaders count, and which are about to go.

    <job's directory>/fence-<token>                   the checkpoints that leader found when it took over
    <job's directory>/dropped-<token>-chk-<n>-<m>     leader <token> is about to delete checkpoint n of leader m

    former leader   ensure_leader() ok .... stopped .......................... wakes: writes chk-17-1, or deletes
    its successor                            fence-2 {chk-16-1} -> continues from chk-16-1, writes chk-17-2

A leader that was stopped between its last look at the lease and a write cannot be kept from finishing the write. So
the directory of a checkpoint carries the token of its writer, and can never replace another leader's; and a successor
writes down what it found, so what comes later does not count.

A deletion is announced first. Then the lease is looked at again: if this process still leads, every successor will
see the announcement, and does not start from that checkpoint. Whenever the deletion happens, nobody needs the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from headrace.runtime.high_availability.framed import frame, read_framed
from headrace.storage.files import delete_files, list_directory, publish_file
from headrace.storage.paths import join_path

_MAGIC = b"HRFENC\r1"
_NAME = re.compile(r"chk-([0-9]+)(?:-([0-9]+))?")
_FENCE = re.compile(r"fence-([0-9]{20})")
_DROPPED = re.compile(r"dropped-([0-9]{20})-(chk-[0-9]+(?:-[0-9]+)?)")


class CheckpointName(NamedTuple):
    """What a checkpoint's directory is called: `chk-17`, or `chk-17-3` if leader 3 of a job with leaders wrote it.

    Example:
        >>> str(CheckpointName(17, 3)), CheckpointName.parse("chk-17"), CheckpointName.parse("shared")
        ('chk-17-3', CheckpointName(number=17, leader=0), None)
    """

    number: int
    leader: int = 0

    @classmethod
    def parse(cls, name: str) -> CheckpointName | None:
        match = _NAME.fullmatch(name)
        return None if match is None else cls(int(match[1]), int(match[2] or 0))

    def __str__(self) -> str:
        return f"chk-{self.number}" + (f"-{self.leader}" if self.leader else "")


class Fence(msgspec.Struct, frozen=True):
    """What a leader found when it took over. Without one, everything counts."""

    leader: int = 0
    #: Names of the checkpoints of former leaders that count.
    checkpoints: tuple[str, ...] = ()

    def admits(self, name: CheckpointName) -> bool:
        """Whether a checkpoint counts: it was written by this leader or a later one, or was there before."""
        return name.leader >= self.leader or str(name) in self.checkpoints


def read_fence(directory: str) -> Fence:
    """Return the fence of the latest leader.

    Raises:
        DamagedStateError: If its file is damaged: then nobody knows which checkpoints count.
    """
    fences = _named(directory, _FENCE)
    if not fences:
        return Fence()
    path = join_path(directory, fences[-1])
    return read_framed(
        path,
        Fence,
        _MAGIC,
        hint="it records which checkpoints of earlier drivers are valid. If no earlier driver is still running, "
        "delete it: all of them count as valid then. Otherwise start the job from a savepoint, under another "
        "high-availability.cluster-id",
    )


def write_fence(directory: str, fence: Fence) -> None:
    """Write down what a leader found; fences of former leaders go."""
    own = f"fence-{fence.leader:020d}"
    older = [name for name in _named(directory, _FENCE) if name < own]
    with suppress(FileExistsError):  # this leader's own, of an earlier start of the job
        publish_file(join_path(directory, own), frame(fence, _MAGIC))
    delete_files([join_path(directory, name) for name in older])


def announce_drops(directory: str, leader: int, names: Iterable[str]) -> list[str]:
    """Say which checkpoints are about to be deleted; return the files that say so, to be deleted afterwards."""
    paths = [join_path(directory, f"dropped-{leader:020d}-{name}") for name in names]
    for path in paths:
        with suppress(FileExistsError):
            publish_file(path, b"")
    return paths


def announced_drops(directory: str) -> dict[str, str]:
    """Return the files of all announcements, each with the name of its checkpoint."""
    found = ((name, _DROPPED.fullmatch(name)) for name in list_directory(directory))
    return {join_path(directory, name): match[2] for name, match in found if match is not None}


def _named(directory: str, pattern: re.Pattern[str]) -> list[str]:
    return [name for name in list_directory(directory) if pattern.fullmatch(name)]
