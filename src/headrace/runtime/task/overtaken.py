"""Records that a barrier has overtaken: taken down while they arrive, written to a file, and read back.

    channel 0   r r r B        a subtask is told to take its snapshot before r r r are processed: they are
    channel 1   r B r r        recorded, and so is what arrives until B has come on every channel

The subtask processes them all the same, after its snapshot. A run that starts from the checkpoint gets them first.
The file has the format of change files (`state/changes.py`), so whoever checks those checks these.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.errors import DamagedStateError
from headrace.graph.job_graph import JobEdge, JobGraph
from headrace.graph.partitioning import Custom, KeyGroups
from headrace.runtime.epoch.in_flight import InFlight
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.exchange.buffers import Header, barrier_in, encode_items, pack, payload_of
from headrace.runtime.exchange.channel import Channel
from headrace.runtime.exchange.input_gate import InputBatch, InputGate
from headrace.runtime.exchange.routing import Router, build_router
from headrace.state.changes import read_change, write_change

#: Names the only state in the file. Its keys begin with a key group, as everywhere; there is only one.
_STATE = "in-flight"
_KEY = struct.Struct(">HIII")
_GATE_KEY = b"\0\0gate"
#: An edge and one of its producers.
ChannelId = tuple[int, int]


class Recorder:
    """Takes down what comes on the channels of one subtask until a barrier has come on each.

    Args:
        epoch: The epoch that ends with the barrier.
        channels: Those on which the barrier has not come yet.
    """

    def __init__(self, epoch: int, channels: Iterable[ChannelId]) -> None:
        self.epoch = epoch
        self._open = set(channels)
        self.buffers: list[tuple[Header, bytes]] = []

    def take(self, header: Header, buffer: bytes) -> None:
        """Look at what has come; on a channel it comes in order."""
        channel = (header.edge_id, header.producer)
        if channel not in self._open:
            return
        epoch = barrier_in(header, buffer)
        if epoch is None:
            self.buffers.append((header, buffer))
        elif epoch == self.epoch:
            self._open.discard(channel)

    @property
    def is_complete(self) -> bool:
        """Whether the barrier has come on all channels."""
        return not self._open


def write_overtaken(path: str, gate: dict[str, Any], buffers: Sequence[tuple[Header, bytes]]) -> int:
    """Write buffers to a new file, and where the gate stood in front of them; return its size in bytes."""
    keys = [
        _GATE_KEY,
        *(_KEY.pack(0, header.edge_id, header.producer, n) for n, (header, _) in enumerate(buffers)),
    ]
    values: list[bytes | None] = [
        msgspec.msgpack.encode(gate),
        *(bytes(payload_of(buffer)) for _, buffer in buffers),
    ]
    return write_change(path, {_STATE: {0: (keys, values)}})


class _Overtaken(NamedTuple):
    gate: dict[str, Any]
    #: Edge, producer and payload, in the order they came.
    payloads: list[tuple[int, int, bytes]]


def _read(path: str) -> _Overtaken:
    try:
        keys, values = read_change(path)[_STATE][0]
        gate = msgspec.msgpack.decode(values[0] or b"")
        payloads = []
        for key, value in zip(keys[1:], values[1:], strict=True):
            _, edge_id, producer, _ = _KEY.unpack(key)
            payloads.append((edge_id, producer, value or b""))
    except (LookupError, struct.error, msgspec.MsgspecError) as error:
        raise DamagedStateError(f"{path} does not hold records in flight: {error!r}") from error
    return _Overtaken(gate, payloads)


def overtaken_buffers(
    in_flight: InFlight, job: JobGraph, subtask: SubtaskId, channels: Iterable[ChannelId]
) -> list[tuple[Header, bytes]]:
    """Return what a subtask processes before anything else, as buffers on its channels.

    Args:
        in_flight: What the checkpoint has for it.
        job: The job.
        subtask: Which subtask it is.
        channels: Its channels.

    Raises:
        DamagedStateError: If a file cannot be used.
    """
    if in_flight.is_rerouted:
        return _Rerouting(in_flight, job, subtask, sorted(channels)).buffers()
    return [
        _buffer(edge_id, producer, payload)
        for file in in_flight.files
        for edge_id, producer, payload in _read(file.path).payloads
    ]


def _buffer(edge_id: int, producer: int, payload: bytes) -> tuple[Header, bytes]:
    header = Header(0, 0, edge_id, producer, 0, 0)
    return header, pack(header, payload)


class _Rerouting:
    """Finds what is for one subtask among the records that were on their way to all subtasks of its vertex."""

    def __init__(
        self, in_flight: InFlight, job: JobGraph, subtask: SubtaskId, channels: Sequence[ChannelId]
    ) -> None:
        self._in_flight = in_flight
        self._own = subtask.subtask
        self._width = job.vertex(subtask.vertex_id).parallelism
        self._max_parallelism = job.vertex(subtask.vertex_id).max_parallelism
        self._edges = {edge.edge_id: edge for edge in job.inputs_of(subtask.vertex_id)}
        self._channels = channels

    def buffers(self) -> list[tuple[Header, bytes]]:
        found: list[tuple[Header, bytes]] = []
        watermark = self._in_flight.watermark
        for file in self._in_flight.files:
            overtaken = _read(file.path)
            gate = _old_gate(overtaken)
            routes = {number: self._route(number) for number in self._edges}
            for edge_id, producer, payload in overtaken.payloads:
                for element in gate.of_buffer(*_buffer(edge_id, producer, payload)):
                    if isinstance(element, InputBatch):
                        number = self._in_flight.edge_numbers[edge_id]
                        router, channels = routes[number]
                        if router is not None:
                            router.route(element.batch)
                        elif file.subtask % self._width == self._own:
                            channels[self._own].extend(element.batch.values, element.batch.timestamps)
            watermark = min(watermark, gate.watermark)
            found += [
                _buffer(number, self._producer(number), channels[self._own].take_payload())
                for number, (_, channels) in routes.items()
                if not channels[self._own].is_empty
            ]
        return [*found, *self._time(watermark)]

    def _route(self, number: int) -> tuple[Router | None, list[Channel]]:
        """Return who decides whose a record is; nobody does where all subtasks are alike."""
        channels = [Channel() for _ in range(self._width)]
        edge: JobEdge = self._edges[number]
        if not isinstance(edge.partitioner, (KeyGroups, Custom)):
            return None, channels
        router = build_router(edge.partitioner, channels, max_parallelism=self._max_parallelism, seed=(0, 0))
        return router, channels

    def _producer(self, number: int) -> int:
        """Return whose channel restored records take: there is nothing before them on any."""
        return min(producer for edge_id, producer in self._channels if edge_id == number)

    def _time(self, watermark: int) -> Iterable[tuple[Header, bytes]]:
        """Say on every channel how far time had advanced after the records, and whether it has ended."""
        for edge_id, producer in self._channels:
            if edge_id in self._in_flight.ended_edges:
                yield _buffer(edge_id, producer, encode_items([MAX_WATERMARK, None]))
            elif watermark > MIN_WATERMARK:
                yield _buffer(edge_id, producer, encode_items([watermark]))


def _old_gate(overtaken: _Overtaken) -> InputGate:
    """Return the gate that the records stood in front of."""
    channels = [
        (int(edge), int(producer))
        for edge, _, producer in (name.partition("/") for name in overtaken.gate)
        if producer
    ]
    gate = InputGate(channels, dict.fromkeys((edge for edge, _ in channels), 0))
    gate.restore(overtaken.gate)
    return gate
