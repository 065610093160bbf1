"""'connector' = 'filesystem': files of JSON, CSV, Parquet or ORC below a path. Spark's readers read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, BinaryIO, Final
from urllib.parse import quote

from headrace.catalog.objects import CatalogTable, MetadataColumn
from headrace.common.serialization import BulkWriter, BulkWriterFactory, Encoder, SerializationSchema
from headrace.common.types import Row
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Sink, Source
from headrace.connectors.file import BucketAssigner, FileSink, OutputFileConfig
from headrace.connectors.file._partitions import list_partitions
from headrace.connectors.file._sink_options import (
    read_sink_options,
    set_compaction,
    set_partition_commit,
    set_rolling_policy,
    shuffles_by_partition,
)
from headrace.connectors.file.avro_table import avro_source, avro_writer
from headrace.connectors.file.lookup import FileRows
from headrace.connectors.file.table import FileTableSource
from headrace.connectors.lookup_tables import CacheKind, TableLookup, lookup_options
from headrace.connectors.tables import APPEND, SinkAbility, TableRequest
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.formats.tables import file_format, message_format
from headrace.storage.locations import locate
from headrace.storage.search import InputPath
from headrace.types.logical import RowField, RowType

__all__ = ["FilesystemFactory"]

#: The directory of rows without a value: Flink's option, and what it is if nothing is said.
_NO_VALUE_KEY, _NO_VALUE = "partition.default-name", "__DEFAULT_PARTITION__"
#: The format that has no reader in Spark's distribution.
_AVRO: Final = "avro"
_PATH_PATTERN: Final = "source.path.regex-pattern"
#: What files are like beside their contents, by Flink's keys.
_METADATA: Final = {
    "file.path": "_metadata.file_path",
    "file.name": "_metadata.file_name",
    "file.size": "_metadata.file_size",
    "file.modification-time": "_metadata.file_modification_time",
}


class FilesystemFactory:
    """Reads and writes files."""

    def source(self, request: TableRequest) -> Source:
        options = request.options
        path, kind = options.required("path"), options.required("format")
        interval = options.duration("source.monitor-interval")
        pattern = _path_pattern(options)
        has_statistics = _has_statistics(options)
        read_sink_options(options)
        lookup_options(options, CacheKind.FULL)  # rows may be looked up in it, too
        if kind == _AVRO:
            return avro_source(
                request,
                path,
                interval,
                name_pattern=pattern,
                metadata=_metadata(request),
                no_value=_no_value(options),
            )
        reader = file_format(options, _AVRO).spark_reader()
        base = {"basePath": path} if request.table.partition_keys else {}
        return FileTableSource(
            InputPath.parse(path, who=f"table {request.name}"),
            reader.format,
            {**reader.options, **base},
            {name: _METADATA[key] for name, key in _metadata(request).items()},
            None if interval is None else interval.total_seconds(),
            reads_whole=request.is_batch,
            partition_keys=tuple(request.table.partition_keys),
            ignores_errors=reader.ignores_errors,
            has_event_time=request.table.watermark is not None,
            name_pattern=pattern,
            no_value=_no_value(options),
            has_statistics=has_statistics,
        )

    def lookup(self, request: TableRequest, keys: Sequence[str]) -> TableLookup:
        options = request.options
        path, kind = options.required("path"), options.required("format")
        settings = lookup_options(options, CacheKind.FULL)
        options.duration("source.monitor-interval")
        _has_statistics(options)
        read_sink_options(options)
        _no_value(options)
        columns = request.table.physical_columns
        if settings.cache is not CacheKind.FULL:
            raise SqlValidationError(
                f"table {request.name!r}: files are looked up as a whole, not by key",
                hint="set 'lookup.cache' = 'FULL'",
            )
        if request.table.partition_keys or request.table.metadata_columns:
            raise UnsupportedFeatureError.not_yet(
                f"table {request.name!r}: lookups in files with partitions or metadata columns"
            )
        row_type = RowType([RowField(each.name, each.type) for each in columns])
        if kind in ("orc", _AVRO):
            raise UnsupportedFeatureError.not_yet(f"table {request.name!r}: lookups in files of {kind}")
        if options.text(_PATH_PATTERN) is not None:
            raise UnsupportedFeatureError.not_yet(f"table {request.name!r}: lookups with {_PATH_PATTERN!r}")
        if kind == "parquet":
            file_format(options)  # its options are for files that are written
        lines = None if kind == "parquet" else message_format(options, "format").reader(row_type)
        names = tuple(each.name for each in columns)
        rows = FileRows(InputPath.parse(path, who=f"table {request.name}"), names, lines)
        return TableLookup(request.name, settings, None, rows.read_all, tuple(map(names.index, keys)))

    def partitions(self, request: TableRequest) -> list[dict[str, str]]:
        path = locate(request.options.required("path"), who=f"table {request.name}")
        return list_partitions(path, request.table.partition_keys)

    def ability(self, table: CatalogTable) -> SinkAbility:
        keys = tuple(table.partition_keys) if shuffles_by_partition(table.options) else ()
        return replace(APPEND, can_overwrite=True, shuffle_by=keys)

    def sink(self, request: TableRequest) -> Sink:
        options = request.options
        path, kind = options.required("path"), options.required("format")
        options.text("source.monitor-interval")
        options.text(_PATH_PATTERN)
        _has_statistics(options)
        read_sink_options(options)
        lookup_options(options, CacheKind.FULL)  # rows may be looked up in it, too
        if request.is_overwrite and not request.is_batch:
            raise _overwriting(request)
        columns = request.table.sink_columns
        names = [each.name for each in columns]
        stored = [at for at, name in enumerate(names) if name not in request.table.partition_keys]
        row_type = RowType([RowField(columns[at].name, columns[at].type) for at in stored])
        writer = (
            avro_writer(options, row_type)
            if kind == _AVRO
            else file_format(options, _AVRO).file_writer(row_type)
        )
        builder: FileSink.RowFormatBuilder | FileSink.BulkFormatBuilder
        if isinstance(writer, BulkWriterFactory):
            if len(stored) < len(names):
                writer = _StoredRows(writer, tuple(stored))
            builder = FileSink.for_bulk_format(path, writer)
        else:
            builder = FileSink.for_row_format(path, Encoder(_LineWriter(writer, stored)))
        keys = [(name, names.index(name)) for name in request.table.partition_keys]
        no_value = _no_value(options)
        builder.with_bucket_assigner(
            BucketAssigner.element_bucket_assigner(_Partition(tuple(keys), no_value))
        )
        config = OutputFileConfig.builder().with_part_prefix("part").with_part_suffix(f".{kind}").build()
        set_rolling_policy(builder, options, kind)
        set_compaction(builder, options)
        set_partition_commit(builder, options, request.table.partition_keys)
        if request.is_overwrite:
            builder.with_overwrite(*_emptied(request))
        return builder.with_output_file_config(config).build()


def _overwriting(request: TableRequest) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"INSERT OVERWRITE into {request.name!r} in streaming mode: a stream has no end at which files could take "
        "the place of others",
        feature="INSERT OVERWRITE in streaming mode",
        hint="as in Flink: use INSERT INTO, or BATCH mode",
    )


def _emptied(request: TableRequest) -> list[str]:
    """Return the directories that are emptied even if no rows come: the table's, or that of PARTITION (...)."""
    keys = request.table.partition_keys
    if any(key not in request.static_partitions for key in keys):
        return []
    no_value = _no_value(request.options)
    return ["/".join(f"{key}={_directory(request.static_partitions[key], no_value)}" for key in keys)]


def _no_value(options: TableOptions) -> str:
    """Return the name of the directory of rows without a value."""
    name = options.text(_NO_VALUE_KEY, _NO_VALUE) or _NO_VALUE
    if "/" in name:
        raise options.wrong(_NO_VALUE_KEY, "the name of a directory, without slashes")
    return name


def _has_statistics(options: TableOptions) -> bool:
    """Return whether plans may depend on how large the files of the table are."""
    return options.choice("source.report-statistics", ("ALL", "NONE"), "ALL") == "ALL"


def _path_pattern(options: TableOptions) -> str | None:
    """Return the regular expression that paths of files must match as a whole."""
    pattern = options.text(_PATH_PATTERN)
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise options.wrong(_PATH_PATTERN, f"a regular expression ({error})") from None
    return pattern


@dataclass(frozen=True)
class _Partition:
    """Finds the directory of a row: ``day=2024-02-29/hour=8``; without keys the table's own."""

    keys: tuple[tuple[str, int], ...]
    no_value: str

    def __call__(self, row: Any) -> str:
        return "/".join(f"{name}={_directory(row[at], self.no_value)}" for name, at in self.keys)


def _directory(value: Any, no_value: str) -> str:
    return no_value if value is None or value == "" else quote(str(value), safe=" ,:@+-")


@dataclass(frozen=True)
class _LineWriter:
    """Writes rows one after the other, each on its line, without what the directory says already."""

    serializer: SerializationSchema
    stored: list[int]

    def __call__(self, element: Any, stream: BinaryIO) -> None:
        line = self.serializer.serialize(Row(*(element[at] for at in self.stored)))
        stream.write(line if line.endswith(b"\n") else line + b"\n")


@dataclass(frozen=True)
class _StoredRows(BulkWriterFactory):
    """Writes files of rows without what the directory says already."""

    factory: BulkWriterFactory
    stored: tuple[int, ...]

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _StoredRowsWriter(self.factory.create(stream), self.stored)

    @property
    def can_join(self) -> bool:
        return self.factory.can_join

    def join(self, files: Iterable[IO[bytes]], stream: BinaryIO) -> None:
        self.factory.join(files, stream)


class _StoredRowsWriter(BulkWriter):
    def __init__(self, writer: BulkWriter, stored: tuple[int, ...]) -> None:
        self._writer, self._stored = writer, stored

    def add_element(self, element: Any) -> None:
        self._writer.add_element(Row(*(element[at] for at in self._stored)))

    def flush(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        self._writer.finish()


def _metadata(request: TableRequest) -> dict[str, str]:
    """Return Flink's keys of the metadata columns, by name."""
    made = {}
    for column in request.table.source_columns:
        if isinstance(column, MetadataColumn):
            if column.metadata_key not in _METADATA:
                raise SqlValidationError(
                    f"table {request.name!r}: files have no metadata column {column.metadata_key!r}",
                    hint=f"available: {', '.join(_METADATA)}",
                )
            made[column.name] = column.metadata_key
    return made
