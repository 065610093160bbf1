"""Which columns of a table of Kafka are in the key, in the value or metadata, and what reads and writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.catalog.objects import MetadataColumn, PhysicalColumn
from headrace.config.table_options import TableOptions
from headrace.connectors.kafka._table_topics import TableTopics
from headrace.connectors.kafka.table import (
    METADATA,
    WRITABLE_METADATA,
    ColumnPlace,
    KafkaRows,
    Partitioner,
    TableRecords,
)
from headrace.connectors.tables import TableRequest
from headrace.errors import SqlValidationError
from headrace.formats.tables import ChangelogFormat, MessageFormat, RegistryFormat, message_format
from headrace.types.logical import RowField, RowType

__all__ = ["KafkaColumns", "key_columns_of", "records_of", "rows_of"]

#: What the format of the value reads beside the row has this before its key.
_VALUE: Final = "value."


def key_columns_of(options: TableOptions) -> list[str]:
    """Return the columns that 'key.fields' names.

    Raises:
        SqlValidationError: They are given without the format of the key, or the other way round.
    """
    listed = options.text("key.fields")
    if (listed is None) != (options.text("key.format") is None):
        raise SqlValidationError(
            f"table {options.table!r}: 'key.format' and 'key.fields' must be given together or not at all"
        )
    return [each.strip() for each in (listed or "").split(";") if each.strip()]


class KafkaColumns:
    """Which columns are in the key and which in the value, by Flink's options.

    Args:
        options: Those of the table.
        columns: The physical columns.
        keys: The names of those that are in the key.

    Raises:
        SqlValidationError: The options do not fit the columns or each other.
    """

    def __init__(self, options: TableOptions, columns: Sequence[PhysicalColumn], keys: Sequence[str]) -> None:
        self.value_format = message_format(options, "format", "value.format")
        names = [column.name for column in columns]
        prefix = options.text("key.fields-prefix", "") or ""
        included = options.choice("value.fields-include", ("ALL", "EXCEPT_KEY"), "ALL")
        self.key_format: MessageFormat | None = None
        if options.text("key.format") is not None:
            self.key_format = message_format(options, "key.format")
            if isinstance(self.key_format, ChangelogFormat):
                raise options.wrong("key.format", "a format of rows, not of changes")
        if prefix and included == "ALL":
            raise SqlValidationError(
                f"table {options.table!r}: 'key.fields-prefix' needs 'value.fields-include' = 'EXCEPT_KEY'"
            )
        for name in keys:
            if name not in names or not name.startswith(prefix):
                raise options.wrong("key.fields", f"a list of columns ({'; '.join(names)})")
        #: Positions among the columns.
        self.key = [names.index(name) for name in keys]
        self.value = [at for at in range(len(names)) if included == "ALL" or at not in self.key]
        if not self.value:
            raise SqlValidationError(f"table {options.table!r}: no column is left for the value")
        #: Fields of the key, with their names there, and of the value.
        self.key_type = RowType(
            [RowField(names[at].removeprefix(prefix), columns[at].type) for at in self.key]
        )
        self.value_type = RowType([RowField(names[at], columns[at].type) for at in self.value])

    def name_subjects(self, topic: str) -> None:
        """Say under which subjects schemas are registered, unless the options do."""
        for each, part in ((self.key_format, "key"), (self.value_format, "value")):
            if isinstance(each, RegistryFormat):
                each.default_subject(f"{topic}-{part}")


def rows_of(
    request: TableRequest, options: TableOptions, keys: Sequence[str], *, is_upsert: bool = False
) -> KafkaRows:
    """Return what makes rows of records.

    Args:
        request: The table.
        options: Its options.
        keys: The columns that are in the key.
        is_upsert: Whether a record replaces the one before it with the same key.
    """
    columns = request.table.physical_columns
    layout = KafkaColumns(options, columns, keys)
    places = []
    for at, column in enumerate(columns):
        # A column that is in both is read from the value, unless there may be none.
        if at in layout.value and not (is_upsert and at in layout.key):
            places.append(ColumnPlace("value", layout.value.index(at), column.type))
        else:
            places.append(ColumnPlace("key", layout.key.index(at), column.type))
    beside: list[str] = []
    for metadata in request.table.metadata_columns:
        if metadata.metadata_key.startswith(_VALUE):
            beside.append(_format_metadata(request.name, metadata, layout.value_format))
            places.append(ColumnPlace("value", len(layout.value) + len(beside) - 1, metadata.type))
        else:
            places.append(ColumnPlace("metadata", _metadata(request.name, metadata, tuple(METADATA))))
    value_format = layout.value_format
    if isinstance(value_format, ChangelogFormat):
        value = value_format.reader(layout.value_type, beside)
    else:
        value = value_format.reader(layout.value_type)
    key = None
    if layout.key_format is not None:
        key = layout.key_format.reader(layout.key_type)
    return KafkaRows(places, value, key, is_upsert=is_upsert)


def records_of(
    request: TableRequest,
    options: TableOptions,
    topics: TableTopics,
    keys: Sequence[str],
    *,
    is_upsert: bool = False,
    partitioner: Partitioner = "default",
) -> TableRecords:
    """Return what makes records of rows.

    Args:
        request: The table.
        options: Its options.
        topics: Where records are written.
        keys: The columns that are in the key.
        is_upsert: Whether deleted rows are written as tombstones.
        partitioner: What chooses the partitions of records.
    """
    columns = request.table.sink_columns
    physical = [at for at, column in enumerate(columns) if isinstance(column, PhysicalColumn)]
    metadata = {
        _metadata(request.name, column, WRITABLE_METADATA): at
        for at, column in enumerate(columns)
        if isinstance(column, MetadataColumn)
    }
    layout = KafkaColumns(options, [column for column in columns if isinstance(column, PhysicalColumn)], keys)
    if topics.single is not None:
        layout.name_subjects(topics.single)
    elif "topic" not in metadata:
        raise SqlValidationError(
            f"table {request.name!r}: rows can go to several topics, and no column says to which",
            hint="name one 'topic', or add a column: topic STRING METADATA",
        )
    value_columns = [physical[at] for at in layout.value]
    key_columns = [physical[at] for at in layout.key]
    value = layout.value_format.writer(layout.value_type)
    key = None
    if layout.key_format is not None:
        key = layout.key_format.writer(layout.key_type)
    return TableRecords(
        topics,
        value,
        value_columns,
        key,
        key_columns,
        metadata,
        is_upsert=is_upsert,
        partitioner=partitioner,
    )


def _metadata(table: str, column: MetadataColumn, known: Sequence[str]) -> str:
    if column.metadata_key not in known:
        is_virtual = " (declare it VIRTUAL if it is only read)" if known is WRITABLE_METADATA else ""
        raise SqlValidationError(
            f"table {table!r}: metadata {column.metadata_key!r} cannot be "
            f"{'written to' if known is WRITABLE_METADATA else 'read from'} Kafka{is_virtual}",
            hint=f"available: {', '.join(known)}",
        )
    return column.metadata_key


def _format_metadata(table: str, column: MetadataColumn, made: MessageFormat) -> str:
    """Return the format's key of a metadata column that it fills.

    Raises:
        SqlValidationError: It has no such metadata, or the column is of another type.
    """
    known = made.metadata if isinstance(made, ChangelogFormat) else {}
    key = column.metadata_key.removeprefix(_VALUE)
    if key not in known:
        listed = ", ".join(f"{_VALUE}{each}" for each in known)
        raise SqlValidationError(
            f"table {table!r}: the format of the value has no metadata {column.metadata_key!r}",
            hint=f"available: {listed}"
            if listed
            else "only formats of change events, such as debezium-json, have metadata",
        )
    if type(column.type) is not type(known[key]):
        raise SqlValidationError(
            f"table {table!r}: column {column.name!r} is {column.type.summary_without_null()}, but metadata "
            f"{column.metadata_key!r} is {known[key].summary_without_null()}",
            hint="declare the column with this type, and cast it in queries",
        )
    return key
