"""Every table connector with every format against the contracts of sources and sinks, made from WITH options.

What the sink wrote is what the source of the same table must read. Tables that Spark reads itself (files, numbers) are
read here by pyarrow from what the source hands to Spark; tests/spark reads them with Spark.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from headrace.catalog.objects import CatalogTable, Column, PhysicalColumn, PrimaryKey
from headrace.common import Row
from headrace.common.types import RowKind
from headrace.config.table_options import TableOptions
from headrace.connectors import base
from headrace.connectors.jdbc._connections import dispose_engines
from headrace.connectors.kafka import KafkaConsumerRecord, KafkaSource
from headrace.connectors.kafka.sink import close_producers
from headrace.connectors.kafka.table import KafkaRows
from headrace.connectors.tables import TableRequest
from headrace.elements import Batch
from headrace.formats.tables import FORMATS
from headrace.table._connectors import CONNECTORS
from headrace.testing.contracts import check_sink, check_source
from headrace.types import DataTypes
from tests.kafka import KafkaBroker
from tests.postgres import PostgresServer
from tests.schema_registry import registry  # noqa: F401 - a fixture
from tests.unit.connectors.test_postgres_cdc import Table

ID = PhysicalColumn("id", DataTypes.BIGINT().not_null())
NAME = PhysicalColumn("name", DataTypes.STRING())
COLUMNS = (ID, NAME)
ROWS = [(number, f"name {number}" if number % 5 else None) for number in range(23)]
EPOCHS = [ROWS[:5], ROWS[5:6], [], ROWS[6:]]


def made(
    options: dict[str, str],
    columns: Sequence[Column] = COLUMNS,
    key: str | None = None,
    *,
    is_batch: bool = False,
) -> tuple[Any, TableRequest]:
    """Return the factory of a table, and the request for it."""
    primary = None if key is None else PrimaryKey("pk", (key,))
    table = CatalogTable(tuple(columns), options, primary_key=primary)
    return CONNECTORS.make(options["connector"]), TableRequest(
        "t", table, TableOptions("t", options), is_batch
    )


def source_of(*table: Any, **more: Any) -> base.Source:
    factory, request = made(*table, **more)
    source: base.Source = factory.source(request)
    request.options.check()
    return source


def sink_of(*table: Any, **more: Any) -> base.Sink:
    factory, request = made(*table, **more)
    sink: base.Sink = factory.sink(request)
    request.options.check()
    return sink


# --- what Spark reads -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadHere(base.Source):
    """A source for Spark, whose slices are read here."""

    source: base.SparkSource

    @property
    def boundedness(self) -> base.Boundedness:
        return self.source.boundedness

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        return self.source.create_enumerator(parallelism)

    def create_reader(self) -> base.SourceReader:
        return HereReader(self.source)


class HereReader(base.SourceReader):
    def __init__(self, source: base.SparkSource) -> None:
        self._source = source

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        rows = list(rows_of(self._source.spark_read([piece])))
        self._progress = self._source.reached(piece)
        if rows:
            yield Batch(rows)

    def progress(self) -> base.SplitProgress:
        return self._progress


def rows_of(read: base.SparkRead) -> Iterator[tuple[Any, ...]]:
    if isinstance(read, base.RowsRead):
        yield from read.rows
    elif isinstance(read, base.RangeRead):
        yield from ((number,) for number in range(read.start, read.end))
    else:
        for path in read.paths:
            yield from FILES[read.format](path)


def _json(path: str) -> Iterator[tuple[Any, ...]]:
    for line in Path(path).read_text().splitlines():
        row = json.loads(line)
        yield row["id"], row.get("name")


def _csv(path: str) -> list[tuple[Any, ...]]:
    options = pyarrow.csv.ReadOptions(column_names=["id", "name"])
    null = pyarrow.csv.ConvertOptions(null_values=["-"], strings_can_be_null=True)
    return _tuples(pyarrow.csv.read_csv(path, options, convert_options=null))


def _tuples(table: Any) -> list[tuple[Any, ...]]:
    return [(row["id"], row["name"]) for row in table.to_pylist()]


FILES: dict[str, Callable[[str], Any]] = {
    "json": _json,
    "csv": _csv,
    "parquet": lambda path: _tuples(pq.read_table(path)),
    "orc": lambda path: _tuples(orc.read_table(path)),
}
#: Such a source reads whole files, however few records an epoch may have.
WHOLE = (1_000_000,)


@pytest.mark.parametrize("is_batch", [False, True])
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        *((kind, {}) for kind in ("csv", "json", "parquet", "orc", "avro")),
        *((kind, {"auto-compaction": "true"}) for kind in ("csv", "json", "parquet", "orc", "avro")),
        # Others are closed by every checkpoint.
        *((kind, {"sink.rolling-policy.file-size": "1 b"}) for kind in ("csv", "json")),
    ],
    ids=str,
)
def test_tables_of_files_keep_the_contracts(
    tmp_path: Path, kind: str, more: dict[str, str], is_batch: bool
) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path), "format": kind, **more}
    if kind == "csv":
        options["csv.null-literal"] = "-"

    def readable() -> base.Source:
        source = source_of(options, is_batch=is_batch)
        return ReadHere(source) if isinstance(source, base.SparkSource) else source

    def published() -> list[Any]:
        return read_all(readable())

    sink = sink_of(options, is_batch=is_batch)
    check_sink(sink, [[Row(*row) for row in epoch] for epoch in EPOCHS], lambda: map(to_row, published()))
    check_source(readable(), ROWS, parallelism=2, cuts=WHOLE)


def read_all(source: base.Source) -> list[Any]:
    """Return all records of a bounded source, without the checks."""
    enumerator, reader, found = source.create_enumerator(1), source.create_reader(), []
    reader.open(base.ReaderContext())
    for split in enumerator.discover():
        position, is_finished = enumerator.start_position(split), False
        while not is_finished:
            piece = enumerator.plan(split, position, 1_000_000)
            assert piece is not None
            found += [value for batch in reader.read(piece) for value in batch.values]
            position, is_finished = reader.progress().position, reader.progress().is_finished
    reader.close()
    enumerator.close()
    return found


def to_row(row: Any) -> Row:
    return row if isinstance(row, Row) else Row(*row)


def test_generated_tables_keep_the_contract() -> None:
    options = {"connector": "datagen", "number-of-rows": "20"}
    source = source_of(options, (ID,))
    assert isinstance(source, base.SparkSource)
    check_source(ReadHere(source), [(number,) for number in range(20)], parallelism=2)


def test_tables_of_nexmark_keep_the_contract() -> None:
    from headrace.connectors.nexmark.events import EVENT_TYPE

    columns = [PhysicalColumn(field.name, field.data_type) for field in EVENT_TYPE]
    source = source_of({"connector": "nexmark", "events.num": "30"}, columns)
    here = ReadHere(source) if isinstance(source, base.SparkSource) else source
    check_source(here, read_all(here), parallelism=2, cuts=(7, 1_000_000))


def test_printed_tables_keep_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    printed: list[Row] = []

    def published() -> list[Row]:
        for line in capsys.readouterr().out.splitlines():
            assert line.startswith(("it:1> +I[", "it:2> +I["))
            printed.append(Row(line[len("it:1> +I[") : -1]))
        return printed

    sink = sink_of({"connector": "print", "print-identifier": "it"}, (NAME,))
    check_sink(sink, [[Row("a"), Row("b")], [Row("c")]], published, is_marked=False)


def test_tables_that_discard_rows_keep_the_contract() -> None:
    sink = sink_of({"connector": "blackhole"})
    assert sink.discards
    check_sink(sink, [[]], lambda: [], guarantee=base.DeliveryGuarantee.AT_LEAST_ONCE)


# --- databases ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "is_partitioned"), [(None, False), ("id", False), ("id", True)])
def test_tables_of_databases_keep_the_contracts(
    tmp_path: Path, key: str | None, is_partitioned: bool
) -> None:
    options = {"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path / 'db'}", "table-name": "t"}
    if is_partitioned:
        parts = {"column": "id", "num": "3", "lower-bound": "0", "upper-bound": "22"}
        options |= {f"scan.partition.{name}": value for name, value in parts.items()}
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute(f"CREATE TABLE t (id INTEGER{' PRIMARY KEY' if key else ''}, name TEXT)")

        def published() -> list[Row]:
            return [Row(*row) for row in database.execute("SELECT id, name FROM t")]

        promised = base.DeliveryGuarantee.EXACTLY_ONCE if key else base.DeliveryGuarantee.AT_LEAST_ONCE
        epochs = [[Row(*row) for row in epoch] for epoch in EPOCHS]
        check_sink(sink_of(options, COLUMNS, key), epochs, published, guarantee=promised)
    if key:  # reading continues after a row, by its key
        check_source(source_of(options, COLUMNS, key), ROWS, parallelism=2, cuts=(3, (7, 1), 1_000_000))
    dispose_engines()


def test_tables_of_the_changes_of_postgresql_keep_the_contract(postgres: PostgresServer) -> None:
    table = Table(postgres)
    place = table.place
    table.run("INSERT INTO t SELECT n, 'x' || n FROM generate_series(1, 9) AS n")
    options = {
        **{"connector": "postgres-cdc", "hostname": place.host, "port": str(place.port)},
        **{"username": place.user, "password": place.password, "database-name": "postgres"},
        **{"schema-name": "public", "table-name": table.name, "slot.name": f"slot_{table.name}"},
    }
    numbers = iter(range(100, 200))

    def more() -> list[Row]:
        number = next(numbers)
        table.run(f"INSERT INTO t VALUES ({number}, 'more')")
        return [Row(number, "more")]

    columns = (PhysicalColumn("id", DataTypes.INT()), NAME)
    expected = [Row(number, f"x{number}") for number in range(1, 10)]
    check_source(source_of(options, columns), expected, cuts=(2, 100), more=more)
    table.drop()


# --- Kafka ----------------------------------------------------------------------------------------

EVENTS = ("canal-json", "debezium-avro-confluent", "debezium-json", "maxwell-json", "ogg-json")
#: Formats of messages, with the options that they need.
MESSAGES: dict[str, dict[str, str]] = {
    **{name: {} for name in ("avro", "json", *EVENTS)},
    "csv": {"csv.null-literal": "-"},
    "avro-confluent": {"avro-confluent.url": "REGISTRY"},
    "debezium-avro-confluent": {"debezium-avro-confluent.url": "REGISTRY"},
    "protobuf": {"protobuf.message-class-name": "shop.Order", "protobuf.descriptor-set": "DESCRIPTOR"},
}
#: Formats of one column.
RAW = "raw"
#: Formats of files that no message can have.
OF_FILES = ("orc", "parquet")


def test_no_format_is_left_out() -> None:
    assert sorted([*MESSAGES, RAW, *OF_FILES]) == sorted(FORMATS.names())


def test_no_connector_is_left_out() -> None:
    text = Path(__file__).read_text("utf-8")
    # Tables of a Hive catalog are made by the factory of files.
    assert [name for name in sorted({*CONNECTORS.names()} - {"hive"}) if f'"{name}"' not in text] == []


@pytest.fixture
def _closed() -> Iterator[None]:
    yield
    close_producers()


def descriptor_set(folder: Path) -> Path:
    descriptor_pb2: Any = pytest.importorskip("google.protobuf.descriptor_pb2")
    files = descriptor_pb2.FileDescriptorSet()
    message = files.file.add(name="a.proto", package="shop", syntax="proto3").message_type.add(name="Order")
    message.field.add(name="id", number=1, type="TYPE_INT64", label="LABEL_OPTIONAL")
    message.field.add(name="name", number=2, type="TYPE_STRING", label="LABEL_OPTIONAL")
    path = folder / "shop.desc"
    path.write_bytes(files.SerializeToString())
    return path


def kafka_options(kafka: KafkaBroker, topic: str, connector: str) -> dict[str, str]:
    return {
        **{"connector": connector, "topic": topic, "properties.bootstrap.servers": kafka.address},
        **{"scan.bounded.mode": "latest-offset", "properties.isolation.level": "read_committed"},
        **{"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": f"p-{topic}"},
    }


def rows_in(kafka: KafkaBroker, topic: str, source: base.Source) -> list[Row]:
    """Return the rows that a table makes of all records of a topic: quicker than a source of its own each time."""
    assert isinstance(source, KafkaSource)
    deserializer = source.deserializer
    assert isinstance(deserializer, KafkaRows)
    found: list[Row] = []
    for message in kafka.messages(topic):
        record = KafkaConsumerRecord(topic, 0, message.offset(), message.key(), message.value(), None)
        found += [to_row(row) for row in deserializer.deserialize(record)]
    return found


FAST = ("json",)


@pytest.mark.usefixtures("_closed")
@pytest.mark.parametrize(
    "kind", [pytest.param(each, marks=() if each in FAST else pytest.mark.slow) for each in (*MESSAGES, RAW)]
)
def test_tables_of_topics_keep_the_contracts(
    kafka: KafkaBroker,
    tmp_path: Path,
    kind: str,
    registry: tuple[Any, str],  # noqa: F811 - the fixture
) -> None:
    topic = kafka.create_topic(2)
    places = {"REGISTRY": registry[1], "DESCRIPTOR": str(descriptor_set(tmp_path))}
    options = {key: places.get(value, value) for key, value in MESSAGES.get(kind, {}).items()}
    options |= {
        **kafka_options(kafka, topic, "kafka"),
        "format": kind,
        "scan.startup.mode": "earliest-offset",
    }
    columns = (NAME,) if kind == RAW else COLUMNS
    # Protobuf has no NULL for what is left out.
    rows = [(number, name or "") for number, name in ROWS] if kind == "protobuf" else ROWS
    written = [Row(name) if kind == RAW else Row(number, name) for number, name in rows]
    if kind == RAW:
        written = [row for row in written if row[0] is not None]  # a record without a value is skipped
    if kind in EVENTS:
        written += [Row.of_kind(RowKind.DELETE, 3, "name 3")]

    def published() -> list[Row]:
        return rows_in(kafka, topic, source_of(options, columns))

    check_sink(sink_of(options, columns), [written[:4], [], written[4:]], published)
    found = written if kind in EVENTS else [tuple(row) for row in written]
    check_source(source_of(options, columns), found, parallelism=2, cuts=(5,))


@pytest.mark.usefixtures("_closed")
@pytest.mark.parametrize("is_buffered", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_tables_of_upserts_keep_the_contracts(kafka: KafkaBroker, is_buffered: bool) -> None:
    topic = kafka.create_topic(2)
    options = kafka_options(kafka, topic, "upsert-kafka")
    options |= {"key.format": "json", "value.format": "json"}
    if is_buffered:
        options |= {"sink.buffer-flush.max-rows": "2", "sink.buffer-flush.interval": "1 s"}
    inserted = [Row.of_kind(RowKind.UPDATE_AFTER, *row) for row in ROWS]
    # A tombstone has the key alone.
    deleted = [Row.of_kind(RowKind.DELETE, number, None) for number in (1, 2)]

    def published() -> list[Row]:
        return rows_in(kafka, topic, source_of(options, COLUMNS, "id"))

    check_sink(sink_of(options, COLUMNS, "id"), [inserted[:4], deleted, inserted[4:]], published)
    check_source(source_of(options, COLUMNS, "id"), inserted + deleted, parallelism=2, cuts=(5,))
