"""Live tasks that ask watermark generators after each batch of input, as tasks of epochs do.

The simulation uses them where runs are compared: which records are late does not depend on the clock then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.runtime.epoch.messages import SubtaskPlan
from headrace.runtime.exchange.input_gate import InputBatch
from headrace.runtime.task.live_task import LiveTask
from headrace.testing.stepped_subtask import SteppedSubtask


class _EagerTask(LiveTask):
    """Asks watermark generators after each batch of its input, as in epochs, and not only by the clock."""

    def _read(self, feed: SubtaskPlan) -> Iterator[None]:
        for _ in super()._read(feed):
            self.emit_periodic_watermarks()
            yield

    def _take_batch(self, element: InputBatch, is_urgent: Callable[[], bool]) -> int:
        taken = super()._take_batch(element, is_urgent)
        self.emit_periodic_watermarks()
        return taken


class EagerSubtask(SteppedSubtask):
    """A subtask with such a task."""

    def _make_task(self) -> LiveTask:
        code, attempt = self._code, self._plan.attempt
        return _EagerTask(code.job, self._layout, self._subtask, code.lineage, code.settings, attempt=attempt)
