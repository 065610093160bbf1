"""What a catalog stores: databases, tables with their columns, views.

Expressions of computed columns and watermarks are kept as SQL text, as Flink's catalogs keep them; the binder
reads them wherever the table is scanned. Names of columns are case-sensitive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from types import MappingProxyType
from typing import Final

from headrace.errors import CatalogError
from headrace.types.logical import DataType

__all__ = [
    "CatalogDatabase",
    "CatalogTable",
    "CatalogView",
    "Column",
    "ComputedColumn",
    "InlineView",
    "Materialization",
    "MetadataColumn",
    "PhysicalColumn",
    "PrimaryKey",
    "RefreshMode",
    "RefreshStatus",
    "WatermarkSpec",
    "is_materialized",
]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True)
class _NamedColumn:
    name: str
    type: DataType
    comment: str | None = field(default=None, kw_only=True)


class PhysicalColumn(_NamedColumn):
    """A column that the external system stores."""


@dataclass(frozen=True)
class ComputedColumn(_NamedColumn):
    """A column made from others; never written. Its type is what the expression came out as."""

    #: SQL over the physical and metadata columns.
    expression: str


@dataclass(frozen=True)
class MetadataColumn(_NamedColumn):
    """A column that the connector or the format fills beside the data."""

    #: The connector's key, where it differs from the name.
    key: str | None = None
    #: Virtual ones are read only.
    virtual: bool = False

    @property
    def metadata_key(self) -> str:
        """The key the connector knows."""
        return self.key or self.name


Column = PhysicalColumn | ComputedColumn | MetadataColumn


@dataclass(frozen=True)
class WatermarkSpec:
    """How late rows may be: the watermark is the largest value of the expression so far."""

    column: str
    expression: str


@dataclass(frozen=True)
class PrimaryKey:
    """Columns that identify a row. The key is not enforced: the owner of the data guarantees it."""

    name: str
    columns: tuple[str, ...]


class RefreshMode(Enum):
    """How a materialized table keeps up with its query."""

    #: A streaming job writes what changes.
    CONTINUOUS = "CONTINUOUS"
    #: Batch jobs write the table again, one after the other.
    FULL = "FULL"


class RefreshStatus(Enum):
    """Whether a materialized table keeps up."""

    ACTIVATED = "ACTIVATED"
    SUSPENDED = "SUSPENDED"


@dataclass(frozen=True)
class Materialization:
    """What makes a table a materialized one.

    Args:
        query: The query, with every table by its full name.
        freshness: How far the table may be behind.
        mode: How it keeps up.
        status: Whether it does.
        savepoint: What a suspended job continues from.
    """

    query: str
    freshness: timedelta
    mode: RefreshMode
    status: RefreshStatus = RefreshStatus.ACTIVATED
    savepoint: str | None = None


@dataclass(frozen=True)
class CatalogTable:
    """A table in an external system, found by the options of its connector."""

    columns: tuple[Column, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    watermark: WatermarkSpec | None = None
    primary_key: PrimaryKey | None = None
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None
    #: What a program put in place of a connector, such as a data stream. Never in a stored catalog.
    attachment: object | None = field(default=None, compare=False)
    #: Of a materialized table: its query.
    materialization: Materialization | None = None

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise CatalogError(f"duplicate column names: {', '.join(twice)}")

    def __hash__(self) -> int:
        return hash((self.columns, tuple(sorted(self.options.items())), self.watermark, self.primary_key))

    def column(self, name: str) -> Column | None:
        """The column with this name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def physical_columns(self) -> tuple[PhysicalColumn, ...]:
        """The columns that the external system stores."""
        return tuple(column for column in self.columns if isinstance(column, PhysicalColumn))

    @property
    def metadata_columns(self) -> tuple[MetadataColumn, ...]:
        """The columns that the connector or format fills."""
        return tuple(column for column in self.columns if isinstance(column, MetadataColumn))

    @property
    def source_columns(self) -> tuple[PhysicalColumn | MetadataColumn, ...]:
        """What a scan gives, in the order it gives them: physical columns, then metadata."""
        return (*self.physical_columns, *self.metadata_columns)

    @property
    def sink_columns(self) -> tuple[PhysicalColumn | MetadataColumn, ...]:
        """What INSERT INTO fills, in the order of the declaration."""
        return tuple(
            column
            for column in self.columns
            if isinstance(column, PhysicalColumn)
            or (isinstance(column, MetadataColumn) and not column.virtual)
        )

    def with_options(self, options: Mapping[str, str]) -> CatalogTable:
        """This table with some options set or replaced."""
        return replace(self, options={**self.options, **options})


def is_materialized(table: object) -> bool:
    """Whether a table keeps up with a query."""
    return isinstance(table, CatalogTable) and table.materialization is not None


@dataclass(frozen=True)
class CatalogView:
    """A query under a name."""

    #: The query as it was written.
    original_query: str
    #: The query with every table by its full name, so that it means the same in every database.
    expanded_query: str
    #: Names and types of the columns.
    columns: tuple[PhysicalColumn, ...]
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class InlineView:
    """A table of a program under a name: its plan, not its text. Always temporary."""

    #: A logical node of the planner.
    plan: object
    columns: tuple[PhysicalColumn, ...] = ()
    comment: str | None = None


@dataclass(frozen=True)
class CatalogDatabase:
    """A database of a catalog: its comment and its properties."""

    properties: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    comment: str | None = None
