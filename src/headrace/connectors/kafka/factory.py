"""'connector' = 'kafka': topics as tables, read from any offset and written at least or exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from headrace.catalog.objects import CatalogTable, MetadataColumn, PhysicalColumn
from headrace.config.table_options import TableOptions
from headrace.connectors.base import DeliveryGuarantee, Sink, Source
from headrace.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from headrace.connectors.kafka._properties import kafka_library
from headrace.connectors.kafka.table import (
    METADATA,
    WRITABLE_METADATA,
    ColumnPlace,
    KafkaRows,
    TableRecords,
)
from headrace.connectors.tables import APPEND, SinkAbility, TableRequest
from headrace.errors import SqlValidationError
from headrace.formats.tables import message_format
from headrace.types.logical import RowField, RowType

__all__ = ["KafkaFactory"]

_PROPERTIES: Final = "properties."
_STARTUP: Final = ("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
_BOUNDED: Final = _STARTUP[1:]


class KafkaFactory:
    """Reads and writes topics."""

    def source(self, request: TableRequest) -> Source:
        options = _options(request)
        topics, pattern = options.text("topic"), options.text("topic-pattern")
        if (topics is None) == (pattern is None):
            raise SqlValidationError(f"table {request.name!r}: give either 'topic' or 'topic-pattern'")
        builder = KafkaSource.builder()
        if topics is not None:
            builder.set_topics(*(each.strip() for each in topics.split(";")))
        else:
            builder.set_topic_pattern(pattern or "")
        properties = options.prefixed(_PROPERTIES)
        builder.set_properties(properties)
        interval = options.duration("scan.topic-partition-discovery.interval")
        if interval is not None:
            milliseconds = interval // timedelta(milliseconds=1)
            builder.set_property("partition.discovery.interval.ms", str(milliseconds))
        topic = (topics or "").split(";")[0].strip()
        builder.set_starting_offsets(_offsets_of(options, "startup", _STARTUP, topic, properties))
        if options.text("scan.bounded.mode", "unbounded") != "unbounded":
            builder.set_bounded(_offsets_of(options, "bounded", _BOUNDED, topic, properties))
        return builder.set_deserializer(_rows(request, options)).build()

    def ability(self, table: CatalogTable) -> SinkAbility:
        return APPEND

    def sink(self, request: TableRequest) -> Sink:
        options = _options(request)
        topic = options.required("topic")
        if options.text("topic-pattern") is not None or ";" in topic:
            raise SqlValidationError(f"table {request.name!r}: one that is written must name one 'topic'")
        builder = KafkaSink.builder()
        for name, value in options.prefixed(_PROPERTIES).items():
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
        if options.text("sink.partitioner", "default") != "default":
            raise options.wrong("sink.partitioner", "'default': by key, and by chance where there is none")
        return builder.set_record_serializer(_records(request, options, topic)).build()


def _options(request: TableRequest) -> TableOptions:
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
    options.required(f"{_PROPERTIES}bootstrap.servers")
    return options


# -- where to begin and to end --------------------------------------------------------------------------------


def _offsets_of(
    options: TableOptions, which: str, modes: Sequence[str], topic: str, properties: dict[str, str]
) -> KafkaOffsetsInitializer:
    """Return the offsets of ``scan.startup.mode`` or ``scan.bounded.mode``."""
    key = f"scan.{which}.mode"
    mode = options.text(key, "group-offsets")
    if mode not in modes:
        raise options.wrong(key, f"one of {', '.join(modes)}")
    match mode:
        case "earliest-offset":
            return KafkaOffsetsInitializer.earliest()
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "group-offsets":
            if "group.id" not in properties:
                raise SqlValidationError(
                    f"table {options.table!r}: {key!r} is 'group-offsets', which needs 'properties.group.id'",
                    hint="or set 'scan.startup.mode' = 'earliest-offset'",
                )
            reset = properties.get("auto.offset.reset", "none").upper()
            if reset not in KafkaOffsetResetStrategy.__members__:
                raise options.wrong("properties.auto.offset.reset", "earliest, latest or none")
            return KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy[reset])
        case "timestamp":
            options.required(f"scan.{which}.timestamp-millis")
            return KafkaOffsetsInitializer.timestamp(options.integer(f"scan.{which}.timestamp-millis") or 0)
    return KafkaOffsetsInitializer.offsets(_offsets(options, which, topic))


def _offsets(options: TableOptions, which: str, topic: str) -> dict[KafkaTopicPartition, int]:
    """Parse start offsets such as ``partition:0,offset:42;partition:1,offset:300``."""
    key = f"scan.{which}.specific-offsets"
    found = {}
    for pair in options.required(key).strip("; ").split(";"):
        parts = dict(part.strip().partition(":")[::2] for part in pair.split(","))
        try:
            found[KafkaTopicPartition(topic, int(parts["partition"]))] = int(parts["offset"])
        except (KeyError, ValueError):
            raise options.wrong(key, "such as 'partition:0,offset:42;partition:1,offset:300'") from None
    return found


# -- what records hold ----------------------------------------------------------------------------------------


class _Layout:
    """Which columns are in the key and which in the value, by Flink's options."""

    def __init__(self, options: TableOptions, columns: Sequence[PhysicalColumn]) -> None:
        self.value_format = message_format(options, "format", "value.format")
        names = [column.name for column in columns]
        listed = options.text("key.fields")
        prefix = options.text("key.fields-prefix", "") or ""
        included = options.text("value.fields-include", "ALL")
        self.key_format = (
            None if options.text("key.format") is None else message_format(options, "key.format")
        )
        if (listed is None) != (self.key_format is None):
            raise SqlValidationError(
                f"table {options.table!r}: 'key.format' and 'key.fields' must be given together or not at all"
            )
        if included not in ("ALL", "EXCEPT_KEY"):
            raise options.wrong("value.fields-include", "ALL or EXCEPT_KEY")
        if prefix and included == "ALL":
            raise SqlValidationError(
                f"table {options.table!r}: 'key.fields-prefix' needs 'value.fields-include' = 'EXCEPT_KEY'"
            )
        keys = [each.strip() for each in (listed or "").split(";") if each.strip()]
        for name in keys:
            if name not in names or not name.startswith(prefix):
                raise options.wrong("key.fields", f"a list of columns ({'; '.join(names)})")
        #: Positions among the columns.
        self.key = [names.index(name) for name in keys]
        self.value = [at for at in range(len(names)) if included == "ALL" or at not in self.key]
        if not self.value:
            raise SqlValidationError(f"table {options.table!r}: no column is left for the value")
        #: Fields of the key, with their names there, and of the value.
        self.key_type = RowType(
            [RowField(names[at].removeprefix(prefix), columns[at].type) for at in self.key]
        )
        self.value_type = RowType([RowField(names[at], columns[at].type) for at in self.value])


def _rows(request: TableRequest, options: TableOptions) -> KafkaRows:
    columns = request.table.physical_columns
    layout = _Layout(options, columns)
    places = []
    for at, column in enumerate(columns):
        # A column that is in both is read from the value.
        if at in layout.value:
            places.append(ColumnPlace("value", layout.value.index(at), column.type))
        else:
            places.append(ColumnPlace("key", layout.key.index(at), column.type))
    for metadata in request.table.metadata_columns:
        places.append(ColumnPlace("metadata", _metadata(request.name, metadata, tuple(METADATA))))
    value = layout.value_format.reader(layout.value_type)
    key = None
    if layout.key_format is not None:
        key = layout.key_format.reader(layout.key_type)
    return KafkaRows(places, value, key if any(place.part == "key" for place in places) else None)


def _records(request: TableRequest, options: TableOptions, topic: str) -> TableRecords:
    columns = request.table.sink_columns
    physical = [at for at, column in enumerate(columns) if isinstance(column, PhysicalColumn)]
    metadata = {
        _metadata(request.name, column, WRITABLE_METADATA): at
        for at, column in enumerate(columns)
        if isinstance(column, MetadataColumn)
    }
    layout = _Layout(options, [column for column in columns if isinstance(column, PhysicalColumn)])
    value_columns = [physical[at] for at in layout.value]
    key_columns = [physical[at] for at in layout.key]
    value = layout.value_format.writer(layout.value_type)
    key = None
    if layout.key_format is not None:
        key = layout.key_format.writer(layout.key_type)
    return TableRecords(topic, value, value_columns, key, key_columns, metadata)


def _metadata(table: str, column: MetadataColumn, known: Sequence[str]) -> str:
    if column.metadata_key not in known:
        is_virtual = " (declare it VIRTUAL if it is only read)" if known is WRITABLE_METADATA else ""
        raise SqlValidationError(
            f"table {table!r}: metadata {column.metadata_key!r} is none that records of Kafka are "
            f"{'written' if known is WRITABLE_METADATA else 'read'} with{is_virtual}",
            hint=f"there are: {', '.join(known)}",
        )
    return column.metadata_key
