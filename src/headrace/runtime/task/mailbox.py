"""Mailbox: what a live subtask has to attend to, gathered by other threads and processed by one.

Spark's input  --reader thread--> [ buffers, up to so many bytes ] --+
                                                                     +--> the subtask's only loop
control channel --its thread----> [ messages                     ] --+

Buffers that are only passed on to a deeper level come first: they have nothing to wait for here. For an unaligned
checkpoint the reader reads ahead, over the limit, until the barrier has come on all channels: what it overtakes may be
in buffers of Spark's that nobody else can look into.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from headrace.runtime.control.messages import Message, TriggerCheckpoint
from headrace.runtime.exchange.buffers import Header, barrier_in, read_header
from headrace.runtime.task.overtaken import Recorder

#: A channel whose barriers pass by here: edge, producer, and level and partition of the consumer.
BarrierPath = tuple[int, int, int, int]
Waiting = tuple[Header, bytes]


class Mailbox:
    """Buffers and messages for one subtask.

    Args:
        most_bytes: Buffers that may wait; whoever brings more waits, and with it the sender before.
        level: The subtask's level; buffers for others are passed on.
        paths: Where barriers come by.
        on_recorded: Called, by the thread that reads, when everything that a barrier has overtaken has come.
    """

    def __init__(
        self,
        most_bytes: int,
        level: int = 0,
        paths: Iterable[BarrierPath] = (),
        on_recorded: Callable[[Recorder], None] = lambda recorder: None,
    ) -> None:
        self._most_bytes = most_bytes
        self._level = level
        self._on_recorded = on_recorded
        #: The last barrier that came by, as its epoch.
        self._barriers = dict.fromkeys(paths, -1)
        #: Where the barrier is still to come for which the reader reads ahead.
        self._awaited: set[BarrierPath] = set()
        self._recorder: Recorder | None = None
        self._buffers: deque[Waiting] = deque()
        self._passing: deque[Waiting] = deque()
        self._waiting_bytes = 0
        self._messages: list[Message] = []
        self._is_urgent = False
        self._has_input_ended = False
        self._is_disconnected = False
        #: Whether one of these has happened since the last check.
        self._has_news = False
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._filled = threading.Condition(self._lock)
        self._has_room = threading.Condition(self._lock)

    # -- those who bring something ------------------------------------------------------------------------------

    def put_buffer(self, buffer: bytes) -> None:
        """Bring a buffer; waits while there are too many."""
        header = read_header(buffer)
        recorded: Recorder | None = None
        with self._lock:
            while self._waiting_bytes >= self._most_bytes and not self._awaited:
                self._has_room.wait()
            self._append(header, buffer)
            epoch = barrier_in(header, buffer)
            if epoch is not None:
                path = (header.edge_id, header.producer, header.level, header.partition)
                self._barriers[path] = epoch
                self._awaited.discard(path)
            if self._recorder is not None and header.level == self._level:
                self._recorder.take(header, buffer)
                if self._recorder.is_complete:
                    recorded, self._recorder = self._recorder, None
            self._filled.notify()
        if recorded is not None:
            self._on_recorded(recorded)

    def restore(self, buffers: Iterable[Waiting]) -> None:
        """Bring what comes before anything else, without a limit."""
        with self._lock:
            for header, buffer in buffers:
                self._append(header._replace(level=self._level), buffer)

    def _append(self, header: Header, buffer: bytes) -> None:
        (self._buffers if header.level == self._level else self._passing).append((header, buffer))
        self._waiting_bytes += len(buffer)

    def put_message(self, message: Message) -> None:
        """Bring a message of the driver; never waits."""
        with self._lock:
            self._messages.append(message)
            if isinstance(message, TriggerCheckpoint) and message.overtakes:
                self._is_urgent = True
                self._awaited = {path for path, epoch in self._barriers.items() if epoch < message.epoch}
                self._has_room.notify()
            self._filled.notify()

    def end_input(self, error: BaseException | None = None) -> None:
        """There will be no more buffers; with an error, because they cannot be read."""
        with self._lock:
            self._has_input_ended = True
            self._error = error
            self._has_news = True
            self._filled.notify()

    def disconnect(self) -> None:
        """The driver is gone."""
        with self._lock:
            self._is_disconnected = self._has_news = True
            self._filled.notify()

    # -- the loop -----------------------------------------------------------------------------------------------

    def take(self, timeout_s: float | None) -> Sequence[Message]:
        """Return the messages that have come, waiting until there is anything to do or the time is over.

        Raises:
            BaseException: What the input could not be read for.
        """
        with self._lock:
            if not (self._buffers or self._passing or self._messages or self._has_news):
                self._filled.wait(timeout_s)
            self._has_news = self._is_urgent = False
            if self._error is not None:
                raise self._error
            messages, self._messages = self._messages, []
            return messages

    def take_buffer(self) -> Waiting | None:
        """Return the next buffer, if there is one."""
        with self._lock:
            waiting = self._passing or self._buffers
            if not waiting:
                return None
            header, buffer = waiting.popleft()
            self._waiting_bytes -= len(buffer)
            if self._waiting_bytes < self._most_bytes:
                self._has_room.notify()
            return header, buffer

    def put_back(self, buffers: Sequence[Waiting]) -> None:
        """Have buffers come next, in their order."""
        with self._lock:
            self._buffers.extendleft(reversed(buffers))
            self._waiting_bytes += sum(len(buffer) for _, buffer in buffers)

    def drop_buffers(self) -> None:
        """Let go of what waits: it belongs to a span that nobody asks for any more."""
        with self._lock:
            self._buffers.clear()
            self._passing.clear()
            self._waiting_bytes = 0
            self._has_room.notify()

    def record(self, recorder: Recorder) -> bool:
        """Take down what waits, and what comes until the barrier; return whether that has come everywhere."""
        with self._lock:
            for header, buffer in self._buffers:
                recorder.take(header, buffer)
            if recorder.is_complete:
                return True
            self._recorder = recorder
            return False

    @property
    def count(self) -> int:
        """How many buffers wait."""
        return len(self._buffers) + len(self._passing)

    @property
    def is_empty(self) -> bool:
        return not (self._buffers or self._passing or self._messages)

    @property
    def is_urgent(self) -> bool:
        """Whether a message should not wait until a buffer is processed."""
        return self._is_urgent

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the buffers that wait."""
        return self._waiting_bytes

    @property
    def is_over_limit(self) -> bool:
        """Whether more waits than is read without a reason."""
        return self._waiting_bytes >= self._most_bytes

    @property
    def reads_ahead(self) -> bool:
        """Whether the limit does not count at the moment."""
        return bool(self._awaited)

    @property
    def has_input_ended(self) -> bool:
        """Whether all buffers there will ever be were taken or wait."""
        return self._has_input_ended

    @property
    def is_disconnected(self) -> bool:
        """Whether the driver is gone."""
        return self._is_disconnected
