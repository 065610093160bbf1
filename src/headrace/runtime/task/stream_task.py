"""StreamTask: one subtask of a vertex, as a worker runs it epoch after epoch.

    begin(plan) -> process(buffers): elements through the chain, buffers out -> report()

A worker keeps a task it has run, because opening functions and decoding state are expensive. Whether the kept task is
still valid is decided by the state's tip, never assumed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from headrace.common.accumulators import TaskAccumulators
from headrace.elements import Batch, EndOfInput, LatencyMarker, StreamStatus, TableRows, Watermark
from headrace.errors import StateTypeError
from headrace.graph.input_order import early_edges
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.metrics.reports import MetricName, MetricReport
from headrace.operators.base import EpochPlace
from headrace.operators.context import OperatorContext, TaskPlace
from headrace.operators.io import SourceTask
from headrace.runtime.epoch.layout import Layout, consumers_of, producers_of
from headrace.runtime.epoch.messages import (
    EpochPlan,
    SubtaskId,
    SubtaskPlan,
    SubtaskReport,
    TableTime,
    rows_producer,
    state_files_dir,
)
from headrace.runtime.exchange.buffers import Header, unpack_table_rows
from headrace.runtime.exchange.input_gate import GateElement, InputBatch, InputGate, InputIdle
from headrace.runtime.exchange.result_partition import BufferSize, ResultPartition, SendBuffer
from headrace.runtime.exchange.table_partition import TablePartition
from headrace.runtime.task.attempt import ATTEMPT_DIGITS, TaskAttempt, task_place
from headrace.runtime.task.chain import ChainLink, Partition, build_chain
from headrace.runtime.task.latency import LatencyMeasure
from headrace.runtime.task.overtaken import overtaken_buffers
from headrace.runtime.task.pace import Pace
from headrace.runtime.task.scratch import copy_directory, renew_scratch
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.time_parts import GATE, NO_TIME, TABLE_IDLE, TIME
from headrace.runtime.task.trace import Trace, make_trace
from headrace.state.changes import write_change
from headrace.state.handles import StateChain, StateFile
from headrace.state.key_groups import key_group_range
from headrace.state.keyed import KeyedStateBackend
from headrace.state.latency import StateLatency
from headrace.state.stores.factory import make_store
from headrace.storage.paths import join_path


class StreamTask:
    """The chain of one subtask with its gate and its state."""

    def __init__(
        self,
        job: JobGraph,
        layout: Layout,
        subtask: SubtaskId,
        lineage: str,
        settings: TaskSettings,
        trace: Trace | None = None,
    ) -> None:
        self._trace = trace or make_trace(settings)
        self._clock = self._trace.clock
        self._job = job
        self._layout = layout
        self._subtask = subtask
        self._vertex: JobVertex = job.vertex(subtask.vertex_id)
        self._settings = settings
        self._lineage = lineage
        self._links = build_chain(self._vertex, object_reuse=job.object_reuse, is_batch=job.is_batch)
        self._gate = self._make_gate()
        self._now_ms = 0
        self._accumulators = TaskAccumulators()
        #: Metrics that belong to the job as a whole.
        self._job_metrics = InMemoryMetricGroup()
        for link in self._links:
            link.context = self._make_context(link)
            link.on_marker = LatencyMeasure(
                self._job_metrics, settings.latency, link.node.operator_id, subtask.subtask
            )
        self._is_open = False
        #: Cuts input that takes its time, so that timers fire and watermarks are emitted in between.
        self._pace = Pace(self._pace_ms(), self._pause, self._clock.seconds)
        self._trace.watch(self._links)
        head = self._links[0].operator
        if isinstance(head, SourceTask):
            head.pieces_of = self._pieces

    # -- one epoch ---------------------------------------------------------------------------------------------

    def begin(self, plan: EpochPlan, spark_attempt: int, send: SendBuffer) -> None:
        """Go to the state the epoch starts from and get ready for elements."""
        self._start_attempt(plan, spark_attempt)
        for link in self._links:
            self._restore(link)
            link.output.set_partitions(self._make_partitions(link, plan.epoch, send))
        self._restore_time()
        for link in self._links:
            if not self._is_open:
                assert link.context is not None
                link.operator.open(link.context)
            link.operator.begin_epoch(self._place())
        self._is_open = True
        for epoch, is_complete in plan.ended_checkpoints:
            self.notify_checkpoint(epoch, is_complete=is_complete)

    def notify_checkpoint(self, epoch: int, *, is_complete: bool) -> None:
        """Tell the operators what happened to the checkpoint that an epoch ended with."""
        for link in self._links:
            link.operator.notify_checkpoint(epoch, is_complete=is_complete)

    def _start_attempt(self, plan: EpochPlan, spark_attempt: int) -> None:
        """Start to count for an epoch."""
        self._pace.piece_size = self._trace.begin_epoch(self._pace.piece_size)
        self._attempt = TaskAttempt(
            plan, spark_attempt, now_ms=self._clock.now_ms, attempt_id=self._trace.attempt_id
        )
        self._now_ms = self._attempt.started_ms
        self._plan = plan
        self._own_plan: SubtaskPlan = plan.subtasks[self._subtask]
        self._consumed: dict[SubtaskId, str] = {}
        self._bytes_in = 0
        self._is_ended_now = False
        #: Whether generators have yet to be asked after the last batch.
        self._owes_watermarks = False
        #: Whether they are not asked after the last batch, as the input was cut in the middle.
        self._holds_watermarks = False
        self._accumulators.begin_epoch()
        self._job_metrics.begin_epoch()
        for link in self._links:
            link.begin_epoch()
            self._context(link).metrics.begin_epoch()  # before open(), which may count as well

    def traced(self) -> AbstractContextManager[None]:
        """What keeps, around an attempt that has begun, what is needed to replay it if it fails."""
        return self._trace.attempting(self._plan, self._subtask, self._attempt.attempt_id)

    def _place(self) -> EpochPlace:
        return self._attempt.place

    def process(self, buffers: Iterable[tuple[Header, bytes]]) -> Iterator[None]:
        """Work through the epoch's input; yields now and then so that finished buffers can leave."""
        if self._own_plan.has_ended:
            return
        self._pace.begin()
        self._tick()
        if self._vertex.is_source:
            yield from self._process_source()
        elif self._links[0].operator.takes_table_rows:
            yield from self._process_table_rows(buffers)
        else:
            yield from self._process_inputs(self._noted(buffers))

    def in_order(self, buffers: Iterable[tuple[Header, bytes]]) -> list[tuple[Header, bytes]]:
        """Return the epoch's input in the order in which it is read."""
        return self._gate.in_order(buffers)

    def report(self) -> SubtaskReport:
        """The barrier: send what waits, write state down, and say what was done."""
        committables: dict[str, Any] = {}
        for link in self._links:
            staged = link.operator.end_epoch()
            if staged:
                committables[link.node.operator_id] = tuple(staged)
        for link in self._links:
            link.output.finish_epoch()
        self._store_time()
        next_timer_ms = self._next_timer()  # before state settles: it forgets the timers of this epoch
        changes = self._write_changes()
        operator_state = self._snapshot_operator_state()
        head = self._links[0].operator
        report = SubtaskReport(
            subtask=self._subtask,
            consumed=self._consumed,
            changes=changes,
            operator_state=operator_state,
            committables=committables,
            progress=dict(head.reader.progress) if isinstance(head, SourceTask) else {},
            has_ended=self.has_ended,
            watermark=self._watermark(),
            table_times=self._table_times(),
            is_idle=isinstance(head, SourceTask) and head.is_idle,
            next_timer_ms=next_timer_ms,
            records_in=head.reader.records if isinstance(head, SourceTask) else self._links[0].records_in,
            records_out=sum(link.output.records_out for link in self._links),
            bytes_in=self._bytes_in,
            bytes_out=sum(link.output.bytes_out for link in self._links),
            warnings=tuple(w for link in self._links for w in self._context(link).take_warnings()),
            user_metrics=self._user_metrics(),
            accumulators=self._accumulators.report(),
            trace=self._trace.take(),
            waited_ns=sum(link.operator.waited_ns for link in self._links),
        )
        return self._attempt.stamped(report)

    @property
    def has_ended(self) -> bool:
        """Whether its input has ended for good."""
        return self._own_plan.has_ended or self._is_ended_now

    def close(self) -> None:
        """Release everything; the local state copy stays on the host."""
        with ExitStack() as closing:  # each of them, whatever the others do; the store must not stay open
            for link in self._links:
                keyed = self._context(link).keyed_state
                if keyed is not None:
                    closing.callback(keyed.close)
                if self._is_open:
                    closing.callback(link.operator.close)

    # -- input -------------------------------------------------------------------------------------------------

    def _process_source(self) -> Iterator[None]:
        head = self._links[0].operator
        assert isinstance(head, SourceTask)
        marked_ms = self._plan.latency_marker_ms
        if marked_ms is not None:
            marker = LatencyMarker(marked_ms, self._links[0].node.operator_id, self._subtask.subtask)
            self._links[0].output.emit_event(marker)
        for _ in head.run(
            self._own_plan.slices,
            self._own_plan.open_splits,
            self._own_plan.max_records,
            self._own_plan.idle_splits,
        ):
            self._tick()
            self._owes_watermarks = True
            if self._own_plan.may_get_more_splits:
                self._emit_owed_watermarks()
            yield
        if self._own_plan.ends_with(head.reader.progress):
            self._end()
        elif self._is_cut_by_probe(head):
            self._holds_watermarks = True
        elif self._plan.is_probe:
            self._ask_for_watermarks()  # also what an epoch before has held back
        else:
            self._emit_owed_watermarks()
        yield

    def _is_cut_by_probe(self, head: SourceTask) -> bool:
        """Whether more input follows, and was left out only to find out how fast functions are."""
        return self._plan.is_probe and not head.reader.has_room

    def _overtaken(self) -> Iterable[tuple[Header, bytes]]:
        """Return what was on its way to the subtask in the checkpoint that it starts from."""
        in_flight = self._own_plan.in_flight
        if in_flight is None:
            return ()
        return overtaken_buffers(in_flight, self._job, self._subtask, self._gate.channels)

    def _process_inputs(self, buffers: Iterable[tuple[Header, bytes]]) -> Iterator[None]:
        first = (each for overtaken in self._overtaken() for each in self._gate.of_buffer(*overtaken))
        for element in itertools.chain(first, self._gate.elements(buffers)):
            self._tick()
            self._take(element)
            self._owes_watermarks |= isinstance(element, InputBatch)
            yield
        if not self._is_ended_now and not self._plan.holds_watermarks:
            self._emit_owed_watermarks()

    def _take(self, element: GateElement) -> None:
        """Pass an element of the input to the head of the chain."""
        head = self._links[0]
        if isinstance(element, InputBatch):
            head.records_in += len(element.batch)
            process = head.operator.process_second if element.input_index else head.operator.process
            for piece in self._pieces(element.batch):
                process(piece)
            self._pace.pause_if_due()
        elif isinstance(element, InputIdle):
            head.process_event(StreamStatus(active=not element.is_idle))
        elif isinstance(element, Watermark | LatencyMarker):
            head.process_event(element)
        else:
            self._end()

    def _process_table_rows(self, buffers: Iterable[tuple[Header, bytes]]) -> Iterator[None]:
        """Take the rows of a table, and then the time that stands after them."""
        head = self._links[0]
        for header, buffer in sorted(buffers, key=lambda item: (item[0].producer, item[0].sequence)):
            self._tick()
            producer = rows_producer(self._subtask.vertex_id, header.producer)
            self._consumed[producer] = f"{header.attempt:0{ATTEMPT_DIGITS}x}"
            self._bytes_in += len(buffer)
            before = head.output.emitted
            head.operator.process(TableRows(unpack_table_rows(buffer)[1], 0))
            head.records_in += head.output.emitted - before
            yield
        time = self._own_plan.table_time
        assert time is not None, "the plan says where time stands behind a table's rows"
        was_idle = self._head_state.get(TABLE_IDLE, False)
        if time.is_idle != was_idle:
            self._head_state.put(TABLE_IDLE, time.is_idle)
            head.process_event(StreamStatus(active=not time.is_idle))
        if time.watermark > head.watermark:
            head.process_event(Watermark(time.watermark))
        if time.is_final:
            self._end()
        yield

    def _pieces(self, batch: Batch) -> Iterator[Batch]:
        self._emit_owed_watermarks()
        return self._trace.pieces(self._pace.pieces(batch))

    def _tick(self) -> None:
        """Read the clock, once per buffer, and fire the timers that it has passed."""
        self._now_ms = self._clock.now_ms()
        for link in self._links:
            # As in Flink, a moment is waited out: the window that ends with it may still get records.
            link.operator.advance_processing_time(self._now_ms - 1)

    def _pace_ms(self) -> int:
        """Return how long a piece of the input should take at most; 0 if the input is not cut."""
        return self._settings.watermark_interval_ms

    def _pause(self) -> None:
        """Do what the clock makes due, between two pieces of the input."""
        self._tick()
        self._ask_for_watermarks()

    def _ask_for_watermarks(self) -> None:
        self._owes_watermarks = False
        for link in self._links:
            link.operator.emit_periodic_watermark()

    def _emit_owed_watermarks(self) -> None:
        """Emit the watermarks of the batch before, if the input continues: after the last one comes the end of time."""
        if self._owes_watermarks:
            self._ask_for_watermarks()

    def _noted(self, buffers: Iterable[tuple[Header, bytes]]) -> Iterator[tuple[Header, bytes]]:
        """Note whose output is read."""
        vertex_of_edge = {
            edge.edge_id: edge.source_vertex for edge in self._job.inputs_of(self._subtask.vertex_id)
        }
        for header, buffer in buffers:
            producer = SubtaskId(vertex_of_edge[header.edge_id], header.producer)
            self._consumed[producer] = f"{header.attempt:0{ATTEMPT_DIGITS}x}"
            self._bytes_in += len(buffer)
            yield header, buffer

    def _end(self) -> None:
        """All input has been seen: every operator finishes, in order, then those after are told."""
        for link in self._links:
            link.operator.finish()
        for link in self._links:
            link.output.emit_event(EndOfInput())
        self._is_ended_now = True

    # -- wiring ------------------------------------------------------------------------------------------------

    def _make_gate(self) -> InputGate:
        edges = self._job.inputs_of(self._subtask.vertex_id)
        channels = [
            (edge.edge_id, producer)
            for edge in edges
            for producer in producers_of(
                edge,
                self._subtask.subtask,
                self._job.vertex(edge.source_vertex).parallelism,
                self._vertex.parallelism,
            )
        ]
        early = early_edges(self._job, self._subtask.vertex_id)
        return InputGate(channels, {edge.edge_id: edge.target_input for edge in edges}, early)

    def _make_partitions(
        self, link: ChainLink, epoch: int, send: SendBuffer
    ) -> list[tuple[str | None, Partition]]:
        partitions: list[tuple[str | None, Partition]] = []
        if link.operator.table_time(link.watermark) is not None:
            partitions.append(
                (
                    None,
                    TablePartition(
                        link.node.operator_id,
                        producer=self._subtask.subtask,
                        attempt=int(self._attempt.attempt_id, 16),
                        level=self._layout.depth,
                        send=send,
                    ),
                )
            )
        for edge in self._job.outputs_of(self._subtask.vertex_id):
            if self._vertex.operators[edge.source_operator] is not link.node:
                continue
            target = self._job.vertex(edge.target_vertex)
            reached = consumers_of(edge, self._subtask.subtask, self._vertex.parallelism, target.parallelism)
            partition = ResultPartition(
                edge,
                producer=self._subtask.subtask,
                attempt=int(self._attempt.attempt_id, 16),
                epoch=epoch,
                consumers=[self._layout.place(SubtaskId(edge.target_vertex, index)) for index in reached],
                max_parallelism=target.max_parallelism,
                size=self._buffer_size(edge.edge_id),
                source_name=link.node.name,
                send=send,
            )
            partitions.append((edge.side_tag, self._trace.sending(partition)))
        return partitions

    def _buffer_size(self, edge_id: int) -> BufferSize:
        """Return when buffers of an edge are full."""
        return BufferSize(self._settings.buffer_records)

    def _make_context(self, link: ChainLink) -> OperatorContext:
        place = task_place(self._job, self._subtask, link.node)
        metrics = InMemoryMetricGroup()
        return OperatorContext(
            place=place,
            metrics=metrics,
            accumulators=self._accumulators,
            keyed_state=self._make_keyed_state(place, metrics) if link.node.declaration.is_keyed else None,
            processing_time=lambda: self._now_ms,
            watermark=lambda: link.watermark,
            object_reuse=self._job.object_reuse,
            job_parameters=self._job.global_job_parameters,
            cached_files=self._settings.cached_files,
        )

    def _copy_name(self, place: TaskPlace) -> str:
        """Return what the host's copy of an operator's state is called."""
        return f"{place.subtask}-of-{place.parallelism}"

    def _make_keyed_state(self, place: TaskPlace, metrics: InMemoryMetricGroup) -> KeyedStateBackend:
        directory = copy_directory(
            self._settings,
            self._lineage,
            place.operator_id,
            self._copy_name(place),
        )
        groups = key_group_range(place.subtask, place.max_parallelism, place.parallelism)
        latency = self._settings.state_latency
        return KeyedStateBackend(
            make_store(self._settings.store, directory),
            groups,
            place.max_parallelism,
            self._settings.state_cache_entries,
            processing_time=lambda: self._now_ms,
            latency=None if latency is None else StateLatency(metrics, latency),
        )

    # -- state -------------------------------------------------------------------------------------------------

    @property
    def _head_state(self) -> Any:
        return self._context(self._links[0]).operator_state

    def _context(self, link: ChainLink) -> OperatorContext:
        assert link.context is not None
        return link.context

    def _restore(self, link: ChainLink) -> None:
        context = self._context(link)
        context.attempt = self._attempt.number
        context.operator_state.restore(self._own_plan.operator_state.get(link.node.operator_id))
        if context.keyed_state is not None:
            renew_scratch(self._settings)
            context.keyed_state.begin_epoch(self._chain_of(link))

    def _restore_time(self) -> None:
        """Put every operator where its input stood when the last epoch ended, whoever ran that."""
        self._gate.restore(self._head_state.get(GATE))
        for link in self._links:
            link.watermark, link.output.watermark = self._context(link).operator_state.get(TIME, NO_TIME)

    def _store_time(self) -> None:
        if not self._vertex.is_source:
            self._head_state.put(GATE, self._gate.snapshot())
        for link in self._links:
            time_reached = (link.watermark, link.output.watermark)
            if time_reached != NO_TIME:
                self._context(link).operator_state.put(TIME, time_reached)

    def _chain_of(self, link: ChainLink) -> StateChain:
        return self._own_plan.keyed.get(link.node.operator_id) or StateChain(self._lineage)

    def _write_changes(self) -> dict[str, StateFile]:
        written = {}
        for link in self._links:
            keyed = self._context(link).keyed_state
            if keyed is None:
                continue
            chain = self._chain_of(link)
            version = self._plan.epoch
            try:
                change = keyed.take_changes(version)
            except StateTypeError as error:
                place = self._context(link).place
                error.job, error.operator, error.subtask = place.job_name, place.operator_name, place.subtask
                raise
            tip = chain.tip
            if change:
                name = f"{link.node.operator_id}-{self._subtask.subtask}-{version}-{self._attempt.attempt_id}.change"
                tip = join_path(state_files_dir(self._plan.state_dir), name)
                size = write_change(tip, change)
                written[link.node.operator_id] = StateFile(tip, chain.version, version, size)
            keyed.settle(tip)
        return written

    def _snapshot_operator_state(self) -> dict[str, bytes]:
        snapshots = {
            link.node.operator_id: self._context(link).operator_state.snapshot() for link in self._links
        }
        return {operator_id: snapshot for operator_id, snapshot in snapshots.items() if snapshot is not None}

    def _watermark(self) -> int | None:
        head = self._links[0]
        if self._vertex.is_source:
            return head.output.watermark
        return head.watermark if head.operator.takes_table_rows else self._gate.watermark

    def _table_times(self) -> dict[str, TableTime]:
        """Say how far event time has advanced for the tables that get rows of this subtask."""
        found = {}
        for link in self._links:
            time = link.operator.table_time(link.watermark)
            if time is not None:
                found[link.node.operator_id] = TableTime(time[0], self.has_ended, time[1])
        return found

    def _next_timer(self) -> int | None:
        if self.has_ended:
            return None  # as in Flink, what waits for the clock does not keep a job alive
        if self._holds_watermarks:
            return self._now_ms  # there may have been no more input after all
        times = (link.operator.next_processing_time() for link in self._links)
        return min((time + 1 for time in times if time is not None), default=None)

    def _user_metrics(self) -> dict[str, dict[MetricName, MetricReport]]:
        head = self._links[0]
        if isinstance(head.operator, SourceTask):
            head.records_in = head.operator.reader.records
        reports = {
            link.node.operator_id: {**link.metrics(), **self._context(link).metrics.reports()}
            for link in self._links
        }
        reports[""] = self._job_metrics.reports()
        return {operator_id: metrics for operator_id, metrics in reports.items() if metrics}
