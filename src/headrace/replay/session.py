"""Runs a recorded epoch in this process: the job's own tasks, with recorded clocks, and sinks that write nothing.

    for every level, for every subtask:   begin(plan) -> process(buffers of the levels before) -> report()

State is read from the recording's copies. New state files and what sinks would stage go to a temporary directory.
"""

from __future__ import annotations

import pickle
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from headrace.elements import Batch
from headrace.errors import StateError
from headrace.graph.table_job import is_table_vertex
from headrace.operators.io import SinkTask, SourceTask
from headrace.operators.recorded_reader import RecordedReader
from headrace.replay.live import ScriptPlayer
from headrace.replay.recordings import JobRecording
from headrace.replay.watched_records import WatchedRecords
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import SubtaskId, SubtaskPlan, SubtaskReport, TaskTrace
from headrace.runtime.epoch.recording import RecordedEpoch
from headrace.runtime.exchange.buffers import Header, read_header
from headrace.runtime.task.chain import ChainLink
from headrace.runtime.task.kept_tasks import close_quietly
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.live_task import LiveTask
from headrace.runtime.task.script import Script, read_script
from headrace.runtime.task.stream_task import StreamTask
from headrace.runtime.task.task_clock import FixedClock, RecordedClock, TaskClock
from headrace.runtime.task.trace import Trace
from headrace.storage.files import read_file

#: Called before a record is processed, with its number in the epoch, from 1, and the record.
BeforeRecord = Callable[[SubtaskId, int, Any], None]


@dataclass
class SubtaskReplay:
    """What the replay of a subtask did."""

    report: SubtaskReport
    #: The records that each sink was given, with their timestamps, by operator id.
    sinks: dict[str, list[tuple[Any, int | None]]] = field(default_factory=dict)
    #: Whether the clock was read more often than when the job ran.
    is_clock_exhausted: bool = False
    #: Buffers that the subtask of a live job got, and that those before it did not send now.
    missing: int = 0


class ReplaySession:
    """One epoch, ready to run. A context manager: the state of tasks can be looked at until it is closed.

    Args:
        recording: The job's.
        epoch: The epoch.
        before_record: Called before each record that a subtask gets, if anything waits for one.
        runs_sinks: Whether writers of sinks run, and are aborted; otherwise records only reach the sink.
    """

    def __init__(
        self,
        recording: JobRecording,
        epoch: RecordedEpoch,
        *,
        before_record: BeforeRecord | None = None,
        runs_sinks: bool = False,
    ) -> None:
        self.recording = recording
        self.epoch = epoch
        self._before_record = before_record
        self._runs_sinks = runs_sinks
        self.code: JobCode = recording.code_of(epoch.planned.lineage)
        self.layout = Layout(self.code.job)
        self._closing = ExitStack()
        #: Where the replay writes state files.
        self.directory = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="headrace-replay-"))
        self.plan = replace(epoch.planned.plan, state_dir=self.directory, sampling=None)
        settings = replace(
            self.code.settings, scratch_parent=self.directory, scratch_name="scratch", recording=None
        )
        self._settings = settings
        self._inbox: dict[tuple[int, int], list[tuple[Header, bytes]]] = defaultdict(list)

    def __enter__(self) -> ReplaySession:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def run(self) -> dict[SubtaskId, SubtaskReplay]:
        """Run every subtask of the epoch; what a function raises comes out."""
        done: dict[SubtaskId, SubtaskReplay] = {}
        for level, subtasks in enumerate(self.layout.levels):
            for partition, subtask in enumerate(subtasks):
                if self.plan.subtasks[subtask].has_ended:
                    continue
                if is_table_vertex(self.code.job.vertex(subtask.vertex_id)):
                    replayed = self._run_table(subtask)
                    if replayed is not None:
                        done[subtask] = replayed
                else:
                    replayed = self._run(subtask, self._inbox.pop((level, partition), []))
                    if replayed is not None:
                        done[subtask] = replayed
        if not done and self.epoch.planned.is_live:
            raise StateError(
                f"only the start of epoch {self.plan.epoch} is recorded",
                hint="an epoch of a live job is recorded when its barrier has passed, or when a function raises; "
                "choose another one with --epoch",
            )
        return done

    def name_of(self, subtask: SubtaskId) -> str:
        """Name a subtask as `--subtask` takes it."""
        return f"{self.code.job.vertex(subtask.vertex_id).name}:{subtask.subtask}"

    def operator_name(self, operator_id: str) -> str:
        """Return the name of an operator."""
        nodes = (node for vertex in self.code.job.vertices for node in vertex.operators)
        return next((node.name for node in nodes if node.operator_id == operator_id), operator_id)

    def _run(self, subtask: SubtaskId, buffers: list[tuple[Header, bytes]]) -> SubtaskReplay | None:
        recorded = self._recorded_trace(subtask)
        trace = self._trace_of(subtask, recorded)
        if self.epoch.planned.is_live:
            script = None if recorded is None else recorded.script
            return None if script is None else self._run_live(subtask, read_script(script), trace, buffers)
        task = StreamTask(self.code.job, self.layout, subtask, self.code.lineage, self._settings, trace=trace)
        self._closing.callback(close_quietly, task)
        trace.expect(task.in_order(buffers))
        report = self.epoch.reports.get(subtask)
        task.begin(self.plan, 0 if report is None else report.spark_attempt, self._send)
        for _ in task.process(buffers):
            pass
        return SubtaskReplay(task.report(), trace.sinks, _is_exhausted(trace))

    def _run_live(
        self, subtask: SubtaskId, script: Script, trace: ReplayTrace, buffers: list[tuple[Header, bytes]]
    ) -> SubtaskReplay:
        report = self.epoch.reports.get(subtask)
        code = self.code
        task = LiveTask(code.job, self.layout, subtask, code.lineage, self._settings, trace=trace)
        self._closing.callback(close_quietly, task)
        player = ScriptPlayer(script, self.name_of(subtask), buffers, has_failed=report is None)
        trace.expect(player.input)
        if player.has_copies:
            trace.expect_others()
        task.begin(self.plan, 0 if report is None else report.spark_attempt, self._send)
        player.play(task)
        return SubtaskReplay(task.report(), trace.sinks, _is_exhausted(trace), player.missing)

    def _run_table(self, subtask: SubtaskId) -> SubtaskReplay | None:
        # Few jobs need the modules of tables, and they take long to import.
        from headrace.replay.tables import replay_table_subtask

        replayed = replay_table_subtask(self, subtask, self._settings)
        return None if replayed is None else SubtaskReplay(*replayed)

    def _send(self, level: int, partition: int, buffer: bytes) -> None:
        self._inbox[level, partition].append((read_header(buffer), buffer))

    def _recorded_trace(self, subtask: SubtaskId) -> TaskTrace | None:
        report = self.epoch.reports.get(subtask)
        if report is not None:
            return report.trace
        failed = self.epoch.task_files("task", subtask)
        return pickle.loads(read_file(failed[-1])) if failed else None

    def _trace_of(self, subtask: SubtaskId, trace: TaskTrace | None) -> ReplayTrace:
        report = self.epoch.reports.get(subtask)
        before = None if self._before_record is None else partial(self._before_record, subtask)
        return self._make_trace(
            subtask,
            clock=self._clock(trace),
            attempt_id=None if report is None else report.attempt_id,
            before_record=before,
            runs_sinks=self._runs_sinks,
            inputs=self._input_of(subtask, trace),
        )

    def _make_trace(self, subtask: SubtaskId, **arguments: Any) -> ReplayTrace:
        return ReplayTrace(**arguments)

    def _clock(self, trace: TaskTrace | None) -> TaskClock:
        return FixedClock(self.epoch.planned.planned_ms) if trace is None else RecordedClock(trace.clock)

    def _input_of(self, subtask: SubtaskId, trace: TaskTrace | None) -> Sequence[bytes] | None:
        """Return what a source has read; None if it was not kept, so that the source is asked again."""
        kept = self.epoch.task_files("input", subtask)
        if kept:
            content: Sequence[bytes] = pickle.loads(read_file(kept[-1]))
            return content
        plans: Sequence[SubtaskPlan] = [self.plan.subtasks[subtask]]
        if self.epoch.planned.is_live:
            script = None if trace is None else trace.script
            plans = () if script is None else read_script(script).feeds
        return None if any(plan.slices for plan in plans) else ()


def _is_exhausted(trace: Trace) -> bool:
    return isinstance(trace.clock, RecordedClock) and trace.clock.is_exhausted


class ReplayTrace(Trace):
    """Gives a task its recorded clock, and watches what goes through it.

    Args:
        clock: The clock.
        attempt_id: The name of the attempt that is replayed.
        before_record: Called before each record that the subtask gets.
        runs_sinks: Whether writers of sinks run.
        inputs: What a source has read, if it was kept.
    """

    def __init__(
        self,
        clock: TaskClock,
        *,
        attempt_id: str | None = None,
        before_record: Callable[[int, Any], None] | None = None,
        runs_sinks: bool = False,
        inputs: Sequence[bytes] | None = None,
    ) -> None:
        super().__init__(clock)
        self.attempt_id = attempt_id
        self.sinks: dict[str, list[tuple[Any, int | None]]] = {}
        self._before_record = before_record
        self._runs_sinks = runs_sinks
        self._inputs = inputs
        self._seen = 0

    def watch(self, links: Sequence[ChainLink]) -> None:
        """Silence sinks, keep what they get, and have sources read what was recorded."""
        for link in links:
            if isinstance(link.operator, SinkTask):
                link.operator.is_muted = not self._runs_sinks
                link.operator.tap = partial(self._note, self.sinks.setdefault(link.node.operator_id, []))
            elif isinstance(link.operator, SourceTask) and self._inputs is not None:
                link.operator.reader_of = partial(RecordedReader, self._inputs)

    def expect(self, buffers: list[tuple[Header, bytes]]) -> None:
        """Take notice of the epoch's input, in the order in which it will be read."""

    def expect_others(self) -> None:
        """Take notice that there is input of other epochs in between."""

    def pieces(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Say so before each record, if anything waits for one."""
        if self._before_record is None:
            return batches
        return map(self._watched, batches)

    def _watched(self, batch: Batch) -> Batch:
        assert self._before_record is not None
        watched = WatchedRecords(batch.values, self._seen, self._before_record)
        self._seen += len(batch)
        return Batch(watched, batch.timestamps)

    def _note(self, records: list[tuple[Any, int | None]], batch: Batch) -> None:
        timestamps = batch.timestamps or [None] * len(batch)
        # Copies: what the sink is given may be changed by others later.
        copies = pickle.loads(pickle.dumps(batch.values, protocol=5))
        records += zip(copies, timestamps, strict=True)
