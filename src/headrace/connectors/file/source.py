"""`FileSource`: lines of text files, read once (bounded) or as new files appear (unbounded).

A file is cut into byte ranges that can be read side by side. A line belongs to the range it starts in, so
ranges need not know where lines end. What is compressed, or written in a charset whose newlines cannot be
found byte by byte, is one split, and its positions count lines.
"""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from pyarrow.fs import FileType

from headrace.common.time import Duration, as_millis
from headrace.connectors.base import (
    BATCH_RECORDS,
    Boundedness,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
)
from headrace.connectors.file import _lines
from headrace.connectors.file._paths import FoundFile, InputPath, Location
from headrace.elements import Batch
from headrace.errors import ConnectorError, JobDefinitionError, UnsupportedFeatureError

#: The length of a byte range. Large enough that opening a file does not count, small enough to share a
#: large file.
SPLIT_BYTES = 64 << 20

_COMPRESSIONS = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
#: What Flink can unpack and we cannot. As text it would be noise.
_UNREADABLE = (".deflate", ".xz")


@dataclass(frozen=True)
class StreamFormat:
    """How the bytes of a file become records.

    Example:
        >>> StreamFormat.text_line_format("ISO-8859-1")
        StreamFormat(charset='iso8859-1')
    """

    charset: str

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        r"""Read lines of text; they end with `\n` or `\r\n`, which is not part of the record.

        Args:
            charset_name: The charset of the files, by Java's or Python's name.

        Raises:
            JobDefinitionError: There is no such charset.
        """
        try:
            return StreamFormat(codecs.lookup(charset_name).name)
        except LookupError as error:
            raise JobDefinitionError(
                f"StreamFormat.text_line_format: unknown charset {charset_name!r}",
                hint="for instance UTF-8, UTF-16, ISO-8859-1, windows-1252, GBK, Shift_JIS",
            ) from error


class BulkFormat:
    """A format that is read by batches of rows, such as Parquet. There is none yet."""


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
    """Collects the settings of a `FileSource`. Made by `FileSource.for_record_stream_format`."""

    def __init__(self, stream_format: StreamFormat, paths: Sequence[str | os.PathLike[str]]) -> None:
        self._format = stream_format
        self._paths = paths
        self._provider = FileEnumeratorProvider.default_splittable_file_enumerator()
        self._interval: int | None = None

    def monitor_continuously(self, discovery_interval: Duration | timedelta) -> FileSourceBuilder:
        """Go on looking for new files; the source is unbounded then.

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
                hint="for instance Duration.of_seconds(10)",
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

    def build(self) -> FileSource:
        """Make the source.

        Raises:
            JobDefinitionError: A path does not exist, or a pattern matches no file and none is waited for.
            ConnectorError: The file system cannot be reached.
        """
        paths = tuple(InputPath.parse(path, who="FileSource") for path in self._paths)
        for path in paths:
            _check(path, is_static=self._interval is None)
        return FileSource(paths, self._format.charset, self._provider.split_bytes, self._interval)


def _check(path: InputPath, *, is_static: bool) -> None:
    try:
        if not path.exists():
            raise JobDefinitionError(
                f"FileSource: path does not exist: {path.base if path.patterns else path.text}",
                hint="the driver must see it now; relative paths start at the working directory",
            )
        if is_static and path.patterns and not path.files():
            raise JobDefinitionError(
                f"FileSource: no file matches {path.text}",
                hint="names that begin with `.` or `_` are skipped unless the pattern begins alike",
            )
    except OSError as error:
        raise ConnectorError(f"FileSource: cannot look at {path.text}: {error}") from error


@dataclass(frozen=True)
class FileSource(Source):
    """Reads lines of text from files and directories. Make one with `for_record_stream_format`.

    Paths are local or URIs (`file`, `s3`, `gs`, `hdfs`, `abfs`). Directories are read with all that is
    below them, names that begin with `.` or `_` are skipped, and `*`, `?`, `[…]` and `**` are patterns.
    Files that end in `.gz`, `.zst` or `.bz2` are unpacked. A file that two paths name is read once.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "words.txt").write_text("to be or not")
        ...     source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).build()
        >>> source.boundedness
        <Boundedness.BOUNDED: 'BOUNDED'>
    """

    paths: tuple[InputPath, ...]
    charset: str
    split_bytes: int | None
    #: None reads what is there and ends.
    discovery_interval_ms: int | None

    @staticmethod
    def for_record_stream_format(
        stream_format: StreamFormat, *paths: str | os.PathLike[str]
    ) -> FileSourceBuilder:
        """Begin a source of files in a format that is read record by record.

        Raises:
            JobDefinitionError: No path is given.
        """
        if not paths:
            raise JobDefinitionError("FileSource: at least one path is needed; got none")
        if not isinstance(stream_format, StreamFormat):
            raise JobDefinitionError(
                f"FileSource.for_record_stream_format: expected a StreamFormat; got {stream_format!r}",
                hint="for text use StreamFormat.text_line_format()",
            )
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Refuse: columnar formats are not read yet."""
        raise UnsupportedFeatureError.not_yet("FileSource.for_bulk_file_format", "read lines of text")

    @property
    def boundedness(self) -> Boundedness:
        """Bounded unless directories are monitored."""
        return Boundedness.BOUNDED if self.discovery_interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(
        self, parallelism: int, *, clock: Callable[[], float] = time.monotonic
    ) -> SplitEnumerator:
        """Make the driver's half. The clock, in seconds, tells when to look for files again."""
        return _FileEnumerator(self, clock)

    def create_reader(self) -> SourceReader:
        """Make the worker's half."""
        return LineReader(self.charset)


@dataclass(frozen=True)
class FileSplit(SourceSplit):
    """A byte range of a file, or a file that can only be read from its beginning."""

    location: Location
    start: int
    length: int
    #: Size of the whole file when it was found. Another size later means that it was changed.
    file_size: int
    compression: str | None
    #: Whether positions count lines from the beginning instead of bytes.
    by_line: bool


class _FileEnumerator(SplitEnumerator):
    def __init__(self, source: FileSource, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self._known: set[Location] = set()
        #: When to list again, in seconds of the clock; None when there is nothing more to look for.
        self._next_look: float | None = clock()

    def restore(self, splits: Sequence[SourceSplit]) -> None:
        self._known.update(cast(FileSplit, split).location for split in splits)
        if splits and self._source.discovery_interval_ms is None:
            self._next_look = None

    def discover(self) -> Sequence[FileSplit]:
        if self._next_look is None or self._clock() < self._next_look:
            return ()
        interval = self._source.discovery_interval_ms
        found = [file for path in self._source.paths for file in _list(path, is_static=interval is None)]
        self._next_look = None if interval is None else self._clock() + interval / 1000
        splits: list[FileSplit] = []
        for file in found:
            # An empty file may have been made a moment ago by somebody who is about to write it.
            if file.size and file.location not in self._known:
                self._known.add(file.location)
                splits += _cut(file, self._source.charset, self._source.split_bytes)
        return splits

    @property
    def is_complete(self) -> bool:
        return self._next_look is None

    def start_position(self, split: SourceSplit) -> int:
        return cast(FileSplit, split).start

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice:
        return Slice(split, position, max_records=max_records)

    def next_discovery_delay(self) -> float | None:
        return None if self._next_look is None else max(0.0, self._next_look - self._clock())


def _list(path: InputPath, *, is_static: bool) -> list[FoundFile]:
    try:
        if is_static and not path.exists():
            raise ConnectorError(
                f"FileSource: path does not exist any more: {path.text}",
                hint="it was there when the program named it; keep it until the job has ended",
            )
        return path.files()
    except OSError as error:
        raise ConnectorError(
            f"FileSource: cannot list {path.text}: {error}", hint="check that it is there and may be read"
        ) from error


def _cut(file: FoundFile, charset: str, split_bytes: int | None) -> list[FileSplit]:
    path = str(file.location)
    extension = os.path.splitext(path)[1].lower()
    if extension in _UNREADABLE:
        raise UnsupportedFeatureError.not_yet(
            f"FileSource: reading {extension} files ({path})", "pack the file with gzip or zstd"
        )
    compression = _COMPRESSIONS.get(extension)
    by_line = compression is not None or not _lines.has_byte_newline(charset)
    step = file.size if by_line or split_bytes is None else split_bytes
    return [
        FileSplit(
            split_id=f"{path}:{start}+{min(step, file.size - start)}",
            location=file.location,
            start=start,
            length=min(step, file.size - start),
            file_size=file.size,
            compression=compression,
            by_line=by_line,
        )
        for start in range(0, file.size, step)
    ]


class LineReader(SourceReader):
    """Reads the lines of file splits."""

    def __init__(self, charset: str, block_bytes: int = _lines.BLOCK_BYTES) -> None:
        self._charset = charset
        self._block_bytes = block_bytes
        self._position = 0
        self._is_finished = False

    def read(self, piece: Slice) -> Iterator[Batch]:
        """Yield the lines of a slice."""
        split = cast(FileSplit, piece.split)
        self._position = piece.start
        self._is_finished = False
        lines = self._read_counted(split, piece) if split.by_line else self._read_range(split, piece)
        try:
            _see_that_it_is_unchanged(split, piece.start)
            for found in lines:
                for first in range(0, len(found), BATCH_RECORDS):
                    yield Batch(found[first : first + BATCH_RECORDS])
        except OSError as error:
            raise ConnectorError(
                f"FileSource: cannot read {_place(split, self._position)}: {error}",
                hint="check that the file is there, may be read on every worker, and is not damaged",
            ) from error

    def progress(self) -> SplitProgress:
        """Say where the slice ended."""
        return SplitProgress(self._position, self._is_finished)

    def _read_range(self, split: FileSplit, piece: Slice) -> Iterator[list[str]]:
        """Read lines that start before the end of the range; the position is a byte."""
        end = split.start + split.length
        wanted = piece.max_records
        with closing(split.location.file_system.open_input_file(split.location.path)) as file:
            position = _lines.first_line_start(file, piece.start, end, self._block_bytes)
            file.seek(position)
            pieces = _lines.whole_lines(_lines.blocks_of(file, self._block_bytes))
            while position < end and wanted != 0:
                data = next(pieces, b"")
                if not data:
                    raise _changed(split, position)
                if position + len(data) > end:
                    # The last line of ours is the one that holds the last byte of the range.
                    data = data[: data.find(b"\n", end - 1 - position) + 1] or data
                if wanted is not None:
                    data = _lines.first_lines(data, wanted)
                found = _lines.decode_lines(data, self._charset)
                position += len(data)
                if wanted is not None:
                    wanted -= len(found)
                self._position = position
                yield found
        self._position = position
        self._is_finished = position >= end

    def _read_counted(self, split: FileSplit, piece: Slice) -> Iterator[list[str]]:
        """Read lines of a file that has to be read from its beginning; the position is a number of lines."""
        skip: int = piece.start
        wanted = piece.max_records
        charset = self._charset
        with closing(
            split.location.file_system.open_input_stream(split.location.path, compression=split.compression)
        ) as stream:
            blocks = _lines.blocks_of(stream, self._block_bytes)
            if not _lines.has_byte_newline(charset):
                blocks, charset = _lines.as_utf8(blocks, charset), "utf-8"
            for data in _lines.whole_lines(blocks):
                count = _lines.count_lines(data)
                if count <= skip:
                    skip -= count
                    continue
                if wanted == 0:
                    return
                rest = data.split(b"\n", skip)[-1]
                taken = rest if wanted is None else _lines.first_lines(rest, wanted)
                found = _lines.decode_lines(taken, charset)
                skip = 0
                self._position += len(found)
                if wanted is not None:
                    wanted -= len(found)
                yield found
                if len(taken) < len(rest):
                    return
        self._is_finished = True


def _place(split: FileSplit, position: int) -> str:
    return f"{split.location}, {'line' if split.by_line else 'byte'} {position}"


def _changed(split: FileSplit, position: int, now: Any = "fewer") -> ConnectorError:
    return ConnectorError(
        f"FileSource: {_place(split, position)}: the file was changed while the job reads it; "
        f"it had {split.file_size} bytes when it was found and has {now} now",
        hint="write a file under a hidden name and rename it when it is complete; to read a changed file, "
        "start the job without its old state",
        retryable=False,
    )


def _see_that_it_is_unchanged(split: FileSplit, position: int) -> None:
    info = split.location.info()
    if info.type == FileType.NotFound:
        raise ConnectorError(
            f"FileSource: {_place(split, position)}: the file is gone",
            hint="put it back; keep input files until the job has read them, where every worker sees them",
        )
    if info.size != split.file_size:
        raise _changed(split, position, info.size)
