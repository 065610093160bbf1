"""PyFlink's classes about catalogs: paths, columns, resolved schemas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.errors import CatalogError
from headrace.table.catalog_constraints import UniqueConstraint, WatermarkSpec
from headrace.types import DataType, RowField, RowType
from headrace.types.logical import quote_name, quote_text

__all__ = [
    "Column",
    "ComputedColumn",
    "MetadataColumn",
    "ObjectIdentifier",
    "ObjectPath",
    "PhysicalColumn",
    "ResolvedSchema",
]


@dataclass(frozen=True, order=True)
class ObjectPath:
    """Database and name of an object.

    Example:
        >>> ObjectPath.from_string("sales.orders").get_object_name()
        'orders'
    """

    database_name: str
    object_name: str

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """Read a path with a dot in it.

        Raises:
            CatalogError: If there is not exactly one.
        """
        parts = full_name.split(".")
        if len(parts) != 2 or not all(parts):
            raise CatalogError(f"expected database.object; got {full_name!r}")
        return ObjectPath(*parts)

    def get_database_name(self) -> str:
        """Return the name of the database."""
        return self.database_name

    def get_object_name(self) -> str:
        """Return the name of the object without its database."""
        return self.object_name

    def get_full_name(self) -> str:
        """Return both, with a dot."""
        return f"{self.database_name}.{self.object_name}"

    def compare_to(self, other: ObjectPath) -> int:
        """Return -1, 0 or 1, by database and name."""
        return (self > other) - (self < other)

    def __str__(self) -> str:
        return self.get_full_name()


@dataclass(frozen=True)
class ObjectIdentifier:
    """Catalog, database and name of an object."""

    catalog_name: str
    database_name: str
    object_name: str

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """Make one of its parts."""
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        """Return the name of the catalog."""
        return self.catalog_name

    def get_database_name(self) -> str:
        """Return the name of the database."""
        return self.database_name

    def get_object_name(self) -> str:
        """Return the name of the object without its database."""
        return self.object_name

    def to_object_path(self) -> ObjectPath:
        """Return database and name."""
        return ObjectPath(self.database_name, self.object_name)

    def to_list(self) -> list[str]:
        """Return the three parts."""
        return [self.catalog_name, self.database_name, self.object_name]

    def as_serializable_string(self) -> str:
        """Return it as SQL writes it."""
        return ".".join(map(quote_name, self.to_list()))

    def as_summary_string(self) -> str:
        """Return it for people."""
        return ".".join(self.to_list())

    def __str__(self) -> str:
        return self.as_serializable_string()


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    data_type: DataType
    comment: str | None = None
    #: How a table shows the type, with a mark where the column is a time attribute; None: as SQL writes it.
    shown_type: str | None = field(default=None, compare=False, kw_only=True)

    @staticmethod
    def physical(name: str, data_type: DataType) -> PhysicalColumn:
        """Make a column that the external system stores."""
        return PhysicalColumn(name, data_type)

    @staticmethod
    def computed(name: str, resolved_expression: Any) -> ComputedColumn:
        """Make a column that is computed from others."""
        return ComputedColumn(name, resolved_expression.get_output_data_type(), None, resolved_expression)

    @staticmethod
    def metadata(
        name: str, data_type: DataType, metadata_key: str | None, is_virtual: bool
    ) -> MetadataColumn:
        """Make a column that the connector fills beside the data."""
        return MetadataColumn(name, data_type, None, metadata_key, is_virtual)

    def with_comment(self, comment: str) -> Column:
        """Return the column with something said about it."""
        return replace(self, comment=comment)

    def is_physical(self) -> bool:
        """Whether the external system stores it."""
        return False

    def is_persisted(self) -> bool:
        """Whether it is written by an INSERT."""
        return False

    def get_data_type(self) -> DataType:
        """Return the data type of the column."""
        return self.data_type

    def get_name(self) -> str:
        """Return the name of the column."""
        return self.name

    def get_comment(self) -> str | None:
        """Return what is said about it."""
        return self.comment

    def as_summary_string(self) -> str:
        """Return it for people."""
        extras = self.explain_extras()
        comment = f" COMMENT {quote_text(self.comment)}" if self.comment is not None else ""
        shown = self.shown_type or self.data_type.summary()
        return f"{quote_name(self.name)} {shown}" + (f" {extras}" if extras else "") + comment

    def explain_extras(self) -> str | None:
        """Return what it is beside its type."""
        return None

    def copy(self, new_type: DataType) -> Column:
        """Return the column with another type."""
        return replace(self, data_type=new_type, shown_type=None)

    def rename(self, new_name: str) -> Column:
        """Return the column with another name."""
        return replace(self, name=new_name)

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True)
class PhysicalColumn(Column):
    """A column that the external system stores."""

    def is_physical(self) -> bool:
        """Return True: the external system stores this column."""
        return True

    def is_persisted(self) -> bool:
        """Return True: the column is part of what a sink writes."""
        return True

    def copy(self, new_data_type: DataType) -> Column:
        """Return the column with another type."""
        return replace(self, data_type=new_data_type, shown_type=None)


@dataclass(frozen=True)
class ComputedColumn(Column):
    """A column that is computed from others."""

    expression: Any = None

    def get_expression(self) -> Any:
        """Return how it is computed."""
        return self.expression

    def explain_extras(self) -> str | None:
        """Return how it is computed."""
        return f"AS {self.expression}"

    def copy(self, new_data_type: DataType) -> Column:
        """Return the column with another type."""
        return replace(self, data_type=new_data_type, shown_type=None)


@dataclass(frozen=True)
class MetadataColumn(Column):
    """A column that the connector fills beside the data."""

    metadata_key: str | None = None
    virtual: bool = False

    def is_virtual(self) -> bool:
        """Whether it is only read."""
        return self.virtual

    def get_metadata_key(self) -> str | None:
        """Return what the connector calls it."""
        return self.metadata_key

    def is_persisted(self) -> bool:
        """Whether it is written by an INSERT."""
        return not self.virtual

    def explain_extras(self) -> str | None:
        """Return where it comes from."""
        source = f" FROM '{self.metadata_key}'" if self.metadata_key else ""
        return f"METADATA{source}{' VIRTUAL' if self.virtual else ''}"

    def copy(self, new_data_type: DataType) -> Column:
        """Return the column with another type."""
        return replace(self, data_type=new_data_type, shown_type=None)


class ResolvedSchema:
    """The columns of a table, with their types.

    Example:
        >>> from headrace.types import DataTypes
        >>> print(ResolvedSchema.physical(["id"], [DataTypes.BIGINT(False)]))
        (
          `id` BIGINT NOT NULL
        )
    """

    def __init__(
        self,
        columns: Sequence[Column] | None = None,
        watermark_specs: Sequence[WatermarkSpec] | None = None,
        primary_key: UniqueConstraint | None = None,
    ) -> None:
        self._columns = list(columns or ())
        self._watermark_specs = list(watermark_specs or ())
        self._primary_key = primary_key

    @staticmethod
    def of(columns: Sequence[Column]) -> ResolvedSchema:
        """Make a schema of columns."""
        return ResolvedSchema(columns)

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[DataType]) -> ResolvedSchema:
        """Make a schema of names and types."""
        pairs = zip(column_names, column_data_types, strict=True)
        return ResolvedSchema([PhysicalColumn(name, each) for name, each in pairs])

    def get_column_count(self) -> int:
        """Return how many columns there are."""
        return len(self._columns)

    def get_columns(self) -> list[Column]:
        """Return all columns in the order of their declaration."""
        return list(self._columns)

    def get_column_names(self) -> list[str]:
        """Return the names of the columns."""
        return [each.name for each in self._columns]

    def get_column_data_types(self) -> list[DataType]:
        """Return the types of the columns."""
        return [each.data_type for each in self._columns]

    def get_column(self, column_index_or_name: int | str) -> Column | None:
        """Return a column by position or name; None if it does not exist."""
        if isinstance(column_index_or_name, str):
            return next((each for each in self._columns if each.name == column_index_or_name), None)
        is_there = 0 <= column_index_or_name < len(self._columns)
        return self._columns[column_index_or_name] if is_there else None

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        """Return how event time is found."""
        return list(self._watermark_specs)

    def get_primary_key(self) -> UniqueConstraint | None:
        """Return the primary key; None if the table has no primary key."""
        return self._primary_key

    def get_primary_key_indexes(self) -> list[int]:
        """Return the positions of the primary key's columns."""
        names = self.get_column_names()
        return [] if self._primary_key is None else [names.index(each) for each in self._primary_key.columns]

    def to_source_row_data_type(self) -> RowType:
        """Return all columns as the fields of a row."""
        return self._row(self._columns)

    def to_physical_row_data_type(self) -> RowType:
        """Return the columns that are stored as the fields of a row."""
        return self._row([each for each in self._columns if each.is_physical()])

    def to_sink_row_data_type(self) -> RowType:
        """Return the columns that are written as the fields of a row."""
        return self._row([each for each in self._columns if each.is_persisted()])

    @staticmethod
    def _row(columns: Sequence[Column]) -> RowType:
        return RowType([RowField(each.name, each.data_type) for each in columns], nullable=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResolvedSchema):
            return NotImplemented
        return (self._columns, self._primary_key) == (other._columns, other._primary_key)

    def __hash__(self) -> int:
        return hash(tuple(self._columns))

    def __str__(self) -> str:
        lines = [each.as_summary_string() for each in self._columns]
        lines += [each.as_summary_string() for each in self._watermark_specs]
        if self._primary_key is not None:
            lines.append(self._primary_key.as_summary_string())
        return "(\n  " + ",\n  ".join(lines) + "\n)"
