"""Watermark alignment: sources of a group wait for the slowest of them.

A source subtask whose watermark is further ahead of the group's lowest than it may drift gets nothing to read until
the others have caught up. Watermarks are compared before every epoch, from the reports of the last one.
"""

from __future__ import annotations

from headrace.common.watermark_strategy import WatermarkAlignment as Alignment
from headrace.elements import MAX_WATERMARK
from headrace.graph.job_graph import JobGraph
from headrace.operators.io import SourceDeclaration
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport


class AlignedSources:
    """Which source subtasks have to wait."""

    def __init__(self, job: JobGraph) -> None:
        #: The alignment that each source vertex takes part in.
        self._alignments: dict[str, Alignment] = {}
        #: How far each subtask of an aligned source has come; one that has no watermark yet holds nobody.
        self._watermarks: dict[SubtaskId, int] = {}
        for vertex in job.vertices:
            declaration = vertex.head.declaration
            if isinstance(declaration, SourceDeclaration) and declaration.alignment is not None:
                self._alignments[vertex.vertex_id] = declaration.alignment

    @property
    def vertices(self) -> frozenset[str]:
        """The sources that take part in an alignment."""
        return frozenset(self._alignments)

    def observe(self, report: SubtaskReport) -> None:
        """Take over how far a subtask came; idle and ended ones hold nobody."""
        if report.subtask.vertex_id not in self._alignments:
            return
        if report.has_ended or report.is_idle:
            self._watermarks[report.subtask] = MAX_WATERMARK
        elif report.watermark is not None:
            self._watermarks[report.subtask] = report.watermark

    def paused(self, vertex_id: str) -> frozenset[int]:
        """Return the subtasks of a source that are too far ahead."""
        alignment = self._alignments.get(vertex_id)
        if alignment is None:
            return frozenset()
        lowest = min(
            (
                watermark
                for subtask, watermark in self._watermarks.items()
                if self._alignments[subtask.vertex_id].group == alignment.group
            ),
            default=MAX_WATERMARK,
        )
        limit = lowest + alignment.max_drift_ms
        return frozenset(
            subtask.subtask
            for subtask, watermark in self._watermarks.items()
            if subtask.vertex_id == vertex_id and limit < watermark < MAX_WATERMARK
        )
