"""What crosses between the driver and the workers: the plan of an epoch, and one report per subtask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.common.accumulators import Accumulator
from headrace.connectors.base import Slice, SplitProgress
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.metrics.reports import MetricName, MetricReport
from headrace.runtime.epoch.in_flight import InFlight
from headrace.state.handles import StateChain, StateFile
from headrace.storage.paths import join_path


class SubtaskId(NamedTuple):
    """A subtask of a vertex."""

    vertex_id: str
    subtask: int


class TableTime(NamedTuple):
    """Where event time stands at the border between a stream and a table, after the rows of an epoch."""

    watermark: int
    #: Whether nothing more will ever come.
    is_final: bool = False
    #: Whether what comes after goes by its other inputs.
    is_idle: bool = False


@dataclass(frozen=True)
class SubtaskPlan:
    """What one subtask is to do in an epoch, and the state it starts from."""

    #: What a source subtask reads, in this order, until it has read as many records as it may.
    slices: tuple[Slice, ...] = ()
    max_records: int | None = None
    #: The same in bytes, for sources that know beforehand how many a slice has.
    max_bytes: int | None = None
    #: Splits of the subtask that have not ended yet; when all of them end and none can follow, the subtask ends.
    open_splits: frozenset[str] = frozenset()
    may_get_more_splits: bool = True
    #: Splits that have been without records for the time the watermark strategy allows.
    idle_splits: frozenset[str] = frozenset()
    #: The subtask ended in an earlier epoch: it has nothing more to say.
    has_ended: bool = False
    #: Keyed state by operator id.
    keyed: Mapping[str, StateChain] = field(default_factory=dict)
    #: Operator state by operator id.
    operator_state: Mapping[str, bytes] = field(default_factory=dict)
    #: Records that were on their way to the subtask in the checkpoint it starts from.
    in_flight: InFlight | None = None
    #: For a subtask that gets the rows of a table: where time stands after them. Known when the table's part has run.
    table_time: TableTime | None = None

    def ends_with(self, progress: Mapping[str, SplitProgress]) -> bool:
        """Whether a source subtask ends with the epoch, if it has read its splits this far."""
        finished = {split_id for split_id, each in progress.items() if each.is_finished}
        return not self.may_get_more_splits and self.open_splits <= finished


@dataclass(frozen=True)
class Sampling:
    """Whose stacks an epoch is to sample, and how."""

    vertices: frozenset[str]
    #: Seconds between two samples.
    delay_s: float
    #: Frames that are kept of a stack, from the task inwards.
    depth: int


class StackSample(NamedTuple):
    """Where a task was found."""

    #: The outermost call first, such as ``orders.parse:17``.
    frames: tuple[str, ...]
    is_on_cpu: bool


@dataclass(frozen=True)
class EpochPlan:
    """One epoch: everything a worker must know besides the job itself."""

    job_id: str
    epoch: int
    #: How often the epoch as a whole was tried before.
    attempt: int
    #: The job's directory; every host can write and read there.
    state_dir: str
    subtasks: Mapping[SubtaskId, SubtaskPlan]
    #: Given if sources send a latency marker first: when the epoch was planned, ms since the Unix epoch.
    latency_marker_ms: int | None = None
    #: Epochs whose checkpoints have ended since the last plan, each with whether it is complete.
    ended_checkpoints: tuple[tuple[int, bool], ...] = ()
    #: Set if somebody wants a flame graph.
    sampling: Sampling | None = None
    #: Whether state is written even if the job ends with this epoch: a snapshot may be taken of it.
    keeps_last_state: bool = True
    #: Whether the input is cut only to find out how fast functions are. No watermark is to stand where it is cut.
    is_probe: bool = False
    #: The same where all input has an end, so that another epoch is sure to follow, or the end of time.
    holds_watermarks: bool = False

    @property
    def identity(self) -> tuple[int, int]:
        """The epoch, and which try at it this is."""
        return self.epoch, self.attempt


def state_files_dir(state_dir: str) -> str:
    """Return where state files go; checkpoints name them."""
    return join_path(state_dir, "shared")


def sink_staging_dir(state_dir: str) -> str:
    """Return where sinks stage what is too large for a report: beside the state files."""
    return join_path(state_dir, "sinks")


class Crossing(NamedTuple):
    """Somebody made, or read, rows on the border between streams and tables."""

    producer: SubtaskId
    attempt_id: str
    is_made: bool


class CalledFunction(NamedTuple):
    """What a user's function of a query has counted in one of Spark's tasks."""

    #: The subtask it counts for.
    subtask: SubtaskId
    operator_id: str
    #: Which of its calls, and in which of Spark's tasks: one that was run again tells the same again.
    place: tuple[str, int, int]
    metrics: Mapping[MetricName, MetricReport]


def rows_producer(vertex_id: str, partition: int) -> SubtaskId:
    """Name what made the rows of a table for one subtask: no subtask of the job, but a stage of Spark."""
    return SubtaskId(f"{vertex_id}/rows", partition)


@dataclass(frozen=True)
class TaskTrace:
    """What a replay of a subtask needs besides plan and input, and what it is compared with."""

    #: What the clock showed, and how many records the first piece had (`runtime/task/task_clock.py`).
    clock: bytes
    #: A hash per record that was given to a sink, by operator id (`runtime/task/sink_digest.py`).
    sinks: Mapping[str, bytes] = field(default_factory=dict)
    #: What the loop of a live task had it do, packed (`runtime/task/script.py`); None of tasks of epochs.
    script: bytes | None = None


@dataclass(frozen=True)
class SubtaskReport:
    """What one subtask did in an epoch. The driver learns of nothing else."""

    subtask: SubtaskId
    #: Names this try at the subtask.
    attempt_id: str = ""
    #: The epoch and the try at it that this is of; None of subtasks whose reports cannot outlive their epoch.
    epoch: tuple[int, int] | None = None
    #: Which attempt of each producer was read: it must be the one that reported.
    consumed: Mapping[SubtaskId, str] = field(default_factory=dict)
    #: New change files by operator id; operators whose keyed state did not change are not listed.
    changes: Mapping[str, StateFile] = field(default_factory=dict)
    #: New operator state by operator id, where it changed.
    operator_state: Mapping[str, bytes] = field(default_factory=dict)
    #: Records that the barrier has overtaken, in an unaligned checkpoint of a live job.
    in_flight: InFlight | None = None
    #: What sinks staged, by operator id.
    committables: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    #: How far each split was read.
    progress: Mapping[str, SplitProgress] = field(default_factory=dict)
    #: Whether the subtask's inputs have ended for good.
    has_ended: bool = False
    #: Whether the state that the epoch left was written; it need not be if the job ends with the epoch.
    keeps_state: bool = True
    watermark: int | None = None
    #: Where event time stands after the rows that went to tables, by operator id.
    table_times: Mapping[str, TableTime] = field(default_factory=dict)
    #: Whether a source subtask is left out of the watermark for want of records.
    is_idle: bool = False
    #: When the next processing-time timer falls due, ms since the epoch.
    next_timer_ms: int | None = None
    records_in: int = 0
    records_out: int = 0
    #: Bytes of the buffers that came from other subtasks, which are held in memory until they are processed ...
    bytes_in: int = 0
    #: ... and of those that were sent.
    bytes_out: int = 0
    #: Time spent working, without waiting for input, in nanoseconds.
    busy_ns: int = 0
    #: The part of it in which the barrier waited for answers from outside, in nanoseconds.
    waited_ns: int = 0
    #: Of a live subtask: time in which the next level did not take what it sent, in nanoseconds.
    back_pressured_ns: int | None = None
    #: What it did in this time, in nanoseconds: parts of the work of a table's task, by name (`epoch/spent.py`).
    spent_ns: Mapping[str, int] = field(default_factory=dict)
    #: When the task started and ended, ms since the epoch, on the worker's clock.
    started_ms: int = 0
    ended_ms: int = 0
    host: str = ""
    pid: int = 0
    spark_attempt: int = 0
    warnings: tuple[str, ...] = ()
    #: What the epoch did to the metrics of user functions and operators, by operator id and name of the metric.
    #: Those of the job as a whole, such as latencies, have no operator id.
    user_metrics: Mapping[str, Mapping[MetricName, MetricReport]] = field(default_factory=dict)
    #: Where the task was found, and how often, if the plan asked for that.
    samples: Mapping[StackSample, int] = field(default_factory=dict)
    #: What the epoch added to the accumulators of user functions, by name.
    accumulators: Mapping[str, Accumulator[Any, Any]] = field(default_factory=dict)
    #: What is needed to replay it, if the epoch is recorded.
    trace: TaskTrace | None = None


def lowest_watermark(reports: Sequence[SubtaskReport]) -> int | None:
    """Return how far event time has advanced in all of the subtasks; None without event time, or if it is over."""
    watermarks = [report.watermark for report in reports if not report.has_ended]
    known = [watermark for watermark in watermarks if watermark is not None and watermark > MIN_WATERMARK]
    if not known or len(known) < len(watermarks):
        return None
    lowest = min(known)
    return None if lowest == MAX_WATERMARK else lowest
