"""What a replayed epoch did, as a graph: steps, the records that they took, and the state that they read and wrote.

    step      a subtask takes one record, or one of its timers or windows fires
    access    the step reads or writes an entry of keyed state: one key, in one state
    emission  the step emits records; they depend on its record and on what it had read by then

A record of the next subtask knows its emission, an access knows the step that wrote the entry before. So everything
that a row depends on is reached by following these references; for what is older than the epoch, see `history.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from headrace.errors import shorten
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.task.sink_digest import canonical_bytes
from headrace.state.isolation import is_immutable

#: What makes a step happen.
Kind = Literal["input", "record", "timer", "window", "end"]
#: Values in answers are cut to this many characters.
SHOWN = 200


class Entry(NamedTuple):
    """One entry of keyed state."""

    operator_id: str
    state: str
    #: Its storage key; that of all chunks for a list.
    storage_key: bytes


@dataclass(eq=False)
class Access:
    """What a step did with an entry."""

    entry: Entry
    key: Any
    #: What tells entries of a key apart: a window, or the key in a map. None if nothing does.
    part: Any
    #: The value before the step, as text; None if there was none.
    before: str | None
    #: The step that had written it last; None if it is from before the epoch, or never was.
    origin: Step | None
    after: str | None = None
    is_read: bool = False
    is_written: bool = False
    #: Whether the entry contains what it contained before, as a list that is appended to.
    keeps: bool = False
    #: Whether it only holds records that wait for others to meet, as those of a join: each is written as it came.
    is_buffer: bool = False


@dataclass(eq=False)
class Step:
    """What a subtask did with one record, or when time had passed."""

    epoch: int
    subtask: SubtaskId
    kind: Kind
    #: Its place among all steps of the epoch.
    number: int
    #: The record, or the timer; as text.
    value: str = ""
    timestamp: int | None = None
    #: The window that fires.
    part: Any = None
    #: What sent the record; None at sources.
    cause: Emission | None = None
    #: For records of sources: the how many-th of the subtask in the epoch, from 1.
    input_number: int = 0
    accesses: dict[Entry, Access] = field(default_factory=dict)

    def reads(self) -> list[Access]:
        """Return what a record depends on that is emitted now."""
        buffers = [each for each in self.accesses.values() if each.is_buffer]
        # Of a join, the record that was met last: pairs are emitted one by one.
        met = [each for each in buffers if each.is_read and not each.is_written][-1:]
        return [
            *(each for each in self.accesses.values() if each.is_read and not each.is_buffer),
            *met,
        ]

    def reads_for(self, written: Access) -> list[Access]:
        """Return what the new content of an entry depends on."""
        own = [written] if written.is_read or written.keeps else []
        if written.is_buffer:
            return own
        others = [
            each
            for each in self.accesses.values()
            if each.is_read and not each.is_buffer and each is not written
        ]
        return own + others


@dataclass(eq=False)
class Emission:
    """Records that a step emitted together."""

    step: Step
    reads: list[Access]
    #: Whether it may depend on less: results of asynchronous functions arrive when others are processed.
    others: list[Step] = field(default_factory=list)


class SinkRow(NamedTuple):
    """A record that reached a sink."""

    operator_id: str
    subtask: SubtaskId
    value: Any
    timestamp: int | None
    emission: Emission


@dataclass
class EpochLineage:
    """All steps of a replayed epoch."""

    epoch: int
    steps: list[Step] = field(default_factory=list)
    rows: list[SinkRow] = field(default_factory=list)
    #: Operators whose functions keep values in their own fields or in operator state, which are not followed.
    with_fields: set[str] = field(default_factory=set)
    #: The step that wrote each entry last.
    writers: dict[Entry, Step] = field(default_factory=dict)


class TaskLineage:
    """Notes what one subtask does.

    Args:
        epoch: Takes the steps.
        subtask: Which one.
        is_asynchronous: Whether results may belong to any record that the subtask has got so far.
    """

    def __init__(self, epoch: EpochLineage, subtask: SubtaskId, *, is_asynchronous: bool = False) -> None:
        self._epoch = epoch
        self._subtask = subtask
        self._all: list[Step] | None = [] if is_asynchronous else None
        #: Values that the current step was given and may change in place: the value, and its bytes.
        self._lent: list[tuple[Access, Any, bytes]] = []
        self._inputs = 0
        self.step = self.begin("end", "")

    def begin(
        self,
        kind: Kind,
        value: str,
        timestamp: int | None = None,
        cause: Emission | None = None,
    ) -> Step:
        """Begin a step; the one before is over."""
        self.settle()
        steps = self._epoch.steps
        step = Step(self._epoch.epoch, self._subtask, kind, len(steps), value, timestamp, cause=cause)
        if kind == "input":
            self._inputs += 1
            step.input_number = self._inputs
        steps.append(step)
        if self._all is not None:
            self._all.append(step)
        self.step = step
        return step

    def emission(self) -> Emission:
        """Return what a record depends on that is emitted now."""
        others = [] if self._all is None else [each for each in self._all if each is not self.step]
        return Emission(self.step, self.step.reads(), others)

    def read(self, entry: Entry, key: Any, part: Any, value: Any, *, is_buffer: bool = False) -> None:
        """Note that the step has read an entry."""
        access = self._access(entry, key, part, value, is_buffer=is_buffer)
        access.is_read = True
        if value is not None and not is_immutable(value):
            self._lent.append((access, value, canonical_bytes(value)))

    def write(
        self,
        entry: Entry,
        key: Any,
        part: Any,
        before: Any,
        after: Any,
        *,
        keeps: bool = False,
        is_buffer: bool = False,
    ) -> None:
        """Note that the step has written an entry; None removes it."""
        access = self._access(entry, key, part, before, is_buffer=is_buffer)
        access.keeps = access.keeps or keeps
        self._written(access, None if after is None else shorten(after, SHOWN))

    def settle(self) -> None:
        """Find what the step has changed in place."""
        for access, value, bytes_before in self._lent:
            if not access.is_written and canonical_bytes(value) != bytes_before:
                self._written(access, shorten(value, SHOWN))
        self._lent.clear()

    def _written(self, access: Access, after: str | None) -> None:
        access.is_written = True
        access.after = after
        self._epoch.writers[access.entry] = self.step

    def _access(self, entry: Entry, key: Any, part: Any, value: Any, *, is_buffer: bool) -> Access:
        access = self.step.accesses.get(entry)
        if access is None:
            origin = self._epoch.writers.get(entry)
            if origin is not None and (value is None or not is_immutable(value)):
                before = origin.accesses[entry].after  # the value itself may have been changed in place since
            else:
                before = None if value is None else shorten(value, SHOWN)
            access = Access(entry, key, part, before, origin, is_buffer=is_buffer)
            self.step.accesses[entry] = access
        return access
