"""Contexts for assigners, triggers and evictors, with clocks, timers and state to look at."""

from __future__ import annotations

from typing import Any

from headrace.common.constants import MIN_LONG_VALUE
from headrace.state.descriptors import ReducingStateDescriptor, StateDescriptor, ValueStateDescriptor
from headrace.windowing.assigners import WindowAssigner
from headrace.windowing.trigger import Trigger, TriggerResult


class FakeState:
    """Value or reducing state in a dictionary that the test can see."""

    def __init__(self, cells: dict[Any, Any], place: Any, descriptor: StateDescriptor) -> None:
        self._cells = cells
        self._place = place
        self._descriptor = descriptor

    def get(self) -> Any:
        return self._cells.get(self._place)

    value = get

    def update(self, value: Any) -> None:
        assert isinstance(self._descriptor, ValueStateDescriptor)
        self._cells[self._place] = value

    def add(self, value: Any) -> None:
        assert isinstance(self._descriptor, ReducingStateDescriptor)
        before = self.get()
        reduce = self._descriptor.get_reduce_function().reduce
        self._cells[self._place] = value if before is None else reduce(before, value)

    def clear(self) -> None:
        self._cells.pop(self._place, None)


class FakeAssignerContext(WindowAssigner.WindowAssignerContext):
    """A clock, and keyed state of the key in ``key``."""

    def __init__(self, processing_time: int = 0) -> None:
        self.processing_time = processing_time
        self.key: Any = None
        self.cells: dict[Any, Any] = {}

    def get_current_processing_time(self) -> int:
        return self.processing_time

    def get_runtime_context(self) -> Any:
        return self

    def get_state(self, descriptor: ValueStateDescriptor) -> FakeState:
        return FakeState(self.cells, (self.key, descriptor.name), descriptor)


class FakeTriggerContext(Trigger.OnMergeContext):
    """Runs a trigger for one key by hand: records in, time forward, results out.

    Timers are (time, window) and fire in that order, also those that are registered meanwhile.
    """

    def __init__(self, trigger: Trigger[Any, Any]) -> None:
        self.trigger = trigger
        self.watermark = MIN_LONG_VALUE
        self.processing_time = 0
        self.window: Any = None
        self.merged: list[Any] = []
        self.event_timers: set[tuple[int, Any]] = set()
        self.processing_timers: set[tuple[int, Any]] = set()
        self.cells: dict[Any, Any] = {}

    # -- what a test does

    def add(self, window: Any, timestamp: int | None = None, element: Any = "x") -> TriggerResult:
        self.window = window
        return self.trigger.on_element(element, timestamp, window, self)

    def advance_watermark(self, to: int) -> list[tuple[int, TriggerResult]]:
        """Return (time, result) of every timer that did not say CONTINUE."""
        self.watermark = to
        return self._fire(self.event_timers, to, self.trigger.on_event_time)

    def advance_processing_time(self, to: int) -> list[tuple[int, TriggerResult]]:
        self.processing_time = to
        return self._fire(self.processing_timers, to, self.trigger.on_processing_time)

    def _fire(self, timers: set[tuple[int, Any]], until: int, call: Any) -> list[tuple[int, TriggerResult]]:
        results = []
        for _ in range(10_000):
            due = min((timer for timer in timers if timer[0] <= until), default=None)
            if due is None:
                return [each for each in results if each[1] is not TriggerResult.CONTINUE]
            timers.discard(due)
            time, self.window = due
            results.append((time, call(time, self.window, self)))
        raise AssertionError("timers fire without end")

    def merge(self, parts: list[Any], into: Any) -> None:
        self.window, self.merged = into, parts
        self.trigger.on_merge(into, self)
        for self.window in parts:
            if self.window != into:
                self.trigger.clear(self.window, self)

    def clear(self, window: Any) -> None:
        self.window = window
        self.trigger.clear(window, self)

    @property
    def is_clean(self) -> bool:
        """Whether neither timers nor state are left."""
        return not (self.event_timers or self.processing_timers or self.cells)

    # -- what a trigger does

    def get_current_processing_time(self) -> int:
        return self.processing_time

    def get_metric_group(self) -> Any:
        raise NotImplementedError

    def get_current_watermark(self) -> int:
        return self.watermark

    def register_processing_time_timer(self, time: int) -> None:
        self.processing_timers.add((time, self.window))

    def register_event_time_timer(self, time: int) -> None:
        self.event_timers.add((time, self.window))

    def delete_processing_time_timer(self, time: int) -> None:
        self.processing_timers.discard((time, self.window))

    def delete_event_time_timer(self, time: int) -> None:
        self.event_timers.discard((time, self.window))

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> FakeState:
        return FakeState(self.cells, (self.window, state_descriptor.name), state_descriptor)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        target = self.get_partitioned_state(state_descriptor)
        for part in self.merged:
            if part != self.window:
                held = self.cells.pop((part, state_descriptor.name), None)
                if held is not None:
                    target.add(held)
