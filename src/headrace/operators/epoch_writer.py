"""EpochWriter: stages what epochs write to a sink, for one subtask.

    begin_epoch() -> write(batch) ... write(batch) -> prepare_commit() -> begin_epoch() -> ... -> close()
                       |                                   |
                    a new writer of the sink            committables

Each epoch has a writer of its own. An epoch that failed is aborted by `close`, which removes what was staged.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from headrace.connectors.base import Sink, SinkWriter, WriterContext
from headrace.elements import Batch
from headrace.operators.base import EpochPlace
from headrace.operators.context import OperatorContext
from headrace.operators.located import locating


class EpochWriter:
    """Hands records to writers of a sink.

    Args:
        sink: What is written to.
        context: The operator's.
    """

    def __init__(self, sink: Sink, context: OperatorContext) -> None:
        self._sink = sink
        self._context = context
        self._writer: SinkWriter | None = None

    def begin_epoch(self, place: EpochPlace) -> None:
        """What is written from here on is staged under this epoch and attempt."""
        self._place = place

    def write(self, batch: Batch) -> None:
        with locating(self._context):
            if self._writer is None:  # an epoch without records stages nothing
                self._writer = self._sink.create_writer(self._writer_context())
            self._writer.write_batch(batch)

    def prepare_commit(self) -> Sequence[Any]:
        """Finish staging; return what the committer needs to publish the epoch."""
        if self._writer is None:
            return ()
        with locating(self._context):
            committables = tuple(self._writer.prepare_commit())
            self._writer.close()
        # Only now: a writer that could not finish is still there to be aborted.
        self._writer = None
        return committables

    def close(self) -> None:
        """Abort the epoch, if it has not been finished."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with ExitStack() as closing:
                closing.callback(writer.close)
                writer.abort()

    def _writer_context(self) -> WriterContext:
        task, at = self._context.place, self._place
        names = {"job_id": at.job_id, "sink_id": task.operator_id, "staging_dir": at.staging_dir}
        return WriterContext(task.subtask, task.parallelism, at.epoch, at.attempt_id, **names)
