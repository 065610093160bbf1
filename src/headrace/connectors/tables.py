"""How a connector offers tables: WITH ('connector' = '...') names a factory, which makes their sources and sinks.

A factory implements `ReadableTables`, `WritableTables` or both, and `PartitionedTables` if it can list partitions. It
runs in the program; workers get the sources and sinks that it makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import INSERT_ONLY, ChangelogMode
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Sink, Source
from headrace.connectors.lookup_tables import TableLookup

__all__ = [
    "APPEND",
    "ChangingTables",
    "LookupTables",
    "PartitionedTables",
    "ReadableTables",
    "SinkAbility",
    "TableFactory",
    "TableRequest",
    "WritableTables",
]


@dataclass(frozen=True)
class TableRequest:
    """A table that is to be read or written."""

    name: str
    table: CatalogTable
    #: What WITH says. Read every option that the connector has: those nobody has read are refused.
    options: TableOptions
    is_batch: bool = False
    is_overwrite: bool = False
    #: What PARTITION (column = value) says.
    static_partitions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SinkAbility:
    """What a sink takes."""

    #: Which kinds of changes. Without −U and with a primary key, an update is the new row alone.
    accepts: ChangelogMode
    #: Whether INSERT OVERWRITE can replace what is there.
    can_overwrite: bool = False
    #: Columns of the table whose equal rows must come to one writer, as rows of a partition do.
    shuffle_by: tuple[str, ...] = ()


#: The ability of a sink that only takes new rows.
APPEND: Final = SinkAbility(INSERT_ONLY)


@runtime_checkable
class ReadableTables(Protocol):
    """A connector whose tables can be read."""

    def source(self, request: TableRequest) -> Source:
        """Make what reads the table: its records are rows of `request.table.source_columns`."""


@runtime_checkable
class ChangingTables(Protocol):
    """A connector whose tables may be changelogs: the records of their sources are `Row`s with kinds."""

    def mode(self, request: TableRequest) -> ChangelogMode:
        """Say which kinds of rows the table gives. Without −U it needs a primary key."""


@runtime_checkable
class LookupTables(Protocol):
    """A connector whose tables can be asked for the rows under a key: FOR SYSTEM_TIME AS OF a processing time."""

    def lookup(self, request: TableRequest, keys: Sequence[str]) -> TableLookup:
        """Make what looks rows up by these columns: it returns rows of `request.table.physical_columns`."""


@runtime_checkable
class WritableTables(Protocol):
    """A connector whose tables can be written."""

    def ability(self, table: CatalogTable) -> SinkAbility:
        """Say what kind of changes the table takes."""

    def sink(self, request: TableRequest) -> Sink:
        """Make what writes the table: it gets rows of `request.table.sink_columns`, with their kinds."""


@runtime_checkable
class PartitionedTables(Protocol):
    """A connector that can say which partitions a table has."""

    def partitions(self, request: TableRequest) -> list[dict[str, str]]:
        """List the values of the partition columns."""


TableFactory = ReadableTables | WritableTables
