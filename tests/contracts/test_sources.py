"""Every source against the contract of sources, cut into epochs in every way."""

from __future__ import annotations

import gzip
import itertools
import json
import operator
import socketserver
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from headrace.common import Row, Types
from headrace.common.time import Duration
from headrace.connectors.base import (
    Boundedness,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
)
from headrace.connectors.collection import CollectionSource
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.file import FileEnumeratorProvider, FileSource, StreamFormat
from headrace.connectors.function_source import PythonSource
from headrace.connectors.hybrid import HybridSource
from headrace.connectors.jdbc import JdbcPartition, JdbcSource
from headrace.connectors.jdbc._connections import dispose_engines
from headrace.connectors.sequence import NumberSequenceSource
from headrace.connectors.socket import SocketSource
from headrace.datastream import OutputTag
from headrace.datastream.formats.avro import AvroBulkFormat, AvroSchema
from headrace.datastream.formats.csv import CsvReaderFormat, CsvSchema
from headrace.datastream.formats.json import JsonRowDeserializationSchema
from headrace.datastream.formats.orc import OrcColumnarRowInputFormat
from headrace.datastream.formats.parquet import AvroParquetReaders, ParquetColumnarRowInputFormat
from headrace.elements import Batch
from headrace.testing.contracts import ContractViolation, check_source
from headrace.testing.sources import EndEpoch, ScriptedSource, Timestamped
from headrace.types import DataTypes

WORDS = [f"word-{i}" for i in range(23)]


@dataclass(frozen=True)
class Case:
    make: Callable[[Path], Source]
    expected: Sequence[Any]
    options: dict[str, Any] = field(default_factory=dict)


def twenty(split: str) -> int:
    return 20


def words_from(start: int) -> list[str]:
    return WORDS[start:]


def write_words(folder: Path) -> Path:
    (folder / "deep").mkdir()
    (folder / "a.txt").write_text("\n".join(WORDS[:10]))
    (folder / "b.txt").write_text("".join(f"{word}\r\n" for word in WORDS[10:15]))
    (folder / "empty.txt").touch()
    (folder / "_SUCCESS").write_text("not a word")
    (folder / "deep" / "c.gz").write_bytes(gzip.compress("\n".join(WORDS[15:20]).encode()))
    (folder / "deep" / "d.txt").write_text("".join(f"{word}\n" for word in WORDS[20:]))
    return folder


def files(folder: Path, *, split_bytes: int | None = 16, monitored: bool = False) -> FileSource:
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), write_words(folder))
    lines.set_file_enumerator(FileEnumeratorProvider(split_bytes))
    return (lines.monitor_continuously(Duration.of_millis(1)) if monitored else lines).build()


def wide_files(folder: Path) -> FileSource:
    (folder / "wide.txt").write_text("\n".join(WORDS), encoding="utf-16")
    return FileSource.for_record_stream_format(StreamFormat.text_line_format("UTF-16"), folder).build()


ROWS = [Row(id=i, name=f"name {i}" if i % 5 else None) for i in range(23)]
ROW_TYPE = DataTypes.ROW(
    [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("name", DataTypes.STRING())]
)
ROW_TYPE_INFO = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.table({"name": [row.name for row in rows], "id": [row.id for row in rows]})


def json_lines(folder: Path, *, packed: bool = False) -> Source:
    for number, rows in enumerate((ROWS[:7], ROWS[7:])):
        data = "".join(json.dumps(row.as_dict()) + "\r\n" for row in rows).encode()
        data += b"\n"  # an empty line is not a record
        path = folder / f"{number}.json{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(data) if packed else data)
    schema = JsonRowDeserializationSchema.builder().type_info(ROW_TYPE_INFO).build()
    lines = StreamFormat.schema_line_format(schema)
    builder = FileSource.for_record_stream_format(lines, folder)
    return builder.set_file_enumerator(FileEnumeratorProvider(64)).build()


def csv_files(folder: Path, *, bad: bool = False, split_bytes: int | None = None) -> Source:
    schema = CsvSchema.builder().add_number_column("id").add_string_column("name")
    schema = schema.set_use_header().set_null_value("-").build()
    noise = "what,is,this\n" if bad else ""
    for number, rows in enumerate((ROWS[:7], [], ROWS[7:])):
        lines = "".join(f'{row.id},"{"-" if row.name is None else row.name}"\n{noise}' for row in rows)
        (folder / f"{number}.csv").write_text("id,name\n" + lines)
    reader = CsvReaderFormat.for_schema(schema)
    if split_bytes is not None:
        reader = reader.with_single_line_records()
    builder = FileSource.for_record_stream_format(reader, folder)
    builder.set_file_enumerator(FileEnumeratorProvider(split_bytes))
    return (builder.set_dead_letter_tag(OutputTag("bad")) if bad else builder).build()


def parquet_files(folder: Path) -> Source:
    pq.write_table(table(ROWS[:20]), folder / "a.parquet", row_group_size=6)
    pq.write_table(table([]).cast(table(ROWS).schema), folder / "empty.parquet")
    pq.write_table(table(ROWS[20:]), folder / "b.parquet")
    builder = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(ROW_TYPE, batch_size=4), folder)
    return builder.set_file_enumerator(FileEnumeratorProvider(300)).build()


def avro_parquet_files(folder: Path) -> Source:
    pq.write_table(table(ROWS), folder / "a.parquet", row_group_size=6)
    schema = AvroSchema(
        {
            "type": "record",
            "name": "User",
            "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
        }
    )
    builder = FileSource.for_record_stream_format(AvroParquetReaders.for_generic_record(schema), folder)
    return builder.set_file_enumerator(FileEnumeratorProvider(300)).build()


def orc_files(folder: Path) -> Source:
    orc.write_table(table(ROWS[:20]), folder / "a.orc", stripe_size=1, batch_size=4)
    orc.write_table(table(ROWS[20:]), folder / "b.orc")
    builder = FileSource.for_bulk_file_format(OrcColumnarRowInputFormat(ROW_TYPE), folder)
    return builder.set_file_enumerator(FileEnumeratorProvider(300)).build()


def avro_files(folder: Path) -> Source:
    schema = {
        "type": "record",
        "name": "User",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
    }
    with (folder / "a.avro").open("wb") as file:
        fastavro.writer(file, schema, [row.as_dict() for row in ROWS], sync_interval=50)
    builder = FileSource.for_bulk_file_format(AvroBulkFormat(AvroSchema(schema)), folder)
    return builder.set_file_enumerator(FileEnumeratorProvider(70)).build()


CASES = {
    "collection": Case(lambda _: CollectionSource(WORDS), WORDS),
    "empty collection": Case(lambda _: CollectionSource([]), []),
    "sequence": Case(lambda _: NumberSequenceSource(-5, 17), range(-5, 18)),
    "generator": Case(lambda _: DataGeneratorSource(partial(operator.mul, 3), 20), range(0, 60, 3)),
    "generator with a rate": Case(
        lambda _: DataGeneratorSource(partial(operator.mul, 3), 20, rate_per_second=2000), range(0, 60, 3)
    ),
    "python": Case(lambda _: PythonSource({"a": words_from, "b": words_from}), WORDS + WORDS),
    "growing python": Case(
        lambda _: PythonSource({"a": words_from}, bounded=False, available=twenty), WORDS[:20]
    ),
    "file ranges": Case(files, WORDS),
    "whole files": Case(partial(files, split_bytes=None), WORDS),
    "monitored files": Case(partial(files, monitored=True), WORDS),
    "wide files": Case(wide_files, WORDS),
    "json lines": Case(json_lines, ROWS),
    "packed json lines": Case(partial(json_lines, packed=True), ROWS),
    "csv files": Case(csv_files, ROWS),
    "ranges of csv files": Case(partial(csv_files, split_bytes=5), ROWS),
    "ranges of bad csv files": Case(partial(csv_files, bad=True, split_bytes=30), ROWS),
    "bad csv files": Case(partial(csv_files, bad=True), ROWS),
    "parquet files": Case(parquet_files, ROWS),
    "parquet files as dictionaries": Case(avro_parquet_files, [row.as_dict() for row in ROWS]),
    "orc files": Case(orc_files, ROWS),
    "avro files": Case(avro_files, [row.as_dict() for row in ROWS]),
    "one source after the other": Case(
        lambda folder: (
            HybridSource.builder(files(folder))
            .add_source(CollectionSource([]))
            .add_source(CollectionSource(WORDS))
            .build()
        ),
        WORDS + WORDS,
    ),
    "past and present": Case(
        lambda folder: (
            HybridSource.builder(CollectionSource(WORDS)).add_source(files(folder, monitored=True)).build()
        ),
        WORDS + WORDS,
    ),
    "script": Case(
        lambda _: ScriptedSource([EndEpoch(), 1, 2, EndEpoch(), Timestamped(3, 10)], [4], []),
        [1, 2, 3, 4],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_source_keeps_the_contract(name, parallelism, tmp_path):
    case = CASES[name]

    check_source(case.make(tmp_path), case.expected, parallelism, **case.options)


def test_files_that_come_later_are_read(tmp_path):
    source = files(tmp_path, monitored=True)
    numbers = itertools.count()

    def more() -> list[str]:
        name = f"late-{next(numbers)}"
        (tmp_path / f".{name}").write_text(f"{name}\n")
        (tmp_path / f".{name}").rename(tmp_path / name)
        return [name]

    check_source(source, WORDS, parallelism=2, more=more)


def orders(server: Any) -> list[Row]:
    """Make a table of rows, some of them without a shelf."""
    rows = [Row(id=i, fruit=f"fruit {i}", shelf=None if i % 7 == 0 else i % 3) for i in range(23)]
    server.execute("DROP TABLE IF EXISTS orders")
    server.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, fruit TEXT, shelf INTEGER)")
    values = ", ".join(f"({r.id}, '{r.fruit}', {'NULL' if r.shelf is None else r.shelf})" for r in rows)
    server.execute(f"INSERT INTO orders VALUES {values}")
    return rows


@pytest.mark.parametrize("auto_commit", [True, False])
@pytest.mark.parametrize("column", ["id", "shelf"])
@pytest.mark.parametrize("server", ["postgres", "mariadb"])
def test_a_jdbc_source_keeps_the_contract(request, server, column, auto_commit):
    running = request.getfixturevalue(server)
    expected = orders(running)
    partition = JdbcPartition(column, 3)
    columns = ["id", "fruit", "shelf"]
    source = JdbcSource(
        running.options(), "orders", columns, partition, fetch_size=4, auto_commit=auto_commit
    )
    check_source(source, expected, parallelism=2, cuts=(3, (7, 1), 1_000_000))
    dispose_engines()


@pytest.fixture
def word_server() -> Iterator[int]:
    class SayWords(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write("".join(f"{word}\n" for word in WORDS).encode())

    with socketserver.TCPServer(("127.0.0.1", 0), SayWords) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_a_socket_source_keeps_the_contract(word_server):
    check_source(SocketSource("127.0.0.1", word_server), WORDS, is_restartable=False)


# --- the check itself -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Faulty(Source):
    """Reads 0 to 5, with one fault."""

    fault: str

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return FaultyEnumerator(self.fault, parallelism)

    def create_reader(self) -> SourceReader:
        return FaultyReader(self.fault)


class FaultyEnumerator(SplitEnumerator):
    def __init__(self, fault: str, parallelism: int) -> None:
        self.fault = fault
        self.new = [SourceSplit(f"{parallelism}" if fault == "split follows parallelism" else "all")]

    def discover(self) -> Sequence[SourceSplit]:
        found = self.new
        if self.fault != "split comes twice":
            self.new = []
        return found

    @property
    def is_complete(self) -> bool:
        return not self.new

    def start_position(self, split: SourceSplit) -> int:
        return 0

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice:
        end = position + max_records + (self.fault == "limit is ignored")
        return Slice(split, position, min(end, 6))


class FaultyReader(SourceReader):
    calls = 0

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def read(self, piece: Slice) -> Iterator[Batch]:
        FaultyReader.calls += 1
        shift = FaultyReader.calls if self.fault == "other records when read again" else 0
        end = piece.end - (self.fault == "last record is lost" and piece.end == 6)
        if end > piece.start:
            yield Batch([value + shift for value in range(piece.start, end)])
        self.position = piece.end

    def progress(self) -> SplitProgress:
        return SplitProgress(self.position, self.position >= 6)


def test_a_faultless_source_passes():
    check_source(Faulty("none"), range(6))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("split comes twice", "split 'all' was returned twice"),
        ("limit is ignored", "2 records read where 1 were allowed"),
        ("other records when read again", "a slice read again gives another result"),
        ("last record is lost", r"missing: \[5\]"),
        ("split follows parallelism", r"with restarts: there but not expected: \[0"),
    ],
)
def test_the_check_finds_faults(fault, message):
    with pytest.raises(ContractViolation, match=message):
        check_source(Faulty(fault), range(6))
