"""Files that are shared by several subtasks: each record is in one range, whatever the length of the ranges."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import orc

from headrace.common import Row
from headrace.connectors.base import ReaderContext, Slice
from headrace.connectors.file import FileEnumeratorProvider, FileSource
from headrace.connectors.file._formats import FileFormat
from headrace.datastream.formats.avro import AvroBulkFormat
from headrace.datastream.formats.csv import CsvReaderFormat, CsvSchema
from headrace.datastream.formats.orc import OrcColumnarRowInputFormat
from headrace.errors import FormatError
from headrace.types import DataTypes

RECORDS = 300
ROW_TYPE = DataTypes.ROW(
    [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("name", DataTypes.STRING())]
)


def read_ranges(file_format: FileFormat, path: Path, split_bytes: int) -> list[list[Any]]:
    """Return the records of each range, each read by a reader of its own."""
    builder = FileSource.for_bulk_file_format(file_format, path)
    source = builder.set_file_enumerator(FileEnumeratorProvider(split_bytes)).build()
    enumerator = source.create_enumerator(1)
    ranges = []
    for split in enumerator.discover():
        reader = source.create_reader()
        reader.open(ReaderContext())
        pieces = reader.read(Slice(split, enumerator.start_position(split)))
        ranges.append([value for batch in pieces for value in batch.values])
        assert reader.progress().is_finished
    return ranges


def csv_schema(**flags: bool) -> CsvSchema:
    builder = CsvSchema.builder().add_number_column("id").add_string_column("name")
    builder.set_use_header(flags.get("header", False)).set_skip_first_data_row(flags.get("skip", False))
    if flags.get("plain"):
        builder.disable_quote_char()
    return builder.set_strict_headers().build()


def name_of(number: int) -> str:
    return "x" * (number * 7 % 31)


def rows() -> list[Row]:
    return [Row(id=number, name=name_of(number)) for number in range(RECORDS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranges")
    schema = {
        "type": "record",
        "name": "User",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
    }
    with (folder / "avro").open("wb") as file:
        fastavro.writer(file, schema, [row.as_dict() for row in rows()], codec="deflate", sync_interval=200)
    table = pa.table({"id": range(RECORDS), "name": [name_of(number) for number in range(RECORDS)]})
    orc.write_table(table, folder / "orc", stripe_size=1, batch_size=40)
    lines = "".join(f"{number},{name_of(number)}\n" for number in range(RECORDS))
    (folder / "csv").write_text(lines)
    (folder / "csv with a head").write_text(f"\nid,name\n\nleft,out\n{lines}".removesuffix("\n"))
    return folder


FORMATS = {
    "avro": AvroBulkFormat(),
    "orc": OrcColumnarRowInputFormat(ROW_TYPE),
    "csv": CsvReaderFormat.for_schema(csv_schema(plain=True)),
    "csv with a head": CsvReaderFormat.for_schema(
        csv_schema(header=True, skip=True)
    ).with_single_line_records(),
}


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None, max_examples=30)
@given(split_bytes=st.integers(40, 3000))
@example(split_bytes=40)
@example(split_bytes=1_000_000)
def test_every_record_is_in_one_range(folder: Path, name: str, split_bytes: int) -> None:
    ranges = read_ranges(FORMATS[name], folder / name, split_bytes)

    found = [value if isinstance(value, Row) else Row(**value) for each in ranges for value in each]
    assert [(row.id, row.name) for row in found] == [(row.id, row.name) for row in rows()]


@pytest.mark.parametrize("name", FORMATS)
def test_large_files_are_shared(folder: Path, name: str) -> None:
    size = (folder / name).stat().st_size

    ranges = read_ranges(FORMATS[name], folder / name, -(-size // 3))

    assert [len(each) > 0 for each in ranges] == [True, True, True]


def test_a_range_that_ends_within_the_head_of_a_csv_file_has_no_data(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("id,name\nleft,out\n1,a\n2,b\n")
    reader = CsvReaderFormat.for_schema(csv_schema(header=True, skip=True)).with_single_line_records()

    for split_bytes in range(1, 30):
        ranges = read_ranges(reader, tmp_path / "f", split_bytes)
        assert [row for each in ranges for row in each] == [Row(1, "a"), Row(2, "b")]


def test_csv_files_with_quotes_stay_whole_unless_it_is_said_that_records_are_single_lines(
    tmp_path: Path,
) -> None:
    (tmp_path / "f").write_text('1,"a\nb"\n2,c\n')
    reader = CsvReaderFormat.for_schema(csv_schema())

    assert read_ranges(reader, tmp_path / "f", 4) == [[Row(1, "a\nb"), Row(2, "c")]]
    with pytest.raises(FormatError, match=r"/f, record 0: CSV: unexpected end of data"):
        read_ranges(reader.with_single_line_records(), tmp_path / "f", 4)


def test_csv_files_that_are_packed_stay_whole(tmp_path: Path) -> None:
    (tmp_path / "f.gz").write_bytes(gzip.compress(b"id,name\n" + b"1,a\n" * 500))
    reader = CsvReaderFormat.for_schema(csv_schema(header=True)).with_single_line_records()

    [found] = read_ranges(reader, tmp_path / "f.gz", 4)

    assert found == [Row(1, "a")] * 500


def test_a_record_in_a_part_of_a_file_is_named_by_where_the_part_begins(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1,a\n2,b\nx,c\n")

    with pytest.raises(FormatError, match=r"/f, record 0 from byte 6 on: CSV: field 'id'"):
        read_ranges(CsvReaderFormat.for_schema(csv_schema(plain=True)), tmp_path / "f", 6)
