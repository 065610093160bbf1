"""InputGate: the input of one subtask, its channels merged into one stream of elements.

Buffers are taken in the order of their sequence numbers, channels in turn, those of edges that are read first
(`graph/input_order.py`) before all others; so an epoch that is run again sees the same order. The gate's watermark is
the lowest of its active channels and never goes back; a channel that is idle or has ended does not hold it.

    channel 0   r r W5 r r W9 |
    channel 1   r W3 r r W7 r |        gate   ... W3 ... W5 ... W7
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.elements import MIN_WATERMARK, Batch, EndOfInput, LatencyMarker, StreamStatus, Watermark
from headrace.runtime.exchange.buffers import Header, decode, payload_of


@dataclass(slots=True)
class ChannelState:
    """Where an incoming channel stands."""

    watermark: int = MIN_WATERMARK
    is_active: bool = True
    has_ended: bool = False

    @property
    def is_live(self) -> bool:
        """Whether the channel can hold the watermark back."""
        return self.is_active and not self.has_ended


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Records, and which input of the operator they are for."""

    input_index: int
    batch: Batch


@dataclass(frozen=True, slots=True)
class InputIdle:
    """All channels have become idle, or one has become active again."""

    is_idle: bool


GateElement = InputBatch | Watermark | InputIdle | LatencyMarker | EndOfInput


class InputGate:
    """Merges the channels of all edges into a vertex."""

    def __init__(
        self,
        channels: Sequence[tuple[int, int]],
        input_of_edge: dict[int, int],
        early_edges: frozenset[int] = frozenset(),
    ) -> None:
        """Take the channels as (edge, producer), which input each edge feeds, and which edges are read first."""
        self._input_of_edge = input_of_edge
        self._early_edges = early_edges
        self._states = {channel: ChannelState() for channel in channels}
        self.watermark = MIN_WATERMARK
        self._is_idle = False

    @property
    def channels(self) -> frozenset[tuple[int, int]]:
        """The channels, as (edge, producer)."""
        return frozenset(self._states)

    def restore(self, snapshot: dict[str, Any] | None) -> None:
        """Go back to where the gate stood when an epoch ended."""
        stored = snapshot or {}
        self.watermark = stored.get("watermark", MIN_WATERMARK)
        for channel, state in self._states.items():
            # A channel that is not named is one that was not there before a restart.
            state.watermark, state.is_active, state.has_ended = stored.get(
                f"{channel[0]}/{channel[1]}", (self.watermark, True, False)
            )
        self._is_idle = stored.get("idle", False)

    def snapshot(self) -> dict[str, Any]:
        """Return where the gate stands."""
        stored: dict[str, Any] = {
            f"{edge}/{producer}": (state.watermark, state.is_active, state.has_ended)
            for (edge, producer), state in self._states.items()
        }
        stored["watermark"] = self.watermark
        stored["idle"] = self._is_idle
        return stored

    @property
    def has_ended(self) -> bool:
        """Whether every channel has ended for good."""
        return all(state.has_ended for state in self._states.values())

    def elements(self, buffers: Iterable[tuple[Header, bytes]]) -> Iterator[GateElement]:
        """Yield what the buffers hold, merged."""
        ordered = deque(self.in_order(buffers))
        while ordered:
            # Let go of each buffer as it is consumed: an epoch may be large.
            header, buffer = ordered.popleft()
            yield from self.of_buffer(header, buffer)

    def in_order(self, buffers: Iterable[tuple[Header, bytes]]) -> list[tuple[Header, bytes]]:
        """Return buffers in the order in which they are read."""
        return sorted(buffers, key=lambda item: self._place(item[0]))

    def _place(self, header: Header) -> tuple[bool, int, int, int]:
        is_late = header.edge_id not in self._early_edges
        return is_late, header.sequence, header.edge_id, header.producer

    def of_buffer(self, header: Header, buffer: bytes) -> Iterator[GateElement]:
        """Yield what one buffer holds; the buffers of a channel must come in order."""
        state = self._states[header.edge_id, header.producer]
        input_index = self._input_of_edge[header.edge_id]
        for element in decode(payload_of(buffer)):
            if isinstance(element, Batch):
                yield InputBatch(input_index, element)
                continue
            if isinstance(element, LatencyMarker):
                yield element
                continue
            if isinstance(element, Watermark):
                state.watermark = max(state.watermark, element.timestamp)
                state.is_active = True
            elif isinstance(element, StreamStatus):
                state.is_active = element.active
            else:
                state.has_ended = True
            yield from self._after_event(state)

    def _after_event(self, changed: ChannelState) -> Iterator[GateElement]:
        watermark = self._combined(changed)
        if watermark is not None and watermark > self.watermark:
            self.watermark = watermark
            yield Watermark(watermark)
        is_idle = not self.has_ended and not any(state.is_live for state in self._states.values())
        if is_idle != self._is_idle:
            self._is_idle = is_idle
            yield InputIdle(is_idle)
        if self.has_ended:
            yield EndOfInput()

    def _combined(self, changed: ChannelState) -> int | None:
        """Return the watermark of all channels together, by the rules of Flink's StatusWatermarkValve."""
        if self.has_ended:
            return min(state.watermark for state in self._states.values())
        # A channel that comes back from idleness counts again when it has caught up.
        live = [s.watermark for s in self._states.values() if s.is_live and s.watermark >= self.watermark]
        if live:
            return min(live)
        # The last channel to become idle held the others back: nobody does any more.
        is_all_idle = not any(state.is_live for state in self._states.values())
        if is_all_idle and changed.watermark == self.watermark:
            return max(state.watermark for state in self._states.values() if not state.has_ended)
        return None
