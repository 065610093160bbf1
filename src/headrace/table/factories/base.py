"""What connectors of tables have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import INSERT_ONLY, ChangelogMode
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Sink, Source
from headrace.errors import SqlValidationError
from headrace.operators.table.declarations import Schema, SinkMode

__all__ = ["PartitionedTables", "SinkAbility", "TableFactory", "TableRequest"]


@dataclass(frozen=True)
class TableRequest:
    """A table that is to be read or written."""

    name: str
    table: CatalogTable
    #: The columns that the scan gives, or the sink takes.
    schema: Schema
    options: TableOptions
    is_batch: bool = False
    is_overwrite: bool = False
    #: What PARTITION (column = value) says.
    static_partitions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SinkAbility:
    """What a sink takes."""

    accepts: ChangelogMode
    mode: SinkMode
    #: Whether INSERT OVERWRITE can replace what is there.
    can_overwrite: bool = False


class TableFactory(Protocol):
    """A connector of tables."""

    #: What 'connector' = '...' names.
    identifier: str

    def source(self, request: TableRequest) -> Source:
        """Make what reads the table."""

    def ability(self, table: CatalogTable) -> SinkAbility:
        """Say what kind of changes the table takes."""

    def sink(self, request: TableRequest) -> Sink:
        """Make what writes the table."""


@runtime_checkable
class PartitionedTables(Protocol):
    """A connector that can say which partitions a table has."""

    def partitions(self, request: TableRequest) -> list[dict[str, str]]:
        """List the values of the partition columns."""


class OnlySource:
    """A connector that reads only."""

    identifier = ""

    def ability(self, table: CatalogTable) -> SinkAbility:
        raise SqlValidationError(
            f"the connector '{self.identifier}' can only be used as a source, not as a sink"
        )

    def sink(self, request: TableRequest) -> Sink:
        raise SqlValidationError(
            f"the connector '{self.identifier}' can only be used as a source, not as a sink"
        )


class OnlySink:
    """A connector that writes only."""

    identifier = ""

    def source(self, request: TableRequest) -> Source:
        raise SqlValidationError(
            f"table {request.name!r}: the connector '{self.identifier}' can only be used as a sink, not as a source"
        )


APPEND = SinkAbility(INSERT_ONLY, SinkMode.APPEND)
