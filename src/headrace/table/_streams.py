"""Tables of data streams and data streams of tables: schemas found and checked; nothing runs here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.catalog.manager import nearest
from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import ChangelogMode
from headrace.common.typeinfo import (
    ExternalTypeInfo,
    PickledBytesTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from headrace.common.types import Row, RowKind
from headrace.datastream import DataStream
from headrace.errors import JobDefinitionError, SqlValidationError, UnsupportedFeatureError, shorten
from headrace.planner.logical import Schema as PlanSchema
from headrace.table.attachments import AttachedStream
from headrace.table.expression import Expression
from headrace.table.schema import Schema, WrittenColumn
from headrace.types.logical import DataType, LocalZonedTimestampType, quote_name
from headrace.types.type_information import data_type, type_information

__all__ = [
    "StreamSchema",
    "TargetSchema",
    "check_changelog_stream",
    "check_changelog_target",
    "record_type",
    "with_flag",
]

#: The metadata column that is the timestamp of a record.
ROWTIME = "rowtime"


@dataclass(frozen=True)
class _Records:
    """What the records of a stream are made of."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    is_atomic: bool = False


def _records_of(type_info: TypeInformation | None) -> _Records | None:
    """Return the fields of records of a type; None if it is not declared."""
    while isinstance(type_info, ExternalTypeInfo):
        type_info = type_info._type_info
    if type_info is None or isinstance(type_info, PickledBytesTypeInfo):
        return None
    if isinstance(type_info, RowTypeInfo):
        types = tuple(data_type(each) for each in type_info.get_field_types())
        return _Records(tuple(type_info.get_field_names()), types)
    if isinstance(type_info, TupleTypeInfo):
        types = tuple(data_type(each) for each in type_info.get_field_types())
        return _Records(tuple(f"f{at}" for at in range(len(types))), types)
    return _Records(("f0",), (data_type(type_info),), is_atomic=True)


# --- from a stream ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamSchema:
    """The columns of a table of a stream, and where they are found in its records."""

    call: str
    stream: DataStream
    #: With all physical columns.
    schema: Schema
    fields: tuple[tuple[str, int], ...]
    is_atomic: bool
    #: Columns that only expressions of the schema use: fields of the records that it does not declare.
    hidden: tuple[str, ...] = ()

    @property
    def selected(self) -> str:
        """What SQL selects to see the columns that are declared."""
        if not self.hidden:
            return "*"
        return ", ".join(
            quote_name(each.name) for each in self.schema.columns if each.name not in self.hidden
        )

    @staticmethod
    def of(call: str, stream: Any, fields_or_schema: Sequence[Any]) -> StreamSchema:
        """Find the columns.

        Args:
            call: Who asks, for messages.
            stream: The stream.
            fields_or_schema: Nothing, a `Schema`, or the fields as expressions.

        Raises:
            JobDefinitionError: If it is not a stream, or its records have no type that says their columns.
            SqlValidationError: If the schema does not fit the records.
        """
        if not isinstance(stream, DataStream):
            raise JobDefinitionError(f"{call}: expected a DataStream, got {shorten(stream)}")
        records = _records_of(stream._declared_type)
        if fields_or_schema and all(isinstance(each, Expression) for each in fields_or_schema):
            return _of_fields(call, stream, fields_or_schema, records)
        schema = fields_or_schema[0] if fields_or_schema else Schema()
        if len(fields_or_schema) > 1 or not isinstance(schema, Schema):
            raise JobDefinitionError(
                f"{call}: expected a Schema or expressions, got {shorten(fields_or_schema)}",
                hint="Schema.new_builder().column(...).build(), or col('a'), col('b')",
            )
        return _of_schema(call, stream, schema, records)

    def attached(self, table: CatalogTable, mode: ChangelogMode) -> CatalogTable:
        """Return a table with the columns of the schema that reads the stream."""
        for column in table.metadata_columns:
            if column.metadata_key != ROWTIME:
                raise SqlValidationError(
                    f"{self.call}: records of a stream have no metadata {column.metadata_key!r}",
                    hint="there is one: 'rowtime', the timestamp of the record",
                )
            if not isinstance(column.type, LocalZonedTimestampType):
                raise SqlValidationError(
                    f"{self.call}: the timestamp of a record is TIMESTAMP_LTZ(3), not {column.type.summary()}",
                    hint=f".column_by_metadata({column.name!r}, 'TIMESTAMP_LTZ(3)')",
                )
        if len(table.metadata_columns) > 1:
            raise SqlValidationError(
                f"{self.call}: only one column can hold the timestamp of a record, but two do"
            )
        stream = AttachedStream(self.stream._transformation, self.fields, self.is_atomic, mode)
        return replace(table, options={}, attachment=stream)


def _of_schema(call: str, stream: DataStream, schema: Schema, records: _Records | None) -> StreamSchema:
    declared = schema.physical_names()
    if records is None:
        if not declared:
            raise _untyped(call)
        return StreamSchema(call, stream, schema, _numbered(declared), is_atomic=len(declared) == 1)
    if not declared:
        columns = Schema.new_builder().from_fields(records.names, records.types)
        schema = columns.from_schema(schema).build()
        return StreamSchema(call, stream, schema, _numbered(records.names), records.is_atomic)
    if records.is_atomic and len(declared) == 1:
        return StreamSchema(call, stream, schema, _numbered(declared), is_atomic=True)
    fields = []
    for name in declared:
        if name not in records.names:
            raise SqlValidationError(
                f"{call}: the records of the stream have no field {name!r}; they have {', '.join(records.names)}",
                hint=nearest(name, list(records.names)),
            )
        fields.append((name, records.names.index(name)))
    hidden = [name for name in records.names if name not in declared and schema.mentions(name)]
    if hidden:
        fields += [(name, records.names.index(name)) for name in hidden]
        types = [records.types[records.names.index(name)] for name in hidden]
        schema = Schema.new_builder().from_schema(schema).from_fields(hidden, types).build()
    return StreamSchema(call, stream, schema, tuple(fields), is_atomic=False, hidden=tuple(hidden))


def _numbered(names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple((name, at) for at, name in enumerate(names))


def _untyped(call: str) -> JobDefinitionError:
    return JobDefinitionError(
        f"{call}: the records of the stream have no declared type, so the columns of the table are not known",
        hint="pass output_type=Types.ROW_NAMED([...], [...]) to the step before, or a Schema with columns",
    )


def _of_fields(
    call: str, stream: DataStream, fields: Sequence[Expression[Any]], records: _Records | None
) -> StreamSchema:
    """Take fields by name, or by position if one of the names is new; and time attributes."""
    if records is None:
        raise _untyped(call)
    plain = [field for field in fields if field._time_attribute is None]
    by_name = all(field._column in records.names for field in plain)
    if not by_name and len(plain) > len(records.names):
        raise SqlValidationError(
            f"{call}: {len(plain)} names for {len(records.names)} fields: {', '.join(records.names)}"
        )
    builder = Schema.new_builder()
    found: list[tuple[str, int]] = []
    for field in fields:
        time, name = field._time_attribute, field._column
        if time is not None:
            alias = field._aliases[0] if field._aliases else time[0]
            if time[1] == ROWTIME:
                builder.column_by_metadata(alias, "TIMESTAMP_LTZ(3)", ROWTIME)
                builder.watermark(alias, "SOURCE_WATERMARK()")
            else:
                builder.column_by_expression(alias, "PROCTIME()")
            continue
        if name is None:
            raise JobDefinitionError(
                f"{call}: expected fields of the records, such as col('a'), col('a').alias('b'), col('t').rowtime; "
                f"got {field}"
            )
        at = records.names.index(name) if by_name else len(found)
        builder.column(field._aliases[0] if field._aliases else name, records.types[at])
        found.append((records.names[at], at))
    return StreamSchema(call, stream, builder.build(), tuple(found), records.is_atomic)


def check_changelog_stream(call: str, schema: StreamSchema, mode: ChangelogMode) -> None:
    """Refuse a changelog that no table can be made of.

    Raises:
        SqlValidationError: If rows are values without kinds, or updates without a key come as the new row alone.
    """
    if schema.is_atomic:
        raise SqlValidationError(
            f"{call}: the kinds of rows are found on Row records; the records of this stream are plain values",
            hint="map them to Row.of_kind(RowKind.INSERT, ...) with output_type=Types.ROW_NAMED([...], [...])",
        )
    if not mode.contains(RowKind.INSERT):
        raise SqlValidationError(
            f"{call}: changelog mode {mode} has no inserts, so the table would stay empty"
        )
    if mode.has_updates and not mode.has_update_before and not schema.schema.primary_key:
        raise SqlValidationError(
            f"{call}: upsert changelog mode {mode} needs a primary key to know which row an update replaces",
            hint="Schema.new_builder(). ... .primary_key('id').build()",
        )


# --- to a stream --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TargetSchema:
    """The fields of a stream's records, out of the columns of a table."""

    #: What is selected of the table.
    items: tuple[str, ...]
    #: Which of them is the timestamp of the record, and no field of it.
    rowtime: int | None
    #: Which of them are the key.
    keys: tuple[int, ...]

    @staticmethod
    def of(call: str, schema: Schema, columns: PlanSchema) -> TargetSchema:
        """Find the columns of a schema in a table: by name, or by position if one of the names is new.

        Raises:
            SqlValidationError: If they are not there, or the schema has columns that records cannot have.
        """
        written = schema.written_columns(call)
        names = [field.name for field in columns]
        if not written:
            items = [quote_name(name) for name in names]
            return TargetSchema(tuple(items), None, _key_positions(call, schema, names))
        types = {field.name: field.type for field in columns}
        items = [
            _item(source, column.name, column.type, types[source])
            for source, column in zip(_sources(call, written, names), written, strict=True)
        ]
        times = [at for at, column in enumerate(written) if column.key is not None]
        if any(written[at].key != ROWTIME for at in times) or len(times) > 1:
            raise SqlValidationError(
                f"{call}: records of a stream have one metadata, 'rowtime': their timestamp",
                hint=".column_by_metadata('rowtime', 'TIMESTAMP_LTZ(3)')",
            )
        keys = _key_positions(call, schema, [column.name for column in written])
        return TargetSchema(tuple(items), times[0] if times else None, keys)


def _sources(call: str, written: Sequence[WrittenColumn], names: Sequence[str]) -> Sequence[str]:
    """Return which column of a table each column of a schema is: by name, or by position if a name is new."""
    if all(column.name in names for column in written):
        return [column.name for column in written]
    if len(written) == len(names):
        return names
    raise SqlValidationError(
        f"{call}: the schema has {len(written)} columns, {', '.join(each.name for each in written)}, and the "
        f"table {len(names)}: {', '.join(names)}",
        hint="name columns of the table, or as many as it has",
    )


def _key_positions(call: str, schema: Schema, names: Sequence[str]) -> tuple[int, ...]:
    missing = [name for name in schema.primary_key if name not in names]
    if missing:
        raise SqlValidationError(f"{call}: primary key column {missing[0]!r} is not a column of the table")
    return tuple(names.index(name) for name in schema.primary_key)


def _item(source: str, name: str, wanted: str, found: DataType) -> str:
    column = quote_name(source)
    # A cast makes a plain timestamp of a time attribute: only where it is another type.
    wanted = wanted.removesuffix(" NOT NULL")
    is_same = wanted.upper() == found.summary_without_null().upper()
    return f"{column if is_same else f'CAST({column} AS {wanted})'} AS {quote_name(name)}"


def check_changelog_target(call: str, mode: ChangelogMode, keys: Sequence[int]) -> None:
    """Refuse updates that come as the new row alone where no key says which row they take the place of."""
    if mode.has_updates and not mode.has_update_before and not keys:
        raise SqlValidationError(
            f"{call}: upsert changelog mode {mode} needs a primary key to know which row an update replaces",
            hint="pass a schema with .primary_key(...), or ChangelogMode.all()",
        )


def record_type(columns: PlanSchema, rowtime: int | None = None) -> TypeInformation | None:
    """Return the type of records with these columns; None if streams have none for one of them."""
    fields = [field for at, field in enumerate(columns) if at != rowtime]
    try:
        return Types.ROW_NAMED(
            [each.name for each in fields], [type_information(each.type) for each in fields]
        )
    except UnsupportedFeatureError:
        return None


def with_flag(row: Row) -> tuple[bool, Row]:
    """Return a row of a retract stream: whether it is added, and the row."""
    return row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER), row
