"""The log of epochs: what each one was planned to read, written before it runs, and what it left, after.

    <job's directory>/epochs-<lineage>/0000000017-0.plan, 0000000017.done

Only the last completed epoch and the one at work matter, so older entries are dropped: the log does not grow. What
earlier runs of the job have left says which numbers are taken: no number ever stands for two epochs, so a sink may take
it as the mark of what it has published.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence

from headrace.runtime.messages import EpochPlan, SubtaskReport
from headrace.state.files import delete_directory, delete_files, join_path, list_directory, write_new_file

_DIRECTORY = "epochs-"
_ENTRY = re.compile(r"([0-9]{10,})[-.].*")


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

    def highest_epoch(self) -> int:
        """Return the highest number that an epoch of an earlier run had, 0 if there was none."""
        names = (name for log in self._others for name in list_directory(join_path(self._state_dir, log)))
        return max((int(match[1]) for name in names if (match := _ENTRY.fullmatch(name))), default=0)

    def plan(self, plan: EpochPlan) -> None:
        """Write down what an epoch is about to read. Must come before anything is read."""
        self._write(plan.epoch, f"{plan.epoch:010d}-{plan.attempt}.plan", plan)

    def complete(self, epoch: int, reports: Sequence[SubtaskReport]) -> None:
        """Write down what an epoch left: from here on it has happened."""
        self._write(epoch, f"{epoch:010d}.done", tuple(reports))
        for old in [number for number in self._written if number < epoch]:
            delete_files(self._written.pop(old))
        for log in self._others:  # only now: this run has a higher number by itself
            delete_directory(join_path(self._state_dir, log))
        self._others = []

    def _write(self, epoch: int, name: str, content: object) -> None:
        path = join_path(self._state_dir, self._name, name)
        write_new_file(path, pickle.dumps(content, protocol=5))
        self._written.setdefault(epoch, []).append(path)


def _is_log(name: str) -> bool:
    return name.startswith(_DIRECTORY)
