"""`FileSink`: records as lines of text, in files that appear when they are complete and only once.

    writer, in the worker:                      <base>/.staging/<attempt>-<subtask>-<epoch>-…
    committer, in the driver, renames it to:    <base>/<bucket>/<prefix>-<subtask>-<epoch><suffix>

A staged file that is gone has been published; that makes a second commit harmless. Names that begin with a
dot are skipped by `FileSource`, so a job may read what another one writes.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self
from uuid import uuid4

from pyarrow.fs import FileInfo, FileType

from headrace.connectors.base import Committable, Committer, Sink, SinkWriter, WriterContext
from headrace.connectors.file._buckets import BucketAssigner
from headrace.connectors.file._paths import Location, locate
from headrace.connectors.file._policies import (
    MissingBuilder,
    OutputFileConfig,
    RollingPolicy,
    refuse_bulk_format,
)
from headrace.elements import Batch
from headrace.errors import (
    ConnectorError,
    JobDefinitionError,
    UnsupportedFeatureError,
    UserFunctionError,
)

if TYPE_CHECKING:
    from headrace.common.serialization import Encoder

_STAGING = ".staging"


@dataclass(frozen=True)
class FileSink(Sink):
    """Writes records to files, one a subtask, bucket and epoch. Make one with `for_row_format`.

    Files are named `<prefix>-<subtask>-<epoch><suffix>` and hold every record exactly once. A file of that
    name which is there already, from an earlier run of the program, is kept; the new one gets a number
    behind the epoch.
    """

    base: Location
    encoder: Encoder
    bucket_assigner: BucketAssigner
    config: OutputFileConfig

    @staticmethod
    def for_row_format(base_path: str | os.PathLike[str], encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Begin a sink that writes one record after the other.

        Args:
            base_path: The directory to write to, as a local path or URI; it is made if it is not there.
            encoder: What turns a record into bytes, for instance `Encoder.simple_string_encoder()`.

        Raises:
            JobDefinitionError: The path is a file, or the encoder is none.
            ConnectorError: The file system cannot be reached.
        """
        if not callable(getattr(encoder, "encode", None)):
            raise JobDefinitionError(
                f"FileSink.for_row_format: expected an Encoder; got {encoder!r}",
                hint="for text use Encoder.simple_string_encoder()",
            )
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: object) -> NoReturn:
        """Refuse: columnar formats are not written yet."""
        refuse_bulk_format("FileSink")

    def get_transformer(self) -> None:
        """Rows need no preparation."""

    def create_writer(self, context: WriterContext, *, clock: Callable[[], float] = time.time) -> SinkWriter:
        """Make the worker's half. The clock, in epoch seconds, is what buckets are named by."""
        return _FileWriter(self, context, clock)

    def create_committer(self) -> Committer:
        """Make the driver's half."""
        return _FileCommitter(self.base)

    class RowFormatBuilder:
        """Collects the settings of a `FileSink`."""

        def __init__(self, base_path: str | os.PathLike[str], encoder: Encoder) -> None:
            self._base_path = base_path
            self._encoder = encoder
            self._assigner = BucketAssigner.date_time_bucket_assigner()
            self._config = OutputFileConfig.builder().build()

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Choose the directories; without it, one an hour of processing time."""
            self._assigner = bucket_assigner
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Choose what file names begin and end with; without it, `part` and nothing."""
            self._config = output_file_config
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Take a rolling policy. Whichever it is, the end of an epoch closes the files."""
            return self

        def with_bucket_check_interval(self, interval: int) -> Self:
            """Take an interval, in ms. No bucket outlives its epoch, so there is nothing to check."""
            return self

        def enable_compact(self, strategy: object, compactor: object) -> NoReturn:
            """Refuse: small files are not put together yet."""
            raise UnsupportedFeatureError.not_yet("FileSink.enable_compact", "make epochs longer")

        def disable_compact(self) -> Self:
            """Do not put small files together, which is how it is."""
            return self

        def build(self) -> FileSink:
            """Make the sink.

            Raises:
                JobDefinitionError: The base path is a file, or prefix or suffix are no part of a file name.
                ConnectorError: The file system cannot be reached.
            """
            for part in (self._config.part_prefix, self._config.part_suffix):
                if "/" in part:
                    raise JobDefinitionError(
                        f"FileSink: prefix and suffix must not hold a slash; got {part!r}",
                        hint="directories are what bucket assigners are for",
                    )
            base = locate(self._base_path, who="FileSink")
            try:
                kind = base.info().type
            except OSError as error:
                raise ConnectorError(f"FileSink: cannot look at {base}: {error}") from error
            if kind == FileType.File:
                raise JobDefinitionError(
                    f"FileSink: the base path is a file: {base}",
                    hint="give a directory, or a path that is free",
                )
            return FileSink(base, self._encoder, self._assigner, self._config)

    #: What PyFlink's builders have in common; here there is one.
    BaseBuilder = RowFormatBuilder
    BulkFormatBuilder = MissingBuilder()


class StreamingFileSink:
    """Flink's older file sink. Use `FileSink` with `sink_to`, which takes the same settings."""

    BaseBuilder = MissingBuilder()
    DefaultRowFormatBuilder = MissingBuilder()
    DefaultBulkFormatBuilder = MissingBuilder()

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> NoReturn:
        """Refuse."""
        raise UnsupportedFeatureError.not_yet("StreamingFileSink", "use FileSink.for_row_format with sink_to")

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: object) -> NoReturn:
        """Refuse."""
        refuse_bulk_format("StreamingFileSink")


@dataclass(frozen=True)
class StagedFile:
    """A complete file and where it belongs."""

    staged: Location
    #: Directory relative to the base path; empty for the base path itself.
    bucket: str
    #: Final name without the suffix.
    stem: str
    suffix: str

    def target(self, base: Location, number: int = 0) -> Location:
        """Return the final place; a number greater than zero keeps out of the way of another run's file."""
        name = f"{self.stem}-{number}{self.suffix}" if number else f"{self.stem}{self.suffix}"
        return base.child(*filter(None, (self.bucket.strip("/"), name)))


class _FileWriter(SinkWriter):
    def __init__(self, sink: FileSink, context: WriterContext, clock: Callable[[], float]) -> None:
        self._sink = sink
        self._context = context
        self._clock = clock
        #: By bucket: the staged file and the open stream to it.
        self._open: dict[str, tuple[Location, Any]] = {}
        self._staged: list[Location] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._write([value])

    def write_batch(self, batch: Batch) -> None:
        if batch.values:
            self._write(batch.values)

    def _write(self, values: list[Any]) -> None:
        data = self._encode(values)
        try:
            self._stream().write(data)
        except OSError as error:
            raise _cannot_write(self._sink.base, error) from error

    def _encode(self, values: list[Any]) -> bytes:
        encode = self._sink.encoder.encode
        buffer = io.BytesIO()
        value = None
        try:
            for value in values:
                encode(value, buffer)
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=value) from error
        return buffer.getvalue()

    def _stream(self) -> Any:
        bucket = self._sink.bucket_assigner.bucket_at(self._clock())
        if bucket not in self._open:
            here = self._context
            # Random too: two sinks of one task may share base path and attempt.
            name = f"{here.attempt_id}-{here.subtask}-{here.epoch}-{uuid4().hex}"
            staged = self._sink.base.child(_STAGING, name.replace("/", "_"))
            staged.file_system.create_dir(self._sink.base.child(_STAGING).path, recursive=True)
            self._open[bucket] = staged, staged.file_system.open_output_stream(staged.path)
            self._staged.append(staged)
        return self._open[bucket][1]

    def prepare_commit(self) -> Sequence[StagedFile]:
        config, here = self._sink.config, self._context
        stem = f"{config.part_prefix}-{here.subtask}-{here.epoch}"
        files = [
            StagedFile(staged, bucket, stem, config.part_suffix) for bucket, (staged, _) in self._open.items()
        ]
        try:
            self.close()
        except OSError as error:
            raise _cannot_write(self._sink.base, error) from error
        return files

    def abort(self) -> None:
        self.close()
        for staged in self._staged:
            if staged.info().type != FileType.NotFound:
                staged.file_system.delete_file(staged.path)
        self._staged.clear()

    def close(self) -> None:
        for _, stream in self._open.values():
            stream.close()
        self._open.clear()


def _cannot_write(place: Location, error: OSError) -> ConnectorError:
    return ConnectorError(
        f"FileSink: cannot write below {place}: {error}",
        hint="check that there is space, and that every worker may write there",
    )


class _FileCommitter(Committer):
    def __init__(self, base: Location) -> None:
        self._base = base

    def commit(self, committables: Sequence[Committable]) -> None:
        for committable in committables:
            try:
                self._publish(committable.payload)
            except OSError as error:
                raise _cannot_write(self._base, error) from error

    def _publish(self, file: StagedFile) -> None:
        staged, target = file.staged.info(), file.target(self._base).info()
        if staged.type == FileType.NotFound:
            if target.type == FileType.NotFound:
                raise ConnectorError(
                    f"FileSink: output of a completed checkpoint is lost: {file.staged} is gone, "
                    f"and {file.target(self._base)} is not there",
                    hint=f"nothing but the job may delete files in {_STAGING}; restore from an older "
                    "checkpoint or savepoint to write the output again",
                    retryable=False,
                )
            return
        number = 0
        while target.type != FileType.NotFound:
            if self._is_half_moved(file, staged, target):
                file.staged.file_system.delete_file(file.staged.path)
                return
            number += 1
            target = file.target(self._base, number).info()
        self._move(file, file.target(self._base, number))

    def _move(self, file: StagedFile, target: Location) -> None:
        file_system = self._base.file_system
        file_system.create_dir(os.path.dirname(target.path), recursive=True)
        file_system.move(file.staged.path, target.path)

    def _is_half_moved(self, file: StagedFile, staged: FileInfo, target: FileInfo) -> bool:
        """Whether an earlier try copied the file and did not come to delete it, as on object stores."""
        file_system = self._base.file_system
        # Renaming is atomic there: what lies at the target is another run's.
        if file_system.type_name in {"local", "hdfs"} or staged.size != target.size:
            return False
        with (
            file_system.open_input_stream(file.staged.path) as ours,
            file_system.open_input_stream(target.path) as theirs,
        ):
            while block := ours.read(1 << 20):
                if block != theirs.read(1 << 20):
                    return False
        return True

    def close(self) -> None:
        # An empty directory only: other jobs may stage below the same base path.
        if not self._base.root:
            try:
                os.rmdir(self._base.child(_STAGING).path)
            except OSError:
                pass
