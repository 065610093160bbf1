"""JobAccumulators: the values of a job's accumulators, by subtask and name.

    epoch 1: +3   epoch 2: +2   checkpoint: 5   epoch 3: +4   failure -> back to the checkpoint: 5   epoch 3 again: +4

A report contains what one epoch added. It counts when the epoch is complete, and the totals are part of checkpoints,
so an epoch that runs again counts once, as with state. Can be read from any thread.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

from headrace.common.accumulators import Accumulator, different_kinds
from headrace.graph.job_graph import JobGraph
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport

_Totals = dict[str, Accumulator[Any, Any]]


class JobAccumulators:
    """The totals of one job.

    Args:
        snapshot: Where to continue from; of the same job, in this or another parallelism.
        job: The job as it runs now.
    """

    def __init__(self, snapshot: bytes = b"", job: JobGraph | None = None) -> None:
        self._lock = threading.Lock()
        self._by_subtask: dict[SubtaskId, _Totals] = {}
        #: What each name stands for, in whichever operator.
        self._examples: _Totals = {}
        if snapshot and job is not None:
            widths = {vertex.vertex_id: vertex.parallelism for vertex in job.vertices}
            stored: dict[SubtaskId, _Totals] = pickle.loads(snapshot)
            for subtask, totals in stored.items():
                # What a subtask has counted that is no more is kept by the first one.
                is_there = subtask.subtask < widths.get(subtask.vertex_id, 0)
                self._add(subtask if is_there else SubtaskId(subtask.vertex_id, 0), totals)

    def add(self, report: SubtaskReport) -> None:
        """Take in what an epoch added.

        Raises:
            JobDefinitionError: If one name stands for two kinds.
        """
        with self._lock:
            self._add(report.subtask, dict(report.accumulators))

    def _add(self, subtask: SubtaskId, added: _Totals) -> None:
        for name, accumulator in added.items():
            known = self._examples.setdefault(name, accumulator)
            if type(known) is not type(accumulator):
                raise different_kinds(name, known, type(accumulator))
        if added:
            _merge(self._by_subtask.setdefault(subtask, {}), added)

    def snapshot(self) -> bytes:
        """Return the totals for a checkpoint; nothing if there are no accumulators."""
        with self._lock:
            return pickle.dumps(self._by_subtask, protocol=5) if self._by_subtask else b""

    def of_subtask(self, subtask: SubtaskId) -> _Totals:
        """Return the totals of a subtask."""
        return self._merged(lambda each: each == subtask)

    def of_vertex(self, vertex_id: str) -> _Totals:
        """Return the totals of a vertex."""
        return self._merged(lambda each: each.vertex_id == vertex_id)

    def of_job(self) -> _Totals:
        """Return the totals of the job."""
        return self._merged(lambda each: True)

    def results(self) -> dict[str, Any]:
        """Return the values of the job's accumulators."""
        return {name: total.get_local_value() for name, total in self.of_job().items()}

    def _merged(self, is_wanted: Callable[[SubtaskId], bool]) -> _Totals:
        merged: _Totals = {}
        with self._lock:
            for subtask, totals in self._by_subtask.items():
                if is_wanted(subtask):
                    _merge(merged, totals)
        return merged


def _merge(into: _Totals, added: _Totals) -> None:
    for name, accumulator in added.items():
        total = into.get(name)
        if total is None:
            into[name] = accumulator.clone()  # the other one may be added to
        else:
            total.merge(accumulator)
