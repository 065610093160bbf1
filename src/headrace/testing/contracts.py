"""What every source and every sink must do, as checks to run over your own.

    check_source(MySource(...), expected=[...], parallelism=2)
    check_sink(MySink(...), [["a", "b"], ["c"]], published=lambda: read_back())

They do what the engine does with a connector (ship it, plan, read, read again, commit, commit again, start
again), without Spark, and raise `ContractViolation`. They need no test framework.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle
from typing import Any

from headrace.connectors import base
from headrace.elements import Batch

#: Records an epoch reads of a split at most: always as many, or in turns.
Cut = int | Sequence[int]

CUTS: tuple[Cut, ...] = (1, 2, 3, (1, 4), (7, 1, 2), 1_000_000)


class ContractViolation(AssertionError):
    """A connector does not do what `headrace.connectors.base` says it does."""


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ContractViolation(message)


def _require_same(
    found: Iterable[Any], expected: Sequence[Any], where: str, *, allow_surplus: bool = False
) -> None:
    """Compare without regard to order; records need not hash or sort."""
    missing, surplus = _differences(found, expected)
    _require(not missing, f"{where}: missing: {missing[:5]!r}")
    _require(allow_surplus or not surplus, f"{where}: there but not expected: {surplus[:5]!r}")


def _require_no_more(found: Iterable[Any], expected: Sequence[Any], where: str) -> None:
    _, surplus = _differences(found, expected)
    _require(not surplus, f"{where}: there but not expected: {surplus[:5]!r}")


def _differences(found: Iterable[Any], expected: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    missing = list(expected)
    surplus = []
    for record in found:
        try:
            missing.remove(record)
        except ValueError:
            surplus.append(record)
    return missing, surplus


# --- sources --------------------------------------------------------------------------------------


def check_source(
    source: base.Source,
    expected: Sequence[Any],
    parallelism: int = 1,
    cuts: Iterable[Cut] = CUTS,
    *,
    is_restartable: bool = True,
    more: Callable[[], Sequence[Any]] | None = None,
    timeout_s: float = 20.0,
) -> None:
    """Read a source in every way of cutting it into epochs; each must give the same records.

    Checked besides: the declaration and slices pickle, a slice that is read again gives the same, no split
    comes twice, an epoch keeps to its limit, and reading continues after a restart at any epoch where it stood,
    also with more readers and with fewer. Splits may be empty.

    Args:
        source: The source. A bounded one must end by itself; an unbounded one is read until it has given as
            many records as are expected, and must not have more.
        expected: All records, in any order.
        parallelism: How many subtasks to plan for.
        cuts: How many records an epoch may read of a split.
        more: Adds to the input of an unbounded source (a file, a partition, records) and returns what it added.
            Called once for each way of reading, when all else was read; it must be found and read, too.
        is_restartable: Whether a new enumerator can continue from a position. False for sockets and their like.
        timeout_s: How long to wait for records, for each cut.

    Raises:
        ContractViolation: The source does something else; the message says what.
    """
    source = pickle.loads(pickle.dumps(source))
    expected = list(expected)
    by_split: dict[str, list[Any]] = {}
    for cut in cuts:
        restarts = (False, True) if is_restartable else (False,)
        for with_restarts in restarts:
            run = _Run(source, parallelism, with_restarts, f"cut {cut}{', with restarts' * with_restarts}")
            try:
                run.read_all(cut, len(expected), time.monotonic() + timeout_s)
                _require_same(run.found, expected, run.name)
                if more is not None:
                    run.name += ", with more"
                    expected += more()
                    run.read_all(cut, len(expected), time.monotonic() + timeout_s)
                    _require_same(run.found, expected, run.name)
            finally:
                run.close()
            # A split only ever grows: what was read of it before is what it begins with.
            for split_id, before in by_split.items():
                _require(
                    run.records.get(split_id, [])[: len(before)] == before,
                    f"{run.name}: split {split_id!r} holds other records than with another cut",
                )
            by_split = run.records


class _Run:
    """Plays the job: keeps positions, plans epochs, reads them twice."""

    def __init__(self, source: base.Source, parallelism: int, with_restarts: bool, name: str) -> None:
        self.name = name
        #: What was read of each split, in order.
        self.records: dict[str, list[Any]] = {}
        self._source = source
        self._parallelism = parallelism
        self._with_restarts = with_restarts
        self._splits: dict[str, base.SourceSplit] = {}
        self._positions: dict[str, base.SplitProgress] = {}
        self._restarts = 0
        self._enumerator = source.create_enumerator(parallelism)

    @property
    def found(self) -> list[Any]:
        """What was read of all splits."""
        return [record for records in self.records.values() for record in records]

    def close(self) -> None:
        self._enumerator.close()

    def read_all(self, cut: Cut, expected: int, deadline: float) -> None:
        for limit in cycle([cut] if isinstance(cut, int) else cut):
            has_read = self._run_epoch(limit)
            if self._is_over(expected):
                return
            count = sum(map(len, self.records.values()))
            _require(time.monotonic() < deadline, f"{self.name}: no end; {count} records so far")
            if not has_read:
                self._wait()
            elif self._with_restarts:
                self._restart()

    def _run_epoch(self, limit: int) -> bool:
        self._discover()
        has_read = False
        for split_id, split in self._splits.items():
            progress = self._positions[split_id]
            if progress.is_finished:
                continue
            piece = self._enumerator.plan(split, progress.position, limit)
            if piece is None:
                continue
            _require(piece.split == split, f"{self.name}: a slice of {split_id!r} names split {piece.split}")
            values, self._positions[split_id] = self._read(piece, limit)
            self.records[split_id] += values
            if self._positions[split_id].is_finished:
                self._enumerator.split_finished(split)
            has_read = True
        return has_read

    def _discover(self, is_restart: bool = False) -> None:
        for split in self._enumerator.discover():
            split_id = split.split_id
            if split_id in self._splits:
                # A source that does not care for `restore` gives the same ids again after a restart.
                _require(is_restart, f"{self.name}: split {split_id!r} was returned twice")
                continue
            self._splits[split_id] = pickle.loads(pickle.dumps(split))
            start = self._enumerator.start_position(split)
            self._positions[split_id] = base.SplitProgress(start, is_finished=False)
            self.records[split_id] = []

    def _read(self, piece: base.Slice, limit: int) -> tuple[list[Any], base.SplitProgress]:
        data = pickle.dumps(piece)
        first, again = (self._read_once(pickle.loads(data)) for _ in range(2))
        _require(first == again, f"{self.name}: a slice read again gives another result: {first}, {again}")
        values, progress = first
        _require(len(values) <= limit, f"{self.name}: {len(values)} records read where {limit} were allowed")
        return values, pickle.loads(pickle.dumps(progress))

    def _read_once(self, piece: base.Slice) -> tuple[list[Any], base.SplitProgress]:
        reader = self._source.create_reader()
        reader.open(base.ReaderContext())
        values: list[Any] = []
        for batch in reader.read(piece):
            _require(len(batch), f"{self.name}: an empty batch")
            _require(
                batch.timestamps is None or len(batch.timestamps) == len(batch),
                f"{self.name}: a batch of {len(batch)} records has another number of timestamps",
            )
            values += batch.values
        progress = reader.progress()
        reader.close()
        return values, progress

    def _is_over(self, expected: int) -> bool:
        if self._source.boundedness is base.Boundedness.BOUNDED:
            return self._enumerator.is_complete and all(p.is_finished for p in self._positions.values())
        return sum(map(len, self.records.values())) >= expected

    def _wait(self) -> None:
        delay = self._enumerator.next_discovery_delay()
        time.sleep(0.005 if delay is None else min(delay, 0.05))

    def _restart(self) -> None:
        """Continue as a new driver would, which has the splits and positions, and more subtasks or fewer."""
        self._enumerator.close()
        self._restarts += 1
        parallelism = max(1, self._parallelism + (1 if self._restarts % 2 else -1))
        self._enumerator = self._source.create_enumerator(parallelism)
        self._enumerator.restore(list(self._splits.values()))
        for split_id, progress in self._positions.items():
            if progress.is_finished:
                self._enumerator.split_finished(self._splits[split_id])
        self._discover(is_restart=True)


# --- sinks ----------------------------------------------------------------------------------------


def check_sink(
    sink: base.Sink,
    epochs: Sequence[Sequence[Any]],
    published: Callable[[], Iterable[Any]],
    *,
    guarantee: base.DeliveryGuarantee = base.DeliveryGuarantee.EXACTLY_ONCE,
    is_marked: bool = True,
) -> None:
    """Write epochs of records with failures on the way; each record must be published once.

    Every epoch is written by two subtasks, each in three attempts: one is aborted, one vanishes, one
    succeeds. What succeeded is committed, committed again, and committed by a restored committer, as after
    the crash of a driver; of every second epoch the driver crashes before the commit.
    An epoch without records comes last, then the end of the input. What a sink holds back (files that are not
    full yet) must be there by then.

    Args:
        sink: The sink. What it writes to must be empty.
        epochs: The records of each epoch.
        published: Reads back what is visible, in any order.
        guarantee: With AT_LEAST_ONCE, records may be visible early and more than once, but none is missing.
        is_marked: Whether what was published is known to another committer too. False for standard output.

    Raises:
        ContractViolation: The sink does something else; the message says what.
    """
    sink = pickle.loads(pickle.dumps(sink))
    committer = base.committer_of(sink, _COMMITTER)
    is_exact = guarantee is base.DeliveryGuarantee.EXACTLY_ONCE
    _require(committer is not None or not is_exact, "a sink that delivers exactly once needs a committer")
    so_far: list[Any] = []
    for number, records in enumerate([*epochs, []], start=1):
        committables = list(_write_epoch(sink, number, records))
        if is_exact:
            _require_no_more(published(), so_far, f"epoch {number}, before the commit")
        so_far += records
        snapshot = None if committer is None else committer.snapshot()
        if committer is not None and is_marked and number % 2 == 0:
            # The checkpoint was complete, and nothing more was done.
            committer = _recover(sink, snapshot)
        commits = _commits(sink, committer, number, snapshot, committables, is_marked=is_marked)
        for done, committer in commits:
            where = f"epoch {number}, {done}"
            if committer is not None and snapshot is not None:
                _require_no_more(published(), so_far, where)
            else:
                _require_same(published(), so_far, where, allow_surplus=not is_exact)
    if committer is not None:
        committer.finish()
        _require_same(published(), so_far, "at the end of the input", allow_surplus=not is_exact)
        if is_marked:
            committer = _commit_again(sink, snapshot, committables)
            committer.finish()
        committer.close()
    _require_same(published(), so_far, "finished again", allow_surplus=not is_exact)


_COMMITTER = base.CommitterContext(job_id="contract", sink_id="sink", is_checkpointed=True)


def _recover(sink: base.Sink, snapshot: bytes | None) -> base.Committer:
    """Make the committer of a new driver; the old one is simply gone."""
    committer = base.committer_of(sink, _COMMITTER)
    assert committer is not None
    if snapshot is not None:
        committer.restore(snapshot)
    return committer


def _commits(
    sink: base.Sink,
    committer: base.Committer | None,
    epoch: int,
    snapshot: bytes | None,
    committables: Sequence[base.Committable],
    *,
    is_marked: bool,
) -> Iterator[tuple[str, base.Committer | None]]:
    """Commit an epoch again and again, as after crashes; yield what was done, and the committer that continues."""
    for done in ("committed", "committed again"):
        if committer is not None:
            committer.commit(committables)
        yield done, committer
    if committer is not None and is_marked:
        committer = _commit_again(sink, snapshot, committables)
        committer.discard_after(epoch)
        yield "committed by a new committer", committer


def _commit_again(
    sink: base.Sink, snapshot: bytes | None, committables: Sequence[base.Committable]
) -> base.Committer:
    committer = _recover(sink, snapshot)
    committer.commit(committables)
    return committer


def _write_epoch(sink: base.Sink, epoch: int, records: Sequence[Any]) -> Iterator[base.Committable]:
    for subtask in range(2):
        own = list(records[subtask::2])
        for attempt in ("aborted", "vanished", "succeeded"):
            context = base.WriterContext(
                subtask, 2, epoch, f"{epoch}-{subtask}-{attempt}", "contract", "sink"
            )
            writer = sink.create_writer(context)
            _write(writer, own)
            if attempt == "aborted":
                writer.abort()
                writer.close()
                continue
            payloads = writer.prepare_commit()
            writer.close()
            if attempt == "succeeded":
                for payload in payloads:
                    yield base.Committable(subtask, epoch, pickle.loads(pickle.dumps(payload)))


def _write(writer: base.SinkWriter, records: list[Any]) -> None:
    """Write one record alone and the others as batches, with timestamps and without."""
    for record in records[:1]:
        writer.write(record, 7)
    if len(records) > 1:
        middle = len(records) // 2 + 1
        writer.write_batch(Batch(records[1:middle], [None] * len(records[1:middle])))
        writer.write_batch(Batch(records[middle:]))
