"""LiveSubtask: the loop of a subtask that lasts as long as its run.

    mailbox -> messages: feeds, triggers, stop
            -> buffers:  barriers; for this level: work; for deeper levels: passed on
            -> timers that are due
            -> nothing more to do, or the buffer timeout is over: send what waits

An aligned barrier has come on all channels before the snapshot. For an unaligned one the driver triggers every subtask:
it takes its snapshot at once, and what the barrier overtakes is recorded until it has come on all channels.

Only this loop touches operators and state. What goes out is yielded, so Spark's own flow control holds the loop when
the next level cannot follow, and with it whoever sends to it.
"""

from __future__ import annotations

import os
import pickle
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.errors import ClusterError, HeadraceError, TaskLostError
from headrace.operators.leased_splits import LeasedSplits
from headrace.runtime.control.connection import Connection
from headrace.runtime.control.messages import (
    VERSION,
    Acknowledge,
    Beat,
    CheckpointEnded,
    Drained,
    Feed,
    Goodbye,
    Hello,
    Lease,
    Message,
    Recall,
    Running,
    SampleStacks,
    StopSubtask,
    SubtaskOutput,
    SubtaskProgress,
    TriggerCheckpoint,
)
from headrace.runtime.epoch.in_flight import InFlight, InFlightFile, edge_identities
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import (
    EpochPlan,
    SubtaskId,
    SubtaskPlan,
    SubtaskReport,
    state_files_dir,
)
from headrace.runtime.exchange.buffers import Header, barrier_in, pack_barrier
from headrace.runtime.task.alignment import Alignment
from headrace.runtime.task.barrier_paths import barrier_paths, barrier_targets, channels_in_order
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.live_sampling import LiveSampling
from headrace.runtime.task.live_settings import LiveSettings
from headrace.runtime.task.live_task import LiveTask
from headrace.runtime.task.mailbox import Mailbox
from headrace.runtime.task.outbox import Outbox, Sent
from headrace.runtime.task.overtaken import Recorder, write_overtaken
from headrace.storage.paths import join_path
from headrace.util import clock

#: The loop looks around at least this often.
_LONGEST_WAIT_S = 1.0


@dataclass(frozen=True)
class _Snapshot:
    """A snapshot that waits for what its barrier has overtaken."""

    report: SubtaskReport
    #: Where the gate stood.
    gate: dict[str, Any]
    #: When the first barrier came, or the trigger, ms since 1970.
    first_ms: int
    sync_ms: int


class LiveSubtask:
    """One subtask of a live job.

    Args:
        code: The job.
        layout: Its levels.
        level: The level that the subtask is in.
        partition: Its place there.
        plan: What the run starts from.
        settings: How to reach the driver, and when to send.
        spark_attempt: How often Spark has tried the task before.
    """

    def __init__(
        self,
        code: JobCode,
        layout: Layout,
        level: int,
        partition: int,
        plan: EpochPlan,
        settings: LiveSettings,
        spark_attempt: int = 0,
    ) -> None:
        self._code = code
        self._layout = layout
        self._level = level
        self._subtask: SubtaskId = layout.levels[level][partition]
        self._plan = plan
        self._settings = settings
        self._spark_attempt = spark_attempt
        self._mailbox = Mailbox(
            settings.mailbox_bytes,
            level,
            barrier_paths(code.job, layout, level, partition),
            self._recorded,
        )
        self._outbox = Outbox()
        self._epoch = plan.epoch
        #: None if the subtask had ended before the run began, or has ended since.
        self._task: LiveTask | None = None
        if not plan.subtasks[self._subtask].has_ended:
            self._task = self._make_task()
        channels = self._task.channels if self._task is not None else self._ended_channels()
        self._alignment = Alignment(channels, blocks=settings.is_exactly_once)
        self._barrier_targets = barrier_targets(code.job, layout, self._subtask)
        #: Channels whose records no barrier may overtake.
        self._in_order = channels_in_order(code.job, self._subtask, channels)
        #: The epoch whose barrier may overtake the others.
        self._overtaking: int | None = None
        self._snapshot: _Snapshot | None = None
        #: The epoch that more was read ahead for than usually waits.
        self._backlog: int | None = None
        #: Bytes processed when the first barrier came.
        self._bytes_at_first = 0
        self._is_stopping = False
        own_ms = code.job.vertex(self._subtask.vertex_id).buffer_timeout_ms
        self._timeout_s = (settings.buffer_timeout_ms if own_ms is None else own_ms) / 1000
        self._flushed = time.monotonic()
        self._ended = threading.Event()
        self._marked_ms = 0
        #: When watermark generators are asked again.
        self._watermark_at = 0.0
        #: When the splits are looked at again, if there was nothing.
        self._read_at = 0.0
        #: Splits that a source reads on its own, and what it was told with them.
        self._lease: LeasedSplits | None = None
        self._lease_plan = SubtaskPlan()
        #: How long the loop has waited for something to do, s.
        self._idle_s = 0.0
        #: When the last barrier passed, and these two then.
        self._spent = (time.monotonic(), 0.0, 0.0)
        self.connection: Connection | None = None
        self._sampling = LiveSampling(self._tell)

    def _make_task(self) -> LiveTask:
        code = self._code
        return LiveTask(
            code.job, self._layout, self._subtask, code.lineage, code.settings, attempt=self._plan.attempt
        )

    # -- life ----------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Introduce the subtask to the driver."""
        self.connection = Connection.open(self._settings.address, self._settings.secret)
        host, pid = socket.gethostname(), os.getpid()
        self._tell(Hello(VERSION, *self._subtask, host=host, pid=pid, attempt=self._plan.attempt))
        threading.Thread(target=self._listen, name="headrace-control", daemon=True).start()
        # Not by the loop: a function may take long over a record.
        threading.Thread(target=self._beat_regularly, name="headrace-heartbeat", daemon=True).start()

    def disconnect(self) -> None:
        """Close the connection to the driver."""
        self._ended.set()
        if self.connection is not None:
            self.connection.close()

    def _tell(self, message: Message) -> None:
        assert self.connection is not None, "connect() comes first"
        self.connection.send(message)

    def run(self, incoming: Iterable[bytes] | None) -> Iterator[Sent]:
        """Work until the driver says stop; yields buffers for the next level.

        Args:
            incoming: What other subtasks send; None for sources, who get nothing.
        """
        try:
            self._begin()
            if incoming is not None:
                threading.Thread(
                    target=self._read, args=(incoming,), name="headrace-input", daemon=True
                ).start()
            while not self._is_over(has_input=incoming is not None):
                yield from self._turn()
        except HeadraceError as error:
            if self._task is not None and not isinstance(error, ClusterError | TaskLostError):
                self._task.keep_failure()
            raise
        finally:
            self._end()
        self._tell(Goodbye())

    def _end(self) -> None:
        self._ended.set()
        self._sampling.close()
        task, self._task = self._task, None
        if task is not None:
            task.close()
        if self._lease is not None:
            self._lease.close()

    def _begin(self) -> None:
        self._sampling.begin()
        if self._task is not None:
            self._task.begin(self._plan, self._spark_attempt, self._send)
            self._mailbox.restore(self._task.overtaken())
        self._tell(Running())

    def _is_over(self, *, has_input: bool) -> bool:
        if self._mailbox.is_disconnected and not self._is_stopping:
            raise ClusterError("the driver has closed the control connection of a live subtask")
        # A consumer must read to the end, or Spark takes it for a failure.
        return self._is_stopping and (
            not has_input or (self._mailbox.has_input_ended and self._mailbox.is_empty)
        )

    def _listen(self) -> None:
        assert self.connection is not None
        while True:
            try:
                message = self.connection.receive()
            except ClusterError as error:
                self._mailbox.end_input(error)  # the loop raises it
                return
            if message is None:
                self._mailbox.disconnect()
                return
            if isinstance(message, SampleStacks):
                self._sampling.on_request(message)
            else:
                self._mailbox.put_message(message)

    def _read(self, incoming: Iterable[bytes]) -> None:
        try:
            for buffer in incoming:
                self._mailbox.put_buffer(buffer)
        except BaseException as error:  # noqa: BLE001 - the loop raises it
            self._mailbox.end_input(error)
        else:
            self._mailbox.end_input()

    # -- the loop ------------------------------------------------------------------------------------------------

    def _turn(self) -> Iterator[Sent]:
        """Do what there is to do now, or wait for it."""
        waits_from = time.monotonic()
        messages = self._mailbox.take(self._patience_s())
        self._idle_s += time.monotonic() - waits_from
        for message in messages:
            yield from self._on_message(message)
        if self._is_stopping:
            self._mailbox.drop_buffers()
            return
        if self._lease is not None:
            yield from self._read_lease()
        for _ in range(self._buffers_at_once()):
            waiting = None if self._mailbox.is_urgent else self._mailbox.take_buffer()
            if waiting is None:
                break
            self._on_buffer(*waiting)
            if self._outbox:
                yield from self._outbox.leave()
        if self._backlog is not None and not self._mailbox.is_over_limit:
            drained, self._backlog = self._backlog, None
            self._tell(Drained(drained))
        self._by_the_clock()
        if self._mailbox.is_empty:
            self._flush()
        if self._outbox:
            yield from self._outbox.leave()

    def _buffers_at_once(self) -> int:
        """Return how many buffers to process before looking at the clock."""
        return self._mailbox.count

    def _patience_s(self) -> float:
        """Return how long to wait for something to do."""
        until = _LONGEST_WAIT_S
        due_ms = None if self._task is None else self._task.next_due_ms()
        if due_ms is not None:
            until = min(until, (due_ms - clock.now_ms()) / 1000)
        if self._settings.latency_interval_ms and self._is_source:
            until = min(until, self._settings.latency_interval_ms / 1000)
        if self._has_watermarks():
            until = min(until, self._watermark_at - time.monotonic())
        if self._lease is not None and self._lease.is_given:
            until = min(until, self._read_at - time.monotonic())
        return max(0.0, until)

    def _by_the_clock(self) -> None:
        task = self._task
        if task is not None:
            task.tick()
            interval_ms = self._settings.latency_interval_ms
            if interval_ms and self._is_source and clock.now_ms() >= self._marked_ms + interval_ms:
                self._marked_ms = clock.now_ms()
                task.mark_latency()
        if self._has_watermarks() and time.monotonic() >= self._watermark_at:
            assert task is not None
            task.emit_periodic_watermarks()
            self._watermark_at = time.monotonic() + self._settings.watermark_interval_ms / 1000
        if self._is_flush_due():
            self._flush()

    def _is_flush_due(self) -> bool:
        """Whether records have waited for others long enough."""
        return 0 <= self._timeout_s <= time.monotonic() - self._flushed

    def _has_watermarks(self) -> bool:
        return bool(self._settings.watermark_interval_ms) and (
            self._task is not None and not self._task.has_seen_end and self._task.has_periodic_watermarks
        )

    def _beat_regularly(self) -> None:
        beaten, idle_before, blocked_before = time.monotonic(), 0.0, 0.0
        while not self._ended.wait(self._settings.heartbeat_ms / 1000):
            now, idle_s, blocked_s = time.monotonic(), self._idle_s, self._outbox.blocked_s
            spent = (idle_s - idle_before, blocked_s - blocked_before)
            busy_s = max(0.0, now - beaten - sum(spent))
            try:
                self._tell(self._beat(busy_s, *spent))
                self._sampling.send()
            except OSError:
                return  # the thread that listens has noticed, too
            beaten, idle_before, blocked_before = now, idle_s, blocked_s

    def _beat(self, busy_s: float, idle_s: float, blocked_s: float) -> Beat:
        waiting_bytes = self._mailbox.waiting_bytes + self._alignment.held_bytes
        leaving_buffers, leaving_bytes, output_usage = self._outbox.waiting()
        return Beat(
            busy_ms=round(busy_s * 1000),
            idle_ms=round(idle_s * 1000),
            back_pressured_ms=round(blocked_s * 1000),
            waiting_buffers=self._mailbox.count + self._alignment.held_buffers,
            waiting_bytes=waiting_bytes,
            pool_usage=min(1.0, waiting_bytes / self._settings.mailbox_bytes),
            leaving_buffers=leaving_buffers,
            leaving_bytes=leaving_bytes,
            output_usage=output_usage,
        )

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        if self._task is not None:
            self._task.flush()
            for operator_id, shown in self._task.take_shown():
                self._tell(SubtaskOutput(operator_id, pickle.dumps(shown, protocol=5)))

    def _send(self, level: int, partition: int, buffer: bytes) -> None:
        hop = self._layout.next_hop(level, partition, from_level=self._level)
        self._outbox.put(hop, buffer)

    @property
    def _is_source(self) -> bool:
        return self._level == 0

    # -- messages ------------------------------------------------------------------------------------------------

    def _on_message(self, message: Message) -> Iterator[Sent]:
        match message:
            case Feed():
                yield from self._on_feed(message)
            case Lease():
                self._on_lease(message)
            case Recall():
                self._end_lease()
            case TriggerCheckpoint():
                self._on_trigger(message)
            case StopSubtask():
                self._is_stopping = True
            case CheckpointEnded():
                if self._task is not None:
                    self._task.notify_checkpoint(message.epoch, is_complete=message.is_complete)
            case _:
                raise ClusterError(f"a live subtask cannot take a {type(message).__name__} message")
        if self._outbox:
            yield from self._outbox.leave()

    def _on_lease(self, lease: Lease) -> None:
        assert self._task is not None, "one that has ended gets nothing to read"
        self._lease_plan, positions = pickle.loads(lease.plan)
        if self._lease is None:
            self._lease = self._task.open_lease(self._settings.max_records)
        self._lease.take(positions)
        self._read_at = 0.0

    def _read_lease(self) -> Iterator[Sent]:
        """Read what there is of the splits that the subtask has."""
        task, lease = self._task, self._lease
        if task is None or lease is None or not lease.is_given or time.monotonic() < self._read_at:
            return
        before = task.records_read
        for _ in task.read(lease, self._lease_plan):
            if self._is_flush_due():
                self._flush()
            if self._outbox:
                yield from self._outbox.leave()
        if task.has_seen_end or not lease.open_splits:
            self._end_lease()
        elif task.records_read == before:
            self._read_at = time.monotonic() + lease.delay_s(self._settings.idle_poll_s)

    def _end_lease(self) -> None:
        """Tell the driver how far splits were read, and read nothing more of them."""
        task, lease = self._task, self._lease
        if task is None or lease is None or not lease.is_given:
            return
        # How much was read says nothing about how much to plan: that is done here.
        self._tell_progress(task, lease.give_back(), 0, 0.0)

    def _on_feed(self, feed: Feed) -> Iterator[Sent]:
        task = self._task
        assert task is not None, "one that has ended is not fed"
        began = time.monotonic()
        for _ in task.feed(pickle.loads(feed.plan)):
            if self._is_flush_due():
                self._flush()
            if self._outbox:
                yield from self._outbox.leave()
        # What was read leaves first: the next feed takes a moment to come.
        self._flush()
        if self._outbox:
            yield from self._outbox.leave()
        self._tell_progress(task, dict(task.progress), task.records_fed, time.monotonic() - began)

    def _tell_progress(
        self, task: LiveTask, progress: Mapping[str, object], records: int, took_s: float
    ) -> None:
        packed = pickle.dumps(progress, protocol=5)
        self._tell(SubtaskProgress(packed, records, task.has_seen_end, *task.source_time, took_s))

    # -- buffers and barriers --------------------------------------------------------------------------------------

    def _on_buffer(self, header: Header, buffer: bytes) -> None:
        if header.level != self._level:
            self._send(header.level, header.partition, buffer)
        elif not self._alignment.holds(header, buffer):
            self._handle(header, buffer)

    def _handle(self, header: Header, buffer: bytes) -> None:
        epoch = barrier_in(header, buffer)
        if epoch is not None and self._task is not None:
            self._task.barrier_came(header)
        if epoch is None:
            assert self._task is not None, "one that has ended gets nothing"
            rest = self._task.take_buffer(header, buffer, lambda: self._mailbox.is_urgent)
            if rest is not None:
                self._mailbox.put_back([(header, rest)])
        elif epoch >= self._epoch:  # otherwise its snapshot did not wait for it
            self._on_barrier(epoch, header)

    def _on_barrier(self, epoch: int, header: Header) -> None:
        if self._alignment.is_awaiting_first and self._task is not None:
            self._bytes_at_first = self._task.bytes_in
        if self._alignment.arrive(header):
            first_ms = self._alignment.first_ms
            self._end_epoch(epoch, first_ms, alignment_ms=clock.now_ms() - first_ms)
            self._mailbox.put_back(self._alignment.release())
        else:
            self._overtake_if_possible()

    def _on_trigger(self, trigger: TriggerCheckpoint) -> None:
        if trigger.epoch < self._epoch:
            return  # the barrier was faster
        if self._is_source:
            self._end_lease()
            self._end_epoch(trigger.epoch, clock.now_ms(), alignment_ms=0, is_unaligned=trigger.overtakes)
        else:
            self._overtaking = trigger.epoch
            self._overtake_if_possible()

    def _end_epoch(self, epoch: int, first_ms: int, *, alignment_ms: int, is_unaligned: bool = False) -> None:
        """The barrier has come: write state down, pass the barrier on, and begin the next epoch."""
        processed = 0
        if alignment_ms and self._task is not None:
            processed = self._task.bytes_in - self._bytes_at_first
        report, sync_ms = self._pass_barrier(epoch)
        self._tell(
            Acknowledge(
                epoch,
                pickle.dumps(report, protocol=5),
                first_ms,
                alignment_ms,
                sync_ms,
                processed_bytes=processed,
                is_unaligned=is_unaligned,
            )
        )
        self._go_on(report)

    def _pass_barrier(self, epoch: int) -> tuple[SubtaskReport, int]:
        """Write state down, and pass the barrier on; return the report, and how long that took, ms."""
        started = time.monotonic()
        if epoch != self._epoch:
            raise ClusterError(f"a barrier of epoch {epoch} arrived in epoch {self._epoch}")
        task = self._task
        report = SubtaskReport(self._subtask, epoch=(epoch, 0), has_ended=True)
        if task is not None:
            report = self._with_times(task.report())
        for edge_id, level, partition in self._barrier_targets:
            self._send(
                level, partition, pack_barrier(level, partition, edge_id, self._subtask.subtask, epoch)
            )
        self._epoch += 1
        self._overtaking = None
        return report, round((time.monotonic() - started) * 1000)

    def _go_on(self, report: SubtaskReport) -> None:
        task = self._task
        if task is None:
            return
        if report.has_ended:
            self._task = None
            task.close()
        else:
            task.go_on(report)

    # -- barriers that overtake --------------------------------------------------------------------------------------

    def _overtake_if_possible(self) -> None:
        """Take the snapshot before the barrier has come on all channels, if that is asked for."""
        task = self._task
        if task is None or self._overtaking is None or not self._alignment.has_arrived(self._in_order):
            return
        first_ms, gate = self._alignment.first_ms, task.gate_snapshot()
        recorder = Recorder(self._epoch, self._alignment.open_channels)
        report, sync_ms = self._pass_barrier(self._epoch)
        self._snapshot = _Snapshot(report, gate, first_ms, sync_ms)
        self._go_on(report)
        self._mailbox.put_back(self._alignment.release())
        if self._mailbox.record(recorder):
            self._recorded(recorder)

    def _recorded(self, recorder: Recorder) -> None:
        """Everything that the barrier has overtaken is known: write it down, and acknowledge."""
        snapshot, self._snapshot = self._snapshot, None
        assert snapshot is not None, "one snapshot, one recorder"
        report = snapshot.report
        if recorder.buffers:
            report = replace(report, in_flight=self._write_overtaken(recorder, snapshot))
        if self._mailbox.is_over_limit:
            self._backlog = recorder.epoch
        task = self._task
        self._tell(
            Acknowledge(
                recorder.epoch,
                pickle.dumps(report, protocol=5),
                snapshot.first_ms,
                max(0, clock.now_ms() - snapshot.first_ms - snapshot.sync_ms),
                snapshot.sync_ms,
                processed_bytes=0 if task is None else task.bytes_in,
                persisted_bytes=sum(len(buffer) for _, buffer in recorder.buffers),
                is_unaligned=True,
                is_backlogged=self._backlog is not None,
            )
        )

    def _write_overtaken(self, recorder: Recorder, snapshot: _Snapshot) -> InFlight:
        vertex_id, number = self._subtask
        name = f"{vertex_id}-{number}-{recorder.epoch}-{snapshot.report.attempt_id}.overtaken"
        path = join_path(state_files_dir(self._plan.state_dir), name)
        size = write_overtaken(path, snapshot.gate, recorder.buffers)
        file = InFlightFile(number, path, size, recorder.epoch)
        return InFlight((file,), edge_identities(self._code.job, vertex_id))

    def _with_times(self, report: SubtaskReport) -> SubtaskReport:
        """Say how the time since the last barrier was spent."""
        now, idle_s, blocked_s = time.monotonic(), self._idle_s, self._outbox.blocked_s
        ended, idle_before, blocked_before = self._spent
        self._spent = (now, idle_s, blocked_s)
        held_s = blocked_s - blocked_before
        busy_s = max(0.0, now - ended - (idle_s - idle_before) - held_s)
        return replace(report, busy_ns=int(busy_s * 1e9), back_pressured_ns=int(held_s * 1e9))

    def _ended_channels(self) -> frozenset[tuple[int, int]]:
        """Return the channels of a subtask that has ended: barriers still come on them."""
        return self._make_task().channels
