"""Sources and sinks that tests hold in their hands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.connectors.base import (
    Boundedness,
    Committable,
    Committer,
    Sink,
    SinkWriter,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
    WriterContext,
)
from headrace.elements import Batch


class SplitsSource(Source):
    """Reads named splits, each a list of records.

    Args:
        splits: Name -> records.
        concurrent: Splits a subtask reads side by side; None for all.
        found_later: Names that are found only when ``discover`` is called again, one each time.
        batch_records: Records of a batch.
    """

    def __init__(
        self,
        splits: Mapping[str, Sequence[Any]],
        *,
        concurrent: int | None = 1,
        found_later: Sequence[str] = (),
        batch_records: int = 2,
    ) -> None:
        self.splits = {name: list(records) for name, records in splits.items()}
        self.concurrent_splits = concurrent
        self.found_later = tuple(found_later)
        self.batch_records = batch_records

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitsEnumerator:
        return SplitsEnumerator(self)

    def create_reader(self) -> SplitsReader:
        return SplitsReader(self)


class SplitsEnumerator(SplitEnumerator):
    def __init__(self, source: SplitsSource) -> None:
        self._source = source
        at_once = [name for name in source.splits if name not in source.found_later]
        self._new = [at_once, *([name] for name in source.found_later)]
        self.is_closed = False

    def discover(self) -> Sequence[SourceSplit]:
        return [SourceSplit(name) for name in self._new.pop(0)] if self._new else []

    @property
    def is_complete(self) -> bool:
        return not self._new

    def start_position(self, split: SourceSplit) -> int:
        return 0

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice:
        end = min(position + max_records, len(self._source.splits[split.split_id]))
        return Slice(split, position, end)

    def close(self) -> None:
        self.is_closed = True


class SplitsReader(SourceReader):
    def __init__(self, source: SplitsSource) -> None:
        self._source = source
        self._progress = SplitProgress(0, is_finished=False)

    def read(self, piece: Slice) -> Iterator[Batch]:
        records = self._source.splits[piece.split.split_id]
        end = piece.end if piece.max_records is None else min(piece.end, piece.start + piece.max_records)
        step = self._source.batch_records
        for start in range(piece.start, end, step):
            yield Batch(records[start : min(start + step, end)])
        self._progress = SplitProgress(end, end >= len(records))

    def progress(self) -> SplitProgress:
        return self._progress


class Published:
    """What committers published, and how often they were called."""

    def __init__(self) -> None:
        self.committables: list[Committable] = []
        self.is_closed = False

    @property
    def records(self) -> list[Any]:
        return [record for each in self.committables for record in each.payload]

    @property
    def epochs(self) -> list[int]:
        return [each.epoch for each in self.committables]


#: By name: sinks are copied on their way to a worker, and must find the same list again.
published: dict[str, Published] = {}


@dataclass(frozen=True)
class ListSink(Sink):
    """Publishes into `published[name]`, and notices whatever is published twice."""

    name: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _ListWriter()

    def create_committer(self) -> Committer:
        return _ListCommitter(published.setdefault(self.name, Published()))


class _ListWriter(SinkWriter):
    def __init__(self) -> None:
        self._rows: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._rows.append(value)

    def prepare_commit(self) -> Sequence[Any]:
        return [self._rows]


class _ListCommitter(Committer):
    def __init__(self, target: Published) -> None:
        self._target = target

    def commit(self, committables: Sequence[Committable]) -> None:
        assert not self._target.is_closed
        places = [(each.epoch, each.subtask) for each in committables]
        assert places == sorted(places), "not in order"
        before = {(each.epoch, each.subtask) for each in self._target.committables}
        assert not before & set(places), "published twice"
        self._target.committables += committables

    def close(self) -> None:
        self._target.is_closed = True


#: What `MarkedSink`s have published, by name: batches by the marker that makes a second try harmless.
marked: dict[str, dict[tuple[int, int], list[Any]]] = {}


@dataclass(frozen=True)
class MarkedSink(Sink):
    """Publishes each batch once, whoever tries again: by its epoch and subtask."""

    name: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _ListWriter()

    def create_committer(self) -> Committer:
        return _MarkedCommitter(self.name)


class _MarkedCommitter(Committer):
    def __init__(self, name: str) -> None:
        self._batches = marked.setdefault(name, {})

    def commit(self, committables: Sequence[Committable]) -> None:
        for each in committables:
            self._batches.setdefault((each.epoch, each.subtask), each.payload)
