"""`Schema`: the columns of a table as a program declares them, before they are checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.errors import SqlValidationError
from headrace.table._pieces import SHOWN
from headrace.table.expression import Expression
from headrace.types import DataType, RowType
from headrace.types.logical import quote_name

__all__ = ["Schema"]


@dataclass(frozen=True)
class _Given:
    """An expression or type as a program gave it: its SQL, and how Flink shows it."""

    sql: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Physical:
    name: str
    type: _Given


@dataclass(frozen=True)
class _Computed:
    name: str
    expression: _Given


@dataclass(frozen=True)
class _Metadata:
    name: str
    type: _Given
    key: str | None
    is_virtual: bool


@dataclass(frozen=True)
class WrittenColumn:
    """A column that rows are written with."""

    name: str
    type: str
    #: Given for metadata: what it is to the connector.
    key: str | None = None


@dataclass(frozen=True)
class Schema:
    """Columns, watermark and primary key of a table. Made by `Schema.new_builder`.

    Example:
        >>> from headrace.types import DataTypes
        >>> schema = (
        ...     Schema.new_builder()
        ...     .column("id", DataTypes.BIGINT())
        ...     .column("ts", "TIMESTAMP(3)")
        ...     .column_by_expression("day", "DATE_FORMAT(ts, 'yyyy-MM-dd')")
        ...     .watermark("ts", "ts - INTERVAL '5' SECOND")
        ...     .build()
        ... )
        >>> print(schema)
        (
          `id` BIGINT,
          `ts` [TIMESTAMP(3)],
          `day` AS [DATE_FORMAT(ts, 'yyyy-MM-dd')],
          WATERMARK FOR `ts` AS [ts - INTERVAL '5' SECOND]
        )
    """

    columns: tuple[_Physical | _Computed | _Metadata, ...] = ()
    watermarks: tuple[tuple[str, _Given], ...] = ()
    primary_key: tuple[str, ...] = ()
    primary_key_name: str | None = None

    @staticmethod
    def new_builder() -> Schema.Builder:
        """Start to write down a schema."""
        return Schema.Builder()

    def physical_names(self) -> tuple[str, ...]:
        """Return the names of the columns that are stored."""
        return tuple(column.name for column in self.columns if isinstance(column, _Physical))

    def mentions(self, name: str) -> bool:
        """Whether an expression of a column contains a name."""
        word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        return any(isinstance(each, _Computed) and word.search(each.expression.sql) for each in self.columns)

    def written_columns(self, call: str) -> tuple[WrittenColumn, ...]:
        """Return the columns that rows are written with.

        Raises:
            SqlValidationError: If there are others.
        """
        if self.watermarks:
            raise SqlValidationError(f"{call}: a sink schema cannot declare a watermark")
        written = []
        for column in self.columns:
            match column:
                case _Physical():
                    written.append(WrittenColumn(column.name, column.type.sql))
                case _Metadata() if not column.is_virtual:
                    written.append(WrittenColumn(column.name, column.type.sql, column.key or column.name))
                case _:
                    raise SqlValidationError(
                        f"{call}: column {column.name!r} is not written", hint="compute it in the query"
                    )
        return tuple(written)

    def sql(self) -> str:
        """Return the columns as CREATE TABLE writes them."""
        return self._written(lambda given: given.sql, self.primary_key_name)

    def __str__(self) -> str:
        return self._written(str, self.primary_key_name or f"PK_{'_'.join(self.primary_key)}")

    def _written(self, write: Callable[[_Given], str], key_name: str | None) -> str:
        lines = [_column_sql(each, write) for each in self.columns]
        lines += [f"WATERMARK FOR {quote_name(name)} AS {write(given)}" for name, given in self.watermarks]
        if self.primary_key:
            columns = ", ".join(map(quote_name, self.primary_key))
            named = f"CONSTRAINT {quote_name(key_name)} " if key_name else ""
            lines.append(f"{named}PRIMARY KEY ({columns}) NOT ENFORCED")
        return "(\n  " + ",\n  ".join(lines) + "\n)"

    class Builder:
        """Collects the parts of a schema; every call returns the builder."""

        def __init__(self) -> None:
            self._schema = Schema()

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """Take all parts of another schema."""
            mine, other = self._schema, unresolved_schema
            self._schema = Schema(
                (*mine.columns, *other.columns),
                (*mine.watermarks, *other.watermarks),
                mine.primary_key or other.primary_key,
                mine.primary_key_name or other.primary_key_name,
            )
            return self

        def from_resolved_schema(self, resolved_schema: Any) -> Schema.Builder:
            """Take the columns of a table's schema, and its primary key."""
            key = resolved_schema.get_primary_key()
            builder = self.from_fields(
                resolved_schema.get_column_names(), resolved_schema.get_column_data_types()
            )
            return builder if key is None else builder.primary_key_named(key.get_name(), *key.get_columns())

        def from_row_data_type(self, data_type: DataType) -> Schema.Builder:
            """Take the fields of a row as columns."""
            if not isinstance(data_type, RowType):
                raise SqlValidationError(f"from_row_data_type(): expected a ROW; got {data_type.summary()}")
            return self.from_fields(data_type.field_names(), data_type.field_types())

        def from_fields(
            self, field_names: Sequence[str], field_data_types: Sequence[DataType]
        ) -> Schema.Builder:
            """Add physical columns with these names and types."""
            for name, data_type in zip(field_names, field_data_types, strict=True):
                self.column(name, data_type)
            return self

        def column(self, column_name: str, data_type: str | DataType) -> Schema.Builder:
            """Add a column that the external system stores."""
            return self._add(_Physical(column_name, _given(data_type)))

        def column_by_expression(self, column_name: str, expr: str | Expression[Any]) -> Schema.Builder:
            """Add a column that is computed from others."""
            return self._add(_Computed(column_name, _given(expr)))

        def column_by_metadata(
            self,
            column_name: str,
            data_type: str | DataType,
            metadata_key: str | None = None,
            is_virtual: bool = False,
        ) -> Schema.Builder:
            """Add a column that the connector fills beside the data."""
            return self._add(_Metadata(column_name, _given(data_type), metadata_key, is_virtual))

        def watermark(self, column_name: str, watermark_expr: str | Expression[Any]) -> Schema.Builder:
            """Make a column the event time of the table."""
            found = (column_name, _given(watermark_expr))
            self._schema = replace(self._schema, watermarks=(*self._schema.watermarks, found))
            return self

        def primary_key(self, *column_names: str) -> Schema.Builder:
            """Declare the primary key; it is not enforced."""
            self._schema = replace(self._schema, primary_key=column_names)
            return self

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Schema.Builder:
            """Declare the primary key, with a name for the constraint."""
            self._schema = replace(self._schema, primary_key=column_names, primary_key_name=constraint_name)
            return self

        def build(self) -> Schema:
            """Return a `Schema` with these columns and keys."""
            return self._schema

        def _add(self, column: _Physical | _Computed | _Metadata) -> Schema.Builder:
            self._schema = replace(self._schema, columns=(*self._schema.columns, column))
            return self


def _column_sql(column: _Physical | _Computed | _Metadata, write: Callable[[_Given], str]) -> str:
    name = quote_name(column.name)
    match column:
        case _Physical():
            return f"{name} {write(column.type)}"
        case _Computed():
            return f"{name} AS {write(column.expression)}"
        case _Metadata():
            source = f" FROM '{column.key}'" if column.key else ""
            return f"{name} {write(column.type)} METADATA{source}{' VIRTUAL' if column.is_virtual else ''}"


def _given(part: str | DataType | Expression[Any]) -> _Given:
    match part:
        case str():
            # Flink shows in brackets what it has not parsed yet.
            return _Given(part, f"[{part}]")
        case DataType():
            return _Given(part.summary(), part.summary())
        case _:
            return _Given(part._sql(SHOWN), str(part))
