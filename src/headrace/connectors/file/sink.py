"""`FileSink`: records in files that appear when they are full and only once, as rows or in columns.

    worker    writer      in progress   <base>/.staging/<job>-<sink>/<epoch>-<subtask>-…   one a bucket and epoch
    driver    committer   pending       the same, in a part that is not full yet
              committer   finished      <base>/<bucket>/<prefix>-<subtask>-<epoch>-…<suffix>

Names that begin with a dot are skipped by `FileSource`, so a job may read what another one writes. `_writer`
has the worker's half, `_parts` decides what a part is, `_committer` publishes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn, Self

from headrace.common.time import Duration, as_millis
from headrace.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from headrace.connectors.file._buckets import BucketAssigner
from headrace.connectors.file._committer import FileCommitter
from headrace.connectors.file._formats import BulkRows, RowFormat
from headrace.connectors.file._overwrite import Overwrite, OverwritingCommitter
from headrace.connectors.file._policies import (
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    PartitionCommit,
    PartitionTime,
    RollingPolicy,
)
from headrace.connectors.file._publisher import FilePublisher
from headrace.connectors.file._writer import FileWriter
from headrace.errors import ConnectorError, JobDefinitionError, UnsupportedFeatureError, require
from headrace.storage.locations import Location, locate
from headrace.storage.store import EntryKind

if TYPE_CHECKING:
    from headrace.common.serialization import BulkWriterFactory, Encoder
    from headrace.common.typeinfo import TypeInformation

_CHECK_INTERVAL_MS = 60_000
_COMPACTED_SIZE = 128 << 20


@dataclass(frozen=True)
class FileSink(Sink):
    """Writes records to part files, each record exactly once. Create one with `for_row_format` or `for_bulk_format`.

    A part file holds what one subtask wrote to one bucket, over as many epochs as it takes until the rolling
    policy says that it is full. It is published, under the name `<prefix>-<subtask>-<epoch>-<id><suffix>`,
    with the next checkpoint; the id is unique, so runs of a program never write over each other's files.
    Until then it is below `.staging`.
    """

    base: Location
    format: RowFormat | BulkRows
    bucket_assigner: BucketAssigner
    rolling_policy: RollingPolicy
    config: OutputFileConfig
    #: How often, in ms, a job without checkpointing looks for files that have become old enough.
    bucket_check_interval: int = _CHECK_INTERVAL_MS
    #: When buckets are marked as complete; None if they are not.
    partition_commit: PartitionCommit | None = None
    #: What is replaced; None: files come beside those that are there.
    overwrite: Overwrite | None = None
    #: How large, in bytes, small files of a checkpoint become together; None: they stay as they are.
    compacted_size: int | None = None

    @staticmethod
    def for_row_format(base_path: str | os.PathLike[str], encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Begin a sink that writes one record after the other.

        Args:
            base_path: The directory to write to, as a local path or URI; it is made if it is not there.
            encoder: What turns a record into bytes, for instance `Encoder.simple_string_encoder()`.

        Raises:
            JobDefinitionError: The path is a file, or the encoder is not valid.
            ConnectorError: The file system cannot be reached.
        """
        require(
            callable(getattr(encoder, "encode", None)),
            "FileSink.for_row_format",
            "an Encoder",
            encoder,
            hint="for text use Encoder.simple_string_encoder()",
        )
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory
    ) -> FileSink.BulkFormatBuilder:
        """Begin a sink that writes files as a whole: Parquet, ORC, Avro.

        Args:
            base_path: The directory to write to, as a local path or URI; it is made if it is not there.
            writer_factory: For instance `ParquetBulkWriters.for_row_type(row_type)`.

        Raises:
            JobDefinitionError: The path is a file, or the factory is not valid.
            ConnectorError: The file system cannot be reached.
        """
        require(
            callable(getattr(writer_factory, "create", None)),
            "FileSink.for_bulk_format",
            "a BulkWriterFactory",
            writer_factory,
            hint="for instance ParquetBulkWriters.for_row_type(row_type)",
        )
        return FileSink.BulkFormatBuilder(base_path, BulkRows(writer_factory))

    def get_transformer(self) -> None:
        """Rows need no preparation."""

    @property
    def goes_by_watermark(self) -> bool:
        """Whether buckets are marked as complete by event time."""
        return self.partition_commit is not None and self.partition_commit.partition_time is not None

    def for_type(self, type_info: TypeInformation | None) -> FileSink:
        """Return the sink for records of a declared type, by which lines of text are written."""
        return replace(self, format=self.format.for_type(type_info))

    def create_writer(self, context: WriterContext, *, clock: Callable[[], float] = time.time) -> SinkWriter:
        """Make the worker's half. The clock, in epoch seconds, is what buckets are named by."""
        return FileWriter(
            self.base, self.format, self.bucket_assigner, self.rolling_policy, context=context, clock=clock
        )

    def create_committer(
        self, context: CommitterContext | None = None, *, clock: Callable[[], float] = time.time
    ) -> Committer:
        """Make the driver's half. The clock, in epoch seconds, is what files grow old by."""
        context = context or CommitterContext()
        publisher = FilePublisher(self.base, self.config, self.format.join, context)
        if self.overwrite is not None:
            return OverwritingCommitter(publisher, self.overwrite, compacted_size=self.compacted_size)
        return FileCommitter(
            publisher,
            self.rolling_policy,
            check_interval_ms=self.bucket_check_interval,
            can_append=self.format.can_append,
            partition_commit=self.partition_commit,
            compacted_size=self.compacted_size,
            clock=clock,
        )

    class BaseBuilder:
        """Collects the settings of a `FileSink`."""

        def __init__(self, base_path: str | os.PathLike[str], file_format: RowFormat | BulkRows) -> None:
            self._base_path = base_path
            self._format = file_format
            self._assigner = BucketAssigner.date_time_bucket_assigner()
            self._config = OutputFileConfig.builder().build()
            self._policy: RollingPolicy = RollingPolicy.on_checkpoint_rolling_policy()
            self._check_interval = _CHECK_INTERVAL_MS
            self._partition_commit: PartitionCommit | None = None
            self._overwrite: Overwrite | None = None
            self._compacted_size: int | None = None

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Choose the directories; without it, one an hour of processing time."""
            self._assigner = bucket_assigner
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Choose what file names begin and end with; without it, `part` and nothing."""
            self._config = output_file_config
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Choose when a file is full."""
            require(
                isinstance(rolling_policy, RollingPolicy),
                "FileSink.with_rolling_policy",
                "a RollingPolicy",
                rolling_policy,
                hint="for instance RollingPolicy.on_checkpoint_rolling_policy()",
            )
            self._policy = rolling_policy
            return self

        def with_bucket_check_interval(self, interval: int) -> Self:
            """Choose how often, in ms, files are looked at whether they are old enough.

            With checkpointing that happens at every checkpoint, and files appear at no other time.
            """
            if interval <= 0:
                raise JobDefinitionError(
                    f"FileSink.with_bucket_check_interval: expected a positive number of ms; got {interval}"
                )
            self._check_interval = interval
            return self

        def with_partition_commit(
            self,
            delay: Duration | timedelta | None = None,
            success_file_name: str = "_SUCCESS",
            *,
            partition_time: str | None = None,
            partition_time_format: str | None = None,
        ) -> Self:
            """Mark buckets as complete with an empty file, for those who read them. PyFlink has it for tables only.

            A bucket is marked with the first checkpoint that finds all its files finished and its first record
            older than the delay. Records that come for it later are written, and it is marked again.

            With `partition_time` it follows event time: a bucket is complete when the watermark has passed the time
            that its name stands for, and the delay. For buckets of an hour the delay is an hour.

            Args:
                delay: How long after its first record a bucket is complete, by the clock; nothing if None.
                success_file_name: The name of the file.
                partition_time: The time of a bucket, such as `"$day $hour:00:00"` for `day=2024-02-29/hour=8`.
                partition_time_format: How that is written, such as `"yyyyMMdd HH"`; as SQL writes timestamps, if None.

            Raises:
                JobDefinitionError: The delay is negative, the name is not valid, or the format is not that of a time.
            """
            self._partition_commit = PartitionCommit(
                0 if delay is None else as_millis(delay),
                success_file_name,
                None if partition_time is None else PartitionTime(partition_time, partition_time_format),
            )
            return self

        def with_overwrite(self, *buckets: str) -> Self:
            """Replace what is there, in every directory that is written to. PyFlink has it for tables only.

            Files appear when the job has come to its end, and only then those that were there go.

            Args:
                buckets: Directories, relative to the base path, that are emptied even if nothing is written to them.
            """
            self._overwrite = Overwrite(buckets)
            return self

        def with_compaction(self, file_size: int = _COMPACTED_SIZE) -> Self:
            """Put the small files of each checkpoint together before they appear. PyFlink has it for tables only.

            Every checkpoint closes all files. The driver then joins those of a bucket, whichever subtasks wrote them.

            Args:
                file_size: How large files become, in bytes. Larger ones are published as they are.

            Raises:
                JobDefinitionError: The size is not positive.
            """
            if file_size <= 0:
                raise JobDefinitionError(
                    f"FileSink.with_compaction: file_size must be positive; got {file_size}"
                )
            self._compacted_size = file_size
            return self

        def enable_compact(self, strategy: object, compactor: object) -> NoReturn:
            """Raise `UnsupportedFeatureError`: there are no strategies for compaction yet."""
            raise UnsupportedFeatureError.not_yet("FileSink.enable_compact", "use with_compaction(file_size)")

        def disable_compact(self) -> Self:
            """Do not put small files together, which is how it is."""
            return self

        def build(self) -> FileSink:
            """Make the sink.

            Raises:
                JobDefinitionError: The base path is a file, or prefix or suffix are not part of a file name.
                UnsupportedFeatureError: Files are to be compacted, and their format cannot be joined.
                ConnectorError: The file system cannot be reached.
            """
            for part in (self._config.part_prefix, self._config.part_suffix):
                if "/" in part:
                    raise JobDefinitionError(
                        f"FileSink: prefix and suffix must not contain a slash; got {part!r}",
                        hint="use a bucket assigner to write into subdirectories",
                    )
            if self._compacted_size is not None and not self._format.can_join:
                raise UnsupportedFeatureError.not_yet(
                    "FileSink.with_compaction: files of this format", "use Parquet, ORC, Avro or a row format"
                )
            base = locate(self._base_path, who="FileSink")
            try:
                kind = base.look_up().kind
            except OSError as error:
                raise ConnectorError(f"FileSink: cannot access {base}: {error}") from error
            if kind is EntryKind.FILE:
                raise JobDefinitionError(
                    f"FileSink: the base path is a file: {base}",
                    hint="use a directory, or a path that does not exist yet",
                )
            return FileSink(
                base,
                self._format,
                self._assigner,
                self._policy if self._compacted_size is None else self._policy.closing_with_checkpoints(),
                self._config,
                self._check_interval,
                self._partition_commit,
                self._replacing(),
                self._compacted_size,
            )

        def _replacing(self) -> Overwrite | None:
            if self._overwrite is None or self._partition_commit is None:
                return self._overwrite
            return replace(self._overwrite, success_file_name=self._partition_commit.success_file_name)

    class RowFormatBuilder(BaseBuilder):
        """Collects the settings of a sink of rows. Without a policy, files are full with 128 MB or after a minute."""

        def __init__(self, base_path: str | os.PathLike[str], encoder: Encoder) -> None:
            super().__init__(base_path, RowFormat(encoder))
            self._policy = RollingPolicy.default_rolling_policy()

    class BulkFormatBuilder(BaseBuilder):
        """Collects the settings of a sink of files that are written as a whole."""

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Take the one policy there is: such a file cannot be gone on with once it is finished.

            Raises:
                JobDefinitionError: It is another policy.
            """
            if not isinstance(rolling_policy, OnCheckpointRollingPolicy):
                raise JobDefinitionError(
                    "FileSink.for_bulk_format: bulk formats can only roll files on checkpoints; got "
                    f"{rolling_policy!r}",
                    hint="leave out with_rolling_policy()",
                )
            return super().with_rolling_policy(rolling_policy)


class StreamingFileSink(FileSink):
    """Flink's older file sink, which programs pass to `add_sink`: `FileSink` under its former name."""

    DefaultRowFormatBuilder = FileSink.RowFormatBuilder
    DefaultBulkFormatBuilder = FileSink.BulkFormatBuilder
