"""The context of triggers: clocks, timers and state of the current window."""

from __future__ import annotations

from typing import Any

from headrace.errors import StateDescriptorError
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.operators.context import OperatorContext
from headrace.operators.timers import OperatorTimers
from headrace.state import descriptors
from headrace.state.keyed import KeyedStateScope
from headrace.windowing.triggers import Trigger


class OperatorTriggerContext(Trigger.OnMergeContext):
    """The trigger's view of the operator, for one key and window at a time."""

    def __init__(self, context: OperatorContext, timers: OperatorTimers, scope: KeyedStateScope) -> None:
        self._context = context
        self._timers = timers
        self._scope = scope
        self._key: Any = None
        self._window: Any = None
        #: The windows that are being merged into the one at hand.
        self._merged: list[Any] = []

    def enter(self, key: Any, window: Any) -> None:
        """Be the context of this key and window."""
        self._key = key
        self._window = window
        self._scope.current.key = (key, window)

    def merging(self, windows: list[Any]) -> None:
        """Be the context of a merge of these windows into the one at hand."""
        self._merged = windows

    def get_current_processing_time(self) -> int:
        return self._context.processing_time()

    def get_metric_group(self) -> InMemoryMetricGroup:
        return self._context.metrics

    def get_current_watermark(self) -> int:
        return self._context.watermark()

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.register_processing_time(time, self._window)

    def register_event_time_timer(self, time: int) -> None:
        self._timers.register_event_time(time, self._window)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete_processing_time(time, self._window)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete_event_time(time, self._window)

    def get_partitioned_state(self, state_descriptor: descriptors.StateDescriptor) -> Any:
        if isinstance(state_descriptor, descriptors.ValueStateDescriptor):
            return self._scope.get_state(state_descriptor)
        if isinstance(state_descriptor, descriptors.ReducingStateDescriptor):
            return self._scope.get_reducing_state(state_descriptor)
        if isinstance(state_descriptor, descriptors.AggregatingStateDescriptor):
            return self._scope.get_aggregating_state(state_descriptor)
        if isinstance(state_descriptor, descriptors.ListStateDescriptor):
            return self._scope.get_list_state(state_descriptor)
        if isinstance(state_descriptor, descriptors.MapStateDescriptor):
            return self._scope.get_map_state(state_descriptor)
        raise StateDescriptorError(f"a trigger cannot use a {type(state_descriptor).__name__}")

    def merge_partitioned_state(self, state_descriptor: descriptors.StateDescriptor) -> None:
        """Bring the state of the merged windows into that of the current window."""
        state = self.get_partitioned_state(state_descriptor)
        if not isinstance(
            state_descriptor, (descriptors.ReducingStateDescriptor, descriptors.ListStateDescriptor)
        ):
            raise StateDescriptorError(
                f"state '{state_descriptor.name}' cannot be merged: only reducing and list state can"
            )
        for window in self._merged:
            if window == self._window:
                continue
            self._scope.current.key = (self._key, window)
            held = (
                list(state.get())
                if isinstance(state_descriptor, descriptors.ListStateDescriptor)
                else [state.get()]
            )
            state.clear()
            self._scope.current.key = (self._key, self._window)
            for value in held:
                if value is not None:
                    state.add(value)
