"""The trace of a task: what is kept of its epochs so that they can be replayed (`runtime/epoch/recording.py`)."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from headrace.elements import Batch
from headrace.operators.io import SinkTask, SourceTask
from headrace.operators.recorded_reader import RecordingReader
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, TaskTrace
from headrace.runtime.epoch.recording import RecordingSettings, epoch_directory, task_file
from headrace.runtime.exchange.result_partition import ResultPartition
from headrace.runtime.task.chain import ChainLink
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.sink_digest import SinkDigest
from headrace.runtime.task.task_clock import RecordingClock, TaskClock
from headrace.storage.files import write_new_file
from headrace.storage.paths import join_path


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


class RecordingTrace(Trace):
    """Notes readings of the clock, hashes of what sinks get and, if wanted, what sources read.

    Args:
        settings: Where to.
    """

    def __init__(self, settings: RecordingSettings) -> None:
        self._readings = RecordingClock()
        super().__init__(self._readings)
        self._settings = settings
        self._digests: dict[str, SinkDigest] = {}
        self._input: list[bytes] = []

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
        return super().begin_epoch(piece_size)

    def take(self) -> TaskTrace | None:
        sinks = {operator_id: digest.take() for operator_id, digest in self._digests.items()}
        return TaskTrace(self._readings.readings(), sinks)

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

    def _write(self, name: str, plan: EpochPlan, content: object) -> None:
        path = join_path(epoch_directory(self._settings.directory, plan.epoch), name)
        write_new_file(path, pickle.dumps(content, protocol=5))


def make_trace(settings: TaskSettings) -> Trace:
    """Return the trace that the job's options ask for."""
    return Trace() if settings.recording is None else RecordingTrace(settings.recording)
