"""'connector' = 'print' and 'blackhole': rows on the standard output, and rows that go nowhere."""

from __future__ import annotations

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import ALL, UPSERT
from headrace.connectors.base import Sink
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.print import PrintSink
from headrace.table.factories.base import SinkAbility, TableRequest

__all__ = ["BlackholeFactory", "PrintFactory"]


class PrintFactory:
    """Prints rows with their kinds."""

    def ability(self, table: CatalogTable) -> SinkAbility:
        return SinkAbility(ALL)

    def sink(self, request: TableRequest) -> Sink:
        options = request.options
        return PrintSink(
            options.text("print-identifier"), to_stderr=options.boolean("standard-error", default=False)
        )


class BlackholeFactory:
    """Takes everything and keeps nothing; rows as they were before an update are not even made."""

    def ability(self, table: CatalogTable) -> SinkAbility:
        return SinkAbility(UPSERT)

    def sink(self, request: TableRequest) -> Sink:
        return BlackholeSink()
