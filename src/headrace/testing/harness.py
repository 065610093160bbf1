"""Runs one operator alone: you pass in records, watermarks and time, and look at its output.

    with OperatorHarness(MapDeclaration(str.upper)) as harness:
        harness.process("a")
        assert harness.output == ["A"]

The operator gets what a task gives it: its context, the host's copy of keyed state, a chain of change files.
A barrier is a call of `end_epoch`; another worker, or an epoch that runs again, is a call, too. No Spark, no
threads, and the clock stands still until it is set. The function that runs is a copy of the one given, as in
a job: look at it with `harness.operator.function`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from headrace.elements import MAX_WATERMARK, MIN_WATERMARK, Batch, Event, Watermark
from headrace.errors import InvariantViolation, JobDefinitionError, shorten
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.operators.base import EpochPlace, Operator, OperatorDeclaration
from headrace.operators.context import OperatorContext, TaskPlace
from headrace.state.changes import StateChange, column_of, merge_changes, read_change, write_change
from headrace.state.handles import StateChain, StateFile
from headrace.state.key_groups import key_group_of, key_group_range
from headrace.state.keyed import KeyedStateBackend
from headrace.state.keys import hash_key
from headrace.state.operator_state import redistribute
from headrace.state.schema import SCHEMAS
from headrace.state.stores.lmdb import LmdbStore
from headrace.storage.paths import join_path
from headrace.util.closing import ClosedOnExit
from headrace.util.host_directories import HeldDirectory, make_temporary

__all__ = ["OperatorHarness", "Snapshot", "rescale"]

_OPERATOR_ID = "operator"
_LINEAGE = "harness"
_CACHE_ENTRIES = 1_000_000


@dataclass(frozen=True)
class Snapshot:
    """All state of one subtask at a barrier. It can be pickled, and restored at any parallelism."""

    max_parallelism: int
    #: Key group -> name of the state -> stored entries, in order. Groups without entries are left out.
    keyed: Mapping[int, Mapping[str, tuple[tuple[bytes, bytes], ...]]] = field(default_factory=dict)
    #: What belongs to no key; None if the operator keeps nothing.
    operator_state: bytes | None = None
    #: How far event time had advanced, an input each; a task keeps it with the operator's state.
    watermarks: tuple[int, int] = (MIN_WATERMARK, MIN_WATERMARK)
    #: The epoch that ended with it. Versions of state only rise, so what is restored continues after it.
    epoch: int = field(default=1, compare=False)

    @property
    def key_groups(self) -> list[int]:
        """The key groups that have state."""
        return sorted(self.keyed)


class _Recorder:
    """The output of the operator: remembers everything, in order."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.sides: dict[str, list[Batch]] = {}
        self.events: list[Event] = []

    def emit(self, batch: Batch) -> None:
        self.batches.append(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.sides.setdefault(tag_id, []).append(batch)

    def emit_event(self, event: Event) -> None:
        self.events.append(event)


class OperatorHarness(ClosedOnExit):
    """One subtask of one operator.

    Args:
        declaration: What a call of the API adds to the graph, such as ``MapDeclaration(function)``.
        parallelism: How many subtasks the operator has.
        subtask: Which of them this one is, from 0.
        max_parallelism: Number of key groups.
        state_dir: Where change files and local copies go; a directory of its own if None.
        object_reuse: ``pipeline.object-reuse``.
        name: The operator's name, for errors and the runtime context.
        job_parameters: ``pipeline.global-job-parameters``.
        cache_entries: Decoded objects kept from one epoch to the next.
        processing_time: What the clock shows at first, in ms.

    Raises:
        JobDefinitionError: The declaration is that of a source; those run in a `MiniCluster`.

    Example:
        >>> from headrace.operators.simple import FlatMapDeclaration
        >>> with OperatorHarness(FlatMapDeclaration(str.split)) as harness:
        ...     harness.process("to be", timestamp=7)
        ...     harness.output_with_timestamps
        [('to', 7), ('be', 7)]
    """

    def __init__(
        self,
        declaration: OperatorDeclaration,
        *,
        parallelism: int = 1,
        subtask: int = 0,
        max_parallelism: int = 128,
        state_dir: str | None = None,
        object_reuse: bool = False,
        name: str = "operator",
        job_parameters: Mapping[str, str] | None = None,
        cache_entries: int = _CACHE_ENTRIES,
        processing_time: int = 0,
    ) -> None:
        if declaration.inputs == 0:
            raise JobDefinitionError("OperatorHarness: a source has no input", hint="run it in a MiniCluster")
        self._declaration = declaration
        self._place = TaskPlace(
            job_name="harness",
            task_name=name,
            operator_name=name,
            operator_id=_OPERATOR_ID,
            subtask=subtask,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
        )
        self._object_reuse = object_reuse
        self._job_parameters = dict(job_parameters or {})
        self._cache_entries = cache_entries
        self._given_directory = state_dir
        self._own_directory: HeldDirectory | None = None
        self._recorder = _Recorder()
        #: State as of the last barrier.
        self._chain = StateChain(_LINEAGE)
        self._operator_state: bytes | None = None
        #: The epoch at work; counts from 1, as versions of state do.
        self.epoch = 1
        self._tries = 0
        self._copies = 0
        self._now_ms = processing_time
        self._watermarks = [MIN_WATERMARK, MIN_WATERMARK]
        #: As of the last barrier.
        self._watermarks_at_barrier = (MIN_WATERMARK, MIN_WATERMARK)
        #: What a sink staged in the epochs so far.
        self.committables: list[Any] = []
        #: What the operator wanted the user to know.
        self.warnings: list[str] = []
        self._running: tuple[Operator, OperatorContext] | None = None

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> Self:
        """Build and open the operator, and begin the first epoch. Whatever needs it does so by itself."""
        if self._running is None:
            self._start()
        return self

    def close(self) -> None:
        """Close the operator and remove what the harness wrote, unless it was given a directory."""
        try:
            self._stop()
        finally:
            if self._own_directory is not None:
                self._own_directory.remove()
                self._own_directory = None

    def _start(self) -> tuple[Operator, OperatorContext]:
        # Workers run copies, so the function that was given stays as it is.
        declaration = shipped(self._declaration)
        operator = declaration.build()
        operator.output = self._recorder
        context = OperatorContext(
            place=self._place,
            metrics=InMemoryMetricGroup(),
            keyed_state=self._make_keyed_state() if declaration.is_keyed else None,
            processing_time=lambda: self._now_ms,
            watermark=lambda: self._watermark,
            object_reuse=self._object_reuse,
            job_parameters=self._job_parameters,
        )
        self._running = operator, context
        self._restore(context)
        operator.open(context)
        operator.begin_epoch(self._epoch_place())
        return self._running

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        operator, context = running
        try:
            operator.close()
        finally:
            if context.keyed_state is not None:
                context.keyed_state.close()

    @property
    def _directory(self) -> str:
        """Where state goes; a directory of the harness's own is made when it is first needed."""
        if self._given_directory is not None:
            return self._given_directory
        if self._own_directory is None:
            self._own_directory = make_temporary("harness")
        return self._own_directory.path

    def _make_keyed_state(self) -> KeyedStateBackend:
        place = self._place
        directory = join_path(
            self._directory, f"copy-{self._copies}", f"{place.subtask}-of-{place.parallelism}"
        )
        return KeyedStateBackend(
            LmdbStore(directory),
            self.key_groups,
            place.max_parallelism,
            self._cache_entries,
            processing_time=lambda: self._now_ms,
        )

    def _restore(self, context: OperatorContext) -> None:
        """Go to the state the epoch starts from."""
        context.attempt = self._tries
        context.operator_state.restore(self._operator_state)
        if context.keyed_state is not None:
            context.keyed_state.begin_epoch(self._chain)

    def _epoch_place(self) -> EpochPlace:
        return EpochPlace(epoch=self.epoch, attempt_id=f"{self.epoch}-{self._tries}")

    @property
    def operator(self) -> Operator:
        """The operator at work."""
        return (self._running or self._start())[0]

    @property
    def context(self) -> OperatorContext:
        """What the operator was opened with."""
        return (self._running or self._start())[1]

    @property
    def key_groups(self) -> range:
        """The key groups of this subtask."""
        return key_group_range(self._place.subtask, self._place.max_parallelism, self._place.parallelism)

    def owns(self, key: Any) -> bool:
        """Whether records with this key come to this subtask."""
        return key_group_of(hash_key(key), self._place.max_parallelism) in self.key_groups

    # -- what goes in ------------------------------------------------------------------------------

    def process(self, value: Any, timestamp: int | None = None) -> None:
        """Give the (first) input one record."""
        self.operator.process(_batch_of((value, timestamp)))

    def process_second(self, value: Any, timestamp: int | None = None) -> None:
        """Give the second input one record."""
        self.operator.process_second(_batch_of((value, timestamp)))

    def process_batch(
        self,
        values: Iterable[Any],
        timestamps: Iterable[int | None] | None = None,
        *,
        is_second: bool = False,
    ) -> None:
        """Pass a batch of records to an input."""
        batch = Batch(list(values), None if timestamps is None else list(timestamps))
        if batch.timestamps is not None and len(batch.timestamps) != len(batch):
            raise JobDefinitionError(
                f"OperatorHarness: {len(batch)} records with {len(batch.timestamps)} timestamps"
            )
        (self.operator.process_second if is_second else self.operator.process)(batch)

    def process_watermark(self, timestamp: int) -> None:
        """Advance the watermark of every input to this time."""
        self._advance((0, 1), timestamp)

    def process_first_watermark(self, timestamp: int) -> None:
        """Advance the watermark of the first input to this time; the operator gets the lower of both."""
        self._advance((0,), timestamp)

    def process_second_watermark(self, timestamp: int) -> None:
        """Advance the watermark of the second input to this time; the operator gets the lower of both."""
        self._advance((1,), timestamp)

    def process_status(self, *, is_active: bool) -> None:
        """Say that all inputs have fallen idle, or that one of them is active again."""
        self.operator.process_status(is_active=is_active)

    def set_processing_time(self, timestamp: int) -> None:
        """Set the clock, in ms, and fire the timers that are due."""
        operator = self.operator
        self._now_ms = timestamp
        operator.advance_processing_time(timestamp)

    def finish(self) -> None:
        """Say that all input has ended: time does, too, and the operator emits what it held back."""
        self.process_watermark(MAX_WATERMARK)
        self.operator.finish()

    @property
    def _watermark(self) -> int:
        return self._watermarks[0] if self._declaration.inputs == 1 else min(self._watermarks)

    def _advance(self, inputs: Iterable[int], timestamp: int) -> None:
        operator, before = self.operator, self._watermark
        for index in inputs:
            self._watermarks[index] = max(self._watermarks[index], timestamp)
        if self._watermark > before:
            operator.process_watermark(self._watermark)

    # -- what comes out ----------------------------------------------------------------------------

    @property
    def output(self) -> list[Any]:
        """The records of the main output so far, in order."""
        return [value for batch in self._recorder.batches for value in batch.values]

    @property
    def output_with_timestamps(self) -> list[tuple[Any, int | None]]:
        """The records of the main output so far, each with its timestamp."""
        return _with_timestamps(self._recorder.batches)

    def side_output(self, tag: Any) -> list[Any]:
        """Return the records of a side output so far, by its tag or the tag's id."""
        return [value for batch in self._recorder.sides.get(_tag_id(tag), ()) for value in batch.values]

    def side_output_with_timestamps(self, tag: Any) -> list[tuple[Any, int | None]]:
        """Return the records of a side output so far, each with its timestamp."""
        return _with_timestamps(self._recorder.sides.get(_tag_id(tag), ()))

    @property
    def watermarks(self) -> list[int]:
        """The watermarks that went out."""
        return [event.timestamp for event in self._recorder.events if isinstance(event, Watermark)]

    @property
    def events(self) -> list[Event]:
        """Return the events that were emitted: watermarks and other elements that are not records."""
        return list(self._recorder.events)

    @property
    def next_processing_time(self) -> int | None:
        """When the operator wants to be woken by the clock; None if nothing waits for it."""
        return self.operator.next_processing_time()

    @property
    def metrics(self) -> dict[str, Any]:
        """What the function's own metrics show."""
        return self.context.metrics.values()

    @property
    def accumulators(self) -> dict[str, Any]:
        """The values of the function's accumulators, by name."""
        return {name: each.get_local_value() for name, each in self.context.accumulators.report().items()}

    def clear_output(self) -> None:
        """Forget the output so far."""
        self._recorder.batches.clear()
        self._recorder.sides.clear()
        self._recorder.events.clear()

    # -- barriers ----------------------------------------------------------------------------------

    def end_epoch(self) -> list[Any]:
        """Pass a barrier: write the state, start the next epoch, and return what a sink staged."""
        operator, context = self.operator, self.context
        # In the order of a task: the operator first, it may still write to its state.
        staged = list(operator.end_epoch())
        self.committables += staged
        if context.keyed_state is not None:
            self._write_change(context.keyed_state)
        changed = context.operator_state.snapshot()
        if changed is not None:
            self._operator_state = changed
        self.warnings += context.take_warnings()
        self._watermarks_at_barrier = (self._watermarks[0], self._watermarks[1])
        self.epoch += 1
        self._tries = 0
        self._restore(context)
        operator.begin_epoch(self._epoch_place())
        return staged

    def _write_change(self, keyed: KeyedStateBackend) -> None:
        change = keyed.take_changes(self.epoch)
        tip = self._chain.tip
        if change:
            before = self._chain.version
            tip = self._state_path(f"{self._place.subtask}-{self.epoch}-{self._tries}.change")
            self._chain = self._chain.append(StateFile(tip, before, self.epoch, write_change(tip, change)))
        keyed.settle(tip)

    def _state_path(self, name: str) -> str:
        return join_path(self._directory, "state", name)

    def move(self, *, keeps_local_copy: bool = False) -> None:
        """End the epoch and continue in another worker, which gets only the state.

        Args:
            keeps_local_copy: Whether the worker is on the same host and finds its copy of keyed state.
        """
        self.end_epoch()
        self._begin_again(keeps_local_copy=keeps_local_copy)

    def retry_epoch(self, *, keeps_local_copy: bool = True) -> None:
        """Fail: what the epoch did to state is gone, and another worker begins it again.

        What was emitted stays in `output`; in a job it would have been thrown away.
        """
        self._tries += 1
        self._watermarks = list(self._watermarks_at_barrier)
        self._begin_again(keeps_local_copy=keeps_local_copy)

    def _begin_again(self, *, keeps_local_copy: bool) -> None:
        self._stop()
        if not keeps_local_copy:
            self._copies += 1
        self._start()

    # -- snapshots ---------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """End the epoch and return all state as of this barrier."""
        epoch = self.epoch
        self.end_epoch()
        # What was restored is a file of all key groups; what others do with theirs since is not known here.
        changes = (read_change(file.path, self.key_groups) for file in self._chain.files)
        whole = merge_changes(changes, keep_removals=False)
        keyed: dict[int, dict[str, tuple[tuple[bytes, bytes], ...]]] = {}
        for name, column in whole.items():
            for group, (keys, values) in column.items():
                entries = sorted(
                    (key, value) for key, value in zip(keys, values, strict=True) if value is not None
                )
                keyed.setdefault(group, {})[name] = tuple(entries)
        # What was declared about states is nothing by itself.
        keyed = {group: states for group, states in keyed.items() if states.keys() != {SCHEMAS}}
        return Snapshot(
            self._place.max_parallelism, keyed, self._operator_state, self._watermarks_at_barrier, epoch
        )

    def restore(self, *snapshots: Snapshot) -> Self:
        """Start from snapshots of all subtasks of an operator, at any parallelism. Comes before `open`.

        Only the key groups of this subtask are read. Broadcast state is that of the first snapshot; what
        else the operator keeps, its watermark included, comes back if the parallelism is as it was.
        """
        if self._running is not None:
            raise InvariantViolation("OperatorHarness: restore() after open()")
        for each in snapshots:
            if each.max_parallelism != self._place.max_parallelism:
                raise JobDefinitionError(
                    f"OperatorHarness: the snapshot has {each.max_parallelism} key groups, "
                    f"the operator {self._place.max_parallelism}: they never change"
                )
        change = _as_change(snapshots)
        if change:
            path = self._state_path(f"{self._place.subtask}-of-{self._place.parallelism}.base")
            size = write_change(path, change)
            version = max(each.epoch for each in snapshots)
            self._chain = StateChain(_LINEAGE, (StateFile(path, 0, version, size, is_base=True),))
            self.epoch = version + 1
        self._operator_state = _operator_state(snapshots, self._place)
        if len(snapshots) == self._place.parallelism:
            self._watermarks_at_barrier = snapshots[self._place.subtask].watermarks
            self._watermarks = list(self._watermarks_at_barrier)
        return self

    @classmethod
    def restored(cls, declaration: OperatorDeclaration, *snapshots: Snapshot, **settings: Any) -> Self:
        """Make a harness that starts from snapshots; the settings are those of the constructor."""
        return cls(declaration, **settings).restore(*snapshots)


def rescale(
    snapshots: Sequence[Snapshot], declaration: OperatorDeclaration, parallelism: int, **settings: Any
) -> list[OperatorHarness]:
    """Make one harness per subtask, each with its part of the state. The caller closes them.

    Args:
        snapshots: One per subtask before, in order.
        declaration: The operator.
        parallelism: How many subtasks it has now.
        settings: More arguments of `OperatorHarness`.
    """
    settings.setdefault("max_parallelism", snapshots[0].max_parallelism)
    return [
        OperatorHarness.restored(
            declaration, *snapshots, parallelism=parallelism, subtask=subtask, **settings
        )
        for subtask in range(parallelism)
    ]


def shipped(declaration: OperatorDeclaration) -> OperatorDeclaration:
    """Copy a declaration as shipping it does: functions stay what they are, objects are made again."""
    try:
        return copy.deepcopy(declaration)
    except TypeError as error:
        raise JobDefinitionError(
            f"OperatorHarness: {shorten(declaration)} cannot be copied, so it cannot be sent to workers: {error}",
            hint="create what cannot be pickled (connections, locks, files) in open(), not in __init__",
        ) from error


def _batch_of(*records: tuple[Any, int | None]) -> Batch:
    values = [value for value, _ in records]
    timestamps = [timestamp for _, timestamp in records]
    return Batch(values, None if timestamps.count(None) == len(timestamps) else timestamps)


def _with_timestamps(batches: Iterable[Batch]) -> list[tuple[Any, int | None]]:
    pairs: list[tuple[Any, int | None]] = []
    for batch in batches:
        pairs += zip(batch.values, batch.timestamps or [None] * len(batch), strict=True)
    return pairs


def _tag_id(tag: Any) -> str:
    return str(getattr(tag, "tag_id", tag))


def _as_change(snapshots: Iterable[Snapshot]) -> StateChange:
    entries: dict[str, dict[bytes, bytes]] = {}
    for snapshot in snapshots:
        for states in snapshot.keyed.values():
            for name, pairs in states.items():
                entries.setdefault(name, {}).update(pairs)
    return {name: column_of(list(found), list(found.values())) for name, found in entries.items()}


def _operator_state(snapshots: Sequence[Snapshot], place: TaskPlace) -> bytes | None:
    stored = [snapshot.operator_state for snapshot in snapshots]
    is_same = len(stored) == place.parallelism
    return redistribute(stored, place.parallelism, keeps_own=is_same)[place.subtask]
