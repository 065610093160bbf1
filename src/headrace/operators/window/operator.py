"""The window operator: puts records into windows, asks triggers, and emits results when windows fire.

It follows Flink's WindowOperator step by step: assign, merge, skip what is late, add, ask the trigger, fire and purge,
clean up when the watermark has passed the window's end by the allowed lateness.

    window [0, 10)   lateness 5    |--------- open ---------|-- late firings --|
    watermark                      0                        9                 14: state is dropped
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.elements import MAX_WATERMARK, Batch, Watermark
from headrace.errors import JobExecutionError
from headrace.operators.context import OperatorContext, RuntimeContext
from headrace.operators.functions import Emission, FunctionOperator, key_getter
from headrace.operators.timers import OperatorTimers
from headrace.operators.window.contents import BufferedContents, make_contents
from headrace.operators.window.encoding import window_bytes
from headrace.operators.window.functions import WindowContext, make_call
from headrace.operators.window.late import LateRecords
from headrace.operators.window.merging import MergingWindows
from headrace.operators.window.spec import WindowSpec
from headrace.operators.window.trigger_context import OperatorTriggerContext
from headrace.state.timers import Timer
from headrace.windowing.assigners import MergingWindowAssigner, WindowAssigner

_MERGING = "_merging"


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """What an assigner may ask."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._runtime_context = RuntimeContext(context)

    def get_current_processing_time(self) -> int:
        return self._context.processing_time()

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime_context


class WindowProcessor(FunctionOperator):
    """Runs any combination of assigner, trigger, evictor and window function."""

    def __init__(self, declaration: WindowSpec) -> None:
        computation = declaration.computation
        super().__init__(computation.window_function, computation.incremental)
        self._declaration = declaration
        self._assigner = declaration.assigner
        self._is_event_time = declaration.assigner.is_event_time()
        self._trigger = declaration.trigger
        self._evictor = declaration.evictor
        self._lateness_ms = declaration.allowed_lateness_ms
        self._key_of = key_getter(declaration.key_selector)

    # -- life --------------------------------------------------------------------------------------------------

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        computation = self._declaration.computation
        backend = context.require_keyed_state()
        self._current = backend.current
        self._scope = backend.namespaced("_window/", window_bytes)
        window_scope = backend.namespaced("_window_state/", window_bytes)
        self._user_scope = window_scope
        self._contents = make_contents(self._scope, computation, has_evictor=self._evictor is not None)
        self._merging_table = backend.entry_table(_MERGING)
        self._timers = OperatorTimers(
            backend,
            on_event_time=self._on_event_time,
            on_processing_time=self._on_processing_time,
            encode_namespace=window_bytes,
        )
        self._trigger_context = OperatorTriggerContext(
            context, self._timers, backend.namespaced("_trigger/", window_bytes)
        )
        self._window_context = WindowContext(
            processing_time=context.processing_time,
            watermark=context.watermark,
            window_state=None if isinstance(self._assigner, MergingWindowAssigner) else window_scope,
            global_state=backend,
            operator_name=context.place.operator_name,
        )
        self._assigner_context = AssignerContext(context)
        self._call = make_call(computation)
        self._emission = Emission(self.output, object_reuse=context.object_reuse)
        self._late = LateRecords(self._declaration.late_tag_id, self.output, context)

    # -- input -------------------------------------------------------------------------------------------------

    def process(self, batch: Batch) -> None:
        rest = iter(batch.values)
        times = batch.timestamps if batch.timestamps is not None else [None] * len(batch.values)
        with self._emitting():
            try:
                for value, timestamp in zip(rest, times, strict=True):
                    self._current.key = self._key_of(value)
                    if not self._process_one(value, timestamp):
                        self._late.take(value, timestamp)
            except Exception as error:
                raise self.failed(error, rest, batch.values) from error
        self._late.flush()

    def _process_one(self, value: Any, timestamp: int | None) -> bool:
        """Put a record into its windows; False when it is late for all of them."""
        windows = self._assigner.assign_windows(value, timestamp, self._assigner_context)
        if isinstance(self._assigner, MergingWindowAssigner):
            return self._add_to_merging(value, timestamp, list(windows))
        is_taken = False
        for window in windows:
            if not self._is_late(window):
                is_taken = True
                self._add(value, timestamp, window, window)
        return is_taken or not self._is_element_late(timestamp)

    def _add_to_merging(self, value: Any, timestamp: int | None, windows: list[Any]) -> bool:
        is_taken = False
        merging = self._merging_windows()
        for window in windows:
            actual = merging.add(window, self._on_merge)
            if self._is_late(actual):
                merging.retire(actual)
                continue
            is_taken = True
            self._add(value, timestamp, actual, merging.state_window(actual))
        merging.persist()
        return is_taken or not self._is_element_late(timestamp)

    def _add(self, value: Any, timestamp: int | None, window: Any, state_window: Any) -> None:
        self._enter(window, state_window)
        self._contents.add(value, timestamp)
        result = self._trigger.on_element(value, timestamp, window, self._trigger_context)
        if result.is_fire():
            self._fire(window)
        if result.is_purge():
            self._contents.clear()
        self._register_cleanup(window)

    # -- merging -----------------------------------------------------------------------------------------------

    def _merging_windows(self) -> MergingWindows:
        assert isinstance(self._assigner, MergingWindowAssigner)
        return MergingWindows(self._assigner, self._merging_table)

    def _on_merge(self, merged: Any, parts: list[Any], state_window: Any, others: list[Any]) -> None:
        now = self.context.watermark() if self._is_event_time else self.context.processing_time()
        if self._cleanup_time(merged) <= now:
            raise JobExecutionError(
                f"operator '{self.context.place.operator_name}': merging returned window {merged}, which ends before "
                f"the current time {now}",
                hint="merge_windows must return windows that cover the merged ones",
            )
        self._enter(merged, state_window)
        self._trigger_context.merging(parts)
        self._trigger.on_merge(merged, self._trigger_context)
        for part in parts:
            if part != merged:
                self._trigger_context.enter(self._current.key, part)
                self._trigger.clear(part, self._trigger_context)
                self._delete_cleanup(part)
        self._enter(merged, state_window)
        self._contents.merge_from(self._scope, self._current.key, others)

    # -- time --------------------------------------------------------------------------------------------------

    def process_watermark(self, timestamp: int) -> None:
        with self._emitting():
            self._timers.advance_watermark(timestamp)
        self.output.emit_event(Watermark(timestamp))

    def advance_processing_time(self, now_ms: int) -> None:
        with self._emitting():
            self._timers.advance_processing_time(now_ms)

    def next_processing_time(self) -> int | None:
        return self._timers.next_processing_time()

    def _on_event_time(self, timer: Timer) -> None:
        self._call_back(timer, is_event_time=True)

    def _on_processing_time(self, timer: Timer) -> None:
        self._call_back(timer, is_event_time=False)

    def _call_back(self, timer: Timer, *, is_event_time: bool) -> None:
        try:
            self._on_timer(timer, is_event_time=is_event_time)
        except Exception as error:
            raise self.located(error, timer.key, f"window {timer.namespace}") from error

    def _on_timer(self, timer: Timer, *, is_event_time: bool) -> None:
        window = timer.namespace
        merging = self._merging_windows() if isinstance(self._assigner, MergingWindowAssigner) else None
        state_window = window if merging is None else merging.state_window(window)
        if state_window is None:
            return  # the window has been merged into another since
        self._enter(window, state_window)
        asked = self._trigger.on_event_time if is_event_time else self._trigger.on_processing_time
        result = asked(timer.timestamp, window, self._trigger_context)
        if result.is_fire():
            self._fire(window)
        if result.is_purge():
            self._contents.clear()
        if is_event_time == self._is_event_time and timer.timestamp == self._cleanup_time(window):
            self._clear_all(window)
            if merging is not None:
                merging.retire(window)
        if merging is not None:
            merging.persist()
        if len(self._emission.values) >= self.results_per_batch:
            self._emission.flush()
            self._emission.start(Batch([], []))

    def _is_late(self, window: Any) -> bool:
        return self._is_event_time and self._cleanup_time(window) <= self.context.watermark()

    def _is_element_late(self, timestamp: int | None) -> bool:
        return (
            self._is_event_time
            and timestamp is not None
            and timestamp + self._lateness_ms <= self.context.watermark()
        )

    def _cleanup_time(self, window: Any) -> int:
        end: int = window.max_timestamp()
        return min(end + self._lateness_ms, MAX_WATERMARK) if self._is_event_time else end

    def _register_cleanup(self, window: Any) -> None:
        time = self._cleanup_time(window)
        if time == MAX_WATERMARK:
            return  # a window without end is never cleaned up
        if self._is_event_time:
            self._timers.register_event_time(time, window)
        else:
            self._timers.register_processing_time(time, window)

    def _delete_cleanup(self, window: Any) -> None:
        time = self._cleanup_time(window)
        if self._is_event_time:
            self._timers.delete_event_time(time, window)
        else:
            self._timers.delete_processing_time(time, window)

    # -- firing ------------------------------------------------------------------------------------------------

    def _enter(self, window: Any, state_window: Any) -> None:
        key = self._current.key
        self._scope.current.key = (key, state_window)
        self._trigger_context.enter(key, window)

    def _fire(self, window: Any) -> None:
        if self._evictor is None:
            elements = self._contents.elements()
            if elements is not None:
                self._emit(window, elements)
            return
        contents = self._contents
        assert isinstance(contents, BufferedContents)
        timed = contents.timed_elements()
        if not timed:
            return
        clock = self._trigger_context
        before = self._evictor.evict_before(timed, len(timed), window, clock)
        self._emit(window, contents.computed([value for value, _ in before]))
        contents.replace(list(self._evictor.evict_after(before, len(before), window, clock)))

    def _emit(self, window: Any, elements: list[Any]) -> None:
        self._enter_user_state(window)
        results = self._call(self._current.key, self._window_context, elements)
        if results is not None:
            self._emission.add(results, window.max_timestamp())

    def _enter_user_state(self, window: Any) -> None:
        self._user_scope.current.key = (self._current.key, window)
        self._window_context.current_window = window

    def _clear_all(self, window: Any) -> None:
        self._contents.clear()
        self._trigger.clear(window, self._trigger_context)
        if hasattr(self.function, "clear"):
            self._enter_user_state(window)
            self.function.clear(self._window_context)

    @contextmanager
    def _emitting(self) -> Iterator[None]:
        """Collect what windows emit, each with its window's time, and hand it on at the end."""
        self._emission.start(Batch([], []))
        yield
        self._emission.flush()
