"""Results that a job keeps for later jobs of the same program: `stream.cache()`.

    first job    writers: one file per subtask and epoch  -> committer, at the end of the job: the manifest
    later jobs   the files that the manifest lists, a split each

A result counts only once its manifest is there, so nothing of a job that failed or was cancelled is ever read.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headrace.connectors import base, staged_files
from headrace.elements import Batch
from headrace.errors import ConnectorError, DiskFullError
from headrace.storage import files
from headrace.storage.locations import Location, locate

_MANIFEST = "manifest.json"
_SIZE_BYTES = 8


@dataclass(frozen=True)
class CachedFile:
    """What one subtask wrote in one epoch."""

    name: str
    records: int


def find_cached_files(directory: str) -> tuple[CachedFile, ...] | None:
    """Return the files of a complete result; None if the result does not exist or a part of it is lost."""
    manifest = files.read_if_there(f"{directory}/{_MANIFEST}")
    if manifest is None:
        return None
    found = tuple(CachedFile(name, records) for name, records in json.loads(manifest))
    sizes = files.file_sizes(f"{directory}/{each.name}" for each in found)
    return None if None in sizes.values() else found


# -- writing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CacheSink(base.Sink):
    """Keeps all records of a stream, with their timestamps.

    Args:
        directory: Where; workers and driver must reach it.
    """

    directory: str

    def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
        """Make the worker's half."""
        return _CacheWriter(locate(self.directory, who="cache()"), context)

    def create_committer(self, context: base.CommitterContext | None = None) -> base.Committer:
        """Make the driver's half."""
        return _CacheCommitter(self.directory)


class _CacheWriter(base.BatchSinkWriter):
    def __init__(self, directory: Location, context: base.WriterContext) -> None:
        self._name = f"{context.epoch}-{context.subtask}-{context.attempt_id}"
        self._place = directory.child(self._name)
        self._records = 0
        self._stream: Any = None

    def write_batch(self, batch: Batch) -> None:
        if not batch.values:
            return
        if self._stream is None:
            self._stream = staged_files.open_output(self._place)
        data = pickle.dumps((list(batch.values), batch.timestamps), protocol=5)
        with staged_files.blaming(self._place, "write"):
            self._stream.write(len(data).to_bytes(_SIZE_BYTES, "big") + data)
        self._records += len(batch.values)

    def prepare_commit(self) -> Sequence[CachedFile]:
        if self._stream is None:
            return ()
        staged_files.finish_output(self._place, self._stream)
        self._stream = None
        return [CachedFile(self._name, self._records)]

    def abort(self) -> None:
        with suppress(ConnectorError, DiskFullError):
            self.close()
        staged_files.delete(self._place)

    def close(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            with staged_files.blaming(self._place, "write"):
                stream.close()


class _CacheCommitter(base.Committer):
    def __init__(self, directory: str) -> None:
        self._directory = directory
        #: Names and numbers of records, by name: a commit may be repeated.
        self._files: dict[str, int] = {}

    def commit(self, committables: Sequence[base.Committable]) -> None:
        for each in committables:
            self._files[each.payload.name] = each.payload.records

    def snapshot(self) -> bytes:
        return json.dumps(self._files).encode()

    def restore(self, state: bytes) -> None:
        self._files = json.loads(state)

    def finish(self) -> None:
        manifest = json.dumps(list(self._files.items())).encode()
        files.make_directory(self._directory)
        files.publish_file(f"{self._directory}/{_MANIFEST}", manifest)


# -- reading -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CachedSplit(base.SourceSplit):
    """One file of a result."""

    records: int


@dataclass(frozen=True)
class CacheSource(base.Source):
    """Reads a result that an earlier job has kept.

    Args:
        directory: Where it is.
        files: What it consists of.
    """

    directory: str
    files: tuple[CachedFile, ...]

    plans_anywhere = True

    @property
    def boundedness(self) -> base.Boundedness:
        return base.Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        """Make the driver's half."""
        return _CacheEnumerator(CachedSplit(each.name, each.records) for each in self.files)

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return _CacheReader(self.directory)


class _CacheEnumerator(base.KnownSplits):
    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice:
        assert isinstance(split, CachedSplit)
        return base.Slice(split, position, min(position + max_records, split.records))


class _CacheReader(base.SourceReader):
    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._progress = base.SplitProgress(0, is_finished=True)

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        assert isinstance(piece.split, CachedSplit)
        end = piece.split.records if piece.end is None else piece.end
        self._progress = base.SplitProgress(end, end >= piece.split.records)
        first = 0
        for batch in self._batches(piece.split.split_id):
            part = slice(max(piece.start - first, 0), max(end - first, 0))
            first += len(batch.values)
            values = batch.values[part]
            if values:
                yield Batch(values, None if batch.timestamps is None else batch.timestamps[part])
            if first >= end:
                return

    def _batches(self, name: str) -> Iterator[Batch]:
        with files.open_file(f"{self._directory}/{name}") as stream:
            while size := stream.read(_SIZE_BYTES):
                yield Batch(*pickle.loads(stream.read(int.from_bytes(size, "big"))))

    def progress(self) -> base.SplitProgress:
        return self._progress
