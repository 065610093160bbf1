"""The trace of a task: what is kept of its epochs so that they can be replayed (`runtime/epoch/recording.py`)."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from headrace.elements import Batch
from headrace.errors import HeadraceError
from headrace.operators.io import SinkTask, SourceTask
from headrace.operators.recorded_reader import RecordingReader
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, TaskTrace
from headrace.runtime.epoch.recording import RecordingSettings, epoch_directory, task_file
from headrace.runtime.exchange.buffers import Header
from headrace.runtime.exchange.result_partition import ResultPartition
from headrace.runtime.task.chain import ChainLink
from headrace.runtime.task.script import ScriptStep, ScriptWriter
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.sink_digest import SinkDigest
from headrace.runtime.task.task_clock import RecordingClock, TaskClock
from headrace.storage.files import write_new_file
from headrace.storage.paths import join_path

_log = logging.getLogger(__name__)


class Trace:
    """Nothing is kept: the machine's clock, and nobody who watches."""

    #: The name of the attempt, if it is to have one.
    attempt_id: str | None = None

    def __init__(self, clock: TaskClock | None = None) -> None:
        self.clock = clock or TaskClock()

    def watch(self, links: Sequence[ChainLink]) -> None:
        """Look at what sources read and sinks get; called once, before the operators are opened."""

    def begin_epoch(self, piece_size: int) -> int:
        """Begin an epoch; return how many records its first piece has."""
        return self.clock.begin_epoch(piece_size)

    def pieces(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Look at the records that the subtask gets."""
        return batches

    def sending(self, partition: ResultPartition) -> ResultPartition:
        """Look at what leaves the subtask along an edge; called once per edge and epoch."""
        return partition

    def take(self) -> TaskTrace | None:
        """Return what the report of the epoch says about it."""
        return None

    @contextmanager
    def attempting(self, plan: EpochPlan, subtask: SubtaskId, attempt_id: str) -> Iterator[None]:
        """Keep what the driver does not learn from a report, around the attempt at an epoch."""
        yield

    # -- of live tasks -----------------------------------------------------------------------------------------

    def did(self, step: ScriptStep, *arguments: int) -> None:
        """Look at what the loop has the task do."""

    def fed(self, plan: SubtaskPlan) -> None:
        """Look at the slices that a source begins to read."""

    def took(self, header: Header, buffer: bytes) -> None:
        """Look at a buffer that the task begins to work through."""

    def is_odd(self, buffer: bytes) -> None:
        """Take notice of a buffer that will be worked through, and that no channel has brought in this form."""

    def passed(self, header: Header) -> None:
        """Look at a barrier that has come on a channel."""

    def keep_input(self, plan: EpochPlan, subtask: SubtaskId, attempt_id: str) -> None:
        """Keep what a source has read between two barriers."""

    def keep_failure(self, plan: EpochPlan, subtask: SubtaskId, attempt_id: str) -> None:
        """Keep what the driver does not learn from a report, of a task that has failed."""


class RecordingTrace(Trace):
    """Notes readings of the clock, hashes of what sinks get and, if wanted, what sources read.

    Args:
        settings: Where to.
        is_live: Whether the task lasts, and its loop decides what comes next.
    """

    def __init__(self, settings: RecordingSettings, *, is_live: bool = False) -> None:
        self._readings = RecordingClock()
        super().__init__(self._readings)
        self._settings = settings
        self._digests: dict[str, SinkDigest] = {}
        self._input: list[bytes] = _Bounded(settings.live_bytes) if is_live else []
        self._script = ScriptWriter(settings.live_bytes) if is_live else None

    def watch(self, links: Sequence[ChainLink]) -> None:
        for link in links:
            if isinstance(link.operator, SinkTask):
                digest = self._digests[link.node.operator_id] = SinkDigest()
                link.operator.tap = digest.add
            elif isinstance(link.operator, SourceTask) and self._settings.keeps_inputs:
                link.operator.reader_of = partial(RecordingReader, self._input)

    def begin_epoch(self, piece_size: int) -> int:
        self._input.clear()
        for digest in self._digests.values():
            digest.begin_epoch()
        if self._script is not None:
            self._script.begin_epoch()
        return super().begin_epoch(piece_size)

    def take(self) -> TaskTrace | None:
        sinks = {operator_id: digest.take() for operator_id, digest in self._digests.items()}
        script = None if self._script is None else self._script.take()
        return TaskTrace(self._readings.readings(), sinks, script)

    @contextmanager
    def attempting(self, plan: EpochPlan, subtask: SubtaskId, attempt_id: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self._write(task_file("task", subtask, plan, attempt_id), plan, self.take())
            raise
        finally:
            if self._input:
                self._write(task_file("input", subtask, plan, attempt_id), plan, tuple(self._input))

    def did(self, step: ScriptStep, *arguments: int) -> None:
        if self._script is not None:
            self._script.step(step, *arguments)
            self._readings.is_noted = not self._script.is_cut_short

    def fed(self, plan: SubtaskPlan) -> None:
        if self._script is not None:
            self._script.feed(plan)

    def took(self, header: Header, buffer: bytes) -> None:
        if self._script is not None:
            self._script.buffer(header, buffer)

    def is_odd(self, buffer: bytes) -> None:
        if self._script is not None:
            self._script.odd(buffer)

    def passed(self, header: Header) -> None:
        if self._script is not None:
            self._script.barrier(header)

    def keep_input(self, plan: EpochPlan, subtask: SubtaskId, attempt_id: str) -> None:
        if self._input:
            self._write_if_possible(task_file("input", subtask, plan, attempt_id), plan, tuple(self._input))

    def keep_failure(self, plan: EpochPlan, subtask: SubtaskId, attempt_id: str) -> None:
        if self._script is not None:
            trace = TaskTrace(self._readings.readings(), {}, self._script.take(has_failed=True))
            self.keep_input(plan, subtask, attempt_id)
            self._write_if_possible(task_file("task", subtask, plan, attempt_id), plan, trace)

    def _write_if_possible(self, name: str, plan: EpochPlan, content: object) -> None:
        """Write a file; a recording that cannot be written is not a reason to end a task that lasts."""
        try:
            self._write(name, plan, content)
        except (OSError, HeadraceError) as error:
            _log.warning("the recording for replay is not complete: %s", error)

    def _write(self, name: str, plan: EpochPlan, content: object) -> None:
        path = join_path(epoch_directory(self._settings.directory, plan.epoch), name)
        write_new_file(path, pickle.dumps(content, protocol=5))


class _Bounded(list[bytes]):
    """What a source has read, unless it is too much to be kept until the next barrier.

    Args:
        most_bytes: How much that is.
    """

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self._most_bytes = most_bytes
        self._bytes = 0

    def append(self, each: bytes, /) -> None:
        self._bytes += len(each)
        if self._bytes <= self._most_bytes:
            super().append(each)
        else:
            super().clear()  # a part of it is of no use

    def clear(self) -> None:
        self._bytes = 0
        super().clear()


def make_trace(settings: TaskSettings, *, is_live: bool = False) -> Trace:
    """Return the trace that the job's options ask for."""
    return Trace() if settings.recording is None else RecordingTrace(settings.recording, is_live=is_live)
