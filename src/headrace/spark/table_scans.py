"""The scans of a table job in an epoch: what is read, how Spark sees it, and what is reported of it.

Scans that Spark reads by itself have no task of ours: their reports are made here, from what the plan says and what
Spark has observed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headrace.connectors.base import FileRead, Slice, SparkSource
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.errors import TaskLostError
from headrace.formats.dead_letter import ERRORS_METRIC
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.graph.table_job import fragment_of
from headrace.metrics.reports import CounterReport, MetricName
from headrace.operators.table.base import TableOperator
from headrace.operators.table.declarations import (
    TableScanDeclaration,
    TableWatermarkDeclaration,
    TableWatermarkSpec,
)
from headrace.operators.table.steps import Select
from headrace.operators.table.timed_way import TimedWay
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.runtime.task.table_time import (
    is_idle,
    lowest_split_time,
    needs_event_time,
    seen_by,
    split_times,
    subtask_plans,
    time_state,
)
from headrace.spark.carried_time import MOST_CARRIED, CarriedTime, seen_ms
from headrace.spark.column_scans import ColumnScan, column_scan
from headrace.spark.known_times import KnownTimes, computed_watermark, known_time
from headrace.spark.split_times import SPLIT, SplitTimes
from headrace.spark.table_frames import apply_fragment, ddl, read_frame, without_statistics
from headrace.spark.table_session import TableSession
from headrace.spark.table_worker import RowsTimed, TableFunctions
from headrace.util import clock


@dataclass(frozen=True)
class _ScanPart:
    """What one subtask of a scan that Spark reads does in an epoch."""

    slices: tuple[Slice, ...]
    #: How many rows there were, where nobody knows it beforehand.
    rows: Callable[[], int] | None = None
    #: For how many nanoseconds workers did what, where it is they who read.
    spent_ns: Callable[[], Mapping[str, int]] | None = None
    #: How many records could not be read, where that does not fail the job.
    errors: Observation | None = None
    #: Tells how far event time came in them, when they have been read.
    time: Callable[[], int] | None = None
    #: The same where a subtask's splits have times of their own.
    splits: SplitTimes | None = None


class TableScans:
    """The scans of one epoch."""

    def __init__(
        self,
        session: TableSession,
        job: JobGraph,
        plan: EpochPlan,
        operators: Mapping[str, TableOperator],
        functions: TableFunctions,
    ) -> None:
        self._settings = session
        self._reads_columns = session.reads_columns
        self._job = job
        self._plan = plan
        self._operators = operators
        self._functions = functions
        self._parts: dict[SubtaskId, _ScanPart] = {}
        #: The most rows that a subtask reads.
        self.most_rows = 0
        #: About how many bytes a row has of each scan, all together; None if unknown.
        self.row_bytes: int | None = 0
        #: How far event time comes, of scans of which that is known before they are read.
        self._known: dict[str, KnownTimes] = {}
        #: Observations of event time that are made after the aggregation of a scan's rows, by scan.
        self.carried: dict[str, CarriedTime] = {}
        #: Scans whose rows workers can pack where they read them, by vertex.
        self.columns: dict[str, ColumnScan] = {}
        self._started = time.perf_counter_ns()
        self._started_ms = clock.now_ms()

    @property
    def _session(self) -> SparkSession:
        return self._settings.spark

    # -- what is read ------------------------------------------------------------------------------------------

    def frame(self, vertex: JobVertex, declaration: TableScanDeclaration) -> DataFrame | None:
        """Return what a scan reads in the epoch; None if that is nothing."""
        if not isinstance(declaration.source, SparkSource):
            self.row_bytes = None
            return self._python_scan(vertex, declaration)
        parts = [
            (subtask, part.has_ended, self._slices(declaration.source, part))
            for subtask, part in subtasks_of(vertex, self._plan)
        ]
        running = {
            subtask.subtask: slices for subtask, has_ended, slices in parts if slices and not has_ended
        }
        known = declaration.source.row_bytes([piece for own in running.values() for piece in own])
        self.row_bytes = None if known is None or self.row_bytes is None else self.row_bytes + known
        # Rows that are at hand need no python stage on their way to Spark.
        self.columns.pop(vertex.vertex_id, None)
        columns = None if declaration.source.is_at_hand else self._column_scan(vertex, declaration, running)
        if columns is not None:
            return self._column_frame(vertex, declaration, columns, {each[0]: each[2] for each in parts})
        self._settle_time(vertex, declaration, running)
        frames = []
        for subtask, has_ended, slices in parts:
            if has_ended or not slices:
                self._parts[subtask] = _ScanPart(slices)
                continue
            rows = sum(declaration.source.records_in(piece) for piece in slices)
            self.most_rows = max(self.most_rows, rows)
            read = declaration.source.spark_read(slices)
            errors = Observation() if isinstance(read, FileRead) and read.ignores_errors else None
            frame = read_frame(self._session, read, declaration.schema, errors)
            frames.append(self._observe(frame, declaration, subtask, slices))
            self._parts[subtask] = replace(self._parts[subtask], errors=errors)
        if not frames:
            return None
        read_all = reduce(DataFrame.union, frames)
        return read_all if declaration.source.reports_statistics else without_statistics(read_all)

    def prepare_columns(self, vertex: JobVertex, declaration: TableScanDeclaration) -> bool:
        """Have workers read a scan, where it goes in packets only; returns whether they can."""
        if not isinstance(declaration.source, SparkSource):
            return False
        slices = {
            subtask: () if part.has_ended else self._slices(declaration.source, part)
            for subtask, part in subtasks_of(vertex, self._plan)
        }
        running = {subtask.subtask: own for subtask, own in slices.items() if own}
        if running:
            columns = self._column_scan(vertex, declaration, running)
            if columns is None or (columns.time is None and self._needs_time(vertex, declaration)):
                return False
            self.columns[vertex.vertex_id] = columns
            self._add_parts(vertex, declaration, columns, slices)
        for subtask, own in slices.items():
            self._parts.setdefault(subtask, _ScanPart(own))
        return True

    def _add_parts(
        self,
        vertex: JobVertex,
        declaration: TableScanDeclaration,
        columns: ColumnScan,
        slices: Mapping[SubtaskId, tuple[Slice, ...]],
    ) -> None:
        """Note what subtasks read of which workers tell how many rows there were, and how far time came."""
        watermark = declaration.watermark
        told = columns.times(self._settings, watermark) if watermark and columns.time else None
        for owner in sorted({owner for owner, _ in columns.pieces}):
            subtask = SubtaskId(vertex.vertex_id, owner)
            self._parts[subtask] = _ScanPart(
                slices[subtask],
                partial(columns.rows, owner),
                partial(columns.spent_ns, owner),
                time=None if told is None else partial(told, owner),
            )

    def _needs_time(self, vertex: JobVertex, declaration: TableScanDeclaration) -> bool:
        return declaration.watermark is not None and needs_event_time(self._job, vertex.vertex_id)

    def _column_scan(
        self, vertex: JobVertex, declaration: TableScanDeclaration, slices: Mapping[int, Sequence[Slice]]
    ) -> ColumnScan | None:
        """Return how workers read a scan into columns; None if Spark reads it."""
        if not self._reads_columns:
            return None
        behind = [fragment_of(edge).steps for edge in self._job.outputs_of(vertex.vertex_id)]
        return column_scan(
            vertex.vertex_id,
            declaration,
            slices,
            behind,
            needs_time=self._needs_time(vertex, declaration),
            told=self._functions.told,
        )

    def _column_frame(
        self,
        vertex: JobVertex,
        declaration: TableScanDeclaration,
        columns: ColumnScan,
        slices: Mapping[SubtaskId, tuple[Slice, ...]],
    ) -> DataFrame:
        """Return what workers read: one frame, unless Spark has to see how far time came in each subtask."""
        watermark = declaration.watermark
        running = sorted({owner for owner, _ in columns.pieces})
        is_observed = columns.time is None and self._needs_time(vertex, declaration)
        if not is_observed:
            self.columns[vertex.vertex_id] = columns
        self._add_parts(vertex, declaration, columns, slices)
        frames = []
        for group in [[each] for each in running] if is_observed else [running]:
            subtask = SubtaskId(vertex.vertex_id, group[0])
            frame = columns.frame(self._session, self._functions, group)
            frame = self._apply_fragment(frame, declaration, subtask)
            if is_observed:
                assert watermark is not None
                frame, seen = self._with_time(frame, watermark, vertex.vertex_id)
                self._parts[subtask] = replace(self._parts[subtask], time=seen)
            frames.append(frame)
        for subtask, own in slices.items():
            self._parts.setdefault(subtask, _ScanPart(own))
        return reduce(DataFrame.union, frames)

    def _python_scan(self, vertex: JobVertex, declaration: TableScanDeclaration) -> DataFrame:
        running = [subtask for subtask, part in subtasks_of(vertex, self._plan) if not part.has_ended]
        frames = []
        for subtask in running:
            seed = self._session.range(subtask.subtask, subtask.subtask + 1, 1, 1)
            schema = ddl(declaration.schema, has_kinds=declaration.has_kinds)
            split = None
            if self._has_split_times(vertex, declaration):
                split, schema = SPLIT, f"{schema}, {SPLIT} INT"
            frame = seed.mapInArrow(self._functions.reading(vertex.vertex_id, split), schema)
            observed = self._observe_splits if split else self._observe
            frames.append(observed(frame, declaration, subtask))
        return reduce(DataFrame.union, frames)

    def _has_split_times(self, vertex: JobVertex, declaration: TableScanDeclaration) -> bool:
        """Whether the time of a subtask is that of its slowest split, and somebody goes by it."""
        has_them = declaration.watermark is not None and declaration.source.has_split_watermarks
        return has_them and needs_event_time(self._job, vertex.vertex_id)

    def _observe_splits(
        self, frame: DataFrame, declaration: TableScanDeclaration, subtask: SubtaskId
    ) -> DataFrame:
        """Apply a scan's fragment, and have Spark see how far time has advanced in each split."""
        watermark = declaration.watermark
        assert watermark is not None
        frame = self._apply_fragment(frame, declaration, subtask, [SPLIT])
        times = SplitTimes(watermark, self._plan.subtasks[subtask].slices)
        self._parts[subtask] = _ScanPart((), splits=times)
        return times.observe(frame)

    def _apply_fragment(
        self,
        frame: DataFrame,
        declaration: TableScanDeclaration,
        subtask: SubtaskId,
        carried: Sequence[str] = (),
    ) -> DataFrame:
        if declaration.fragment is None:
            return frame
        vertex = self._job.vertex(subtask.vertex_id)
        site = self._functions.site(vertex, vertex.head)
        kinds = declaration.has_kinds
        return apply_fragment(
            frame, declaration.fragment, site, self._settings.row_keys, has_kinds=kinds, carried=carried
        )

    def _observe(
        self,
        frame: DataFrame,
        declaration: TableScanDeclaration,
        subtask: SubtaskId,
        slices: tuple[Slice, ...] = (),
    ) -> DataFrame:
        """Apply a scan's fragment, and have Spark count what is read and see how far time has advanced."""
        rows: Callable[[], int] | None = None
        time_seen: Callable[[], int] | None = None
        source = declaration.source
        if isinstance(source, SparkSource) and not source.knows_records:
            counted = Observation()
            frame = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
            rows = partial(_rows_of, counted)
        frame = self._apply_fragment(frame, declaration, subtask)
        if declaration.watermark is not None:
            known, carried = self._known.get(subtask.vertex_id), self.carried.get(subtask.vertex_id)
            if known is not None:
                time_seen = partial(known.ms, subtask.subtask)
            elif carried is not None:
                frame, time_seen = carried.add_to(frame, subtask.subtask)
            else:
                frame, time_seen = self._with_time(frame, declaration.watermark, subtask.vertex_id)
        self._parts[subtask] = _ScanPart(slices, rows, time=time_seen)
        return frame

    def _settle_time(
        self, vertex: JobVertex, declaration: TableScanDeclaration, slices: Mapping[int, Sequence[Slice]]
    ) -> None:
        """Choose how event time is read off a scan: known beforehand, carried by rows, or else off each of them."""
        if declaration.watermark is None or not needs_event_time(self._job, vertex.vertex_id):
            return
        known = known_time(self._session, declaration, slices)
        if known is not None:
            self._known[vertex.vertex_id] = known
        elif self._carries_time(vertex, declaration, len(slices)):
            self.carried[vertex.vertex_id] = CarriedTime(declaration.watermark, list(slices))

    def _carries_time(self, vertex: JobVertex, declaration: TableScanDeclaration, running: int) -> bool:
        """Whether the rows of a scan carry their time up to where they are aggregated.

        To observe all of them costs as much as to read them; of what is left behind the aggregation, next to nothing.
        All rows must get there: what a query filters out counts for event time, too.
        """
        watermark, edges = declaration.watermark, self._job.outputs_of(vertex.vertex_id)
        if watermark is None or not watermark.is_of_column or len(edges) != 1:
            return False
        (edge,) = edges
        operator = self._operators.get(edge.target_vertex)
        if operator is None or not 0 < running <= MOST_CARRIED:
            return False
        return (
            len(self._job.inputs_of(edge.target_vertex)) == 1
            and all(spec.group_by is not None and spec.session is None for spec in operator.inputs)
            and len(operator.inputs) == 1
            and all(isinstance(step, Select) for step in fragment_of(edge).steps)
        )

    def _slices(self, source: SparkSource, part: SubtaskPlan) -> tuple[Slice, ...]:
        """Return what is read of the slices: as many as make the records, or the bytes, that an epoch may have."""
        chosen: list[Slice] = []
        records = size = 0
        for piece in part.slices:
            has_records = part.max_records is not None and records >= part.max_records
            has_bytes = part.max_bytes is not None and size >= part.max_bytes
            if chosen and (has_records or has_bytes) and not self._job.is_batch:
                break
            chosen.append(piece)
            records += source.records_in(piece)
            size += source.bytes_in(piece)
        return tuple(chosen)

    def ends(self, vertex: JobVertex) -> bool:
        """Whether a scan is known to end with this epoch."""
        declaration = vertex.head.declaration
        assert isinstance(declaration, TableScanDeclaration)
        source = declaration.source
        if not isinstance(source, SparkSource):
            return False
        for part in subtask_plans(vertex, self._plan):
            if part.has_ended:
                continue
            slices = self._slices(source, part)
            if not part.ends_with({piece.split.split_id: source.reached(piece) for piece in slices}):
                return False
        return True

    def watermarked(
        self, vertex: JobVertex, declaration: TableWatermarkDeclaration, frame: DataFrame
    ) -> DataFrame:
        """Read event time off rows on their way."""
        frame, seen = self._with_time(frame, declaration.watermark, vertex.vertex_id)
        self._parts[SubtaskId(vertex.vertex_id, 0)] = _ScanPart((), time=seen)
        return frame

    def can_read_time(self, way: TimedWay) -> bool:
        """Whether workers can read event time off a stream's rows on their way."""
        return way.time is not None and self._watermark_of(way) is not None

    def read_time(self, vertex: JobVertex, way: TimedWay, partitions: int) -> None:
        """Have workers read event time off a stream's rows, which come in so many partitions."""
        seen = (
            partial(self._told_time, way, partitions) if needs_event_time(self._job, way.vertex_id) else None
        )
        self._parts[SubtaskId(vertex.vertex_id, 0)] = _ScanPart((), time=seen)

    def _watermark_of(self, way: TimedWay) -> Callable[[int | None], int] | None:
        time = way.time
        assert time is not None
        return computed_watermark(self._settings.zone, way.declaration.watermark, time.kind)

    def _told_time(self, way: TimedWay, partitions: int) -> int:
        told = [each for each in self._functions.told() if isinstance(each, RowsTimed)]
        found = {each.partition: each.highest for each in told if each.vertex_id == way.vertex_id}
        if len(found) < partitions:
            raise TaskLostError("the report of a task that reads event time is missing")
        watermark = self._watermark_of(way)
        assert watermark is not None
        return watermark(max((each for each in found.values() if each is not None), default=None))

    def _with_time(
        self, frame: DataFrame, watermark: TableWatermarkSpec, vertex_id: str
    ) -> tuple[DataFrame, Callable[[], int] | None]:
        # An observation costs every row a little: only where event time is used.
        if not needs_event_time(self._job, vertex_id):
            return frame, None
        seen = Observation()
        highest = watermark.ms_of(f"max({watermark.time})")
        return frame.observe(seen, F.expr(highest).alias("ms")), lambda: seen_ms(seen.get["ms"])

    # -- what is reported --------------------------------------------------------------------------------------

    def report(
        self, vertex: JobVertex, subtask: SubtaskId, part: SubtaskPlan, told: SubtaskReport | None
    ) -> SubtaskReport:
        """Return the report of a subtask, or complete the one that was told."""
        declaration = vertex.head.declaration
        assert isinstance(declaration, TableScanDeclaration)
        scan = self._parts.get(subtask) or _ScanPart(())
        if isinstance(declaration.source, SparkSource):
            told = self._spark_scan_report(subtask, part, declaration.source, scan)
        assert told is not None
        operator_id = vertex.head.operator_id
        if scan.errors is not None:
            counted = CounterReport(int(scan.errors.get["errors"]))
            told = replace(told, user_metrics={operator_id: {MetricName(ERRORS_METRIC): counted}})
        reached, splits = self._time_of(scan), None
        if scan.splits is not None:
            ended = {split for split, progress in told.progress.items() if progress.is_finished}
            splits = split_times(part, operator_id, scan.splits.seen(), ended)
            reached = lowest_split_time(splits, part.idle_splits)
        watermark = max(seen_by(part, operator_id), reached)
        return replace(
            told,
            watermark=MAX_WATERMARK if told.has_ended else watermark,
            operator_state=time_state(part, operator_id, watermark, splits),
            is_idle=is_idle(vertex, part),
        )

    def _spark_scan_report(
        self, subtask: SubtaskId, part: SubtaskPlan, source: SparkSource, scan: _ScanPart
    ) -> SubtaskReport:
        progress = {piece.split.split_id: source.reached(piece) for piece in scan.slices}
        if scan.rows is not None:
            records = scan.rows()
        else:
            records = sum(source.records_in(piece) for piece in scan.slices)
        return SubtaskReport(
            subtask=subtask,
            progress=progress,
            has_ended=part.ends_with(progress),
            records_in=records,
            records_out=records,
            # Spark's own work is not distinguished by stage: it counts as the scan's.
            busy_ns=time.perf_counter_ns() - self._started if records else 0,
            spent_ns={} if scan.spent_ns is None else scan.spent_ns(),
            started_ms=self._started_ms,
            ended_ms=clock.now_ms(),
        )

    def watermark_report(
        self, vertex: JobVertex, subtask: SubtaskId, part: SubtaskPlan, *, is_final: bool
    ) -> SubtaskReport:
        """Return the report of what has read event time off rows on their way."""
        operator_id = vertex.head.operator_id
        scan = self._parts.get(subtask) or _ScanPart(())
        watermark = max(seen_by(part, operator_id), self._time_of(scan))
        return SubtaskReport(
            subtask,
            operator_state=time_state(part, operator_id, watermark),
            has_ended=is_final,
            watermark=MAX_WATERMARK if is_final else watermark,
        )

    def _time_of(self, scan: _ScanPart) -> int:
        return MIN_WATERMARK if scan.time is None else scan.time()


def _rows_of(counted: Observation) -> int:
    return int(counted.get["rows"])


def subtasks_of(vertex: JobVertex, plan: EpochPlan) -> list[tuple[SubtaskId, SubtaskPlan]]:
    """Return the subtasks of a vertex, and what they do in an epoch."""
    ids = (SubtaskId(vertex.vertex_id, index) for index in range(vertex.parallelism))
    return [(subtask, plan.subtasks[subtask]) for subtask in ids]
