"""Sinks that remember what was committed to them, in place of a job's own sinks."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.connectors import base
from headrace.connectors.collect import RowsWriter
from headrace.graph.job_graph import JobGraph, JobVertex, OperatorNode
from headrace.operators.io import SinkDeclaration
from headrace.operators.table.declarations import TableSinkDeclaration
from headrace.verify.tables import rows_left

_lock = threading.Lock()
#: What was committed, by the run and the operator, then by epoch and subtask: a second commit changes nothing.
_outputs: dict[tuple[str, str], dict[tuple[int, int], list[Any]]] = {}


def with_captured_sinks(job: JobGraph, run: str) -> JobGraph:
    """Return the job with sinks whose output `take_output` returns.

    Args:
        job: The job.
        run: Names the run.
    """

    def captured(node: OperatorNode) -> OperatorNode:
        if not isinstance(node.declaration, SinkDeclaration):
            return node
        sink = _CaptureSink(run, node.operator_id)
        if isinstance(node.declaration, TableSinkDeclaration):
            return replace(node, declaration=replace(node.declaration, sink=sink))
        return replace(node, declaration=SinkDeclaration(sink))

    def changed(vertex: JobVertex) -> JobVertex:
        return replace(vertex, operators=tuple(map(captured, vertex.operators)))

    return replace(job, vertices=tuple(map(changed, job.vertices)))


def take_output(job: JobGraph, run: str) -> dict[str, list[Any]]:
    """Return what a run has committed, by the name of the sink, in the order of epochs and subtasks.

    Of a table, it is the rows that are left.
    """
    found: dict[str, list[Any]] = {}
    for vertex in job.vertices:
        for node in vertex.operators:
            if isinstance(node.declaration, SinkDeclaration):
                with _lock:
                    parts = _outputs.pop((run, node.operator_id), {})
                written = [row for place in sorted(parts) for row in parts[place]]
                if isinstance(node.declaration, TableSinkDeclaration):
                    written = rows_left(written, node.declaration)
                found.setdefault(node.name, []).extend(written)
    return found


@dataclass(frozen=True)
class _CaptureSink(base.Sink):
    run: str
    operator_id: str

    def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
        return RowsWriter()

    def create_committer(self, context: base.CommitterContext | None = None) -> base.Committer:
        return _Committer(self.run, self.operator_id)


class _Committer(base.Committer):
    def __init__(self, run: str, operator_id: str) -> None:
        self._key = (run, operator_id)

    def commit(self, committables: Sequence[base.Committable]) -> None:
        with _lock:
            parts = _outputs.setdefault(self._key, {})
            for each in committables:
                parts[each.epoch, each.subtask] = each.payload
