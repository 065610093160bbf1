"""'connector' = 'kafka': topics as tables, read from any offset and written at least or exactly once."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import ALL, INSERT_ONLY, ChangelogMode
from headrace.config.table_options import TableOptions
from headrace.connectors.base import DeliveryGuarantee, Sink, Source
from headrace.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from headrace.connectors.kafka._columns import key_columns_of, records_of, rows_of
from headrace.connectors.kafka._properties import kafka_library
from headrace.connectors.kafka._table_offsets import BOUNDED, STARTUP, offsets_of
from headrace.connectors.tables import APPEND, SinkAbility, TableRequest
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.formats.tables import ChangelogFormat, message_format

__all__ = ["PROPERTIES", "KafkaFactory", "known_options", "refuse_parallelism", "sink_of"]

PROPERTIES: Final = "properties."


class KafkaFactory:
    """Reads and writes topics."""

    def mode(self, request: TableRequest) -> ChangelogMode:
        made = message_format(request.options, "format", "value.format")
        return made.mode if isinstance(made, ChangelogFormat) else INSERT_ONLY

    def source(self, request: TableRequest) -> Source:
        options = known_options(request)
        topics, pattern = options.text("topic"), options.text("topic-pattern")
        if (topics is None) == (pattern is None):
            raise SqlValidationError(f"table {request.name!r}: give either 'topic' or 'topic-pattern'")
        builder = KafkaSource.builder()
        if topics is not None:
            builder.set_topics(*(each.strip() for each in topics.split(";")))
        else:
            builder.set_topic_pattern(pattern or "")
        properties = options.prefixed(PROPERTIES)
        builder.set_properties(properties)
        interval = options.duration("scan.topic-partition-discovery.interval")
        if interval is not None:
            milliseconds = interval // timedelta(milliseconds=1)
            builder.set_property("partition.discovery.interval.ms", str(milliseconds))
        topic = (topics or "").split(";")[0].strip()
        builder.set_starting_offsets(offsets_of(options, "startup", STARTUP, topic, properties))
        if options.text("scan.bounded.mode", "unbounded") != "unbounded":
            builder.set_bounded(offsets_of(options, "bounded", BOUNDED, topic, properties))
        return builder.set_deserializer(rows_of(request, options, key_columns_of(options))).build()

    def ability(self, table: CatalogTable) -> SinkAbility:
        made = message_format(TableOptions("", table.options), "format", "value.format")
        return SinkAbility(ALL) if isinstance(made, ChangelogFormat) else APPEND

    def sink(self, request: TableRequest) -> Sink:
        options = known_options(request)
        topic = options.required("topic")
        if options.text("topic-pattern") is not None or ";" in topic:
            raise SqlValidationError(f"table {request.name!r}: one that is written must name one 'topic'")
        partitioner = options.text("sink.partitioner", "default")
        if partitioner == "fixed":
            raise UnsupportedFeatureError(
                f"table {request.name!r}: 'sink.partitioner' = 'fixed' cannot be honoured: in every epoch Spark "
                "decides which task writes which rows",
                feature="sink.partitioner fixed",
                hint="use 'default', by key, or 'round-robin'",
            )
        if partitioner not in ("default", "round-robin"):
            raise options.wrong(
                "sink.partitioner", "'default' or 'round-robin'; classes in Java cannot be loaded"
            )
        keys = key_columns_of(options)
        if partitioner == "round-robin" and keys:
            raise SqlValidationError(
                f"table {request.name!r}: 'sink.partitioner' = 'round-robin' cannot be used with 'key.fields'",
                hint="leave one of them out: records with keys go where their keys belong",
            )
        is_round_robin = partitioner == "round-robin"
        return sink_of(options, records_of(request, options, topic, keys, is_round_robin=is_round_robin))


def sink_of(options: TableOptions, records: KafkaRecordSerializationSchema) -> Sink:
    """Return what writes records, with the guarantee that the options name."""
    builder = KafkaSink.builder()
    for name, value in options.prefixed(PROPERTIES).items():
        if name != "group.id":  # for reading
            builder.set_property(name, value)
    given = options.text("sink.delivery-guarantee", DeliveryGuarantee.AT_LEAST_ONCE.value)
    known = {each.value: each for each in DeliveryGuarantee}
    if given not in known:
        raise options.wrong("sink.delivery-guarantee", f"one of {', '.join(known)}")
    builder.set_delivery_guarantee(known[given])
    prefix = options.text("sink.transactional-id-prefix")
    if prefix is not None:
        builder.set_transactional_id_prefix(prefix)
    elif known[given] is DeliveryGuarantee.EXACTLY_ONCE:
        options.required("sink.transactional-id-prefix")
    return builder.set_record_serializer(records).build()


def refuse_parallelism(options: TableOptions) -> None:
    """Refuse options that say how many tasks read or write a table.

    Raises:
        UnsupportedFeatureError: One of them is set.
    """
    for key in ("scan.parallelism", "sink.parallelism"):
        if options.text(key) is not None:
            raise UnsupportedFeatureError(
                f"table {options.table!r}: option {key!r} cannot be honoured: all operators of a table job have one "
                "parallelism",
                feature=key,
                hint="set 'table.exec.resource.default-parallelism' for the job",
            )


def known_options(request: TableRequest) -> TableOptions:
    """Return the options; those of the other direction are known, too, for a table is read and written."""
    kafka_library()  # says what to install, before anything runs
    options = request.options
    for key in (
        *("topic-pattern", "scan.startup.mode", "scan.startup.specific-offsets"),
        *("scan.startup.timestamp-millis", "scan.bounded.mode", "scan.bounded.specific-offsets"),
        *("scan.bounded.timestamp-millis", "scan.topic-partition-discovery.interval"),
        *("sink.delivery-guarantee", "sink.transactional-id-prefix", "sink.partitioner"),
    ):
        options.text(key)
    refuse_parallelism(options)
    options.required(f"{PROPERTIES}bootstrap.servers")
    return options
