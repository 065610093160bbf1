"""'connector' = 'upsert-kafka': a topic in which a record replaces the one before it with the same key.

key | value       +U: the row of the key is this now
key | no value    -D: a tombstone, the row is gone
"""

from __future__ import annotations

from typing import Final

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import UPSERT, ChangelogMode
from headrace.common.types import RowKind
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Sink, Source
from headrace.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from headrace.connectors.kafka._columns import records_of, rows_of
from headrace.connectors.kafka._properties import kafka_library
from headrace.connectors.kafka._table_offsets import BOUNDED, offsets_of
from headrace.connectors.kafka.factory import PROPERTIES, refuse_parallelism, sink_of
from headrace.connectors.tables import SinkAbility, TableRequest
from headrace.errors import SqlValidationError, UnsupportedFeatureError
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
        topics = [each.strip() for each in options.required("topic").split(";")]
        properties = options.prefixed(PROPERTIES)
        # Always from the beginning: the rows of a key may be anywhere.
        builder = KafkaSource.builder().set_topics(*topics).set_properties(properties)
        builder.set_starting_offsets(KafkaOffsetsInitializer.earliest())
        if options.text("scan.bounded.mode", "unbounded") != "unbounded":
            builder.set_bounded(offsets_of(options, "bounded", BOUNDED, topics[0], properties))
        return builder.set_deserializer(rows_of(request, options, keys, is_upsert=True)).build()

    def ability(self, table: CatalogTable) -> SinkAbility:
        return SinkAbility(UPSERT)

    def sink(self, request: TableRequest) -> Sink:
        options = _options(request)
        topic = options.required("topic")
        if ";" in topic:
            raise SqlValidationError(f"table {request.name!r}: one that is written must name one 'topic'")
        return sink_of(options, records_of(request, options, topic, _keys(request), is_upsert=True))


def _keys(request: TableRequest) -> tuple[str, ...]:
    key = request.table.primary_key
    if key is None:
        raise SqlValidationError(
            f"table {request.name!r}: a table with 'connector' = 'upsert-kafka' needs a primary key",
            hint="declare it: PRIMARY KEY (column) NOT ENFORCED",
        )
    return key.columns


def _options(request: TableRequest) -> TableOptions:
    kafka_library()  # says what to install, before anything runs
    options = request.options
    for key in (
        *("scan.bounded.mode", "scan.bounded.specific-offsets", "scan.bounded.timestamp-millis"),
        *("sink.delivery-guarantee", "sink.transactional-id-prefix"),
    ):
        options.text(key)
    refuse_parallelism(options)
    for key in ("sink.buffer-flush.max-rows", "sink.buffer-flush.interval"):
        if (options.text(key) or "0").split(" ")[0].rstrip("s") != "0":
            raise UnsupportedFeatureError(
                f"table {request.name!r}: option {key!r} cannot be honoured: every change of an epoch is written",
                feature=key,
                hint="leave the option out, or set it to 0",
            )
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
