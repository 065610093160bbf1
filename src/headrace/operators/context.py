"""What an operator and the user function inside it know about the task they run in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.common.accumulators import (
    Accumulator,
    DoubleCounter,
    Histogram,
    IntCounter,
    LongCounter,
    TaskAccumulators,
)
from headrace.errors import JobDefinitionError, StateDescriptorError
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.state import descriptors, interfaces
from headrace.state.keyed import KeyedStateBackend
from headrace.state.operator_state import OperatorStateBackend


@dataclass(frozen=True)
class TaskPlace:
    """Which subtask of which operator this is."""

    job_name: str
    task_name: str
    operator_name: str
    operator_id: str
    subtask: int
    parallelism: int
    max_parallelism: int


@dataclass
class OperatorContext:
    """Everything a task gives to an operator when it opens it."""

    place: TaskPlace
    metrics: InMemoryMetricGroup
    #: Those of the whole task.
    accumulators: TaskAccumulators = field(default_factory=TaskAccumulators)
    operator_state: OperatorStateBackend = field(default_factory=OperatorStateBackend)
    #: None for operators on streams without a key.
    keyed_state: KeyedStateBackend | None = None
    #: Milliseconds since the epoch; read once per buffer, so all records of one buffer see the same time.
    processing_time: Callable[[], int] = lambda: 0
    #: The watermark the operator's inputs have reached.
    watermark: Callable[[], int] = lambda: 0
    attempt: int = 0
    object_reuse: bool = False
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    #: Where files are that the job brings along, by name.
    cached_files: Mapping[str, str] = field(default_factory=dict)
    _warnings: list[str] = field(default_factory=list)

    def warn(self, message: str) -> None:
        """Leave a word for the user; it goes out with the report, and is shown once."""
        self._warnings.append(message)

    def take_warnings(self) -> list[str]:
        """Return what was left since the last call."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def require_keyed_state(self) -> KeyedStateBackend:
        """Return the keyed state, or say why there is none."""
        if self.keyed_state is None:
            raise StateDescriptorError(
                f"operator '{self.place.operator_name}': keyed state needs a keyed stream",
                hint="call key_by(...) before this operator",
            )
        return self.keyed_state


class DistributedCache:
    """The files that a program has registered with ``register_cached_file`` (Flink's DistributedCache).

    Args:
        files: Their paths by name.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def get_file(self, name: str) -> str:
        """Return the path that a file, or directory, has on this host.

        Raises:
            JobDefinitionError: If none was registered under the name.
        """
        if name not in self._files:
            known = ", ".join(sorted(self._files)) or "none"
            raise JobDefinitionError(
                f"no cached file {name!r} is registered; registered are: {known}",
                hint="call env.register_cached_file(path, name) in the program",
            )
        return self._files[name]


class RuntimeContext(interfaces.KeyedStateStore):
    """What ``open(runtime_context)`` of a rich function receives (PyFlink's RuntimeContext)."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def get_task_name(self) -> str:
        """Return the name of the task, that is of the chain of operators."""
        return self._context.place.task_name

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the operator."""
        return self._context.place.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the number of key groups."""
        return self._context.place.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return this subtask's index, from 0."""
        return self._context.place.subtask

    def get_attempt_number(self) -> int:
        """Return how often this subtask was tried before in this epoch."""
        return self._context.attempt

    def get_task_name_with_subtasks(self) -> str:
        """Return the task's name with this subtask's place: ``Map (2/4)#0``."""
        place = self._context.place
        return f"{place.task_name} ({place.subtask + 1}/{place.parallelism})#{self._context.attempt}"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a global job parameter."""
        return self._context.job_parameters.get(key, default_value)

    def get_distributed_cache(self) -> DistributedCache:
        """Return the files that the program has registered."""
        return DistributedCache(self._context.cached_files)

    def get_metrics_group(self) -> InMemoryMetricGroup:
        """Return the group in which a function may register its own metrics."""
        return self._context.metrics

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register an accumulator, as in Flink; call it in ``open``.

        Raises:
            JobDefinitionError: If the task has one of this name.
        """
        self._context.accumulators.add(name, accumulator)

    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        """Return an accumulator that was registered.

        Raises:
            JobDefinitionError: If the task has none of this name.
        """
        found = self._context.accumulators.get(name)
        if found is None:
            raise JobDefinitionError(
                f"operator '{self._context.place.operator_name}': no accumulator {name!r} is registered",
                hint="register it with add_accumulator() in open()",
            )
        return found

    def get_int_counter(self, name: str) -> IntCounter:
        """Return the accumulator of this name, a new one if there is none."""
        return self._context.accumulators.get_or_add(name, IntCounter)

    def get_long_counter(self, name: str) -> LongCounter:
        """Return the accumulator of this name, a new one if there is none."""
        return self._context.accumulators.get_or_add(name, LongCounter)

    def get_double_counter(self, name: str) -> DoubleCounter:
        """Return the accumulator of this name, a new one if there is none."""
        return self._context.accumulators.get_or_add(name, DoubleCounter)

    def get_histogram(self, name: str) -> Histogram:
        """Return the accumulator of this name, a new one if there is none."""
        return self._context.accumulators.get_or_add(name, Histogram)

    def get_state(self, state_descriptor: descriptors.ValueStateDescriptor) -> interfaces.ValueState[Any]:
        """Return the value state under this descriptor, scoped to the current key."""
        return self._context.require_keyed_state().get_state(state_descriptor)

    def get_list_state(self, state_descriptor: descriptors.ListStateDescriptor) -> interfaces.ListState[Any]:
        """Return the list state under this descriptor, scoped to the current key."""
        return self._context.require_keyed_state().get_list_state(state_descriptor)

    def get_map_state(
        self, state_descriptor: descriptors.MapStateDescriptor
    ) -> interfaces.MapState[Any, Any]:
        """Return the map state under this descriptor, scoped to the current key."""
        return self._context.require_keyed_state().get_map_state(state_descriptor)

    def get_reducing_state(
        self, state_descriptor: descriptors.ReducingStateDescriptor
    ) -> interfaces.ReducingState[Any]:
        """Return the reducing state under this descriptor, scoped to the current key."""
        return self._context.require_keyed_state().get_reducing_state(state_descriptor)

    def get_aggregating_state(
        self, state_descriptor: descriptors.AggregatingStateDescriptor
    ) -> interfaces.AggregatingState[Any, Any]:
        """Return the aggregating state under this descriptor, scoped to the current key."""
        return self._context.require_keyed_state().get_aggregating_state(state_descriptor)
