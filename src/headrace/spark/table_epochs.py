"""Runs an epoch of a Table or SQL job: one DataFrame from its scans to each of its sinks.

    scan (slices of the plan) -> fragment -> exchange -> stateful node -> fragment -> ... -> sink

What is stateless stays in the JVM. A stateful node is one python stage behind one exchange; it reports beside its rows,
through an accumulator. Scans that Spark reads by itself have no task of ours: their reports are made here, from what
the plan says and from what Spark has observed.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from py4j.protocol import Py4JError
from pyspark import Accumulator, SparkContext
from pyspark.accumulators import _accumulatorRegistry
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from headrace.connectors.base import Slice, SparkSource
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.errors import TaskLostError
from headrace.graph.job_graph import JobGraph, JobVertex, OperatorNode
from headrace.graph.table_job import fragment_of, is_table_vertex, producer_of
from headrace.operators.table.base import InputSpec, quote
from headrace.operators.table.bridge import StreamToTable, TableToStream
from headrace.operators.table.declarations import (
    KIND,
    Join,
    Select,
    SparkQuery,
    StatefulNode,
    TableScan,
    TableSink,
    TableWatermark,
    WatermarkSpec,
    WindowJoin,
)
from headrace.runtime.messages import Crossing, EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport, TableTime
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.table_task import has_kinds, operator_of
from headrace.runtime.task.table_time import (
    VertexTime,
    lowest_split_time,
    needs_event_time,
    next_watermarks,
    seen_by,
    split_times,
    subtask_plans,
    time_state,
    vertex_times,
)
from headrace.spark.artifacts import WorkerKind
from headrace.spark.carried_time import MOST_CARRIED, CarriedTime, seen_ms
from headrace.spark.runner import SparkRunner
from headrace.spark.split_times import SPLIT, SplitTimes
from headrace.spark.table_frames import (
    apply_fragment,
    as_relation,
    buffer_frame,
    buffers_of,
    by_keys,
    ddl,
    empty_buffers,
    exchange,
    filter_pairs,
    for_sink,
    read_frame,
    spark_function,
    sum_up,
)
from headrace.spark.table_session import TableSession
from headrace.spark.table_worker import ReportParam, TableFunctions


class TableEpochRunner(SparkRunner):
    """Runs the epochs of one table job on a Spark context."""

    def __init__(self, context: SparkContext, code: JobCode, workers: WorkerKind | None = None) -> None:
        super().__init__(context, code, workers)
        self._job = code.job
        self._reports = context.accumulator([], ReportParam())
        self._operators = {
            vertex.vertex_id: operator_of(code.job, vertex)
            for vertex in code.job.vertices
            if isinstance(vertex.head.declaration, StatefulNode)
        }
        self._session = TableSession(context, code.job, self._operators)

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        """Run one epoch."""
        epoch = self.begin(plan)
        try:
            epoch.run(self._job.vertices)
            return epoch.reports()
        except (Py4JError, PySparkException, OSError, pickle.PicklingError) as error:
            raise self.recovered(error) from None
        finally:
            epoch.close()

    def begin(self, plan: EpochPlan) -> TableEpoch:
        """Return an epoch that nothing has run of yet."""
        self._name_epoch(plan)
        self._reports.value = []
        functions = TableFunctions(self._job_key, self._broadcast, self._reports, plan)
        return TableEpoch(
            self._session,
            self._job,
            plan,
            self._operators,
            functions,
            self._workers,
            self._reports,
        )

    def close(self) -> None:
        """Free what Spark keeps for the job."""
        super().close()
        _accumulatorRegistry.pop(self._reports.aid, None)  # PySpark keeps every accumulator there is


@dataclass(frozen=True)
class _ScanPart:
    """What one subtask of a scan that Spark reads does in an epoch."""

    slices: tuple[Slice, ...]
    #: How many rows there were, where nobody knows it beforehand.
    rows: Observation | None = None
    #: How far event time came in them: what has seen it, and under which name.
    time: tuple[Observation, str] | None = None
    #: The same where a subtask's splits have times of their own.
    splits: SplitTimes | None = None


class TableEpoch:
    """One epoch of the tables of a job, put together and run: at one go, or part by part with streams between them."""

    def __init__(
        self,
        session: TableSession,
        job: JobGraph,
        plan: EpochPlan,
        operators: Mapping[str, Any],
        functions: TableFunctions,
        workers: WorkerKind,
        told: Accumulator[list[bytes]],
    ) -> None:
        self._settings = session
        self._session = session.spark
        self._workers = workers
        self._told = told
        self._job = job
        self._plan = plan
        self._operators = operators
        self._functions = functions
        self._scan_parts: dict[SubtaskId, _ScanPart] = {}
        #: The most rows that a subtask reads.
        self._most_rows = 0
        #: Observations of event time that are made behind the aggregation of a scan's rows, by scan.
        self._carried: dict[str, CarriedTime] = {}
        #: What comes out of vertices, and of streams that hand rows to tables, by operator id.
        self._frames: dict[str, DataFrame | None] = {}
        self._times: dict[str, VertexTime] = {}
        self._shared: list[DataFrame] = []
        #: Vertices of streams for which tables know of more time than they were told; known with the reports.
        self._lagging: set[str] = set()
        self._started = time.perf_counter_ns()
        self._started_ms = _wall_clock_ms()

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, vertices: Sequence[JobVertex]) -> None:
        """Run vertices, one action per sink; what several of them read is computed once."""
        final_scans = {vertex.vertex_id: self._ends(vertex) for vertex in vertices if vertex.is_source}
        self._times |= vertex_times(self._job, vertices, self._plan, final_scans, self._times)
        sinks: list[DataFrame] = []
        with self._workers.asked_for(self._session.sparkContext):
            for vertex in vertices:
                declaration = vertex.head.declaration
                if isinstance(declaration, TableSink):
                    sinks += self._sink(vertex, declaration)
                else:
                    self._put_frame(vertex.vertex_id, self._frame(vertex))
        self._settings.expect(self._most_rows)
        for sink in sinks:
            _compute(sink)

    def take_from_stream(self, node: OperatorNode, vertex_id: str, out: Any, time: VertexTime) -> None:
        """Take the rows that a stream hands to tables.

        Args:
            node: The operator whose rows they are.
            vertex_id: The vertex it is in.
            out: What came out of the stream's part, a Java RDD of buffers; None if it had ended before.
            time: Where event time stands behind them.
        """
        declaration = node.declaration
        assert isinstance(declaration, StreamToTable)
        self._times[node.operator_id] = time
        if out is None:
            self._put_frame(node.operator_id, None)
            return
        schema = ddl(declaration.output, has_kinds=not declaration.is_insert_only)
        with self._workers.asked_for(self._session.sparkContext):
            frame = buffer_frame(self._session, out)
            received = frame.mapInArrow(self._functions.receiving(vertex_id, node.operator_id), schema)
        self._put_frame(node.operator_id, received)

    def hand_to_stream(self, vertex: JobVertex) -> tuple[Any, TableTime]:
        """Return the rows that a stream gets of tables, as a Java RDD of buffers; and the time that stands behind."""
        declaration = vertex.head.declaration
        assert isinstance(declaration, TableToStream)
        self._times |= vertex_times(self._job, [vertex], self._plan, {}, self._times)
        at = self._times[vertex.vertex_id]
        time = TableTime(at.after, at.is_final, at.is_idle)
        if all(part.has_ended for part in subtask_plans(vertex, self._plan)):
            return empty_buffers(self._session.sparkContext, vertex.parallelism), time
        with self._workers.asked_for(self._session.sparkContext):
            rows = self._input(vertex, 0)
            if declaration.is_upsert and KIND in rows.columns:
                rows = by_keys(rows)
            rows = rows.coalesce(vertex.parallelism)
            frame = self._kept(
                rows.mapInArrow(self._functions.handing_over(vertex.vertex_id), "value BINARY")
            )
        _compute(frame)
        return buffers_of(frame, vertex.parallelism), time

    def _put_frame(self, operator_id: str, frame: DataFrame | None) -> None:
        readers = [
            edge for edge in self._job.edges if producer_of(self._job, edge).operator_id == operator_id
        ]
        self._frames[operator_id] = self._kept(frame) if frame is not None and len(readers) > 1 else frame

    def close(self) -> None:
        """Let go of what several nodes have read."""
        for frame in self._shared:
            with suppress(Py4JError, PySparkException, OSError):
                frame.unpersist()

    def _kept(self, frame: DataFrame) -> DataFrame:
        """Have rows that are read more than once computed once."""
        frame = frame.persist()
        self._shared.append(frame)
        return frame

    def _frame(self, vertex: JobVertex) -> DataFrame | None:
        """Return what comes out of a vertex; None if nothing can."""
        if all(part.has_ended for part in subtask_plans(vertex, self._plan)):
            return None
        declaration = vertex.head.declaration
        if isinstance(declaration, TableScan):
            return self._scan(vertex, declaration)
        if isinstance(declaration, SparkQuery):
            return self._query(vertex, declaration)
        if isinstance(declaration, TableWatermark):
            return self._watermarked(vertex, declaration)
        assert isinstance(declaration, StatefulNode)
        return self._stateful(vertex, declaration)

    def _query(self, vertex: JobVertex, query: SparkQuery) -> DataFrame:
        if query.is_gathered and not self._times[vertex.vertex_id].is_final:
            # No rows come, and yet what gathers them has to run.
            nothing = [
                f"CAST(NULL AS {column.spark_type}) AS {quote(column.name)}" for column in query.output
            ]
            return self._input(vertex, 0).selectExpr(*nothing)
        inputs: dict[str, Any] = {f"input{side}": self._input(vertex, side) for side in self._sides(vertex)}
        if query.is_gathered:
            # All tables of the query are in there, and Spark looks at rows before it sorts them: they come once.
            inputs = {name: as_relation(self._kept(frame)) for name, frame in inputs.items()}
        for call in query.functions:
            self._session.udf.register(call.result.name, spark_function(call))
        return self._session.sql(query.sql.format(*(f"{{{name}}}" for name in inputs)), **inputs)

    def _watermarked(self, vertex: JobVertex, declaration: TableWatermark) -> DataFrame:
        """Read event time off rows on their way."""
        frame, seen = self._with_time(self._input(vertex, 0), declaration.watermark, vertex.vertex_id)
        self._scan_parts[SubtaskId(vertex.vertex_id, 0)] = _ScanPart((), time=seen)
        return frame

    def _with_time(
        self, frame: DataFrame, watermark: WatermarkSpec, vertex_id: str
    ) -> tuple[DataFrame, tuple[Observation, str] | None]:
        # An observation costs every row a little: only where somebody goes by event time.
        if not needs_event_time(self._job, vertex_id):
            return frame, None
        seen = Observation()
        highest = watermark.ms.format(f"max({watermark.time})")
        return frame.observe(seen, F.expr(highest).alias("ms")), (seen, "ms")

    def _stateful(self, vertex: JobVertex, declaration: StatefulNode) -> DataFrame:
        operator = self._operators[vertex.vertex_id]
        edges = self._job.inputs_of(vertex.vertex_id)
        schemas = {edge.target_input: fragment_of(edge).schema for edge in edges}
        united = {side: self._input(vertex, side) for side in self._sides(vertex)}
        for side, count in Counter(spec.source for spec in operator.inputs).items():
            if count > 1:
                united[side] = self._kept(united[side])
        exchanged, sides = exchange(
            self._session,
            [(spec, self._summed_up(vertex, spec, united[spec.source])) for spec in operator.inputs],
            schemas,
            vertex.parallelism,
            vertex.max_parallelism,
        )
        function = self._functions.stateful(vertex.vertex_id, self._times[vertex.vertex_id], sides)
        frame = exchanged.mapInArrow(
            function, ddl(declaration.output, has_kinds=not declaration.is_insert_only)
        )
        return filter_pairs(frame, declaration) if isinstance(declaration, Join | WindowJoin) else frame

    def _summed_up(self, vertex: JobVertex, spec: InputSpec, frame: DataFrame) -> DataFrame:
        """Make of rows what an input asks for, and see how far event time came where rows carry it."""
        for edge in self._job.inputs_of(vertex.vertex_id):
            carried = self._carried.get(edge.source_vertex)
            if carried is not None:
                return carried.observe(sum_up(frame, spec, carried.columns))
        return sum_up(frame, spec)

    def _sides(self, vertex: JobVertex) -> list[int]:
        return sorted({edge.target_input for edge in self._job.inputs_of(vertex.vertex_id)})

    def _input(self, vertex: JobVertex, side: int) -> DataFrame:
        """Return the rows of one input, of all its producers."""
        edges = [edge for edge in self._job.inputs_of(vertex.vertex_id) if edge.target_input == side]
        is_changelog = any(has_kinds(self._job, edge) for edge in edges)
        frames = []
        for edge in edges:
            frame = self._frames[producer_of(self._job, edge).operator_id]
            if frame is not None:
                kinds = has_kinds(self._job, edge)
                carried = self._carried.get(edge.source_vertex)
                columns = carried.columns if carried is not None else ()
                frame = apply_fragment(frame, fragment_of(edge), has_kinds=kinds, carried=columns)
                frames.append(frame if kinds or not is_changelog else frame.selectExpr("*", "0Y AS __kind"))
        if not frames:
            schema = ddl(fragment_of(edges[0]).schema, has_kinds=is_changelog)
            return self._session.createDataFrame([], schema)
        return reduce(DataFrame.unionByName, frames)

    # -- scans -------------------------------------------------------------------------------------------------

    def _scan(self, vertex: JobVertex, declaration: TableScan) -> DataFrame | None:
        if not isinstance(declaration.source, SparkSource):
            return self._python_scan(vertex, declaration)
        parts = [
            (subtask, part.has_ended, self._slices(declaration.source, part))
            for subtask, part in self._subtasks(vertex)
        ]
        running = [subtask.subtask for subtask, has_ended, slices in parts if slices and not has_ended]
        if self._carries_time(vertex, declaration, len(running)):
            assert declaration.watermark is not None
            self._carried[vertex.vertex_id] = CarriedTime(declaration.watermark, running)
        frames = []
        for subtask, has_ended, slices in parts:
            if has_ended or not slices:
                self._scan_parts[subtask] = _ScanPart(slices)
                continue
            rows = sum(declaration.source.records_in(piece) for piece in slices)
            self._most_rows = max(self._most_rows, rows)
            frame = read_frame(self._session, declaration.source.spark_read(slices), declaration.schema)
            frames.append(self._observe(frame, declaration, subtask, slices))
        return reduce(DataFrame.union, frames) if frames else None

    def _python_scan(self, vertex: JobVertex, declaration: TableScan) -> DataFrame:
        running = [subtask for subtask, part in self._subtasks(vertex) if not part.has_ended]
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

    def _has_split_times(self, vertex: JobVertex, declaration: TableScan) -> bool:
        """Whether the time of a subtask is that of its slowest split, and somebody goes by it."""
        has_them = declaration.watermark is not None and declaration.source.has_split_watermarks
        return has_them and needs_event_time(self._job, vertex.vertex_id)

    def _observe_splits(self, frame: DataFrame, declaration: TableScan, subtask: SubtaskId) -> DataFrame:
        """Apply a scan's fragment, and have Spark see how far time has come in each split."""
        watermark = declaration.watermark
        assert watermark is not None
        if declaration.fragment is not None:
            kinds = declaration.has_kinds
            frame = apply_fragment(frame, declaration.fragment, has_kinds=kinds, carried=[SPLIT])
        times = SplitTimes(watermark, self._plan.subtasks[subtask].slices)
        self._scan_parts[subtask] = _ScanPart((), splits=times)
        return times.observe(frame)

    def _observe(
        self, frame: DataFrame, declaration: TableScan, subtask: SubtaskId, slices: tuple[Slice, ...] = ()
    ) -> DataFrame:
        """Apply a scan's fragment, and have Spark count what is read and see how far time has come."""
        rows = None
        time_seen: tuple[Observation, str] | None = None
        source = declaration.source
        if isinstance(source, SparkSource) and not source.knows_records:
            rows = Observation()
            frame = frame.observe(rows, F.count(F.lit(1)).alias("rows"))
        if declaration.fragment is not None:
            frame = apply_fragment(frame, declaration.fragment, has_kinds=declaration.has_kinds)
        if declaration.watermark is not None:
            carried = self._carried.get(subtask.vertex_id)
            if carried is not None:
                frame, time_seen = carried.add_to(frame, subtask.subtask)
            else:
                frame, time_seen = self._with_time(frame, declaration.watermark, subtask.vertex_id)
        self._scan_parts[subtask] = _ScanPart(slices, rows, time_seen)
        return frame

    def _carries_time(self, vertex: JobVertex, declaration: TableScan, running: int) -> bool:
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
            needs_event_time(self._job, vertex.vertex_id)
            and len(self._job.inputs_of(edge.target_vertex)) == 1
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

    def _ends(self, vertex: JobVertex) -> bool:
        """Whether a scan is known to end with this epoch."""
        declaration = vertex.head.declaration
        assert isinstance(declaration, TableScan)
        source = declaration.source
        if not isinstance(source, SparkSource):
            return False
        for part in subtask_plans(vertex, self._plan):
            if part.has_ended:
                continue
            slices = self._slices(source, part)
            finished = {piece.split.split_id for piece in slices if source.reached(piece).is_finished}
            if part.may_get_more_splits or not part.open_splits <= finished:
                return False
        return True

    # -- sinks -------------------------------------------------------------------------------------------------

    def _sink(self, vertex: JobVertex, declaration: TableSink) -> list[DataFrame]:
        """Return what has to run for a sink; nothing if it has ended."""
        if all(part.has_ended for part in subtask_plans(vertex, self._plan)):
            return []
        edges = self._job.inputs_of(vertex.vertex_id)
        kinds = any(has_kinds(self._job, edge) for edge in edges)
        frame = for_sink(self._input(vertex, 0), declaration, has_kinds=kinds)
        if not declaration.sink.discards:
            function = self._functions.writing(vertex.vertex_id, self._times[vertex.vertex_id])
            frame = frame.coalesce(vertex.parallelism).mapInArrow(function, "nothing INT")
        return [frame]

    # -- reports -----------------------------------------------------------------------------------------------

    def crossings(self) -> list[Crossing]:
        """Return who made and read rows on the border to streams, as far as this side knows."""
        told = [pickle.loads(each) for each in self._told.value]
        return [each for each in told if isinstance(each, Crossing)]

    def reports(self) -> list[SubtaskReport]:
        """Return a report of every subtask: those that were told, and those of subtasks that are none of ours."""
        told = [pickle.loads(each) for each in self._told.value]
        told = [each for each in told if isinstance(each, SubtaskReport)]
        self._refuse_doubles(told)
        by_subtask = {report.subtask: report for report in told}
        reports = []
        vertices = [vertex for vertex in self._job.vertices if is_table_vertex(vertex)]
        readers = [v for v in self._job.vertices if isinstance(v.head.declaration, TableToStream)]
        # Streams have told the time that they have reached in this epoch.
        ours = {vertex.vertex_id for vertex in (*vertices, *readers)}
        reached = {node: at.after for node, at in self._times.items() if node not in ours}
        for vertex in vertices:
            for subtask, part in self._subtasks(vertex):
                report = by_subtask.get(subtask)
                if part.has_ended:
                    report = SubtaskReport(subtask, has_ended=True)
                elif vertex.is_source:
                    report = self._scan_report(vertex, subtask, part, report)
                elif isinstance(vertex.head.declaration, TableWatermark):
                    report = self._watermark_report(vertex, subtask, part)
                elif report is None:
                    report = self._silent_report(subtask)
                reports.append(report)
        for vertex in vertices:
            if vertex.is_source or isinstance(vertex.head.declaration, TableWatermark):
                reached[vertex.vertex_id] = _lowest(
                    [report for report in reports if report.subtask.vertex_id == vertex.vertex_id]
                )
        coming = next_watermarks(self._job, [*vertices, *readers], reached)
        self._lagging = {
            vertex.vertex_id
            for vertex in readers
            if coming[vertex.vertex_id] > self._times[vertex.vertex_id].after
        }
        return self._with_timers(reports, coming)

    def with_timer(self, report: SubtaskReport) -> SubtaskReport:
        """Have the next epoch run at once where a table has come further than the stream that reads it knows."""
        if report.subtask.vertex_id not in self._lagging or report.has_ended:
            return report
        return replace(report, next_timer_ms=self._started_ms)

    def _refuse_doubles(self, told: Sequence[SubtaskReport]) -> None:
        twice = [
            subtask for subtask, count in Counter(report.subtask for report in told).items() if count > 1
        ]
        if twice:
            raise TaskLostError(f"a part of the epoch was computed twice: subtask {twice[0].subtask}")

    def _scan_report(
        self, vertex: JobVertex, subtask: SubtaskId, part: SubtaskPlan, told: SubtaskReport | None
    ) -> SubtaskReport:
        declaration = vertex.head.declaration
        assert isinstance(declaration, TableScan)
        scan = self._scan_parts.get(subtask) or _ScanPart(())
        if isinstance(declaration.source, SparkSource):
            told = self._spark_scan_report(subtask, part, declaration.source, scan)
        assert told is not None
        operator_id = vertex.head.operator_id
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
            is_idle=bool(part.open_splits) and part.open_splits <= part.idle_splits,
        )

    def _spark_scan_report(
        self, subtask: SubtaskId, part: SubtaskPlan, source: SparkSource, scan: _ScanPart
    ) -> SubtaskReport:
        progress = {piece.split.split_id: source.reached(piece) for piece in scan.slices}
        finished = {name for name, each in progress.items() if each.is_finished}
        if scan.rows is not None:
            records = int(scan.rows.get["rows"])
        else:
            records = sum(source.records_in(piece) for piece in scan.slices)
        return SubtaskReport(
            subtask=subtask,
            progress=progress,
            has_ended=not part.may_get_more_splits and part.open_splits <= finished,
            records_in=records,
            records_out=records,
            # Spark's own work is not told apart by stage: it counts as the scan's.
            busy_ns=time.perf_counter_ns() - self._started if records else 0,
            started_ms=self._started_ms,
            ended_ms=_wall_clock_ms(),
        )

    def _watermark_report(self, vertex: JobVertex, subtask: SubtaskId, part: SubtaskPlan) -> SubtaskReport:
        operator_id, is_final = vertex.head.operator_id, self._times[vertex.vertex_id].is_final
        scan = self._scan_parts.get(subtask) or _ScanPart(())
        watermark = max(seen_by(part, operator_id), self._time_of(scan))
        return SubtaskReport(
            subtask,
            operator_state=time_state(part, operator_id, watermark),
            has_ended=is_final,
            watermark=MAX_WATERMARK if is_final else watermark,
        )

    def _time_of(self, scan: _ScanPart) -> int:
        if scan.time is None:
            return MIN_WATERMARK
        observation, name = scan.time
        return seen_ms(observation.get[name])

    def _silent_report(self, subtask: SubtaskId) -> SubtaskReport:
        at = self._times[subtask.vertex_id]
        return SubtaskReport(subtask, has_ended=at.is_final, watermark=at.after)

    def _with_timers(
        self, reports: Sequence[SubtaskReport], coming: Mapping[str, int]
    ) -> list[SubtaskReport]:
        """Have the next epoch run at once where time has come further than operators know."""
        timed = []
        for report in reports:
            at = self._times[report.subtask.vertex_id]
            is_behind = coming[report.subtask.vertex_id] > at.after
            is_source = self._job.vertex(report.subtask.vertex_id).is_source
            wants_more = is_behind and not report.has_ended and not is_source
            timed.append(replace(report, next_timer_ms=self._started_ms) if wants_more else report)
        return timed

    def _subtasks(self, vertex: JobVertex) -> list[tuple[SubtaskId, SubtaskPlan]]:
        return [
            (subtask, self._plan.subtasks[subtask])
            for subtask in (SubtaskId(vertex.vertex_id, index) for index in range(vertex.parallelism))
        ]


def _compute(frame: DataFrame) -> None:
    """Have Spark compute rows that nobody outside it reads."""
    frame.write.format("noop").mode("overwrite").save()


def _lowest(reports: Sequence[SubtaskReport]) -> int:
    """Return how far event time has come in a scan."""
    active = [report for report in reports if not report.has_ended and not report.is_idle]
    if not active:
        return MAX_WATERMARK if all(report.has_ended for report in reports) else MIN_WATERMARK
    return min(MIN_WATERMARK if report.watermark is None else report.watermark for report in active)


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000
