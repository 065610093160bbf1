"""'connector' = 'upsert-kafka': a topic in which a record replaces the one before it with the same key.

key | value       +U: the row of the key is this now
key | no value    -D: a tombstone, the row is gone
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import UPSERT, ChangelogMode
from headrace.common.types import RowKind
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Sink, Source
from headrace.connectors.kafka import KafkaOffsetsInitializer
from headrace.connectors.kafka._columns import records_of, rows_of
from headrace.connectors.kafka._properties import kafka_library
from headrace.connectors.kafka._reducing import FlushMode
from headrace.connectors.kafka._table_topics import TableTopics
from headrace.connectors.kafka.factory import PROPERTIES, refuse_options, sink_of, source_of
from headrace.connectors.tables import SinkAbility, TableRequest
from headrace.errors import SqlValidationError
from headrace.formats.tables import ChangelogFormat, message_format

__all__ = ["UpsertKafkaFactory"]

_MODE: Final = ChangelogMode.of(RowKind.UPDATE_AFTER, RowKind.DELETE)


class UpsertKafkaFactory:
    """Reads and writes topics by key."""

    def mode(self, request: TableRequest) -> ChangelogMode:
        return _MODE

    def source(self, request: TableRequest) -> Source:
        options = _options(request)
        keys = _keys(request)
        builder = source_of(options, TableTopics.of(options), options.prefixed(PROPERTIES))
        # Always from the beginning: the rows of a key may be anywhere.
        builder.set_starting_offsets(KafkaOffsetsInitializer.earliest())
        return builder.set_deserializer(rows_of(request, options, keys, is_upsert=True)).build()

    def ability(self, table: CatalogTable) -> SinkAbility:
        return SinkAbility(UPSERT)

    def sink(self, request: TableRequest) -> Sink:
        options = _options(request)
        keys = _keys(request)
        sink = sink_of(options, records_of(request, options, TableTopics.of(options), keys, is_upsert=True))
        return replace(sink, flush_mode=_flush_mode(request, keys))


def _keys(request: TableRequest) -> tuple[str, ...]:
    key = request.table.primary_key
    if key is None:
        raise SqlValidationError(
            f"table {request.name!r}: a table with 'connector' = 'upsert-kafka' needs a primary key",
            hint="declare it: PRIMARY KEY (column) NOT ENFORCED",
        )
    return key.columns


def _flush_mode(request: TableRequest, keys: tuple[str, ...]) -> FlushMode | None:
    max_rows = request.options.integer("sink.buffer-flush.max-rows") or 0
    interval = request.options.duration("sink.buffer-flush.interval") or timedelta(0)
    if (max_rows > 0) != (interval > timedelta(0)):
        raise SqlValidationError(
            f"table {request.name!r}: 'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must both be "
            "greater than zero, or neither"
        )
    if max_rows <= 0:
        return None
    names = [column.name for column in request.table.sink_columns]
    return FlushMode(tuple(names.index(key) for key in keys), max_rows, interval.total_seconds())


def _options(request: TableRequest) -> TableOptions:
    kafka_library()  # says what to install, before anything runs
    options = request.options
    for key in (
        *("scan.bounded.mode", "scan.bounded.specific-offsets", "scan.bounded.timestamp-millis"),
        *("sink.delivery-guarantee", "sink.transactional-id-prefix", "topic", "topic-pattern"),
        *(
            "scan.topic-partition-discovery.interval",
            "sink.buffer-flush.max-rows",
            "sink.buffer-flush.interval",
        ),
    ):
        options.text(key)
    refuse_options(options)
    if options.text("key.fields") is not None:
        raise SqlValidationError(
            f"table {request.name!r}: 'key.fields' cannot be set: the key of the records is the primary key"
        )
    for key in ("key.format", "value.format"):
        options.required(key)
        if isinstance(message_format(options, key), ChangelogFormat):
            raise options.wrong(key, "a format of rows, not of changes: the key says what a record replaces")
    options.required(f"{PROPERTIES}bootstrap.servers")
    return options
