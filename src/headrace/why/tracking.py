"""Replays an epoch and notes, step by step, which records, state and time produced which.

Subtasks get their input one record at a time, so what they emit meanwhile is the record's. What leaves a subtask is
counted per channel; the next subtask reads channels in a fixed order, so the k-th record that it gets is known. That
order depends on where buffers end, which a plain replay finds out first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from headrace.elements import Batch
from headrace.errors import UnsupportedFeatureError, shorten
from headrace.graph.job_graph import JobVertex
from headrace.operators.async_wait import AsyncWaiter
from headrace.operators.checkpointed import CheckpointedFunction
from headrace.operators.io import SinkTask
from headrace.operators.sorted_input import SortedInput
from headrace.replay.comparison import compare
from headrace.replay.recordings import JobRecording
from headrace.replay.session import ReplaySession, ReplayTrace
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.epoch.recording import RecordedEpoch
from headrace.runtime.exchange.buffers import Header, decode, payload_of, read_header
from headrace.runtime.exchange.result_partition import ResultPartition
from headrace.runtime.task.chain import ChainLink
from headrace.why.lineage import SHOWN, EpochLineage, Kind, SinkRow, TaskLineage, TrackedEmission
from headrace.why.tables import BroadcastWatch, watch_table

#: Where records are on their way: the edge, who sent them, and who gets them.
_Channel = tuple[int, int, tuple[int, int]]


class CountingSession(ReplaySession):
    """A replay that counts how many records each buffer has."""

    def __init__(self, recording: JobRecording, epoch: RecordedEpoch) -> None:
        super().__init__(recording, epoch)
        #: How many records a channel has had at the end of each buffer that was full.
        self.boundaries: dict[_Channel, set[int]] = defaultdict(set)
        self._counts: dict[_Channel, int] = defaultdict(int)

    def _send(self, level: int, partition: int, buffer: bytes) -> None:
        super()._send(level, partition, buffer)
        header = read_header(buffer)
        channel = header.edge_id, header.producer, (level, partition)
        self._counts[channel] += _records_in(buffer)
        # A buffer that ends with an event has waited for the barrier.
        if isinstance(list(decode(payload_of(buffer)))[-1], Batch):
            self.boundaries[channel].add(self._counts[channel])


class TrackedSession(ReplaySession):
    """A replay that notes what depends on what.

    Args:
        recording: The job's.
        epoch: The epoch.
        boundaries: Where buffers end. The order in which channels are read depends on it.
    """

    def __init__(
        self, recording: JobRecording, epoch: RecordedEpoch, boundaries: Mapping[_Channel, Container[int]]
    ) -> None:
        super().__init__(recording, epoch)
        self._boundaries = boundaries
        self.lineage = EpochLineage(epoch.epoch)
        #: What emitted each record of a channel, in order.
        self._sent: dict[_Channel, list[TrackedEmission]] = defaultdict(list)
        if any(plan.in_flight is not None for plan in self.plan.subtasks.values()):
            raise UnsupportedFeatureError(
                f"epoch {epoch.epoch} starts with records that were in flight in an unaligned checkpoint",
                hint="ask for a row of a later epoch",
            )

    def _make_trace(self, subtask: SubtaskId, **arguments: Any) -> ReplayTrace:
        vertex = self.code.job.vertex(subtask.vertex_id)
        return TrackedTrace(self, subtask, vertex, **arguments)

    def sending(self, subtask: SubtaskId, lineage: TaskLineage, partition: ResultPartition) -> None:
        """Note what emits each record that leaves along an edge."""
        partition.hold()
        emit = partition.emit

        def emit_tracked(batch: Batch) -> None:
            emission = lineage.emission()
            emit(batch)
            for index, (readers, taken) in enumerate(partition.taken()):
                before = 0
                for reader in readers:
                    channel = partition.edge_id, subtask.subtask, reader
                    sent = self._sent[channel]
                    before = len(sent)
                    sent.extend([emission] * (taken - before))
                if taken > before and taken in self._boundaries.get(channel, ()):
                    partition.flush(index)

        partition.emit = emit_tracked  # type: ignore[method-assign]

    def emissions(
        self, place: tuple[int, int], buffers: Iterable[tuple[Header, bytes]]
    ) -> Iterator[TrackedEmission]:
        """Yield what emitted each record that a subtask is about to read."""
        positions: dict[_Channel, int] = defaultdict(int)
        for header, buffer in buffers:
            channel = header.edge_id, header.producer, place
            start = positions[channel]
            count = _records_in(buffer)
            positions[channel] += count
            yield from self._sent[channel][start : start + count]


class TrackedTrace(ReplayTrace):
    """Begins a step with each record that the subtask gets, and watches its state, sinks and edges."""

    def __init__(
        self, session: TrackedSession, subtask: SubtaskId, vertex: JobVertex, **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self._session = session
        self._subtask = subtask
        self._is_source = vertex.is_source
        self._causes: Iterator[TrackedEmission] = iter(())
        self._links: list[ChainLink] = []

    def watch(self, links: Any) -> None:
        """Watch state, and what sinks get."""
        super().watch(links)
        self._links = list(links)
        is_asynchronous = any(isinstance(link.operator, AsyncWaiter) for link in links)
        self.lineage = TaskLineage(self._session.lineage, self._subtask, is_asynchronous=is_asynchronous)
        for link in links:
            operator, context = link.operator, link.context
            operator.results_per_batch = 1
            if isinstance(operator, SortedInput):
                operator.inner.results_per_batch = 1
            if isinstance(operator, SinkTask):
                operator.tap = partial(self._note_row, link.node.operator_id, operator.tap)
            assert context is not None
            context.operator_state.on_handle = BroadcastWatch(
                link.node.operator_id, self.lineage, self._subtask.subtask
            )
            if context.keyed_state is not None:
                context.keyed_state.watch_tables(
                    partial(watch_table, operator, link.node.operator_id, self.lineage)
                )

    def expect(self, buffers: list[tuple[Header, bytes]]) -> None:
        """Take notice of the epoch's input, in the order in which it will be read."""
        place = self._session.layout.place(self._subtask)
        self._causes = self._session.emissions(place, buffers)

    def expect_others(self) -> None:
        """Refuse input of other epochs: nobody knows here what it was made of."""
        raise UnsupportedFeatureError(
            f"epoch {self._session.plan.epoch} has records that a barrier of a live job has overtaken",
            hint="ask for a row of another epoch, or run the job without unaligned checkpoints and with "
            "execution.checkpointing.mode: EXACTLY_ONCE",
        )

    def sending(self, partition: ResultPartition) -> ResultPartition:
        """Record which records are sent over an edge."""
        self._session.sending(self._subtask, self.lineage, partition)
        return partition

    def pieces(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Cut the input into single records."""
        for batch in super().pieces(batches):
            timestamps = batch.timestamps or [None] * len(batch)
            is_timed = batch.timestamps is not None
            for value, timestamp in zip(batch.values, timestamps, strict=True):
                cause = None if self._is_source else next(self._causes)
                kind: Kind = "input" if self._is_source else "record"
                self.lineage.begin(kind, shorten(value, SHOWN), timestamp, cause)
                yield Batch([value], [timestamp] if is_timed else None)

    def take(self) -> None:
        """The barrier: the last step is over."""
        self.lineage.settle()
        for link in self._links:
            operator, context = link.operator, link.context
            function = getattr(operator, "function", None)
            assert context is not None
            if isinstance(function, CheckpointedFunction) or context.operator_state.has_parts_of_subtask:
                self._session.lineage.with_fields.add(link.node.operator_id)

    def _note_row(self, operator_id: str, tap: Any, batch: Batch) -> None:
        emission = self.lineage.emission()
        before = len(self.sinks[operator_id])
        tap(batch)
        for value, timestamp in self.sinks[operator_id][before:]:
            row = SinkRow(operator_id, self._subtask, value, timestamp, emission)
            self._session.lineage.rows.append(row)


def _records_in(buffer: bytes) -> int:
    return sum(len(each) for each in decode(payload_of(buffer)) if isinstance(each, Batch))


def track_epoch(recording: JobRecording, number: int) -> tuple[EpochLineage, list[str]]:
    """Replay an epoch; return what depends on what in it, and how the replay differs from what the job did."""
    epoch = recording.epoch(number)
    counting = CountingSession(recording, epoch)
    with counting:
        counting.run()
    session = TrackedSession(recording, epoch, counting.boundaries)
    with session:
        done = session.run()
        differences = [str(each) for each in compare(session, done)]
    return session.lineage, differences
