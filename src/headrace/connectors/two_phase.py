"""`TwoPhaseCommitSink`: a transaction a subtask and epoch, prepared in the worker, committed in the driver.

    worker   begin_transaction -> invoke ... -> pre_commit: from here it survives the process
                     |                                |
                     +---- after a failure: abort     +---- handle, in the report, then in the checkpoint
    driver                                                  commit(handle), again after a failure

For systems in which a transaction that one process has prepared can be committed by another: files that are
renamed, XA, tables that are swapped. Flink's TwoPhaseCommitSinkFunction has the same steps; there the task
commits, here the driver.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from headrace.connectors import base

#: A transaction while it is written, in the worker. It need not pickle.
T = TypeVar("T")
#: What the driver needs to commit it. It must pickle.
H = TypeVar("H")


class TwoPhaseCommitSink(base.Sink, Generic[T, H]):
    r"""A sink over transactions that outlive the process that wrote them. Subclass it as a frozen dataclass.

    Example:
        This one writes a file an epoch and subtask: `.tmp` until it is committed.

        >>> import os, tempfile
        >>> from headrace.connectors.base import Committable, WriterContext
        >>> from dataclasses import dataclass
        >>> from pathlib import Path
        >>> @dataclass(frozen=True)
        ... class NotesSink(TwoPhaseCommitSink):
        ...     folder: str
        ...     def begin_transaction(self, context):
        ...         name = f"{context.epoch}-{context.subtask}-{context.attempt_id}"
        ...         return open(Path(self.folder, f"{name}.tmp"), "w")
        ...     def invoke(self, transaction, value, timestamp):
        ...         transaction.write(f"{value}\n")
        ...     def pre_commit(self, transaction):
        ...         transaction.close()
        ...         return transaction.name
        ...     def commit(self, handle):
        ...         if os.path.exists(handle):  # otherwise it was done before
        ...             os.rename(handle, handle.removesuffix(".tmp") + ".txt")
        ...     def abort(self, transaction):
        ...         transaction.close()
        ...         os.unlink(transaction.name)
        ...     def recover_and_abort(self, context, epoch):
        ...         for path in Path(self.folder).glob("*.tmp"):
        ...             if int(path.name.partition("-")[0]) > epoch:
        ...                 path.unlink()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sink = NotesSink(folder)
        ...     writer = sink.create_writer(WriterContext(subtask=0, parallelism=1, epoch=7, attempt_id="a"))
        ...     writer.write("do", None)
        ...     staged = [Committable(0, 7, handle) for handle in writer.prepare_commit()]
        ...     for committer in (sink.create_committer(), sink.create_committer()):
        ...         committer.commit(staged)
        ...     print(os.listdir(folder))
        ['7-0-a.txt']
    """

    @abstractmethod
    def begin_transaction(self, context: base.WriterContext) -> T:
        """Open a transaction for one subtask's records of one epoch; put `context.attempt_id` in its name."""

    @abstractmethod
    def invoke(self, transaction: T, value: Any, timestamp: int | None) -> None:
        """Write one record as part of the open transaction."""

    @abstractmethod
    def pre_commit(self, transaction: T) -> H:
        """Make sure that committing cannot fail any more, and return what it needs."""

    @abstractmethod
    def commit(self, handle: H) -> None:
        """Commit, in the driver. It may have been done before: then do nothing."""

    def abort(self, transaction: T) -> None:
        """The epoch failed: roll back, in the worker. Not called if the worker is gone."""

    def recover_and_abort(self, context: base.CommitterContext, epoch: int) -> None:
        """Roll back what later epochs have prepared, in the driver, after a recovery."""

    def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
        """Make the worker's half."""
        return _Writer(self, context)

    def create_committer(self, context: base.CommitterContext | None = None) -> base.Committer:
        """Make the driver's half."""
        return _Committer(self, context or base.CommitterContext())


class _Writer(base.SinkWriter, Generic[T, H]):
    def __init__(self, sink: TwoPhaseCommitSink[T, H], context: base.WriterContext) -> None:
        self._sink = sink
        self._transaction: T | None = sink.begin_transaction(context)

    def write(self, value: Any, timestamp: int | None) -> None:
        assert self._transaction is not None
        self._sink.invoke(self._transaction, value, timestamp)

    def prepare_commit(self) -> Sequence[H]:
        assert self._transaction is not None
        return [self._sink.pre_commit(self._transaction)]

    def abort(self) -> None:
        if self._transaction is not None:
            transaction, self._transaction = self._transaction, None
            self._sink.abort(transaction)


class _Committer(base.Committer, Generic[T, H]):
    def __init__(self, sink: TwoPhaseCommitSink[T, H], context: base.CommitterContext) -> None:
        self._sink = sink
        self._context = context

    def commit(self, committables: Sequence[base.Committable]) -> None:
        for committable in committables:
            self._sink.commit(committable.payload)

    def discard_after(self, epoch: int) -> None:
        self._sink.recover_and_abort(self._context, epoch)
