"""The tables of an epoch: one DataFrame from their scans to each of their sinks.

    scan (slices of the plan) -> fragment -> exchange -> stateful node -> fragment -> ... -> sink

What is stateless stays in the JVM. A stateful node is one python stage behind one exchange; it reports beside its rows
(`task_messages.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.accumulators import _accumulatorRegistry
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headrace.connectors.base import SparkSource
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.graph.job_graph import JobEdge, JobGraph, JobVertex, OperatorNode
from headrace.graph.table_job import fragment_of, is_table_vertex, producer_of
from headrace.operators.table.base import InputSpec, quote
from headrace.operators.table.bridge import StreamToTable, TableToStream
from headrace.operators.table.declarations import (
    JoinDeclaration,
    SparkQueryDeclaration,
    StatefulNode,
    TableScanDeclaration,
    TableSinkDeclaration,
    TableWatermarkDeclaration,
    WindowJoinDeclaration,
)
from headrace.operators.table.packed_input import PackedInput
from headrace.operators.table.spark_types import as_spark_gives
from headrace.operators.table.steps import KIND, Fragment, at_watermark, reads_watermark
from headrace.operators.table.timed_declarations import TableIntervalJoinDeclaration
from headrace.runtime.epoch.messages import (
    CalledFunction,
    Crossing,
    EpochPlan,
    SubtaskId,
    SubtaskPlan,
    SubtaskReport,
    TableTime,
)
from headrace.runtime.epoch.report_checks import one_per_subtask
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.operator_metrics import with_operator_metrics
from headrace.runtime.task.packing import Packing, is_checked
from headrace.runtime.task.table_task import has_kinds, operator_of, starts_with_kinds
from headrace.runtime.task.table_time import (
    VertexTime,
    next_watermarks,
    subtask_plans,
    vertex_times,
    watermark_of_rows,
)
from headrace.spark.artifacts import WorkerKind
from headrace.spark.packet_stages import PacketStages
from headrace.spark.python_calls import JOB_PARAMETERS, spark_function, with_metrics
from headrace.spark.runner import SparkRunner
from headrace.spark.sink_frames import SinkFrame, compute
from headrace.spark.table_frames import (
    PACKET_DDL,
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
    packets_for,
    sum_up,
    with_shared_keys,
)
from headrace.spark.table_scans import TableScans, subtasks_of
from headrace.spark.table_session import TableSession
from headrace.spark.table_worker import RowsOfStream, TableFunctions
from headrace.spark.task_messages import MessageParam, TaskMessages
from headrace.state.key_secret import KeySecret
from headrace.util import clock


class TableEpochs(SparkRunner):
    """Begins the epochs of the tables of one job on a Spark context."""

    def __init__(
        self, context: SparkContext, code: JobCode, secret: KeySecret, workers: WorkerKind | None = None
    ) -> None:
        super().__init__(context, code, workers)
        self._job = code.job
        self._told = context.accumulator([], MessageParam())
        self._operators = {
            vertex.vertex_id: operator_of(code.job, vertex)
            for vertex in code.job.vertices
            if isinstance(vertex.head.declaration, StatefulNode)
        }
        self._session = TableSession(context, code.job, self._operators, secret)
        self._packing = Packing(code.job, self._operators, secret)
        is_mixed = not all(map(is_table_vertex, code.job.vertices))
        #: The same for epochs of which nothing goes through DataFrames.
        self._whole_packing = (
            Packing(code.job, self._operators, secret, has_borders=True) if is_mixed else self._packing
        )
        recording = code.settings.recording
        if recording is not None and recording.keeps_inputs:
            # Rows that are to be kept must come as rows.
            self._session.records_inputs, self._session.reads_columns = True, False

    def begin(self, plan: EpochPlan) -> TableEpoch:
        """Return an epoch that nothing has run of yet."""
        self._prepare(plan)
        self._context.setLocalProperty(JOB_PARAMETERS, json.dumps(dict(self._job.global_job_parameters)))
        messages = TaskMessages(self._told)
        functions = TableFunctions(self._job_key, self._broadcast, messages, plan)
        return TableEpoch(
            self._session,
            self._job,
            plan,
            self._operators,
            functions,
            self._workers,
            messages,
            (self._packing, self._whole_packing) if self._session.reads_columns else None,
        )

    def stop_reading_columns(self) -> bool:
        """Have Spark read all files and compute all rows from now on; returns whether workers have until now."""
        was, self._session.reads_columns = self._session.reads_columns, False
        return was

    def close(self) -> None:
        """Free what Spark keeps for the job."""
        super().close()
        self._session.close()
        _accumulatorRegistry.pop(self._told.aid, None)  # PySpark keeps every accumulator there is


class TableEpoch:
    """One epoch of the tables of a job, put together and run part by part: there may be streams between them."""

    def __init__(
        self,
        session: TableSession,
        job: JobGraph,
        plan: EpochPlan,
        operators: Mapping[str, Any],
        functions: TableFunctions,
        workers: WorkerKind,
        messages: TaskMessages,
        packing: tuple[Packing, Packing] | None,
    ) -> None:
        self._settings = session
        #: How rows are packed between DataFrames.
        self._packing = None if packing is None else packing[0]
        #: What comes out of stateful nodes in packets, by vertex.
        self._packets: dict[str, DataFrame] = {}
        self._has_packets = False
        self._context = session.context
        self._workers = workers
        self._messages = messages
        #: What sinks have reported.
        self._written: list[SubtaskReport] = []
        self._job = job
        self._plan = plan
        self._operators = operators
        self._functions = functions
        self._scans = TableScans(session, job, plan, operators, functions)
        self._whole_packing = None if packing is None else packing[1]
        #: What comes out of vertices, and of streams that hand rows to tables, by operator id.
        self._frames: dict[str, DataFrame | None] = {}
        self._times: dict[str, VertexTime] = {}
        self._shared: list[DataFrame] = []
        #: Vertices of streams for which tables know of more time than they were told; known with the reports.
        self._lagging: set[str] = set()
        self._started_ms = clock.now_ms()

    @property
    def _session(self) -> SparkSession:
        return self._settings.spark

    @cached_property
    def _stages(self) -> PacketStages | None:
        """The whole epoch, where all rows go in packets."""
        if self._whole_packing is None:
            return None
        packing = self._whole_packing
        stages = PacketStages(self._context, self._job, self._plan, packing, self._functions, self._scans)
        return stages if stages.can_run() else None

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, vertices: Sequence[JobVertex]) -> None:
        """Run vertices, one action per sink; what several of them read is computed once."""
        final_scans = {vertex.vertex_id: self._scans.ends(vertex) for vertex in vertices if vertex.is_source}
        self._times |= vertex_times(self._job, vertices, self._plan, final_scans, self._times)
        if self._run_packets(vertices):
            return
        sinks: list[SinkFrame] = []
        with self._workers.asked_for(self._context):
            for vertex in vertices:
                declaration = vertex.head.declaration
                if isinstance(declaration, TableSinkDeclaration):
                    sinks += self._sink(vertex, declaration)
                else:
                    self._put_frame(vertex.vertex_id, self._frame(vertex))
        self._settings.expect(self._scans.most_rows, self._scans.row_bytes, has_packets=self._has_packets)
        for sink in sinks:
            self._written += sink.run()

    def _run_packets(self, vertices: Sequence[JobVertex]) -> bool:
        """Run vertices without DataFrames, if all that goes between them are packets; returns whether they are."""
        if self._stages is None:
            return False
        with self._workers.asked_for(self._context):
            last = self._stages.build(vertices, self._times)
        self._written += self._stages.run(last)
        return True

    def take_from_stream(self, node: OperatorNode, vertex_id: str, out: Any, time: VertexTime) -> None:
        """Take the rows that a stream hands to tables.

        Args:
            node: The operator whose rows they are.
            vertex_id: The vertex it is in.
            out: What came out of the stream's part, a Java RDD of buffers; None if it had ended before.
            time: Where event time stands after them.
        """
        declaration = node.declaration
        assert isinstance(declaration, StreamToTable)
        self._times[node.operator_id] = time
        if self._stages is not None:
            self._stages.take_from_stream(node, vertex_id, out)
            return
        if out is None:
            self._put_frame(node.operator_id, None)
            return
        schema = ddl(declaration.output, has_kinds=not declaration.is_insert_only)
        with self._workers.asked_for(self._context):
            frame = buffer_frame(self._session, out)
            rows = RowsOfStream(vertex_id, node.operator_id)
            received = frame.mapInArrow(self._functions.receiving(rows), schema)
        self._put_frame(node.operator_id, received)

    def hand_to_stream(self, vertex: JobVertex) -> tuple[Any, TableTime]:
        """Return the rows that a stream gets of tables, as a Java RDD of buffers; and the time that stands after."""
        declaration = vertex.head.declaration
        assert isinstance(declaration, TableToStream)
        self._times |= vertex_times(self._job, [vertex], self._plan, {}, self._times)
        at = self._times[vertex.vertex_id]
        time = TableTime(at.after, at.is_final, at.is_idle)
        if self._stages is not None:
            with self._workers.asked_for(self._context):
                return self._stages.hand_to_stream(vertex), time
        if all(part.has_ended for part in subtask_plans(vertex, self._plan)):
            return empty_buffers(self._context, vertex.parallelism), time
        with self._workers.asked_for(self._context):
            rows = self._input(vertex, 0)
            if declaration.is_upsert and KIND in rows.columns:
                rows = by_keys(rows)
            rows = rows.coalesce(vertex.parallelism)
            frame = self._kept(
                rows.mapInArrow(self._functions.handing_over(vertex.vertex_id), "value BINARY")
            )
        compute(frame)
        return buffers_of(frame, vertex.parallelism), time

    def _put_frame(self, operator_id: str, frame: DataFrame | None) -> None:
        readers = [
            edge
            for edge in self._job.edges
            if producer_of(self._job, edge).operator_id == operator_id and self._packed(edge) is None
        ]
        self._frames[operator_id] = self._kept(frame) if frame is not None and len(readers) > 1 else frame

    def close(self) -> None:
        """Release the rows that several nodes have read."""
        stages = self.__dict__.get("_stages")
        if stages is not None:
            stages.close()
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
        if isinstance(declaration, TableScanDeclaration):
            return self._scans.frame(vertex, declaration)
        if isinstance(declaration, SparkQueryDeclaration):
            return self._query(vertex, declaration)
        if isinstance(declaration, TableWatermarkDeclaration):
            return self._scans.watermarked(vertex, declaration, self._input(vertex, 0))
        assert isinstance(declaration, StatefulNode)
        return self._stateful(vertex, declaration)

    def _query(self, vertex: JobVertex, query: SparkQueryDeclaration) -> DataFrame:
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
        site = self._functions.site(vertex, vertex.head)
        for call in query.functions:
            self._session.udf.register(call.result.name, spark_function(call, site))
        return self._session.sql(query.sql.format(*(f"{{{name}}}" for name in inputs)), **inputs)

    def _stateful(self, vertex: JobVertex, declaration: StatefulNode) -> DataFrame | None:
        operator = self._operators[vertex.vertex_id]
        edges = self._job.inputs_of(vertex.vertex_id)
        # What is summed up on the way has the types of what the operator keeps.
        kept = {column.name: column.arrow for layout in operator.layouts for column in layout.columns}
        types = {
            edge.target_input: kept
            | {column.name: column.arrow for column in as_spark_gives(fragment_of(edge).schema)}
            for edge in edges
        }
        packed = {edge.target_input: each for edge in edges if (each := self._packed(edge)) is not None}
        packets = [
            self._packets_of(edge, packed[edge.target_input]) for edge in edges if edge.target_input in packed
        ]
        united = {side: self._kept_input(vertex, side) for side in self._sides(vertex) if side not in packed}
        specs = {spec.side: spec for spec in operator.inputs if spec.source not in packed}
        for side, count in Counter(spec.source for spec in specs.values()).items():
            if count > 1:
                own = [spec for spec in operator.inputs if spec.source == side]
                frame, shared = with_shared_keys(united[side], own, self._settings.row_keys)
                united[side] = self._kept(frame)
                specs |= {spec.side: spec for spec in shared}
        exchanged, sides = exchange(
            self._session,
            self._settings.row_keys,
            [(spec, self._summed_up(vertex, spec, united[spec.source])) for spec in specs.values()],
            types,
            vertex.parallelism,
            vertex.max_parallelism,
            packets,
        )
        merges = {side: merge for each in packed.values() for side, merge in each.merges.items()}
        out = () if self._packing is None else self._packing.out_of(vertex.vertex_id)
        site = self._functions.site(vertex, vertex.head)
        function = self._functions.stateful(
            vertex.vertex_id, self._times[vertex.vertex_id], sides, merges, out, site
        )
        if out:
            packets_out = exchanged.mapInArrow(function, PACKET_DDL)
            self._packets[vertex.vertex_id] = self._kept(packets_out) if len(out) > 1 else packets_out
            return None
        frame = exchanged.mapInArrow(
            function, ddl(declaration.output, has_kinds=not declaration.is_insert_only)
        )
        return (
            filter_pairs(frame, declaration)
            if isinstance(declaration, JoinDeclaration | WindowJoinDeclaration | TableIntervalJoinDeclaration)
            and not is_checked(declaration, operator)
            else frame
        )

    def _kept_input(self, vertex: JobVertex, side: int) -> DataFrame:
        """Return the rows of an input of a stateful node, which are recorded on their way if inputs are kept."""
        frame = self._input(vertex, side)
        if not self._settings.records_inputs:
            return frame
        return frame.mapInArrow(self._functions.recording(vertex.vertex_id, side), frame.schema)

    def _packed(self, edge: JobEdge) -> PackedInput | None:
        """Return how the rows of an edge are packed in this epoch; None if they are not."""
        source = edge.source_vertex
        if self._packing is None or (source not in self._scans.columns and source not in self._packets):
            return None
        return self._packing.into(edge.target_vertex, edge.target_input)

    def _packets_of(self, edge: JobEdge, packed: PackedInput) -> DataFrame:
        """Return the rows of an edge in packets."""
        self._has_packets = True
        scan = self._scans.columns.get(edge.source_vertex)
        if scan is None:
            readers = self._job.outputs_of(edge.source_vertex)
            packets = self._packets[edge.source_vertex]
            return packets if len(readers) == 1 else packets_for(packets, readers.index(edge))
        vertex = self._job.vertex(edge.source_vertex)
        site = self._functions.site(vertex, vertex.head)
        return scan.packets(self._session, self._functions, packed, site)

    def _summed_up(self, vertex: JobVertex, spec: InputSpec, frame: DataFrame) -> DataFrame:
        """Make of rows what an input asks for, and see how far event time came where rows carry it."""
        one_phase = getattr(vertex.head.declaration, "one_phase", False)
        for edge in self._job.inputs_of(vertex.vertex_id):
            carried = self._scans.carried.get(edge.source_vertex)
            if carried is not None:
                return carried.observe(sum_up(frame, spec, carried.columns, one_phase=one_phase))
        return sum_up(frame, spec, one_phase=one_phase)

    def _sides(self, vertex: JobVertex) -> list[int]:
        return sorted({edge.target_input for edge in self._job.inputs_of(vertex.vertex_id)})

    def _input(self, vertex: JobVertex, side: int) -> DataFrame:
        """Return the rows of one input, of all its producers."""
        edges = [edge for edge in self._job.inputs_of(vertex.vertex_id) if edge.target_input == side]
        is_changelog = any(has_kinds(self._job, edge) for edge in edges)
        frames = []
        for edge in edges:
            producer = producer_of(self._job, edge)
            frame = self._frames[producer.operator_id]
            if frame is not None:
                kinds = has_kinds(self._job, edge)
                carried = self._scans.carried.get(edge.source_vertex)
                columns = carried.columns if carried is not None else ()
                site = self._functions.site(self._job.vertex(edge.source_vertex), producer)
                frame = apply_fragment(
                    frame,
                    self._fragment(edge),
                    site,
                    self._settings.row_keys,
                    has_kinds=starts_with_kinds(self._job, edge),
                    carried=columns,
                )
                frames.append(frame if kinds or not is_changelog else frame.selectExpr("*", "0Y AS __kind"))
        if not frames:
            schema = ddl(fragment_of(edges[0]).schema, has_kinds=is_changelog)
            return self._session.createDataFrame([], schema)
        return reduce(DataFrame.unionByName, frames)

    def _fragment(self, edge: JobEdge) -> Fragment:
        """Return what is done to the rows of an edge, with the watermark that they ask for."""
        fragment = fragment_of(edge)
        if not reads_watermark(fragment.steps):
            return fragment
        vertex = self._job.vertex(edge.source_vertex)
        time = self._times[producer_of(self._job, edge).operator_id]
        known = watermark_of_rows(vertex, self._plan, time)
        return replace(fragment, steps=at_watermark(fragment.steps, known))

    # -- sinks -------------------------------------------------------------------------------------------------

    def _sink(self, vertex: JobVertex, declaration: TableSinkDeclaration) -> list[SinkFrame]:
        """Return what has to run for a sink; nothing if it has ended."""
        if all(part.has_ended for part in subtask_plans(vertex, self._plan)):
            return []
        edges = self._job.inputs_of(vertex.vertex_id)
        packed = self._packed(edges[0])
        if packed is not None:
            frame = self._packets_of(edges[0], packed)
        else:
            kinds = any(has_kinds(self._job, edge) for edge in edges)
            frame = for_sink(self._input(vertex, 0), declaration, has_kinds=kinds)
        if declaration.sink.discards:
            return [SinkFrame(frame, reports=False)]
        function = self._functions.writing(
            vertex.vertex_id, self._times[vertex.vertex_id], has_packets=packed is not None
        )
        if declaration.shuffle_by:
            frame = frame.repartition(vertex.parallelism, *map(quote, declaration.shuffle_by))
        else:
            frame = frame.coalesce(vertex.parallelism)
        frame = frame.mapInArrow(function, "report BINARY")
        return [SinkFrame(frame, reports=True)]

    # -- reports -----------------------------------------------------------------------------------------------

    def crossings(self) -> list[Crossing]:
        """Return who made and read rows on the border to streams, as far as this side knows."""
        return [each for each in self._messages.told() if isinstance(each, Crossing)]

    def reports(self) -> list[SubtaskReport]:
        """Return a report of every subtask: those that tasks made, and those of subtasks that have no task of ours.

        Raises:
            TaskLostError: The report of a task is missing, or there are two.
        """
        by_subtask = {report.subtask: report for report in self._task_reports()}
        reports = []
        vertices = [vertex for vertex in self._job.vertices if is_table_vertex(vertex)]
        readers = [v for v in self._job.vertices if isinstance(v.head.declaration, TableToStream)]
        # Streams have told the time that they have reached in this epoch.
        ours = {vertex.vertex_id for vertex in (*vertices, *readers)}
        reached = {node: at.after for node, at in self._times.items() if node not in ours}
        for vertex in vertices:
            for subtask, part in subtasks_of(vertex, self._plan):
                reports.append(self._report(vertex, subtask, part, by_subtask.get(subtask)))
        for vertex in vertices:
            if vertex.is_source or isinstance(vertex.head.declaration, TableWatermarkDeclaration):
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

    def _report(
        self, vertex: JobVertex, subtask: SubtaskId, part: SubtaskPlan, told: SubtaskReport | None
    ) -> SubtaskReport:
        """Return the report of a subtask: the one that was told, completed, or one that is made here."""
        if part.has_ended:
            return SubtaskReport(subtask, has_ended=True)
        if vertex.is_source:
            told = self._scans.report(vertex, subtask, part, told)
        elif isinstance(vertex.head.declaration, TableWatermarkDeclaration):
            is_final = self._times[vertex.vertex_id].is_final
            told = self._scans.watermark_report(vertex, subtask, part, is_final=is_final)
        return with_operator_metrics(vertex, told or self._silent_report(subtask))

    def with_metrics(self, reports: Sequence[SubtaskReport]) -> Sequence[SubtaskReport]:
        """Add to reports what functions have counted that are called with their subtasks' rows."""
        called = [each for each in self._messages.told() if isinstance(each, CalledFunction)]
        return with_metrics(reports, called)

    def with_timer(self, report: SubtaskReport) -> SubtaskReport:
        """Have the next epoch run at once where a table has come further than the stream that reads it knows."""
        if report.subtask.vertex_id not in self._lagging or report.has_ended:
            return report
        return replace(report, next_timer_ms=self._started_ms)

    def _task_reports(self) -> list[SubtaskReport]:
        """Return the reports of the tasks that ran, one for each subtask that has one."""
        told = [each for each in self._messages.told() if isinstance(each, SubtaskReport)]
        heard = {report.subtask.vertex_id for report in told}
        expected = [
            subtask
            for vertex in self._job.vertices
            if self._has_tasks(vertex) and (vertex.vertex_id in heard or not self._may_be_skipped(vertex))
            for subtask, part in subtasks_of(vertex, self._plan)
            if not part.has_ended
        ]
        return [*one_per_subtask(self._job, expected, told), *self._written]

    def _has_tasks(self, vertex: JobVertex) -> bool:
        """Whether subtasks of a vertex report through messages."""
        declaration = vertex.head.declaration
        if isinstance(declaration, TableScanDeclaration):
            return not isinstance(declaration.source, SparkSource)
        return isinstance(declaration, StatefulNode)

    def _may_be_skipped(self, vertex: JobVertex) -> bool:
        """Whether Spark may leave out the tasks of a vertex: a batch query, once all rows are there, may need none."""
        readers = [self._job.vertex(edge.target_vertex) for edge in self._job.outputs_of(vertex.vertex_id)]
        return self._times[vertex.vertex_id].is_final and all(
            isinstance(reader.head.declaration, SparkQueryDeclaration) for reader in readers
        )

    def _silent_report(self, subtask: SubtaskId) -> SubtaskReport:
        """Make the report of a subtask without a task of ours: of a query, of a sink that got no partition."""
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


def _lowest(reports: Sequence[SubtaskReport]) -> int:
    """Return how far event time has advanced in a scan."""
    active = [report for report in reports if not report.has_ended and not report.is_idle]
    if not active:
        return MAX_WATERMARK if all(report.has_ended for report in reports) else MIN_WATERMARK
    return min(MIN_WATERMARK if report.watermark is None else report.watermark for report in active)
