"""Publishes what writers have staged: the share of each subtask in a transaction of its own, side by side.

A transaction of librdkafka ends with the client that has begun it, and a worker may be gone after its epoch. So writers
stage records, and when the checkpoint is complete, each subtask's share is written under the subtask's own id
(`_transactions`). Small shares, which have come with the report, are written from here, in threads. Large ones are in
files; a worker reads and writes each of them, in a stage that runs after the checkpoint:

    driver    checkpoint 7 is complete ---- shares of subtasks 0, 1, 2 --->  their results: which producer, or an error
                                               |         |         |              ^
    workers                                 id-0: tx  id-1: tx  id-2: tx  --------+

A worker keeps its producers, because new ones cost a few round trips to the brokers. Which worker has which share may
change, and a new producer of an id shuts out the old one. So the driver says which producer wrote last: a worker uses
its own only if it was that one. If the brokers say then that somebody else has taken over, it was not a worker of ours.

After a change of parallelism nothing has to be moved: what an older checkpoint covers names the subtask that staged it,
and is written under that subtask's id, where the marker is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from headrace.connectors.base import RunInWorkers
from headrace.connectors.kafka._properties import KafkaProperties
from headrace.connectors.kafka._transactions import TransactionalWriter
from headrace.connectors.write_ahead import Publisher, StagedRecords
from headrace.errors import ConnectorError, HeadraceError

#: Threads of the driver that write small shares.
_THREADS = 8
#: Producers that a process keeps.
_KEPT_WRITERS = 32

#: The producers of this process, by process and transactional id, with the name of each. A forked process must not use
#: its parent's.
_writers: dict[tuple[int, str], tuple[str, TransactionalWriter]] = {}


@dataclass(frozen=True)
class Outcome:
    """What happened to a share."""

    #: The producer that has written it.
    writer: str = ""
    error: ConnectorError | None = None


@dataclass(frozen=True)
class TransactionShare:
    """What one subtask has staged for a checkpoint; calling it, in whichever process, writes it."""

    properties: KafkaProperties
    config: dict[str, Any]
    transactional_id: str
    topic: str | None
    generation: str
    staged: tuple[StagedRecords, ...]
    #: The producer that wrote last under this id; None if that is not known.
    last_writer: str | None

    def __call__(self) -> Outcome:
        key = (os.getpid(), self.transactional_id)
        name, writer = _writers.pop(key, ("", None))
        if writer is not None and name != self.last_writer:
            writer.close()  # another one has the id since
            writer = None
        if writer is None:
            name = uuid4().hex
            writer = TransactionalWriter(
                self.properties, self.config, transactional_id=self.transactional_id, topic=self.topic
            )
        try:
            writer.write(self.staged, self.generation)
        except BaseException as error:
            writer.close()
            if isinstance(error, ConnectorError):
                return Outcome(error=error)
            raise
        _keep(key, name, writer)
        return Outcome(name)


def _keep(key: tuple[int, str], name: str, writer: TransactionalWriter) -> None:
    _writers[key] = (name, writer)
    for old in list(_writers)[:-_KEPT_WRITERS]:
        kept = _writers.pop(old, None)
        if kept is not None and old[0] == key[0]:
            kept[1].close()


class KafkaPublisher(Publisher):
    """Has the shares of all subtasks written.

    Args:
        properties: Of the producers.
        config: The same in librdkafka's names.
        id_prefix: What transactional ids begin with; the number of the subtask follows.
        topic: The topic that everything goes to; None if records choose theirs.
        run_in_workers: Runs functions in workers; None from it, or no such function: there are no workers.
    """

    def __init__(
        self,
        properties: KafkaProperties,
        config: dict[str, Any],
        *,
        id_prefix: str,
        topic: str | None,
        run_in_workers: RunInWorkers | None = None,
    ) -> None:
        self._properties = properties
        self._config = config
        self._id_prefix = id_prefix
        self._topic = topic
        self._run_in_workers = run_in_workers
        self._generation = uuid4().hex[:12]
        #: Under which the checkpoint was written that is published again; None once that is done.
        self._restored: str | None = None
        #: The producer that wrote last, by subtask.
        self._last_writers: dict[int, str] = {}

    def snapshot(self) -> bytes:
        return self._generation.encode()

    def restore(self, state: bytes) -> None:
        self._restored = state.decode()

    def recovered(self) -> None:
        self._restored = None

    def publish(self, records: StagedRecords) -> None:
        self.publish_all([records])

    def publish_all(self, staged: Sequence[StagedRecords]) -> None:
        shares = {subtask: self._share(subtask, staged) for subtask in sorted({r.subtask for r in staged})}
        # If anything happens to a worker, nobody knows which producer was the last.
        for subtask in shares:
            self._last_writers.pop(subtask, None)
        failures: list[ConnectorError] = []
        for subtask, outcome in self._outcomes(shares):
            if outcome.error is None:
                self._last_writers[subtask] = outcome.writer
            else:
                failures.append(outcome.error)
        if failures:
            # One that would fail again says more than one that might not.
            raise min(failures, key=lambda error: error.retryable)

    def _share(self, subtask: int, staged: Sequence[StagedRecords]) -> TransactionShare:
        return TransactionShare(
            properties=self._properties,
            config=self._config,
            transactional_id=self._transactional_id(subtask),
            topic=self._topic,
            generation=self._restored or self._generation,
            staged=tuple(records for records in staged if records.subtask == subtask),
            last_writer=self._last_writers.get(subtask),
        )

    def _transactional_id(self, subtask: int) -> str:
        return f"{self._id_prefix}-{subtask}"

    def _outcomes(self, shares: dict[int, TransactionShare]) -> Iterator[tuple[int, Outcome]]:
        large = [subtask for subtask, share in shares.items() if any(each.place for each in share.staged)]
        small = [subtask for subtask in shares if subtask not in large]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="headrace-kafka") as threads:
            here = [threads.submit(shares[subtask]) for subtask in small]
            there = self._in_workers([shares[subtask] for subtask in large]) if large else []
            if there is None:
                small += large
                here += [threads.submit(shares[subtask]) for subtask in large]
            else:
                yield from zip(large, there, strict=True)
            for subtask, future in zip(small, here, strict=True):
                yield subtask, future.result()

    def _in_workers(self, shares: Sequence[Callable[[], Outcome]]) -> list[Outcome] | None:
        if self._run_in_workers is None:
            return None
        try:
            return self._run_in_workers(shares)
        except HeadraceError as error:
            raise ConnectorError(
                f"KafkaSink: workers could not write what they have staged: {error.message}",
                hint=error.hint,
                retryable=error.retryable,
            ) from error

    def close(self) -> None:
        """Close the producers of this process; an open transaction is left to whoever begins next."""
        for key in [key for key in _writers if key[1].startswith(f"{self._id_prefix}-")]:
            _writers.pop(key)[1].close()
