"""Checkpoints and failures of jobs as spans, each once: found by looking at what is new since the last time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headrace.runtime.checkpoint.statistics import CheckpointRecord, CheckpointStatus
from headrace.runtime.job.dispatcher import LiveJob
from headrace.runtime.monitoring.failure_history import Failure

__all__ = ["NewSpans", "TraceSpan"]


@dataclass(frozen=True)
class TraceSpan:
    """Something that took time."""

    name: str
    start_ms: int
    end_ms: int
    attributes: Mapping[str, str | int]


class NewSpans:
    """Remembers what was reported of each job."""

    def __init__(self) -> None:
        #: The greatest checkpoint id reported, and the number of failures.
        self._seen: dict[str, tuple[int, int]] = {}

    def find(self, jobs: Iterable[LiveJob]) -> Iterator[TraceSpan]:
        """Yield what has ended since the last call."""
        for job in jobs:
            last_checkpoint, failures = self._seen.get(job.job_id, (0, 0))
            ended = [
                each
                for each in job.master.checkpoints.coordinator.statistics().history
                if each.id > last_checkpoint and each.status is not CheckpointStatus.IN_PROGRESS
            ]
            for record in sorted(ended, key=lambda each: each.id):
                yield _checkpoint_span(job, record)
                last_checkpoint = record.id
            history = job.master.failures
            for failure in reversed(history.latest(history.count - failures)):
                yield _failure_span(job, failure)
            self._seen[job.job_id] = (last_checkpoint, history.count)


def _checkpoint_span(job: LiveJob, record: CheckpointRecord) -> TraceSpan:
    end = max(record.trigger_timestamp, record.latest_ack_timestamp)
    return TraceSpan(
        "Checkpoint",
        record.trigger_timestamp,
        end,
        {
            "jobId": job.job_id,
            "jobName": job.name,
            "checkpointId": record.id,
            "checkpointType": record.checkpoint_type.value,
            "checkpointStatus": record.status.value,
            "checkpointedSize": record.checkpointed_size,
            "fullSize": record.state_size,
        },
    )


def _failure_span(job: LiveJob, failure: Failure) -> TraceSpan:
    attributes: dict[str, str | int] = {
        "jobId": job.job_id,
        "jobName": job.name,
        "exception.type": failure.name,
        "exception.message": failure.text,
    }
    if failure.task is not None:
        attributes["task"] = failure.task
    return TraceSpan("JobFailure", failure.timestamp_ms, failure.timestamp_ms, attributes)
