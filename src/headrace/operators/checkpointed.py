"""Functions with state that belongs to their subtask and not to a key.

Every epoch begins for such a function as a restart does: `initialize_state`, with what it left behind. It ends with
`snapshot_state`. So its fields may hold what it likes in between, whichever worker has the subtask next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from headrace.operators.context import OperatorContext
from headrace.state.descriptors import ListStateDescriptor
from headrace.state.interfaces import KeyedStateStore, ListState, OperatorStateStore
from headrace.util.clock import now_ms


class FunctionInitializationContext:
    """Passed to `initialize_state`: access to operator state, and whether it was restored."""

    def __init__(self, context: OperatorContext, *, is_restored: bool) -> None:
        self._context = context
        self._is_restored = is_restored

    def is_restored(self) -> bool:
        """Whether there is earlier state: from an earlier epoch, or from the checkpoint the job was restored from."""
        return self._is_restored

    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store of operator state, which belongs to the subtask."""
        return self._context.operator_state

    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store of keyed state; only on keyed streams."""
        return self._context.require_keyed_state()


class FunctionSnapshotContext:
    """Passed to `snapshot_state`: the id of the checkpoint being taken."""

    def __init__(self, checkpoint_id: int) -> None:
        self._checkpoint_id = checkpoint_id

    def get_checkpoint_id(self) -> int:
        """Return a number that rises from one snapshot to the next: that of the epoch."""
        return self._checkpoint_id


class CheckpointListener:
    """To be mixed into a function that wants to know what happened to a checkpoint.

    `notify_checkpoint_complete` is called after the checkpoint is stored, so what it covers will not be computed again.
    Do something outside the job there, such as deleting a file that is no longer needed. A call may be missing after a
    failure; a later checkpoint covers all that went before it. The ids are those that `snapshot_state` gets.

    Example:
        >>> from headrace.datastream.functions import MapFunction
        >>> class Announcing(MapFunction, CheckpointListener):
        ...     def map(self, value):
        ...         return value
        ...
        ...     def notify_checkpoint_complete(self, checkpoint_id):
        ...         print("complete:", checkpoint_id)
    """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Take note that a checkpoint is complete."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Take note that a checkpoint failed, or took too long; the job continues without it."""


class CheckpointedFunction(ABC):
    """To be mixed into a function that keeps state of its subtask.

    Example:
        >>> from headrace.datastream.functions import ProcessFunction
        >>> from headrace.datastream.state import ListStateDescriptor
        >>> class Batching(ProcessFunction, CheckpointedFunction):
        ...     def initialize_state(self, context):
        ...         store = context.get_operator_state_store()
        ...         self.rest = store.get_list_state(ListStateDescriptor("rest", None))
        ...         self.records = list(self.rest.get())
        ...
        ...     def snapshot_state(self, context):
        ...         self.rest.update(self.records)
        ...
        ...     def process_element(self, value, ctx):
        ...         self.records.append(value)
        ...         if len(self.records) == 100:
        ...             yield self.records
        ...             self.records = []
    """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Get the state. Called after `open`, and at the beginning of every epoch."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Put what must last into state. Called at the end of every epoch."""


class ListCheckpointed(ABC):
    """To be mixed into a function whose state of a subtask is one list. Java's older form of `CheckpointedFunction`.

    When the parallelism changes, the elements of all subtasks are distributed among the new ones.

    Example:
        >>> from headrace.datastream.functions import MapFunction
        >>> class Numbering(MapFunction, ListCheckpointed):
        ...     count = 0
        ...
        ...     def map(self, value):
        ...         self.count += 1
        ...         return self.count, value
        ...
        ...     def snapshot_state(self, checkpoint_id, timestamp):
        ...         return [self.count]
        ...
        ...     def restore_state(self, state):
        ...         self.count = sum(state)
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        """Return what must last. Called at the end of every epoch.

        Args:
            checkpoint_id: Rises from one snapshot to the next.
            timestamp: When the snapshot is taken, in ms since 1970.
        """

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """Take the elements that this subtask gets. Called after `open`, at the beginning of later epochs."""


class _ListSnapshots(CheckpointedFunction):
    """A `ListCheckpointed` as the runtime sees it."""

    def __init__(self, function: ListCheckpointed) -> None:
        self._function = function
        self._elements: ListState[Any] | None = None

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self._elements = store.get_list_state(ListStateDescriptor("_list_checkpointed", None))
        if context.is_restored():
            self._function.restore_state(list(self._elements.get()))

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        assert self._elements is not None
        self._elements.update(self._function.snapshot_state(context.get_checkpoint_id(), now_ms()))


def as_checkpointed(function: Any) -> CheckpointedFunction | None:
    """Return what keeps the state of a function's subtask; None if it has none."""
    if isinstance(function, ListCheckpointed):
        return _ListSnapshots(function)
    return function if isinstance(function, CheckpointedFunction) else None
