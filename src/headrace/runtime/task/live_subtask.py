"""LiveSubtask: the loop of a subtask that lasts as long as its run.

    mailbox.take() -> messages: feeds, triggers, stop
                   -> buffers:  barriers; for this level: work; for deeper levels: passed on
                   -> timers that are due
                   -> nothing more to do, or the buffer timeout is over: send what waits

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

from headrace.errors import ClusterError
from headrace.operators.leased_splits import LeasedSplits
from headrace.runtime.control.connection import Connection
from headrace.runtime.control.messages import (
    VERSION,
    Acknowledge,
    Beat,
    CheckpointEnded,
    Feed,
    Goodbye,
    Hello,
    Lease,
    Message,
    Recall,
    Running,
    StopSubtask,
    SubtaskOutput,
    SubtaskProgress,
    TriggerCheckpoint,
)
from headrace.runtime.epoch.layout import Layout, consumers_of
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.runtime.exchange.buffers import Header, barrier_in, pack_barrier, read_header
from headrace.runtime.task.alignment import Alignment
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.live_task import LiveTask
from headrace.runtime.task.mailbox import Mailbox
from headrace.util import clock

#: The loop looks around at least this often.
_LONGEST_WAIT_S = 1.0
#: A partition of the next level, and a buffer for it.
Sent = tuple[int, bytes]


@dataclass(frozen=True)
class LiveSettings:
    """What live subtasks are told besides the job."""

    #: Where the driver listens, and what it wants to hear.
    address: tuple[str, int]
    secret: bytes
    #: How long a record may wait for others that fill its buffer; 0 for not at all.
    buffer_timeout_ms: int = 100
    #: Bytes that wait in a subtask before its input is read on.
    mailbox_bytes: int = 1 << 20
    #: From one sign of life to the next.
    heartbeat_ms: int = 1_000
    #: From one latency marker to the next; 0 for none.
    latency_interval_ms: int = 0
    #: Whether a channel waits for the barriers of the others.
    is_exactly_once: bool = True
    #: From one periodic watermark to the next; 0 for none.
    watermark_interval_ms: int = 200
    #: How soon a source that had nothing is asked again.
    idle_poll_s: float = 0.002
    #: The most records that a source reads at a time, if that is limited.
    max_records: int | None = None


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
        self._mailbox = Mailbox(settings.mailbox_bytes)
        self._outbox: list[Sent] = []
        self._epoch = plan.epoch
        #: None if the subtask had ended before the run began, or has ended since.
        self._task: LiveTask | None = None
        if not plan.subtasks[self._subtask].has_ended:
            self._task = self._make_task()
        channels = self._task.channels if self._task is not None else self._ended_channels()
        self._alignment = Alignment(channels, blocks=settings.is_exactly_once)
        self._barrier_targets = self._find_targets()
        self._is_stopping = False
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
        #: How long the loop has waited for something to do, and for others to take what it sends, s.
        self._idle_s = self._blocked_s = 0.0
        #: When the last barrier passed, and these two then.
        self._spent = (time.monotonic(), 0.0, 0.0)
        self.connection: Connection | None = None

    def _make_task(self) -> LiveTask:
        code = self._code
        return LiveTask(code.job, self._layout, self._subtask, code.lineage, code.settings)

    # -- life ----------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Introduce the subtask to the driver."""
        self.connection = Connection.open(self._settings.address, self._settings.secret)
        self._tell(Hello(VERSION, *self._subtask, host=socket.gethostname(), pid=os.getpid()))
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
        finally:
            self._end()
        self._tell(Goodbye())

    def _end(self) -> None:
        self._ended.set()
        task, self._task = self._task, None
        if task is not None:
            task.close()
        if self._lease is not None:
            self._lease.close()

    def _begin(self) -> None:
        if self._task is not None:
            self._task.begin(self._plan, self._spark_attempt, self._send)
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
        messages, buffers = self._mailbox.take(self._patience_s())
        self._idle_s += time.monotonic() - waits_from
        for message in messages:
            yield from self._on_message(message)
        if self._is_stopping:
            return
        if self._lease is not None:
            yield from self._read_lease()
        for buffer in buffers:
            self._on_buffer(buffer)
            if self._outbox:
                yield from self._leaving()
        self._by_the_clock()
        if self._mailbox.is_empty:
            self._flush()
        if self._outbox:
            yield from self._leaving()

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
        if time.monotonic() - self._flushed >= self._settings.buffer_timeout_ms / 1000:
            self._flush()

    def _has_watermarks(self) -> bool:
        return bool(self._settings.watermark_interval_ms) and (
            self._task is not None and not self._task.has_seen_end and self._task.has_periodic_watermarks
        )

    def _beat_regularly(self) -> None:
        beaten, idle_before, blocked_before = time.monotonic(), 0.0, 0.0
        while not self._ended.wait(self._settings.heartbeat_ms / 1000):
            now, idle_s, blocked_s = time.monotonic(), self._idle_s, self._blocked_s
            spent = (idle_s - idle_before, blocked_s - blocked_before)
            busy_s = max(0.0, now - beaten - sum(spent))
            try:
                self._tell(
                    Beat(
                        busy_ms=round(busy_s * 1000),
                        idle_ms=round(spent[0] * 1000),
                        back_pressured_ms=round(spent[1] * 1000),
                        waiting_bytes=self._mailbox.waiting_bytes + self._alignment.held_bytes,
                    )
                )
            except OSError:
                return  # the thread that listens has noticed, too
            beaten, idle_before, blocked_before = now, idle_s, blocked_s

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        if self._task is not None:
            self._task.flush()
            for operator_id, shown in self._task.take_shown():
                self._tell(SubtaskOutput(operator_id, pickle.dumps(shown, protocol=5)))

    def _leaving(self) -> Iterator[Sent]:
        """Yield what is to go out; the time that takes is the time that others cannot follow."""
        outbox, self._outbox = self._outbox, []
        started = time.monotonic()
        yield from outbox
        self._blocked_s += time.monotonic() - started

    def _send(self, level: int, partition: int, buffer: bytes) -> None:
        hop = self._layout.next_hop(level, partition, from_level=self._level)
        self._outbox.append((hop, buffer))

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
                self._end_lease()
                self._end_epoch(message.epoch, clock.now_ms(), alignment_ms=0)
            case StopSubtask():
                self._is_stopping = True
            case CheckpointEnded():
                if self._task is not None:
                    self._task.notify_checkpoint(message.epoch, is_complete=message.is_complete)
            case _:
                raise ClusterError(f"a live subtask cannot take a {type(message).__name__} message")
        if self._outbox:
            yield from self._leaving()

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
            if time.monotonic() - self._flushed >= self._settings.buffer_timeout_ms / 1000:
                self._flush()
            if self._outbox:
                yield from self._leaving()
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
        self._tell_progress(task, lease.give_back(), 0)

    def _on_feed(self, feed: Feed) -> Iterator[Sent]:
        task = self._task
        assert task is not None, "one that has ended is not fed"
        timeout_s = self._settings.buffer_timeout_ms / 1000
        for _ in task.feed(pickle.loads(feed.plan)):
            if time.monotonic() - self._flushed >= timeout_s:
                self._flush()
            if self._outbox:
                yield from self._leaving()
        # What was read leaves first: the next feed takes a moment to come.
        self._flush()
        if self._outbox:
            yield from self._leaving()
        self._tell_progress(task, dict(task.progress), task.records_fed)

    def _tell_progress(self, task: LiveTask, progress: Mapping[str, object], records: int) -> None:
        watermark, is_idle = task.source_time
        self._tell(
            SubtaskProgress(
                progress=pickle.dumps(progress, protocol=5),
                records=records,
                has_ended=task.has_seen_end,
                watermark=watermark,
                is_idle=is_idle,
            )
        )

    # -- buffers and barriers --------------------------------------------------------------------------------------

    def _on_buffer(self, buffer: bytes) -> None:
        header = read_header(buffer)
        if header.level != self._level:
            self._send(header.level, header.partition, buffer)
        elif not self._alignment.holds(header, buffer):
            self._handle(header, buffer)

    def _handle(self, header: Header, buffer: bytes) -> None:
        epoch = barrier_in(header, buffer)
        if epoch is None:
            assert self._task is not None, "one that has ended gets nothing"
            self._task.take_buffer(header, buffer)
        elif self._alignment.arrive(header):
            first_ms = self._alignment.first_ms
            self._end_epoch(epoch, first_ms, alignment_ms=clock.now_ms() - first_ms)
            for held_header, held in self._alignment.release():
                if not self._alignment.holds(held_header, held):
                    self._handle(held_header, held)

    def _end_epoch(self, epoch: int, first_ms: int, *, alignment_ms: int) -> None:
        """The barrier has come: write state down, pass the barrier on, and begin the next epoch."""
        started = time.monotonic()
        if epoch != self._epoch:
            raise ClusterError(f"a barrier of epoch {epoch} has come in epoch {self._epoch}")
        task = self._task
        report = SubtaskReport(self._subtask, epoch=(epoch, 0), has_ended=True)
        if task is not None:
            report = self._with_times(task.report())
        for edge_id, level, partition in self._barrier_targets:
            self._send(
                level, partition, pack_barrier(level, partition, edge_id, self._subtask.subtask, epoch)
            )
        self._epoch += 1
        sync_ms = round((time.monotonic() - started) * 1000)
        self._tell(Acknowledge(epoch, pickle.dumps(report, protocol=5), first_ms, alignment_ms, sync_ms))
        if task is not None:
            if report.has_ended:
                self._task = None
                task.close()
            else:
                task.go_on(report)

    def _with_times(self, report: SubtaskReport) -> SubtaskReport:
        """Say how the time since the last barrier was spent."""
        now, idle_s, blocked_s = time.monotonic(), self._idle_s, self._blocked_s
        ended, idle_before, blocked_before = self._spent
        self._spent = (now, idle_s, blocked_s)
        held_s = blocked_s - blocked_before
        busy_s = max(0.0, now - ended - (idle_s - idle_before) - held_s)
        return replace(report, busy_ns=int(busy_s * 1e9), back_pressured_ns=int(held_s * 1e9))

    def _find_targets(self) -> list[tuple[int, int, int]]:
        """Return where barriers go: edge, level and partition of every channel."""
        job, own = self._code.job, self._subtask
        width = job.vertex(own.vertex_id).parallelism
        targets: list[tuple[int, int, int]] = []
        for edge in job.outputs_of(own.vertex_id):
            consumers = job.vertex(edge.target_vertex).parallelism
            for index in consumers_of(edge, own.subtask, width, consumers):
                place = self._layout.place(SubtaskId(edge.target_vertex, index))
                targets.append((edge.edge_id, *place))
        return targets

    def _ended_channels(self) -> frozenset[tuple[int, int]]:
        """Return the channels of a subtask that has ended: barriers still come on them."""
        return self._make_task().channels
