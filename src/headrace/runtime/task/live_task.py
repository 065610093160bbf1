"""LiveTask: a subtask that lasts as long as its run, with the same chain, state and operators as in epochs.

    begin(plan) -> feed(...) | take_buffer(...) | tick() | flush()  -> report() -> go_on(report) -> ... -> close()

An epoch of it is the span between two barriers. It writes change files like any other, but nothing is read back: the
task is the only one that has its key groups, and it knows what it has written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.elements import LatencyMarker
from headrace.graph.job_graph import JobGraph
from headrace.metrics.reports import MetricName, MetricReport
from headrace.operators.base import EpochPlace
from headrace.operators.context import TaskPlace
from headrace.operators.io import SinkTask, SourceTask
from headrace.operators.leased_splits import LeasedSplits
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.runtime.exchange.buffers import Header, rest_of
from headrace.runtime.exchange.input_gate import InputBatch
from headrace.runtime.exchange.result_partition import BufferSize, SendBuffer
from headrace.runtime.task.chain import ChainLink
from headrace.runtime.task.script import ScriptStep
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.stream_task import StreamTask
from headrace.runtime.task.trace import Trace, make_trace
from headrace.state.handles import StateChain

#: A buffer is about so large: what an unaligned checkpoint has in flight is a multiple of it.
_BUFFER_BYTES = 64 << 10
#: Slow records hold up timers, and barriers that overtake, for about so long, ms.
_PACE_MS = 20


class LiveTask(StreamTask):
    """The chain of one subtask, from the start of a run to its end."""

    #: Whether the task itself has run the epoch before.
    _is_continued = False
    #: Whether the source knows which splits it has been leased.
    _has_lease = False
    #: Records of the present buffer that were worked through.
    records_taken = 0
    #: Records that the source has read in this epoch.
    _records_read = 0
    #: When to ask for watermarks between two pieces of the input; set in each epoch, which may be replayed alone.
    _ask_at = 0.0

    def __init__(
        self,
        job: JobGraph,
        layout: Layout,
        subtask: SubtaskId,
        lineage: str,
        settings: TaskSettings,
        trace: Trace | None = None,
        attempt: int = 0,
    ) -> None:
        #: How often the region was started before.
        self._region_attempt = attempt
        #: By edge; what was learned of records counts after a barrier, too.
        self._buffer_sizes: dict[int, BufferSize] = {}
        trace = trace or make_trace(settings, is_live=True)
        super().__init__(job, layout, subtask, lineage, settings, trace)

    def _copy_name(self, place: TaskPlace) -> str:
        """Return a name of its own for each attempt: one that has failed may still be writing."""
        name = super()._copy_name(place)
        return name if self._region_attempt == 0 else f"{name}-{self._region_attempt}"

    def begin(self, plan: EpochPlan, spark_attempt: int, send: SendBuffer) -> None:
        """Restore the state that the run starts from, and open the functions."""
        self._send = send
        self._spark_attempt = spark_attempt
        super().begin(plan, spark_attempt, send)

    def _buffer_size(self, edge_id: int) -> BufferSize:
        size = self._buffer_sizes.get(edge_id)
        if size is None:
            size = self._buffer_sizes[edge_id] = BufferSize(self._settings.buffer_records, _BUFFER_BYTES)
        return size

    @property
    def channels(self) -> frozenset[tuple[int, int]]:
        """The channels that barriers come on, as (edge, producer)."""
        return self._gate.channels

    # -- input -------------------------------------------------------------------------------------------------

    def take_buffer(
        self, header: Header, buffer: bytes, is_urgent: Callable[[], bool] = lambda: False
    ) -> bytes | None:
        """Work through a buffer; return what is left of it if something cannot wait for its end."""
        self._trace.took(header, buffer)
        self.records_taken = 0
        self._bytes_in += len(buffer)
        self._pace.begin()
        self._tick()
        batches = 0
        for element in self._gate.of_buffer(header, buffer):
            if not isinstance(element, InputBatch):
                self._take(element)
                continue
            taken = self._take_batch(element, is_urgent)
            if taken < len(element.batch):
                rest = rest_of(buffer, batches, taken)
                self._trace.did(ScriptStep.CUT, self.records_taken)
                self._trace.is_odd(rest)
                self._bytes_in -= len(rest)
                return rest
            batches += 1
        return None

    def _take_batch(self, element: InputBatch, is_urgent: Callable[[], bool]) -> int:
        """Work through records; return how many, which is not all if something cannot wait."""
        head, count, taken = self._links[0], len(element.batch), 0
        process = head.operator.process_second if element.input_index else head.operator.process
        for piece in self._pieces(element.batch):
            head.records_in += len(piece)
            process(piece)
            taken += len(piece)
            self.records_taken += len(piece)
            if taken < count and is_urgent():
                return taken
        self._pace.pause_if_due()
        return count

    def overtaken(self) -> list[tuple[Header, bytes]]:
        """Return the buffers that the run starts with: a barrier had overtaken them."""
        overtaken = list(self._overtaken())
        for _, buffer in overtaken:
            self._trace.is_odd(buffer)
        return overtaken

    def barrier_came(self, header: Header) -> None:
        """Take notice of a barrier on a channel; what to do about it is decided by the loop."""
        self._trace.passed(header)

    def gate_snapshot(self) -> dict[str, Any]:
        """Return where the gate stands."""
        return self._gate.snapshot()

    @property
    def bytes_in(self) -> int:
        """Bytes processed since the last barrier."""
        return self._bytes_in

    def feed(self, feed: SubtaskPlan) -> Iterator[None]:
        """Read what the driver has planned; yields after every batch so that buffers can leave."""
        yield from self._read(feed)
        if feed.ends_with(self._source.reader.progress):
            self._end()

    def _read(self, feed: SubtaskPlan) -> Iterator[None]:
        self._trace.fed(feed)
        head = self._source
        self._pace.begin()
        reading = head.run(feed.slices, feed.open_splits, None, feed.idle_splits)
        while True:
            self._trace.did(ScriptStep.READ_ON)
            try:
                next(reading)
            except StopIteration:
                break
            self._tick()
            yield
        self._records_read += head.reader.records

    def open_lease(self, max_records: int | None) -> LeasedSplits:
        """Return what plans the splits that the subtask reads on its own."""
        declaration: Any = self._links[0].node.declaration
        return LeasedSplits(declaration.source, self._vertex.parallelism, max_records)

    def read(self, lease: LeasedSplits, plan: SubtaskPlan) -> Iterator[None]:
        """Read what there is of leased splits now; yields after every batch so that buffers can leave."""
        head, slices = self._source, lease.plan()
        if slices or not self._has_lease:
            self._has_lease = True
            started = time.monotonic()
            yield from self._read(SubtaskPlan(slices=tuple(slices), open_splits=lease.open_splits))
            lease.advance(head.reader.progress, head.reader.records, time.monotonic() - started)
        if plan.ends_with(lease.progress):
            self.end()

    def end(self) -> None:
        """The input of a source has ended for good."""
        self._trace.did(ScriptStep.END)
        self._end()

    @property
    def progress(self) -> Mapping[str, object]:
        """How far the splits of the last feed were read."""
        return self._source.reader.progress

    @property
    def records_read(self) -> int:
        """Records that the source has read since the last barrier."""
        return self._records_read

    @property
    def records_fed(self) -> int:
        """Records of the last feed."""
        return self._source.reader.records

    @property
    def source_time(self) -> tuple[int | None, bool]:
        """The watermark of a source, and whether it is idle."""
        return self._links[0].output.watermark, self._source.is_idle

    @property
    def has_seen_end(self) -> bool:
        """Whether the input has ended for good."""
        return self._is_ended_now

    @property
    def _source(self) -> SourceTask:
        head = self._links[0].operator
        assert isinstance(head, SourceTask)
        return head

    def _pace_ms(self) -> int:
        return min(_PACE_MS, self._settings.watermark_interval_ms or _PACE_MS)

    def _pause(self) -> None:
        self._tick()
        interval_ms = self._settings.watermark_interval_ms
        if interval_ms and (now := self._clock.seconds()) >= self._ask_at:
            self._ask_at = now + interval_ms / 1000
            self._ask_for_watermarks()

    # -- the clock ---------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Fire the timers that the clock has passed."""
        self._trace.did(ScriptStep.TICK)
        self._tick()

    def next_due_ms(self) -> int | None:
        """Return when the next timer falls due."""
        return None if self._is_ended_now else self._next_timer()

    def mark_latency(self) -> None:
        """Have the source send a latency marker."""
        self._trace.did(ScriptStep.MARK)
        marker = LatencyMarker(self._clock.now_ms(), self._links[0].node.operator_id, self._subtask.subtask)
        self._links[0].output.emit_event(marker)

    @property
    def has_periodic_watermarks(self) -> bool:
        """Whether a generator emits watermarks periodically."""
        return any(link.operator.has_periodic_watermarks for link in self._links)

    def emit_periodic_watermarks(self) -> None:
        self._trace.did(ScriptStep.WATERMARKS)
        self._ask_for_watermarks()

    def take_shown(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield what sinks show at once, with their operator ids."""
        for link in self._links:
            if isinstance(link.operator, SinkTask):
                shown = link.operator.take_shown()
                if shown:
                    yield link.node.operator_id, shown

    def flush(self) -> None:
        """Send what waits for a full buffer."""
        self._trace.did(ScriptStep.FLUSH)
        for link in self._links:
            link.output.finish_epoch()

    def notify_checkpoint(self, epoch: int, *, is_complete: bool) -> None:
        """Tell the operators what happened to a checkpoint."""
        self._trace.did(ScriptStep.CHECKPOINT_ENDED, epoch, int(is_complete))
        super().notify_checkpoint(epoch, is_complete=is_complete)

    def keep_failure(self) -> None:
        """Keep what a replay needs of a task that has raised an error."""
        self._trace.keep_failure(self._plan, self._subtask, self._attempt.attempt_id)

    # -- barriers ----------------------------------------------------------------------------------------------

    def report(self) -> SubtaskReport:
        """End an epoch: write state down, and say what was done."""
        report = super().report()
        self._trace.keep_input(self._plan, self._subtask, self._attempt.attempt_id)
        if self._vertex.is_source:
            # What was read is known to the driver already, from each feed.
            return replace(report, progress={}, records_in=self._records_read)
        return report

    def go_on(self, report: SubtaskReport) -> None:
        """Begin the next epoch where the last one ended."""
        keyed = {
            **self._own_plan.keyed,
            # The files before it are in the copy of state.
            **{name: StateChain(self._lineage, (file,)) for name, file in report.changes.items()},
        }
        own = replace(self._own_plan, keyed=keyed, operator_state={})
        plan = replace(self._plan, epoch=self._plan.epoch + 1, subtasks={self._subtask: own})
        self._is_continued = True
        self._records_read = 0
        self._ask_at = 0.0
        self._start_attempt(plan, self._spark_attempt)
        for link in self._links:
            self._catch_up(link)
            link.output.set_partitions(self._make_partitions(link, plan.epoch, self._send))
            link.operator.begin_epoch(self._place())

    def _catch_up(self, link: ChainLink) -> None:
        keyed = self._context(link).keyed_state
        if keyed is not None:
            keyed.begin_epoch(self._chain_of(link))

    def _place(self) -> EpochPlace:
        return replace(self._attempt.place, is_lasting=True, is_continued=self._is_continued)

    def _user_metrics(self) -> dict[str, dict[MetricName, MetricReport]]:
        if self._vertex.is_source:
            self._source.reader.records = self._records_read
        return super()._user_metrics()
