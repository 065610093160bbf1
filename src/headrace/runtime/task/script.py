"""The script of a live task: what its loop had it do between two barriers, so that a replay does the same again.

    FEED plan   READ_ON READ_ON FLUSH READ_ON         a source: slices, and when buffers were sent
    BUFFER edge producer number   TICK   WATERMARKS   any other: which buffer came next, and when timers were due

In epochs the order of the input follows from the plan. Live, it is the order in which buffers of several channels
happen to arrive, so it is noted. A buffer is named by its place on its channel, counted from the last barrier; the
replay of its sender makes it again. Buffers of another epoch, which a barrier has overtaken, are noted as they are.
"""

from __future__ import annotations

import pickle
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from headrace.runtime.epoch.messages import SubtaskPlan
from headrace.runtime.exchange.buffers import Header

_INT_BYTES = 8
_Channel = tuple[int, int]


class ScriptStep(IntEnum):
    """Something that the loop has a task do. The numbers stand in recordings."""

    #: Work through a buffer of this epoch: its edge, producer and number.
    BUFFER = 0
    #: Work through a buffer of another epoch, or what was left of one: which of the copies.
    COPY = 1
    #: Put the buffer away after so many of its records.
    CUT = 2
    #: Let timers fire.
    TICK = 3
    #: Ask watermark generators.
    WATERMARKS = 4
    #: Send what waits for a full buffer.
    FLUSH = 5
    #: Begin to read slices: which of the feeds.
    FEED = 6
    #: Read on, up to the next batch.
    READ_ON = 7
    #: The input has ended for good.
    END = 8
    #: Send a latency marker.
    MARK = 9
    #: A checkpoint has ended: its epoch, and whether it is complete.
    CHECKPOINT_ENDED = 10


#: How many numbers follow each step.
_ARGUMENTS = {
    ScriptStep.BUFFER: 3,
    ScriptStep.COPY: 1,
    ScriptStep.CUT: 1,
    ScriptStep.FEED: 1,
    ScriptStep.CHECKPOINT_ENDED: 2,
}


@dataclass(frozen=True)
class Script:
    """What a live task did in one epoch."""

    steps: Sequence[tuple[ScriptStep, tuple[int, ...]]]
    #: Buffers as they were, for `COPY`.
    copies: Sequence[bytes] = ()
    feeds: Sequence[SubtaskPlan] = ()
    #: The buffers of all `BUFFER` steps, of a task that failed and had kept them; None of others.
    buffers: Sequence[bytes] | None = None
    #: Whether there was more to note than may be kept.
    is_cut_short: bool = False


class ScriptWriter:
    """Notes what a live task does.

    Args:
        most_bytes: How many bytes are kept between two barriers: of notes, and of buffers for the case of a failure.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        #: How many epochs have ended, and how many barriers have come on each channel: equal, or a buffer is of
        #: another epoch than the task.
        self._epochs = -1
        self._barriers: Counter[_Channel] = Counter()
        self._numbers: Counter[_Channel] = Counter()
        #: Buffers that are no longer, or never were, what a channel brought in this run.
        self._odd: dict[int, bytes] = {}
        self._clear()

    def _clear(self) -> None:
        self._steps = array("q")
        self._copies: list[bytes] = []
        self._feeds: list[SubtaskPlan] = []
        self._note_bytes = 0
        self._buffers: list[bytes] | None = []
        self._buffer_bytes = 0
        self.is_cut_short = False

    def begin_epoch(self) -> None:
        """Note what follows for the next epoch."""
        self._epochs += 1
        self._clear()

    def step(self, step: ScriptStep, *arguments: int) -> None:
        self._note_bytes += _INT_BYTES * (1 + len(arguments))
        if self.is_cut_short:
            return
        self._steps.append(step)
        self._steps.extend(arguments)
        if self._note_bytes > self._most_bytes:
            self._clear()
            self._buffers = None
            self.is_cut_short = True

    def feed(self, plan: SubtaskPlan) -> None:
        """Note slices that are read from here on."""
        self._note_bytes += sum(len(pickle.dumps(each, protocol=5)) for each in plan.slices)
        self._feeds.append(plan)
        self.step(ScriptStep.FEED, len(self._feeds) - 1)

    def buffer(self, header: Header, buffer: bytes) -> None:
        """Note a buffer that is worked through from here on."""
        channel = header.edge_id, header.producer
        if self._odd.pop(id(buffer), None) is not None:
            self._copy(buffer)
            return
        number = self._numbers[channel]
        self._numbers[channel] += 1
        if self._barriers[channel] != self._epochs:
            self._copy(buffer)
            return
        self.step(ScriptStep.BUFFER, *channel, number)
        self._buffer_bytes += len(buffer)
        if self._buffer_bytes > self._most_bytes:
            self._buffers = None
        if self._buffers is not None:
            self._buffers.append(buffer)

    def _copy(self, buffer: bytes) -> None:
        self._note_bytes += len(buffer)
        self._copies.append(buffer)
        self.step(ScriptStep.COPY, len(self._copies) - 1)

    def odd(self, buffer: bytes) -> None:
        """Take notice of a buffer that will come, and that no channel has brought in this form."""
        self._odd[id(buffer)] = buffer

    def barrier(self, header: Header) -> None:
        """Note that a channel continues with its next epoch."""
        channel = header.edge_id, header.producer
        self._barriers[channel] += 1
        self._numbers[channel] = 0

    def take(self, *, has_failed: bool = False) -> bytes:
        """Return the script, packed; with the buffers themselves if nobody else will make them again."""
        buffers = self._buffers if has_failed else None
        content = (self._steps.tobytes(), self._copies, self._feeds, buffers, self.is_cut_short)
        return zlib.compress(pickle.dumps(content, protocol=5), 1)


def read_script(packed: bytes) -> Script:
    """Read what `ScriptWriter` has packed."""
    steps, copies, feeds, buffers, is_cut_short = pickle.loads(zlib.decompress(packed))
    numbers = array("q")
    numbers.frombytes(steps)
    return Script(tuple(_steps_of(numbers)), copies, feeds, buffers, is_cut_short)


def _steps_of(numbers: array[int]) -> Iterator[tuple[ScriptStep, tuple[int, ...]]]:
    at = 0
    while at < len(numbers):
        step = ScriptStep(numbers[at])
        end = at + 1 + _ARGUMENTS.get(step, 0)
        yield step, tuple(numbers[at + 1 : end])
        at = end
