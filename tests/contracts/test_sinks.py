"""Every sink against the contract of sinks: output that is aborted, lost, committed, committed again."""

from __future__ import annotations

import csv
import io
import operator
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from headrace.common.serialization import Encoder
from headrace.connectors.base import (
    Committable,
    Committer,
    DeliveryGuarantee,
    Sink,
    SinkWriter,
    WriterContext,
)
from headrace.connectors.collect import CollectSink, open_collector
from headrace.connectors.file import BucketAssigner, FileSink, RollingPolicy
from headrace.connectors.function_source import FunctionSink
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from headrace.connectors.jdbc._connections import dispose_engines
from headrace.connectors.print import PrintSink
from headrace.datastream.formats.avro import AvroBulkWriters, AvroSchema
from headrace.datastream.formats.csv import CsvBulkWriters, CsvSchema
from headrace.datastream.formats.orc import OrcBulkWriters
from headrace.datastream.formats.parquet import AvroParquetWriters, ParquetBulkWriters
from headrace.errors import UnsupportedFeatureError
from headrace.testing.contracts import ContractViolation, check_sink
from headrace.types import DataTypes

EPOCHS = [["a", "b", "c", "d", "e"], ["f"], [], [f"word-{i}" for i in range(50)]]


def lines_below(folder: Path) -> list[str]:
    return [
        line
        for path in folder.rglob("*")
        if path.is_file() and ".staging" not in path.parts
        for line in path.read_text().splitlines()
    ]


@pytest.mark.parametrize(
    "assigner", [BucketAssigner.base_path_bucket_assigner(), BucketAssigner.date_time_bucket_assigner()]
)
@pytest.mark.parametrize(
    "policy",
    [
        RollingPolicy.default_rolling_policy(),
        RollingPolicy.default_rolling_policy(part_size=6),
        RollingPolicy.on_checkpoint_rolling_policy(),
    ],
)
def test_the_file_sink_keeps_the_contract(tmp_path, assigner, policy):
    encoder = Encoder.simple_string_encoder()
    builder = FileSink.for_row_format(str(tmp_path), encoder).with_bucket_assigner(assigner)
    sink = builder.with_rolling_policy(policy).build()

    check_sink(sink, EPOCHS, published=lambda: lines_below(tmp_path))


def test_the_file_sink_keeps_the_contract_when_it_compacts(tmp_path):
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).with_compaction().build()

    check_sink(sink, EPOCHS, published=lambda: lines_below(tmp_path))


ROW_TYPE = DataTypes.ROW([DataTypes.FIELD("word", DataTypes.STRING())])
AVRO = AvroSchema({"type": "record", "name": "Word", "fields": [{"name": "word", "type": "string"}]})
BULK = {
    "parquet": (ParquetBulkWriters.for_row_type(ROW_TYPE), lambda path: pq.read_table(path).to_pylist()),
    "avro parquet": (
        AvroParquetWriters.for_generic_record(AVRO),
        lambda path: pq.read_table(path).to_pylist(),
    ),
    "orc": (OrcBulkWriters.for_row_type(ROW_TYPE), lambda path: orc.read_table(path).to_pylist()),
    "avro": (
        AvroBulkWriters.for_generic_record(AVRO),
        lambda path: list(fastavro.reader(io.BytesIO(path.read_bytes()))),
    ),
    "csv": (
        CsvBulkWriters.for_schema(CsvSchema.builder().add_string_column("word").set_use_header().build()),
        lambda path: list(csv.DictReader(path.read_text().splitlines())),
    ),
}


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("name", BULK)
def test_the_file_sink_keeps_the_contract_in_bulk_formats(tmp_path, name, is_compacted):
    factory, read = BULK[name]
    builder = FileSink.for_bulk_format(tmp_path, factory)
    if is_compacted and not factory.can_join:
        with pytest.raises(UnsupportedFeatureError, match="with_compaction"):
            builder.with_compaction().build()
        return
    sink = (builder.with_compaction() if is_compacted else builder).build()

    def published() -> list[Any]:
        parts = [path for path in tmp_path.rglob("part-*") if ".staging" not in path.parts]
        return [record for path in parts for record in read(path)]

    check_sink(sink, [[{"word": word} for word in epoch] for epoch in EPOCHS], published)


def test_the_print_sink_keeps_the_contract(capsys):
    printed: list[str] = []

    def published() -> list[str]:
        printed.extend(line.partition("> ")[2] for line in capsys.readouterr().out.splitlines())
        return printed

    check_sink(PrintSink("words"), EPOCHS, published, is_marked=False)


def test_the_collect_sink_keeps_the_contract():
    collected: list[str] = []
    with open_collector("contract") as collector:

        def published() -> list[str]:
            while collector._waiting:
                collected.append(next(collector))
            collected.extend(collector._current)
            return collected

        check_sink(CollectSink("contract"), EPOCHS, published)


WRITTEN: list[Any] = []


def test_the_function_sink_writes_at_least_once():
    WRITTEN.clear()

    check_sink(
        FunctionSink(write_down), EPOCHS, published=lambda: WRITTEN, guarantee=DeliveryGuarantee.AT_LEAST_ONCE
    )


def write_down(value: Any) -> None:
    WRITTEN.append(value)


# --- the check itself -----------------------------------------------------------------------------

PUBLISHED: list[Any] = []


@dataclass(frozen=True)
class Faulty(Sink):
    """Publishes to a list, with one fault."""

    fault: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return FaultyWriter(self.fault)

    def create_committer(self) -> Committer | None:
        return None if self.fault == "no committer" else FaultyCommitter(self.fault)


class FaultyWriter(SinkWriter):
    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.rows: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self.rows.append(value)
        if self.fault == "writes at once":
            PUBLISHED.append(value)

    def prepare_commit(self) -> Sequence[Any]:
        return [self.rows[1:] if self.fault == "loses the first" else self.rows]


DONE: set[Any] = set()


class FaultyCommitter(Committer):
    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.done = set() if fault == "forgets what it published" else DONE

    def commit(self, committables: Sequence[Committable]) -> None:
        for committable in committables:
            marker = (committable.epoch, committable.subtask)
            if marker not in self.done:
                PUBLISHED.extend(committable.payload)
            if self.fault != "has no marker":
                self.done.add(marker)


@pytest.fixture(autouse=True)
def nothing_published() -> None:
    PUBLISHED.clear()
    DONE.clear()


def test_a_faultless_sink_passes():
    check_sink(Faulty("none"), EPOCHS, partial(operator.getitem, PUBLISHED, slice(None)))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("no committer", "needs a committer"),
        ("writes at once", "epoch 1, before the commit: there but not expected"),
        ("loses the first", r"epoch 1, committed: missing: \['a', 'b'\]"),
        ("has no marker", "epoch 1, committed again: there but not expected"),
        ("forgets what it published", "epoch 1, committed by a new committer: there but not expected"),
    ],
)
def test_the_check_finds_faults(fault, message):
    with pytest.raises(ContractViolation, match=message):
        check_sink(Faulty(fault), EPOCHS, published=lambda: list(PUBLISHED))


# --- databases ------------------------------------------------------------------------------------


def test_the_jdbc_sink_keeps_the_contract_on_sqlite(tmp_path):
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute("CREATE TABLE words (word TEXT)")
        connection = JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path / 'db'}")
        check_sink(
            JdbcSink.exactly_once_sink("INSERT INTO words VALUES (?)", None, connection),
            EPOCHS,
            published=lambda: [word for (word,) in database.execute("SELECT word FROM words")],
        )
    dispose_engines()


def test_the_jdbc_sink_keeps_the_contract_on_postgresql(postgres):
    postgres.execute("CREATE TABLE contract (word TEXT)")
    check_sink(
        JdbcSink.exactly_once_sink("INSERT INTO contract VALUES (?)", None, postgres.options()),
        EPOCHS,
        published=lambda: [word for (word,) in postgres.execute("SELECT word FROM contract")],
    )


def test_the_jdbc_sink_that_upserts_writes_at_least_once_on_postgresql(postgres):
    postgres.execute("CREATE TABLE upserted (word TEXT PRIMARY KEY)")
    check_sink(
        JdbcSink.upsert_sink("upserted", ["word"], ["word"], None, postgres.options()),
        EPOCHS,
        published=lambda: [word for (word,) in postgres.execute("SELECT word FROM upserted")],
        guarantee=DeliveryGuarantee.AT_LEAST_ONCE,
    )


def test_the_jdbc_sink_keeps_the_contract_on_mariadb(mariadb):
    mariadb.execute("CREATE TABLE contract (word VARCHAR(40))")
    mariadb.execute("CREATE TABLE upserted (word VARCHAR(40) PRIMARY KEY, size INTEGER)")
    check_sink(
        JdbcSink.exactly_once_sink("INSERT INTO contract VALUES (?)", None, mariadb.options()),
        EPOCHS,
        published=lambda: [word for (word,) in mariadb.execute("SELECT word FROM contract")],
    )
    sink = JdbcSink.upsert_sink("upserted", ["word", "size"], ["word"], None, mariadb.options())
    check_sink(
        sink,
        [[("a", 1), ("b", 2)], [("c", 3)]],
        published=lambda: mariadb.execute("SELECT word, size FROM upserted"),
        guarantee=DeliveryGuarantee.AT_LEAST_ONCE,
    )
