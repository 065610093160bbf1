"""Keyed operators whose function has ``on_timer``: timers behind the context, and the calls when they fire."""

from __future__ import annotations

from typing import Any

from headrace.elements import Batch, Watermark
from headrace.operators.context import OperatorContext
from headrace.operators.functions import Emission, FunctionOperator
from headrace.operators.process_context import ProcessContext
from headrace.operators.time import TimeDomain
from headrace.operators.timers import OperatorTimers
from headrace.state.timers import Timer


class TimedOperator(FunctionOperator):
    """Gives a keyed function its timers."""

    def open_timers(self, context: OperatorContext, timer_context: ProcessContext) -> None:
        """Set up timers; ``timer_context`` is what on_timer gets."""
        self._timer_context = timer_context
        self._timers = OperatorTimers(
            context.require_keyed_state(),
            on_event_time=lambda timer: self._fire(timer, TimeDomain.EVENT_TIME),
            on_processing_time=lambda timer: self._fire(timer, TimeDomain.PROCESSING_TIME),
        )
        self._timer_emission = Emission(self.output, object_reuse=context.object_reuse)
        timer_context.with_timers(self._timers)

    def process_watermark(self, timestamp: int) -> None:
        self._timer_emission.start(Batch([], []))
        self._timers.advance_watermark(timestamp)
        self._timer_emission.flush()
        self.output.emit_event(Watermark(timestamp))

    def advance_processing_time(self, now_ms: int) -> None:
        self._timer_emission.start(Batch([], []))
        self._timers.advance_processing_time(now_ms)
        self._timer_emission.flush()

    def next_processing_time(self) -> int | None:
        return self._timers.next_processing_time()

    def _fire(self, timer: Timer, domain: TimeDomain) -> None:
        context = self._timer_context
        context.at_timer(timer.timestamp, domain)
        try:
            results: Any = self.function.on_timer(timer.timestamp, context)
            if results is not None:
                # What a processing-time timer emits has no event time.
                time = timer.timestamp if domain is TimeDomain.EVENT_TIME else None
                self._timer_emission.add(results, time)
        except Exception as error:
            raise self.located(error, timer.key, "on_timer()") from error
        if len(self._timer_emission.values) >= self.results_per_batch:
            self._timer_emission.flush()
            self._timer_emission.start(Batch([], []))
