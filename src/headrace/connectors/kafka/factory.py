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
from headrace.connectors.kafka._table_offsets import offsets_of
from headrace.connectors.kafka._table_topics import TableTopics
from headrace.connectors.kafka.source import KafkaSourceBuilder
from headrace.connectors.kafka.table import Partitioner
from headrace.connectors.tables import APPEND, SinkAbility, TableRequest
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.formats.tables import ChangelogFormat, message_format

__all__ = ["PROPERTIES", "KafkaFactory", "known_options", "refuse_options", "sink_of", "source_of"]

PROPERTIES: Final = "properties."
_PARTITIONERS: Final[tuple[Partitioner, ...]] = ("default", "fixed", "round-robin")
#: Options of Flink that cannot be honoured: why, and what to do.
_REFUSED: Final = {
    "sink.transaction-naming-strategy": (
        "each subtask of a sink uses one transactional id for all its transactions, so there is nothing to choose",
        "leave it out; 'sink.transactional-id-prefix' is what the ids begin with",
    ),
}


class KafkaFactory:
    """Reads and writes topics."""

    def mode(self, request: TableRequest) -> ChangelogMode:
        made = message_format(request.options, "format", "value.format")
        return made.mode if isinstance(made, ChangelogFormat) else INSERT_ONLY

    def source(self, request: TableRequest) -> Source:
        options = known_options(request)
        _refuse_primary_key(request)
        topics = TableTopics.of(options)
        properties = options.prefixed(PROPERTIES)
        builder = source_of(options, topics, properties)
        starting = offsets_of(options, "startup", topics, properties)
        assert starting is not None
        builder.set_starting_offsets(starting)
        return builder.set_deserializer(rows_of(request, options, key_columns_of(options))).build()

    def ability(self, table: CatalogTable) -> SinkAbility:
        made = message_format(TableOptions("", table.options), "format", "value.format")
        return SinkAbility(ALL) if isinstance(made, ChangelogFormat) else APPEND

    def sink(self, request: TableRequest) -> Sink:
        options = known_options(request)
        _refuse_primary_key(request)
        topics = TableTopics.of(options)
        partitioner = _partitioner(options)
        keys = key_columns_of(options)
        if partitioner == "round-robin" and keys:
            raise SqlValidationError(
                f"table {request.name!r}: 'sink.partitioner' = 'round-robin' cannot be used with 'key.fields'",
                hint="leave one of them out: records with keys go where their keys belong",
            )
        return sink_of(options, records_of(request, options, topics, keys, partitioner=partitioner))


def source_of(options: TableOptions, topics: TableTopics, properties: dict[str, str]) -> KafkaSourceBuilder:
    """Return a source of the topics, with the end and the discovery of partitions that the options name."""
    builder = KafkaSource.builder().set_properties(properties)
    topics.subscribe(builder)
    interval = options.duration("scan.topic-partition-discovery.interval")
    if interval is not None:
        milliseconds = interval // timedelta(milliseconds=1)
        builder.set_property("partition.discovery.interval.ms", str(milliseconds))
    stopping = offsets_of(options, "bounded", topics, properties)
    return builder if stopping is None else builder.set_bounded(stopping)


def _partitioner(options: TableOptions) -> Partitioner:
    for name in _PARTITIONERS:
        if name == options.text("sink.partitioner", "default"):
            return name
    raise options.wrong(
        "sink.partitioner", f"one of {', '.join(_PARTITIONERS)}; classes in Java cannot be loaded"
    )


def _refuse_primary_key(request: TableRequest) -> None:
    if request.table.primary_key is None:
        return
    made = message_format(request.options, "format", "value.format")
    if not isinstance(made, ChangelogFormat):
        name = request.options.text("value.format") or request.options.text("format")
        raise SqlValidationError(
            f"table {request.name!r}: a table of 'kafka' with the format {name!r} cannot have a primary key: nothing "
            "keeps two records from having the same key",
            hint="leave the key out, or use 'connector' = 'upsert-kafka', where a record replaces the one before it",
        )


def sink_of(options: TableOptions, records: KafkaRecordSerializationSchema) -> KafkaSink:
    """Return what writes records, with the guarantee that the options name."""
    builder = KafkaSink.builder()
    for name, value in options.prefixed(PROPERTIES).items():
        if name != "group.id":  # for reading
            builder.set_property(name, value)
    known = {each.value: each for each in DeliveryGuarantee}
    given = options.choice("sink.delivery-guarantee", tuple(known), DeliveryGuarantee.AT_LEAST_ONCE.value)
    builder.set_delivery_guarantee(known[given])
    prefix = options.text("sink.transactional-id-prefix")
    if prefix is not None:
        builder.set_transactional_id_prefix(prefix)
    elif known[given] is DeliveryGuarantee.EXACTLY_ONCE:
        options.required("sink.transactional-id-prefix")
    return builder.set_record_serializer(records).build()


def refuse_options(options: TableOptions) -> None:
    """Refuse options of Flink that cannot be honoured.

    Raises:
        UnsupportedFeatureError: One of them is set.
    """
    for key, (reason, hint) in _REFUSED.items():
        if options.text(key) is not None:
            raise UnsupportedFeatureError(
                f"table {options.table!r}: option {key!r} cannot be honoured: {reason}",
                feature=key,
                hint=hint,
            )


def known_options(request: TableRequest) -> TableOptions:
    """Return the options; those of the other direction are known, too, for a table is read and written."""
    kafka_library()  # says what to install, before anything runs
    options = request.options
    for key in (
        *("topic", "topic-pattern", "scan.startup.mode", "scan.startup.specific-offsets"),
        *("scan.startup.timestamp-millis", "scan.bounded.mode", "scan.bounded.specific-offsets"),
        *("scan.bounded.timestamp-millis", "scan.topic-partition-discovery.interval"),
        *("sink.delivery-guarantee", "sink.transactional-id-prefix", "sink.partitioner"),
    ):
        options.text(key)
    refuse_options(options)
    options.required(f"{PROPERTIES}bootstrap.servers")
    return options
