"""What the driver checks before it accepts the reports of an epoch.

There must be exactly one report of every subtask that was expected to report, and every consumer must have read what
the reporting attempt of its producer wrote. If not, the epoch is run again: see docs/design/0005-attempts.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.errors import TaskLostError
from headrace.graph.job_graph import JobGraph
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskReport


def one_per_subtask(
    job: JobGraph, expected: Iterable[SubtaskId], reports: Iterable[SubtaskReport]
) -> list[SubtaskReport]:
    """Return the report of each expected subtask, in their order.

    A report that was delivered twice counts once. Reports of two attempts do not: nobody knows which of them the
    consumers have read.

    Args:
        job: The job, whose names of subtasks are in messages.
        expected: The subtasks that must have reported.
        reports: What came.

    Raises:
        TaskLostError: A report is missing, or two attempts at a subtask have reported, or one that was not expected.
    """
    by_subtask: dict[SubtaskId, SubtaskReport] = {}
    for report in reports:
        known = by_subtask.setdefault(report.subtask, report)
        if known.attempt_id != report.attempt_id:
            raise TaskLostError(
                f"a part of the epoch was computed twice: two attempts reported for {_name(job, report.subtask)}"
            )
    found = []
    for subtask in expected:
        own = by_subtask.pop(subtask, None)
        if own is None:
            raise TaskLostError(
                f"the report of {_name(job, subtask)} did not arrive: its changes to state are not known"
            )
        found.append(own)
    for subtask in by_subtask:
        raise TaskLostError(f"{_name(job, subtask)} sent a report, but does not take part in this epoch")
    return found


def in_time(plan: EpochPlan, reports: Iterable[SubtaskReport]) -> list[SubtaskReport]:
    """Leave out reports of an earlier epoch, or of an earlier try at this one: they come too late to count."""
    return [report for report in reports if report.epoch in (None, plan.identity)]


def check_consistent(reports: Sequence[SubtaskReport]) -> None:
    """Make sure that every consumer read what the reporting attempt of its producer wrote.

    After losing an executor Spark may compute part of a stage again while others have consumed its first output; with
    functions that are not deterministic the two would not fit. Then the epoch is run again.

    Raises:
        TaskLostError: A consumer has read another attempt.
    """
    reported = {report.subtask: report.attempt_id for report in reports}
    for report in reports:
        for producer, attempt_id in report.consumed.items():
            if reported.get(producer) != attempt_id:
                raise TaskLostError(
                    f"a part of the epoch was computed twice: subtask {report.subtask.subtask} read another "
                    f"attempt of its input than the one that was kept"
                )


def _name(job: JobGraph, subtask: SubtaskId) -> str:
    vertex = job.vertex(subtask.vertex_id)
    return f"subtask {subtask.subtask + 1} of {vertex.parallelism} of '{vertex.name}'"
