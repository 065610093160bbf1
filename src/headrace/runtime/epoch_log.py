"""The log of epochs: what each one was planned to read, written before it runs, and what it left, after.

Only the last completed epoch and the one at work matter, so older entries are dropped: the log does not grow.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from headrace.runtime.messages import EpochPlan, SubtaskReport
from headrace.state.files import delete_files, join_path, write_new_file


class EpochLog:
    """Plans and outcomes under the job's state directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._written: dict[int, list[str]] = {}

    def plan(self, plan: EpochPlan) -> None:
        """Write down what an epoch is about to read. Must come before anything is read."""
        self._write(plan.epoch, f"{plan.epoch:010d}-{plan.attempt}.plan", plan)

    def complete(self, epoch: int, reports: Sequence[SubtaskReport]) -> None:
        """Write down what an epoch left: from here on it has happened."""
        self._write(epoch, f"{epoch:010d}.done", tuple(reports))
        for old in [number for number in self._written if number < epoch]:
            delete_files(self._written.pop(old))

    def _write(self, epoch: int, name: str, content: object) -> None:
        path = join_path(self._directory, name)
        write_new_file(path, pickle.dumps(content, protocol=5))
        self._written.setdefault(epoch, []).append(path)
