"""Statistics of checkpoints: counts, summaries, the last ones in detail. REST and the web UI show them.

Names are those of Flink's REST answers where there is one. Between epochs nothing has to be aligned, so what Flink says
about alignment, processed and persisted data is 0 there; live jobs measure it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

#: Values a summary computes percentiles from, as in Flink.
_WINDOW = 10_000


class CheckpointStatus(Enum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class SnapshotType(Enum):
    """What kind of snapshot was taken; the names are REST's `checkpoint_type`."""

    CHECKPOINT = "CHECKPOINT"
    SAVEPOINT = "SAVEPOINT"
    #: A savepoint after which the job ends.
    SYNC_SAVEPOINT = "SYNC_SAVEPOINT"

    @property
    def is_savepoint(self) -> bool:
        return self is not SnapshotType.CHECKPOINT


class SavepointFormat(Enum):
    """Flink's formats. Both are written alike here: a savepoint is always self-contained."""

    CANONICAL = "CANONICAL"
    NATIVE = "NATIVE"


@dataclass(frozen=True)
class SubtaskStatistics:
    """One subtask's part of a checkpoint."""

    index: int
    #: When its part was written, ms since the Unix epoch.
    ack_timestamp: int
    #: New bytes.
    checkpointed_size: int = 0
    #: All bytes of its state.
    state_size: int = 0
    #: Milliseconds the task stood still for it, and milliseconds of writing beside the task.
    sync_duration: int = 0
    async_duration: int = 0
    #: Milliseconds from the trigger to the barrier's arrival.
    start_delay: int = 0
    #: Milliseconds from the first barrier to the last.
    alignment_duration: int = 0
    #: Bytes processed from the first barrier to the last.
    processed_data: int = 0
    #: Bytes that the barrier has overtaken.
    persisted_data: int = 0
    #: Whether the barrier was allowed to overtake.
    is_unaligned: bool = False


@dataclass(frozen=True)
class TaskStatistics:
    """One vertex's part of a checkpoint."""

    vertex_id: str
    subtasks: tuple[SubtaskStatistics, ...]

    @property
    def latest_ack_timestamp(self) -> int:
        return max((each.ack_timestamp for each in self.subtasks), default=-1)

    @property
    def checkpointed_size(self) -> int:
        return sum(each.checkpointed_size for each in self.subtasks)

    @property
    def state_size(self) -> int:
        return sum(each.state_size for each in self.subtasks)

    @property
    def processed_data(self) -> int:
        return sum(each.processed_data for each in self.subtasks)

    @property
    def persisted_data(self) -> int:
        return sum(each.persisted_data for each in self.subtasks)

    @property
    def alignment_duration(self) -> int:
        return max((each.alignment_duration for each in self.subtasks), default=0)


@dataclass(frozen=True)
class CheckpointRecord:
    """One checkpoint in the history."""

    id: int
    checkpoint_type: SnapshotType
    trigger_timestamp: int
    num_subtasks: int
    savepoint_format: SavepointFormat | None = None
    status: CheckpointStatus = CheckpointStatus.IN_PROGRESS
    #: The epoch whose end it is.
    epoch: int = 0
    num_acknowledged_subtasks: int = 0
    #: When the last subtask, or the checkpoint as a whole, was done; -1 until then.
    latest_ack_timestamp: int = -1
    checkpointed_size: int = 0
    state_size: int = 0
    processed_data: int = 0
    persisted_data: int = 0
    end_to_end_duration: int = 0
    external_path: str | None = None
    #: Whether it was deleted since.
    discarded: bool = False
    failure_timestamp: int | None = None
    failure_message: str | None = None
    tasks: Mapping[str, TaskStatistics] = field(default_factory=dict)

    @property
    def is_savepoint(self) -> bool:
        return self.checkpoint_type.is_savepoint

    @property
    def is_unaligned(self) -> bool:
        """Whether the barrier was allowed to overtake records, at least in the end."""
        return any(each.is_unaligned for task in self.tasks.values() for each in task.subtasks)

    @property
    def class_name(self) -> str:
        """The value of `className` in REST answers."""
        return self.status.value.lower()


@dataclass(frozen=True)
class RestoredRecord:
    """What the job last started from."""

    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str
    state_size: int = 0


@dataclass(frozen=True)
class Counts:
    restored: int = 0
    total: int = 0
    in_progress: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Percentiles:
    """A summary of one quantity; percentiles are NaN while there is no value."""

    min: int = 0
    max: int = 0
    avg: int = 0
    p50: float = math.nan
    p90: float = math.nan
    p95: float = math.nan
    p99: float = math.nan
    p999: float = math.nan


@dataclass(frozen=True)
class StatisticsSnapshot:
    """Everything at one moment."""

    counts: Counts
    #: By quantity: checkpointed_size, state_size, end_to_end_duration, processed_data, persisted_data.
    summary: Mapping[str, Percentiles]
    latest_completed: CheckpointRecord | None
    latest_savepoint: CheckpointRecord | None
    latest_failed: CheckpointRecord | None
    latest_restored: RestoredRecord | None
    #: Newest first; those under way come with the others.
    history: tuple[CheckpointRecord, ...]


class Summary:
    """Minimum, maximum, average and percentiles of a growing series.

    Example:
        >>> series = Summary()
        >>> for duration in (61, 51, 57, 44, 38, 54, 57, 241):
        ...     series.add(duration)
        >>> found = series.percentiles()
        >>> found.min, found.max, found.avg, found.p50, found.p90
        (38, 241, 75, 55.5, 241.0)
    """

    def __init__(self) -> None:
        self._count = self._sum = self._min = self._max = 0
        self._window: deque[int] = deque(maxlen=_WINDOW)

    def add(self, value: int) -> None:
        self._min = value if self._count == 0 else min(self._min, value)
        self._max = value if self._count == 0 else max(self._max, value)
        self._count += 1
        self._sum += value
        self._window.append(value)

    def percentiles(self) -> Percentiles:
        if not self._count:
            return Percentiles()
        ordered = sorted(self._window)
        points = (percentile(ordered, point) for point in (0.5, 0.9, 0.95, 0.99, 0.999))
        return Percentiles(self._min, self._max, self._sum // self._count, *points)


def percentile(ordered: Sequence[float], point: float) -> float:
    """Return a percentile of sorted values, between two of them where it falls between: at ``point * (n + 1)``.

    Example:
        >>> percentile([10, 20, 30], 0.5), percentile([10, 20], 0.5), percentile([10, 20], 0.99)
        (20.0, 15.0, 20.0)
    """
    if not ordered:
        return math.nan
    position = point * (len(ordered) + 1)
    below = math.floor(position)
    if below < 1:
        return float(ordered[0])
    if below >= len(ordered):
        return float(ordered[-1])
    return ordered[below - 1] + (position - below) * (ordered[below] - ordered[below - 1])


_SUMMARIZED = ("checkpointed_size", "state_size", "end_to_end_duration", "processed_data", "persisted_data")


class CheckpointStatistics:
    """Keeps the statistics of one job."""

    def __init__(self, history_size: int) -> None:
        self._history_size = history_size
        #: By id, oldest first. Those under way are never dropped.
        self._records: dict[int, CheckpointRecord] = {}
        self._summaries = {name: Summary() for name in _SUMMARIZED}
        self._counts = Counts()
        self._latest: dict[str, CheckpointRecord] = {}
        self._restored: RestoredRecord | None = None

    def started(self, record: CheckpointRecord) -> None:
        self._records[record.id] = record
        self._count(total=1, in_progress=1)
        self._trim()

    def completed(
        self,
        checkpoint_id: int,
        now_ms: int,
        *,
        path: str,
        state_size: int,
        checkpointed_size: int,
        tasks: Sequence[TaskStatistics] = (),
    ) -> None:
        before = self._records[checkpoint_id]
        record = replace(
            before,
            status=CheckpointStatus.COMPLETED,
            num_acknowledged_subtasks=before.num_subtasks,
            latest_ack_timestamp=now_ms,
            end_to_end_duration=now_ms - before.trigger_timestamp,
            state_size=state_size,
            checkpointed_size=checkpointed_size,
            processed_data=sum(task.processed_data for task in tasks),
            persisted_data=sum(task.persisted_data for task in tasks),
            external_path=path,
            tasks=MappingProxyType({task.vertex_id: task for task in tasks}),
        )
        self._end(record, "savepoint" if record.is_savepoint else "completed")
        self._count(in_progress=-1, completed=1)
        for name, summary in self._summaries.items():
            summary.add(getattr(record, name))

    def failed(self, checkpoint_id: int, now_ms: int, message: str) -> None:
        before = self._records[checkpoint_id]
        record = replace(
            before,
            status=CheckpointStatus.FAILED,
            end_to_end_duration=now_ms - before.trigger_timestamp,
            failure_timestamp=now_ms,
            failure_message=message,
        )
        self._end(record, "failed")
        self._count(in_progress=-1, failed=1)

    def restored(self, record: RestoredRecord) -> None:
        self._restored = record
        self._count(restored=1)

    def discarded(self, checkpoint_id: int) -> None:
        """Note that a completed checkpoint was deleted; one that is forgotten already is fine."""
        for known in (self._records, self._latest):
            for key, record in known.items():
                if record.id == checkpoint_id:
                    known[key] = replace(record, discarded=True)  # type: ignore[index]  # each has its own key

    def snapshot(self) -> StatisticsSnapshot:
        return StatisticsSnapshot(
            counts=self._counts,
            summary={name: summary.percentiles() for name, summary in self._summaries.items()},
            latest_completed=self._latest.get("completed"),
            latest_savepoint=self._latest.get("savepoint"),
            latest_failed=self._latest.get("failed"),
            latest_restored=self._restored,
            history=tuple(reversed(self._records.values())),
        )

    def _end(self, record: CheckpointRecord, kind: str) -> None:
        self._records[record.id] = record
        self._latest[kind] = record
        self._trim()

    def _trim(self) -> None:
        ended = [r.id for r in self._records.values() if r.status is not CheckpointStatus.IN_PROGRESS]
        under_way = len(self._records) - len(ended)
        surplus = len(ended) - max(0, self._history_size - under_way)
        for checkpoint_id in ended[: max(0, surplus)]:
            del self._records[checkpoint_id]

    def _count(self, **changes: int) -> None:
        counts = self._counts
        self._counts = replace(counts, **{name: getattr(counts, name) + by for name, by in changes.items()})
