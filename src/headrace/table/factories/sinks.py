"""'connector' = 'print' and 'blackhole': rows on the standard output, and rows that go nowhere."""

from __future__ import annotations

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import ALL, UPSERT
from headrace.connectors.base import Sink
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.print import PrintSink
from headrace.operators.table.declarations import SinkMode
from headrace.table.factories.base import OnlySink, SinkAbility, TableRequest

__all__ = ["BlackholeFactory", "PrintFactory"]


class PrintFactory(OnlySink):
    """Prints rows with their kinds."""

    identifier = "print"

    def ability(self, table: CatalogTable) -> SinkAbility:
        return SinkAbility(ALL, SinkMode.RETRACT)

    def sink(self, request: TableRequest) -> Sink:
        options = request.options
        options.text("connector")
        return PrintSink(
            options.text("print-identifier"), to_stderr=options.boolean("standard-error", default=False)
        )


class BlackholeFactory(OnlySink):
    """Takes everything and keeps nothing; rows as they were before an update are not even made."""

    identifier = "blackhole"

    def ability(self, table: CatalogTable) -> SinkAbility:
        return SinkAbility(UPSERT, SinkMode.UPSERT)

    def sink(self, request: TableRequest) -> Sink:
        request.options.text("connector")
        return BlackholeSink()
