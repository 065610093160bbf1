"""'connector' = 'nexmark': the events of an online auction, with the options of Nexmark's own connector for Flink."""

from __future__ import annotations

from headrace.catalog.objects import PhysicalColumn
from headrace.connectors.base import Source
from headrace.connectors.nexmark.events import EVENT_TYPE, NexmarkEvents
from headrace.connectors.nexmark.source import nexmark_source
from headrace.connectors.tables import TableRequest

__all__ = ["NexmarkFactory"]


class NexmarkFactory:
    """Creates tables of Nexmark's events."""

    def source(self, request: TableRequest) -> Source:
        options, columns = request.options, request.table.source_columns
        wanted = [(field.name, field.data_type.nullable()) for field in EVENT_TYPE]
        given = [(column.name, column.type.nullable()) for column in columns]
        if given != wanted or not all(isinstance(column, PhysicalColumn) for column in columns):
            raise options.error(
                "a table of Nexmark has the columns event_type INT, person ROW<...>, auction ROW<...>, bid ROW<...>",
                "examples/nexmark/queries/tables.sql has the statement",
            )
        default = NexmarkEvents()
        count = options.integer("events.num") or None
        rate = options.number("first-event.rate")
        is_paced = not options.boolean("max-emit-speed", default=True)
        events = NexmarkEvents(
            seed=_given(options.integer("seed"), default.seed),
            rate=default.rate if rate is None else rate,
            base_ms=_given(options.integer("base-time"), default.base_ms),
            people=_given(options.integer("person.proportion"), default.people),
            auctions=_given(options.integer("auction.proportion"), default.auctions),
            bids=_given(options.integer("bid.proportion"), default.bids),
            hot_auctions=_given(options.integer("bid.hot-ratio.auctions"), default.hot_auctions),
            hot_bidders=_given(options.integer("bid.hot-ratio.bidders"), default.hot_bidders),
            hot_sellers=_given(options.integer("auction.hot-ratio.sellers"), default.hot_sellers),
        )
        return nexmark_source(count, is_paced=is_paced, events=events)


def _given(value: int | None, default: int) -> int:
    return default if value is None else value
