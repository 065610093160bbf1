"""Connectors of tables, found by the option 'connector'."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import INSERT_ONLY, ChangelogMode
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Boundedness, Source
from headrace.connectors.collect import CollectSink
from headrace.connectors.lookup_tables import TableLookup
from headrace.connectors.tables import (
    ChangingTables,
    LookupTables,
    PartitionedTables,
    ReadableTables,
    SinkAbility,
    TableFactory,
    TableRequest,
    WritableTables,
)
from headrace.errors import InvariantViolation, SqlValidationError, UnsupportedFeatureError
from headrace.operators.table.declarations import SinkMode
from headrace.planner import physical
from headrace.planner.expressions import Expression, Literal
from headrace.planner.logical import Scan
from headrace.planner.logical import Schema as PlanSchema
from headrace.planner.physical import CollectTarget, TableTarget
from headrace.planner.rules.nodes import placed_error
from headrace.planner.stream_borders import StreamInput
from headrace.planner.translate import SinkChoice
from headrace.table.attachments import AttachedRows, AttachedStream, values_of
from headrace.util.plugins import CONNECTORS

__all__ = ["TableConnectors"]


class TableConnectors:
    """Finds sources and sinks of a job's tables.

    Args:
        is_batch: Whether all input is one epoch.
    """

    def __init__(self, *, is_batch: bool) -> None:
        self._is_batch = is_batch

    def mode_of(self, scan: Scan) -> ChangelogMode:
        """Return which kinds of rows a table gives."""
        attached = scan.table.attachment
        if isinstance(attached, AttachedRows | AttachedStream):
            return attached.mode
        connector = _connector(scan.table)
        factory = None if connector is None else CONNECTORS.make(connector)
        if not isinstance(factory, ChangingTables):
            return INSERT_ONLY
        return factory.mode(self._request(scan.identifier.dotted(), scan.table))

    def source_of(self, scan: Scan) -> Source | StreamInput:
        """Return what reads a table."""
        attached = scan.table.attachment
        if isinstance(attached, AttachedStream):
            return attached.input()
        if isinstance(attached, AttachedRows):
            return attached.source()
        name = scan.identifier.dotted()
        request = self._request(name, scan.table)
        factory = _factory(name, scan.table)
        if not isinstance(factory, ReadableTables):
            raise SqlValidationError(
                f"table {name!r}: the connector {_connector(scan.table)!r} can only be used as a sink, not as a source"
            )
        source = factory.source(request)
        request.options.check()
        if self._is_batch and source.boundedness is not Boundedness.BOUNDED:
            raise placed_error(
                scan.place,
                f"table {name!r} is unbounded, but the query runs in BATCH mode",
                hint="use STREAMING mode, or make the table bounded",
            )
        return source

    def lookup_of(self, name: str, table: CatalogTable, keys: Sequence[str]) -> TableLookup:
        """Return what looks rows of a table up by some of its columns."""
        factory = _factory(name, table)
        if not isinstance(factory, LookupTables):
            raise UnsupportedFeatureError(
                f"table {name!r}: rows cannot be looked up in a table with 'connector' = {_connector(table)!r}",
                feature=f"a lookup join with {_connector(table)!r}",
                hint="use a table with 'connector' = 'jdbc' or 'filesystem', or join the table as it is",
            )
        request = self._request(name, table)
        found = factory.lookup(request, keys)
        request.options.check()
        return found

    def values_source(self, rows: Sequence[Sequence[Expression]], schema: PlanSchema) -> Source:
        """Return what gives rows that are written in the query."""
        values: list[tuple[Any, ...]] = []
        for row in rows:
            if not all(isinstance(each, Literal) for each in row):
                raise UnsupportedFeatureError.not_yet("function calls in VALUES", "SELECT the expressions")
            values.append(tuple(each.value for each in row if isinstance(each, Literal)))
        return values_of(values)

    def partitions_of(self, name: str, table: CatalogTable, values: Mapping[str, str]) -> list[str]:
        """Return the partitions of a table that have the given values, as ``day=2024-02-29/hour=8``."""
        factory = _factory(name, table)
        if not isinstance(factory, PartitionedTables):
            raise UnsupportedFeatureError(
                f"SHOW PARTITIONS of {name!r}: a table with 'connector' = {_connector(table)!r} does not say which it "
                "has",
                feature=f"SHOW PARTITIONS of {_connector(table)!r}",
            )
        found = factory.partitions(self._request(name, table))
        return [
            "/".join(f"{column}={value}" for column, value in each.items())
            for each in found
            if values.items() <= each.items()
        ]

    def ability_of(self, name: str, table: CatalogTable) -> SinkAbility:
        """Return what kinds of changes a table takes."""
        return _sinks(name, table).ability(table)

    def sink_of(self, sink: physical.Sink) -> SinkChoice:
        """Return what writes rows."""
        match sink.target:
            case CollectTarget(collect_id):
                return SinkChoice(CollectSink(collect_id), SinkMode.RETRACT)
            case TableTarget() as target:
                return self.sink_for(target)
        raise InvariantViolation(f"no sink is known for {sink.target}")

    def sink_for(self, target: TableTarget) -> SinkChoice:
        """Return what writes rows to a table."""
        name = target.identifier.dotted()
        factory = _sinks(name, target.table)
        ability = factory.ability(target.table)
        if target.is_overwrite and not ability.can_overwrite:
            raise UnsupportedFeatureError(
                f"INSERT OVERWRITE into {name!r}: a table with 'connector' = {_connector(target.table)!r} "
                "can only be appended to",
                feature=f"INSERT OVERWRITE into {_connector(target.table)!r}",
                hint="use INSERT INTO; tables with 'connector' = 'filesystem' can be overwritten",
            )
        request = replace(
            self._request(name, target.table),
            is_overwrite=target.is_overwrite,
            static_partitions=target.static_partitions,
        )
        made = factory.sink(request)
        request.options.check()
        return SinkChoice(made, _mode(ability), ability.shuffle_by)

    def _request(self, name: str, table: CatalogTable) -> TableRequest:
        return TableRequest(name, table, TableOptions(name, table.options), self._is_batch)


def _mode(ability: SinkAbility) -> SinkMode:
    if ability.accepts.is_insert_only:
        return SinkMode.APPEND
    return SinkMode.RETRACT if ability.accepts.has_update_before else SinkMode.UPSERT


def _connector(table: CatalogTable) -> str | None:
    return table.options.get("connector")


def _sinks(name: str, table: CatalogTable) -> WritableTables:
    factory = _factory(name, table)
    if not isinstance(factory, WritableTables):
        raise SqlValidationError(
            f"table {name!r}: the connector {_connector(table)!r} can only be used as a source, not as a sink"
        )
    return factory


def _factory(name: str, table: CatalogTable) -> TableFactory:
    connector = _connector(table)
    if connector is None:
        near = difflib.get_close_matches("connector", table.options, 1)
        hint = f"did you mean 'connector' instead of {near[0]!r}?" if near else CONNECTORS.available()
        raise SqlValidationError(f"table {name!r} has no option 'connector'", hint=hint)
    factory = CONNECTORS.make(connector)
    if factory is None:
        near = difflib.get_close_matches(connector, CONNECTORS.names(), 1)
        raise UnsupportedFeatureError(
            f"table {name!r}: unknown table connector {connector!r}",
            feature=f"the table connector {connector!r}",
            hint=f"did you mean {near[0]!r}? {CONNECTORS.available()}" if near else CONNECTORS.available(),
        )
    if isinstance(factory, ReadableTables | WritableTables):
        return factory
    raise CONNECTORS.broken(connector, "has neither source() nor ability() and sink(), so it has no tables")
