"""`FileSource`: the records of files, read once (bounded) or as new files appear (unbounded).

A file is cut into byte ranges that can be read side by side, where its format allows it. A record belongs to the
range it starts in, so ranges need not know where records end. Anything else is one split from its first record to
its last. What is in a file is the business of its format (`_formats`), which makes the reader.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from headrace.common.time import Duration, as_millis
from headrace.common.typeinfo import TypeInformation
from headrace.connectors import base
from headrace.connectors.file._bulk import BulkFormat
from headrace.connectors.file._formats import FileFormat, StreamFormat
from headrace.connectors.file._splits import FileSplit
from headrace.errors import ConnectorError, JobDefinitionError, require
from headrace.storage.locations import Location
from headrace.storage.search import FoundFile, InputPath

#: The length of a byte range. Large enough that opening a file does not count, small enough to share a
#: large file.
SPLIT_BYTES = 64 << 20


@dataclass(frozen=True)
class FileEnumeratorProvider:
    """How files are cut into splits."""

    #: Length of the byte ranges; None leaves files whole.
    split_bytes: int | None

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Cut large files into ranges that are read side by side, where it is possible. The default."""
        return FileEnumeratorProvider(SPLIT_BYTES)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Read every file as a whole, in order. Flink does so with text by default."""
        return FileEnumeratorProvider(None)


@dataclass(frozen=True)
class FileSplitAssignerProvider:
    """Which subtask reads which split."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Prefer subtasks near the data. A wish only: Spark places the tasks."""
        return FileSplitAssignerProvider()


class FileSourceBuilder:
    """Collects the settings of a `FileSource`. Made by `for_record_stream_format` or `for_bulk_file_format`."""

    def __init__(self, file_format: FileFormat, paths: Sequence[str | os.PathLike[str]]) -> None:
        self._format = file_format
        self._paths = paths
        self._provider = FileEnumeratorProvider.default_splittable_file_enumerator()
        self._interval: int | None = None

    def monitor_continuously(self, discovery_interval: Duration | timedelta) -> FileSourceBuilder:
        """Keep looking for new files; this makes the source unbounded.

        A file is read once, as it is when it is found: write it under a hidden name (`.name`) and rename
        it, do not append to it.

        Args:
            discovery_interval: How long to wait between two looks.

        Raises:
            JobDefinitionError: The interval is not a time span greater than zero.
        """
        try:
            interval = as_millis(discovery_interval)
        except TypeError:
            interval = 0
        if interval <= 0:
            raise JobDefinitionError(
                f"FileSource: discovery_interval must be at least 1 ms long; got {discovery_interval!r}",
                hint="for example Duration.of_seconds(10)",
            )
        self._interval = interval
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files that are there when the job starts, then end. The default."""
        self._interval = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Choose whether large files may be cut into ranges."""
        self._provider = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Take a split assigner; there is one, and it leaves placement to Spark."""
        return self

    def set_dead_letter_tag(self, output_tag: Any) -> FileSourceBuilder:
        """Send records that cannot be read to a side output, as `DeadLetter`s, instead of failing the job.

        Args:
            output_tag: An OutputTag; read it with `get_side_output` on the stream of the source.

        Raises:
            JobDefinitionError: It is not a tag, or the format has no such records.
        """
        tag_id = getattr(output_tag, "tag_id", None)
        require(isinstance(tag_id, str), "FileSource.set_dead_letter_tag", "an OutputTag", output_tag)
        self._format = self._format.with_dead_letters(str(tag_id))
        return self

    def build(self) -> FileSource:
        """Make the source.

        Raises:
            JobDefinitionError: A path does not exist, or a pattern matches no file and none is waited for.
            ConnectorError: The file system cannot be reached.
        """
        paths = tuple(InputPath.parse(path, who="FileSource") for path in self._paths)
        for path in paths:
            _check(path, is_static=self._interval is None)
        return FileSource(paths, self._format, self._provider.split_bytes, self._interval)


def _check(path: InputPath, *, is_static: bool) -> None:
    try:
        if not path.exists():
            raise JobDefinitionError(
                f"FileSource: path does not exist: {path.base if path.patterns else path.shown}",
                hint="the driver must be able to read the path; relative paths start at the working directory",
            )
        if is_static and path.patterns and not path.files():
            raise JobDefinitionError(
                f"FileSource: no file matches {path.shown}",
                hint="names that begin with `.` or `_` are skipped unless the pattern begins with the same character",
            )
    except OSError as error:
        raise ConnectorError(f"FileSource: cannot access {path.shown}: {error}") from error


@dataclass(frozen=True)
class FileSource(base.Source):
    """Reads files and directories. Create one with `for_record_stream_format` or `for_bulk_file_format`.

    Paths are local or URIs (`file`, `s3`, `gs`, `hdfs`, `abfs`). Directories are read with all that is
    below them, names that begin with `.` or `_` are skipped, and `*`, `?`, `[…]` and `**` are patterns.
    Text that ends in `.gz`, `.zst` or `.bz2` is unpacked. A file that two paths name is read once.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "words.txt").write_text("to be or not")
        ...     source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).build()
        >>> source.boundedness
        <Boundedness.BOUNDED: 'BOUNDED'>
    """

    paths: tuple[InputPath, ...]
    format: FileFormat
    split_bytes: int | None
    #: None reads what is there and ends.
    discovery_interval_ms: int | None
    #: A regular expression that the paths of files must match as a whole; None: all are read.
    name_pattern: str | None = None

    @staticmethod
    def for_record_stream_format(
        stream_format: StreamFormat, *paths: str | os.PathLike[str]
    ) -> FileSourceBuilder:
        """Begin a source of files in a format that is read record by record.

        Raises:
            JobDefinitionError: No path is given.
        """
        require(
            isinstance(stream_format, StreamFormat),
            "FileSource.for_record_stream_format",
            "a StreamFormat",
            stream_format,
            hint="for text use StreamFormat.text_line_format()",
        )
        return _begin(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begin a source of files in a format that is read by blocks of records, such as Parquet.

        Raises:
            JobDefinitionError: No path is given, or something that is not a bulk format.
        """
        require(
            isinstance(bulk_format, BulkFormat),
            "FileSource.for_bulk_file_format",
            "a BulkFormat",
            bulk_format,
            hint="for instance ParquetColumnarRowInputFormat(row_type)",
        )
        return _begin(bulk_format, paths)

    @property
    def boundedness(self) -> base.Boundedness:
        """Bounded unless directories are monitored."""
        return (
            base.Boundedness.BOUNDED
            if self.discovery_interval_ms is None
            else base.Boundedness.CONTINUOUS_UNBOUNDED
        )

    def create_enumerator(
        self, parallelism: int, *, clock: Callable[[], float] = time.monotonic
    ) -> base.SplitEnumerator:
        """Make the driver's half. The clock, in seconds, decides when to look for files again."""
        return _FileEnumerator(self, clock)

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return self.format.create_reader()

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records, if the format knows it."""
        return self.format.get_produced_type()


def _begin(file_format: FileFormat, paths: Sequence[str | os.PathLike[str]]) -> FileSourceBuilder:
    if not paths:
        raise JobDefinitionError("FileSource: give at least one path")
    return FileSourceBuilder(file_format, paths)


class _FileEnumerator(base.SplitEnumerator):
    def __init__(self, source: FileSource, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self._known: set[Location] = set()
        #: When to list again, in seconds of the clock; None when there is nothing more to look for.
        self._next_look: float | None = clock()

    def restore(self, splits: Sequence[base.SourceSplit]) -> None:
        self._known.update(cast(FileSplit, split).location for split in splits)
        if splits and self._source.discovery_interval_ms is None:
            self._next_look = None

    def discover(self) -> Sequence[FileSplit]:
        if self._next_look is None or self._clock() < self._next_look:
            return ()
        interval = self._source.discovery_interval_ms
        found = [file for path in self._source.paths for file in list_files(path, is_static=interval is None)]
        self._next_look = None if interval is None else self._clock() + interval / 1000
        splits: list[FileSplit] = []
        for file in found:
            # An empty file may have been made a moment ago by somebody who is about to write it.
            if file.size and file.location not in self._known and self._is_wanted(file.location):
                self._known.add(file.location)
                splits += _cut(file, self._source.format, self._source.split_bytes)
        return splits

    def _is_wanted(self, location: Location) -> bool:
        pattern = self._source.name_pattern
        return pattern is None or re.fullmatch(pattern, location.path) is not None

    @property
    def is_complete(self) -> bool:
        return self._next_look is None

    def start_position(self, split: base.SourceSplit) -> int:
        part = cast(FileSplit, split)
        return 0 if part.by_record else part.start

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice:
        return base.Slice(split, position, max_records=max_records)

    def next_discovery_delay(self) -> float | None:
        return None if self._next_look is None else max(0.0, self._next_look - self._clock())


def list_files(path: InputPath, *, is_static: bool) -> list[FoundFile]:
    try:
        if is_static and not path.exists():
            raise ConnectorError(
                f"FileSource: path does not exist: {path.shown}",
                hint="keep the path readable for every worker until the job has finished",
            )
        return path.files()
    except OSError as error:
        raise ConnectorError(
            f"FileSource: cannot list {path.shown}: {error}", hint="check that it exists and is readable"
        ) from error


def _cut(file: FoundFile, file_format: FileFormat, split_bytes: int | None) -> list[FileSplit]:
    path = str(file.location)
    compression = file_format.compression_of(path)
    is_splittable = file_format.can_split(compression)
    step = split_bytes if is_splittable and split_bytes is not None else file.size
    return [
        FileSplit(
            split_id=f"{path}:{start}+{min(step, file.size - start)}",
            location=file.location,
            start=start,
            length=min(step, file.size - start),
            file_size=file.size,
            compression=compression,
            by_record=not is_splittable or file_format.counts_records,
        )
        for start in range(0, file.size, step)
    ]
