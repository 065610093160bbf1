"""The log of epochs: what each one was planned to read, written before it runs, and what it left, after.

    <job's directory>/reserved-0000000064                                       numbers up to 64 may have been used
    <job's directory>/epochs-<lineage>/0000000017-0.plan, 0000000017.done

Only the last completed epoch and the one at work matter, so older entries are dropped: the log does not grow. It is for
whoever looks into a failure; nothing is recovered from it, so its entries are not synced.

The numbers are another matter. None ever stands for two epochs, so a sink may take it as the mark of what it has
published. They are reserved many at a time, with a file that survives a power loss: it is synced once for all of them.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence

from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.storage.files import (
    delete_directory,
    delete_files,
    list_directory,
    publish_file,
    sync_names,
    write_new_file,
)
from headrace.storage.paths import join_path

_DIRECTORY = "epochs-"
_ENTRY = re.compile(r"([0-9]{10,})[-.].*")
_RESERVED = re.compile(r"reserved-([0-9]{10,})")
#: Numbers that are reserved at a time; a driver that follows another one skips those that were not used.
_BLOCK = 64


class EpochNumbers:
    """The numbers of a job's epochs, over all its runs.

    Args:
        state_dir: The job's directory.
    """

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir
        names = list_directory(state_dir)
        reserved = [int(match[1]) for name in names if (match := _RESERVED.fullmatch(name))]
        entries = [
            name for log in filter(_is_log, names) for name in list_directory(join_path(state_dir, log))
        ]
        used = [int(match[1]) for name in entries if (match := _ENTRY.fullmatch(name))]
        #: The highest number that an epoch may have had so far, 0 if there was none.
        self.highest = max([*reserved, *used], default=0)
        #: Up to here numbers may be used.
        self._reserved = max(reserved, default=0)

    def use(self, epoch: int) -> None:
        """Take a number. Must come before anything is read."""
        if epoch > self._reserved:
            self._reserve(epoch + _BLOCK - 1)
        self.highest = max(self.highest, epoch)

    def _reserve(self, up_to: int) -> None:
        older = [name for name in list_directory(self._state_dir) if _RESERVED.fullmatch(name)]
        name = f"reserved-{up_to:010d}"
        try:
            publish_file(join_path(self._state_dir, name), b"")
        except FileExistsError:
            sync_names(self._state_dir)  # an earlier try has failed here
        self._reserved = up_to
        # Never a higher one: it is of a driver that has taken over meanwhile.
        delete_files([join_path(self._state_dir, each) for each in older if each < name])


class EpochLog:
    """Plans and outcomes of one run.

    Args:
        state_dir: The job's directory.
        lineage: Names the run.
    """

    def __init__(self, state_dir: str, lineage: str) -> None:
        self._state_dir = state_dir
        self._name = f"{_DIRECTORY}{lineage}"
        self._written: dict[int, list[str]] = {}
        self._others = [name for name in list_directory(state_dir) if _is_log(name) and name != self._name]

    def plan(self, plan: EpochPlan) -> None:
        """Write down what an epoch is about to read. Must come before anything is read."""
        self._write(plan.epoch, f"{plan.epoch:010d}-{plan.attempt}.plan", plan)

    def complete(self, epoch: int, reports: Sequence[SubtaskReport]) -> None:
        """Write down what an epoch left: from here on it has happened."""
        self._write(epoch, f"{epoch:010d}.done", tuple(reports))
        for old in [number for number in self._written if number < epoch]:
            delete_files(self._written.pop(old))
        for log in self._others:
            delete_directory(join_path(self._state_dir, log))
        self._others = []

    def _write(self, epoch: int, name: str, content: object) -> None:
        path = join_path(self._state_dir, self._name, name)
        write_new_file(path, pickle.dumps(content, protocol=5))
        self._written.setdefault(epoch, []).append(path)


def _is_log(name: str) -> bool:
    return name.startswith(_DIRECTORY)
