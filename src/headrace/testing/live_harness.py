"""Runs one operator in the loop of live jobs, and is used like `OperatorHarness`.

Records, watermarks and barriers go in as buffers on channels, through the mailbox, the alignment and the task that
live jobs have; the operator is opened once, and lasts from barrier to barrier. The clock is the harness's own.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, cast

from headrace.elements import MAX_WATERMARK
from headrace.errors import JobDefinitionError
from headrace.graph.job_graph import DistributionPattern, JobEdge, JobGraph, JobVertex, OperatorNode
from headrace.graph.partitioning import Rebalance
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.operators.base import EpochPlace, Operator
from headrace.operators.context import OperatorContext, TaskPlace
from headrace.runtime.control.messages import Acknowledge, Message
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan
from headrace.runtime.exchange.buffers import Header, encode_items, pack, pack_barrier
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.live_settings import LiveSettings
from headrace.runtime.task.live_task import LiveTask
from headrace.runtime.task.settings import TaskSettings
from headrace.state.keyed import KeyedStateBackend
from headrace.testing.harness import OperatorHarness, shipped
from headrace.testing.stepped_subtask import SteppedSubtask

__all__ = ["LiveOperatorHarness"]

_OPERATOR_ID = "operator"


class _Input:
    """The declaration of a vertex in front of the operator; the harness does its work."""

    inputs: ClassVar[int] = 0
    is_keyed: ClassVar[bool] = False

    def build(self) -> Operator:
        raise JobDefinitionError("the inputs of a harness cannot be run")


class _HarnessTask(LiveTask):
    """The task of the operator, by the clock of the harness."""

    harness: LiveOperatorHarness
    #: Whether the clock was set, and nobody has looked yet.
    is_clock_set = False

    def _tick(self) -> None:
        self._now_ms = self.harness._now_ms
        if self.is_clock_set:
            self.is_clock_set = False
            self._links[0].operator.advance_processing_time(self._now_ms)

    def _pace_ms(self) -> int:
        """Leave batches whole: how many pieces a real clock would make of them differs from run to run."""
        return 0

    def _start_attempt(self, plan: EpochPlan, spark_attempt: int) -> None:
        super()._start_attempt(plan, spark_attempt)
        self._now_ms = self.harness._now_ms

    def _place(self) -> EpochPlace:
        attempt_id = f"{self._plan.epoch}-{self._spark_attempt}"
        return replace(super()._place(), staging_dir="", job_id="", attempt_id=attempt_id)

    def _make_keyed_state(self, place: TaskPlace, metrics: InMemoryMetricGroup) -> KeyedStateBackend:
        return self.harness._make_keyed_state()

    def _restore_time(self) -> None:
        harness, head = self.harness, self._links[0]
        channels = {
            f"{index}/0": (harness._watermarks[index], True, False)
            for index in range(harness._declaration.inputs)
        }
        self._gate.restore({"watermark": harness._watermark, **channels})
        head.watermark = harness._watermark

    def _store_time(self) -> None:
        pass  # the harness knows


class LiveOperatorHarness(OperatorHarness):
    """One subtask of one operator, in the loop of live jobs.

    Example:
        >>> from headrace.operators.simple import MapDeclaration
        >>> with LiveOperatorHarness(MapDeclaration(str.upper)) as harness:
        ...     harness.process("a")
        ...     harness.output
        ['A']
    """

    _subtask: SteppedSubtask
    _task: _HarnessTask

    # -- life --------------------------------------------------------------------------------------

    def _start(self) -> tuple[Operator, OperatorContext]:
        self._sequence = 0
        self._acknowledged: list[Acknowledge] = []
        job = self._job()
        layout = Layout(job)
        own = SubtaskId(_OPERATOR_ID, self._place.subtask)
        settings = TaskSettings(scratch_name="harness", watermark_interval_ms=0)
        plan = SubtaskPlan(
            keyed={_OPERATOR_ID: self._chain} if self._chain.files else {},
            operator_state={} if self._operator_state is None else {_OPERATOR_ID: self._operator_state},
        )
        make_task = cast(type[_HarnessTask], type("HarnessTask", (_HarnessTask,), {"harness": self}))

        class Subtask(SteppedSubtask):
            def _make_task(self) -> LiveTask:
                return make_task(job, layout, own, "harness", settings)

        self._subtask = Subtask(
            JobCode(job, "harness", settings),
            layout,
            *layout.place(own),
            EpochPlan("harness", self.epoch, 0, self._directory, {own: plan}),
            LiveSettings(("", 0), b"", watermark_interval_ms=1),
            spark_attempt=self._tries,
            tell=self._hear,
        )
        self._task = cast(_HarnessTask, self._subtask._task)
        (link,) = self._task._links
        link.operator.output = self._recorder
        assert link.context is not None
        self._running = link.operator, link.context
        self._subtask.begin()
        return self._running

    def _job(self) -> JobGraph:
        place, declaration = self._place, shipped(self._declaration)

        def vertex(vertex_id: str, name: str, parallelism: int, declared: Any) -> JobVertex:
            node = OperatorNode(vertex_id, name, None, name, declared)
            return JobVertex(vertex_id, name, parallelism, place.max_parallelism, "default", (node,))

        inputs = [f"input-{index}" for index in range(declaration.inputs)]
        edges = [
            JobEdge(
                index, name, 0, None, _OPERATOR_ID, index, Rebalance(), DistributionPattern.ALL_TO_ALL, name
            )
            for index, name in enumerate(inputs)
        ]
        return JobGraph(
            "harness",
            place.job_name,
            (
                *(vertex(name, name, 1, _Input()) for name in inputs),
                vertex(_OPERATOR_ID, place.operator_name, place.parallelism, declaration),
            ),
            tuple(edges),
            object_reuse=self._object_reuse,
            global_job_parameters=self._job_parameters,
        )

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            self._subtask.end()

    def _hear(self, message: Message) -> None:
        if isinstance(message, Acknowledge):
            self._acknowledged.append(message)

    # -- what goes in ------------------------------------------------------------------------------

    def process(self, value: Any, timestamp: int | None = None) -> None:
        """Give the (first) input one record."""
        self._send_batch(0, [value], None if timestamp is None else [timestamp])

    def process_second(self, value: Any, timestamp: int | None = None) -> None:
        """Give the second input one record."""
        self._send_batch(1, [value], None if timestamp is None else [timestamp])

    def process_batch(
        self,
        values: Iterable[Any],
        timestamps: Iterable[int | None] | None = None,
        *,
        is_second: bool = False,
    ) -> None:
        """Pass consecutive records of the stream to an input."""
        values, times = list(values), None if timestamps is None else list(timestamps)
        if times is not None and len(times) != len(values):
            raise JobDefinitionError(f"OperatorHarness: {len(values)} records with {len(times)} timestamps")
        self._send_batch(int(is_second), values, times)

    def process_status(self, *, is_active: bool) -> None:
        """Say that all inputs have fallen idle, or that one of them is active again."""
        self._send_events(is_active)

    def set_processing_time(self, timestamp: int) -> None:
        """Set the clock, in ms, and fire the timers that are due."""
        self.open()
        self._now_ms = timestamp
        self._task.is_clock_set = True
        self._turn()

    def finish(self) -> None:
        """Say that all input has ended: time does, too, and the operator emits what it held back."""
        self.open()
        self._watermarks = [MAX_WATERMARK, MAX_WATERMARK]
        self._send_events(MAX_WATERMARK, None)

    def _advance(self, inputs: Iterable[int], timestamp: int) -> None:
        self.open()
        for index in inputs:
            if index < self._declaration.inputs:
                self._watermarks[index] = max(self._watermarks[index], timestamp)
                self._send_items(index, [timestamp])

    def _send_batch(self, index: int, values: list[Any], timestamps: list[int | None] | None) -> None:
        self._send_items(index, [(values, timestamps)])

    def _send_events(self, *items: Any) -> None:
        for index in range(self._declaration.inputs):
            self._send_items(index, list(items))

    def _send_items(self, index: int, items: list[Any]) -> None:
        self.open()
        self._sequence += 1
        header = Header(*self._here, index, 0, 0, self._sequence)
        self._subtask.put(pack(header, encode_items(items)))
        self._turn()

    @property
    def _here(self) -> tuple[int, int]:
        return 1, self._place.subtask

    def _turn(self) -> None:
        # Watermarks are due after every batch.
        self._subtask._watermark_at = 0.0
        for _ in self._subtask.turn():
            pass

    # -- barriers ----------------------------------------------------------------------------------

    def end_epoch(self) -> list[Any]:
        """Pass a barrier: write the state, start the next epoch, and return what a sink staged."""
        self.open()
        self._watermarks_at_barrier = (self._watermarks[0], self._watermarks[1])
        for index in range(self._declaration.inputs):
            self._subtask.put(pack_barrier(*self._here, index, 0, self.epoch))
        self._turn()
        report = pickle.loads(self._acknowledged.pop().report)
        staged = list(report.committables.get(_OPERATOR_ID, ()))
        self.committables += staged
        for change in report.changes.values():
            self._chain = self._chain.append(change)
        self._operator_state = report.operator_state.get(_OPERATOR_ID, self._operator_state)
        self.warnings += report.warnings
        self.epoch += 1
        self._tries = 0
        return staged
