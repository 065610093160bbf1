"""ResultPartition: the output of one subtask on one edge, cut into buffers for its consumers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from headrace.elements import Batch, Event, LatencyMarker, part_of
from headrace.errors import JobExecutionError, KeyTypeError
from headrace.graph.job_graph import JobEdge
from headrace.graph.partitioning import Broadcast
from headrace.runtime.exchange.buffers import Header, ItemEncoder, pack
from headrace.runtime.exchange.channel import Channel
from headrace.runtime.exchange.routing import build_router

#: Takes (level, partition, buffer).
SendBuffer = Callable[[int, int, bytes], None]


class BufferSize:
    """When a buffer of an edge is full: with so many records, or with about so many bytes.

    How many records so many bytes have is learned from the buffer before.

    Args:
        most_records: Of any buffer.
        most_bytes: None if bytes are not limited.
    """

    def __init__(self, most_records: int, most_bytes: int | None = None) -> None:
        self._most_records = most_records
        self._most_bytes = most_bytes
        #: How many records the next buffer has.
        self.records = most_records

    @property
    def is_in_bytes(self) -> bool:
        return self._most_bytes is not None

    def sent(self, records: int, size: int) -> None:
        """Learn from a buffer."""
        if self._most_bytes is not None and records:
            self.records = max(1, min(self._most_records, records * self._most_bytes // size))


class ResultPartition:
    """Routes a subtask's records to its consumers' channels and sends buffers when they are full."""

    def __init__(
        self,
        edge: JobEdge,
        *,
        producer: int,
        attempt: int,
        epoch: int,
        consumers: list[tuple[int, int]],
        max_parallelism: int,
        size: BufferSize,
        source_name: str,
        send: SendBuffer,
    ) -> None:
        self._edge = edge
        self._producer = producer
        self._epoch = epoch
        self._attempt = attempt
        self._consumers = consumers
        self._size = size
        self._source_name = source_name
        self._send = send
        #: A broadcast is serialized once, so it has one channel for all.
        self._is_broadcast = isinstance(edge.partitioner, Broadcast)
        self._channels = [Channel() for _ in (consumers[:1] if self._is_broadcast else consumers)]
        self._sequences = [0] * len(self._channels)
        self._encoder = ItemEncoder()
        self._router = build_router(
            edge.partitioner, self._channels, max_parallelism=max_parallelism, seed=(producer, epoch)
        )
        self.bytes_out = 0

    def emit(self, batch: Batch) -> None:
        """Take records; full channels are sent."""
        most = self._size.records * len(self._channels)
        # In epochs a batch stays whole: a consumer may emit a watermark after each buffer.
        if not self._size.is_in_bytes or len(batch) <= 2 * most or type(batch) is not Batch:
            self._emit(batch)
            return
        for start in range(0, len(batch), most):
            self._emit(part_of(batch, start, start + most))

    def _emit(self, batch: Batch) -> None:
        try:
            self._router.route(batch)
        except KeyTypeError as error:
            raise KeyTypeError(
                f"after operator '{self._source_name}': {error.message}", hint=error.hint
            ) from error
        limit = self._size.records
        for index, channel in enumerate(self._channels):
            if channel.waiting >= limit:
                self.flush(index)

    def emit_event(self, event: Event) -> None:
        """Put an event on every channel; a latency marker on one, or a job would be full of them."""
        channels = self._channels
        if isinstance(event, LatencyMarker):
            # As Flink does by chance; here another one in every epoch, and the same when it runs again.
            channels = [channels[(self._epoch + self._producer) % len(channels)]]
        for channel in channels:
            channel.add_event(event)

    def finish_epoch(self) -> None:
        """The barrier: send everything that waits."""
        for index, channel in enumerate(self._channels):
            if not channel.is_empty:
                self.flush(index)

    @property
    def records_out(self) -> int:
        """Records sent so far; a broadcast record counts once per consumer, as it does in Flink."""
        total = sum(channel.records for channel in self._channels)
        return total * len(self._consumers) if self._is_broadcast else total

    @property
    def edge_id(self) -> int:
        """The edge that it sends along."""
        return self._edge.edge_id

    def taken(self) -> list[tuple[Sequence[tuple[int, int]], int]]:
        """Return, for each channel, who reads it (level and partition), and how many records it has taken so far."""
        readers = [self._consumers] if self._is_broadcast else [[each] for each in self._consumers]
        return [(who, channel.taken) for who, channel in zip(readers, self._channels, strict=True)]

    def hold(self) -> None:
        """Send nothing before the barrier, but for what `flush` is called for."""
        self._size = BufferSize(sys.maxsize)

    def flush(self, index: int) -> None:
        """Send what waits on a channel."""
        records = self._channels[index].waiting
        try:
            payload = self._channels[index].take_payload(self._encoder.encode)
        except Exception as error:  # a record's own __reduce__ may raise anything
            raise JobExecutionError(
                f"after operator '{self._source_name}': a record cannot be sent to the next task: "
                f"{type(error).__name__}: {error}",
                operator=self._source_name,
                hint="records sent between tasks must be picklable: use plain data, or classes defined at module level",
            ) from error
        targets = self._consumers if self._is_broadcast else (self._consumers[index],)
        for level, partition in targets:
            header = Header(
                level, partition, self._edge.edge_id, self._producer, self._attempt, self._sequences[index]
            )
            self._send(level, partition, pack(header, payload))
            self.bytes_out += len(payload)
        self._sequences[index] += 1
        self._size.sent(records, len(payload))
