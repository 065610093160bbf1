"""What files of each format hold, besides the contracts of sources and sinks."""

from __future__ import annotations

import datetime
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.common import Row, Types
from headrace.connectors.base import ReaderContext, Slice, Source, WriterContext
from headrace.connectors.file import FileSink, FileSource, RollingPolicy, StreamFormat
from headrace.datastream import OutputTag
from headrace.datastream.formats.avro import AvroBulkFormat, AvroBulkWriters, AvroSchema
from headrace.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from headrace.datastream.formats.json import JsonRowDeserializationSchema
from headrace.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from headrace.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from headrace.errors import ConnectorError, FormatError, JobDefinitionError, UnsupportedFeatureError
from headrace.formats.dead_letter import DeadLetter
from headrace.types import DataType, DataTypes


class Context(ReaderContext):
    """Keeps what a reader sends to side outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.sides: list[tuple[str, Any]] = []

    def emit_side(self, tag_id: str, value: Any) -> None:
        self.sides.append((tag_id, value))


def read(source: Source, context: ReaderContext | None = None) -> list[Any]:
    """Read all there is."""
    enumerator, reader = source.create_enumerator(1), source.create_reader()
    reader.open(context or ReaderContext())
    found = []
    for split in enumerator.discover():
        for batch in reader.read(Slice(split, enumerator.start_position(split))):
            found += batch.values
    reader.close()
    return found


def write(folder: Path, factory: Any, records: list[Any]) -> None:
    sink = FileSink.for_bulk_format(folder, factory).build()
    writer = sink.create_writer(WriterContext(0, 1, 1, "attempt"))
    try:
        for record in records:
            writer.write(record, None)
        committables = writer.prepare_commit()
    except BaseException:
        writer.abort()
        raise
    writer.close()
    staged = next(folder.rglob(committables[0].path))
    staged.rename(folder / "part")


def row_type(**fields: DataType) -> Any:
    return DataTypes.ROW([DataTypes.FIELD(name, each) for name, each in fields.items()])


def parquet(folder: Path, read_as: Any, **settings: Any) -> Source:
    return FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(read_as, **settings), folder).build()


NESTED = row_type(
    id=DataTypes.INT(),
    price=DataTypes.DECIMAL(10, 2),
    day=DataTypes.DATE(),
    at=DataTypes.TIMESTAMP(3),
    tags=DataTypes.ARRAY(DataTypes.STRING()),
    counts=DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()),
    place=row_type(x=DataTypes.DOUBLE(), names=DataTypes.ARRAY(row_type(n=DataTypes.STRING()))),
)
NESTED_ROW = Row(
    id=1,
    price=Decimal("3.50"),
    day=datetime.date(2024, 2, 29),
    at=datetime.datetime.fromisoformat("2024-02-29 12:30:00.005"),
    tags=["a", None],
    counts={"x": 1},
    place=Row(x=0.5, names=[Row(n="here"), None]),
)


@pytest.mark.parametrize(
    ("factory", "bulk_format"),
    [
        (ParquetBulkWriters.for_row_type(NESTED), ParquetColumnarRowInputFormat(NESTED)),
        (OrcBulkWriters.for_row_type(NESTED, {"orc.compress": "ZSTD"}), OrcColumnarRowInputFormat(NESTED)),
    ],
    ids=["parquet", "orc"],
)
def test_values_of_all_kinds_are_read_as_they_were_written(
    tmp_path: Path, factory: Any, bulk_format: Any
) -> None:
    empty = Row(*[None] * 7)
    write(tmp_path, factory, [NESTED_ROW, empty, NESTED_ROW.as_dict()])
    found = read(FileSource.for_bulk_file_format(bulk_format, tmp_path).build())
    assert found == [NESTED_ROW, empty, NESTED_ROW]
    assert found[0].place.names[0].n == "here"


def test_only_the_columns_that_are_asked_for_are_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"], "c": [True, False]}), tmp_path / "f")
    assert read(parquet(tmp_path, row_type(c=DataTypes.BOOLEAN(), a=DataTypes.BIGINT()))) == [
        Row(True, 1),
        Row(False, 2),
    ]


def test_a_column_that_is_not_there_is_null_and_a_narrower_one_is_widened(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int16())}), tmp_path / "f")
    assert read(parquet(tmp_path, row_type(a=DataTypes.BIGINT(), z=DataTypes.STRING()))) == [Row(1, None)]


def test_names_may_differ_in_case_if_it_is_said(tmp_path: Path) -> None:
    pq.write_table(pa.table({"Name": ["x"]}), tmp_path / "f")
    wanted = row_type(name=DataTypes.STRING())
    assert read(parquet(tmp_path, wanted)) == [Row(None)]
    assert read(parquet(tmp_path, wanted, is_case_sensitive=False)) == [Row("x")]


def test_a_column_of_another_type_is_an_error_that_names_file_column_and_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["text"]}), tmp_path / "f")
    message = r"FileSource: .*/f, record 0: column 'a' has type string in the file, but int64 was requested"
    with pytest.raises(FormatError, match=message):
        read(parquet(tmp_path, row_type(a=DataTypes.BIGINT())))


def test_a_value_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 1 << 40]}), tmp_path / "f")
    with pytest.raises(FormatError, match="cannot convert column 'a' to int32"):
        read(parquet(tmp_path, row_type(a=DataTypes.INT())))


@pytest.mark.parametrize(
    "bulk_format",
    [
        ParquetColumnarRowInputFormat(NESTED),
        OrcColumnarRowInputFormat(NESTED),
        AvroBulkFormat(),
    ],
    ids=["parquet", "orc", "avro"],
)
def test_a_file_of_another_format_is_an_error_that_names_it(tmp_path: Path, bulk_format: Any) -> None:
    (tmp_path / "f").write_text("these are not the bytes you are looking for")
    with pytest.raises(ConnectorError, match=r"FileSource: .*/f, record 0: "):
        read(FileSource.for_bulk_file_format(bulk_format, tmp_path).build())


def test_a_file_that_goes_between_planning_and_reading_is_an_error_and_can_be_put_back(
    tmp_path: Path,
) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "f")
    source = parquet(tmp_path, row_type(a=DataTypes.BIGINT()))
    enumerator = source.create_enumerator(1)
    split = enumerator.discover()[0]
    piece = enumerator.plan(split, enumerator.start_position(split), 10)
    assert piece is not None
    (tmp_path / "f").rename(tmp_path / "elsewhere")
    with pytest.raises(ConnectorError, match=r"/f, record 0: the file no longer exists") as caught:
        list(source.create_reader().read(piece))
    assert caught.value.retryable
    (tmp_path / "elsewhere").rename(tmp_path / "f")
    assert [batch.values for batch in source.create_reader().read(piece)] == [[Row(1)]]


def test_a_slice_that_continues_decodes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"a": list(range(10))}), tmp_path / "f")
    source = parquet(tmp_path, row_type(a=DataTypes.BIGINT()), batch_size=4)
    enumerator, reader = source.create_enumerator(1), source.create_reader()
    split = enumerator.discover()[0]
    opened = []
    original = ParquetColumnarRowInputFormat.blocks
    monkeypatch.setattr(
        ParquetColumnarRowInputFormat,
        "blocks",
        lambda self, file, *range_: opened.append(file) or original(self, file, *range_),
    )
    found = []
    for start in (0, 3, 6, 9):
        found += [row.a for batch in reader.read(Slice(split, start, max_records=3)) for row in batch.values]
    assert found == list(range(10))
    assert reader.progress().is_finished
    assert len(opened) == 1
    # An epoch that is run again begins where it began.
    assert [row.a for batch in reader.read(Slice(split, 6, max_records=2)) for row in batch.values] == [6, 7]
    reader.close()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Row(1, 2), r"expected a row of 1 fields \(n\)"),
        (Row("x"), "field 'n' must be int32"),
        (Row(None), "field 'n' must not be null"),
    ],
)
def test_a_row_that_does_not_fit_is_shown(tmp_path: Path, record: Row, message: str) -> None:
    factory = ParquetBulkWriters.for_row_type(row_type(n=DataTypes.INT(nullable=False)))
    with pytest.raises(FormatError, match=message) as caught:
        write(tmp_path, factory, [Row(1), record])
    assert caught.value.example == repr(record)


def test_avro_files_are_read_with_a_later_schema(tmp_path: Path) -> None:
    old = {"type": "record", "name": "U", "fields": [{"name": "id", "type": "long"}]}
    new = {**old, "fields": [*old["fields"], {"name": "name", "type": "string", "default": "?"}]}  # type: ignore[misc]
    write(tmp_path, AvroBulkWriters.for_generic_record(AvroSchema(old)), [{"id": 1}, Row(id=2)])
    assert read(FileSource.for_bulk_file_format(AvroBulkFormat(), tmp_path).build()) == [{"id": 1}, {"id": 2}]
    later = FileSource.for_bulk_file_format(AvroBulkFormat(AvroSchema(new)), tmp_path).build()
    assert read(later) == [{"id": 1, "name": "?"}, {"id": 2, "name": "?"}]


def test_an_avro_record_that_does_not_fit_is_shown(tmp_path: Path) -> None:
    schema = AvroSchema.parse_string(
        '{"type": "record", "name": "U", "fields": [{"name": "id", "type": "long"}]}'
    )
    with pytest.raises(FormatError, match="the record does not match the schema"):
        write(tmp_path, AvroBulkWriters.for_generic_record(schema), [{"id": "x"}])


def test_dictionaries_of_an_avro_schema_go_to_parquet_and_come_back(tmp_path: Path) -> None:
    schema = AvroSchema(
        {
            "type": "record",
            "name": "Order",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "day", "type": {"type": "int", "logicalType": "date"}},
                {
                    "name": "price",
                    "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
                },
                {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
                {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
                {"name": "counts", "type": {"type": "map", "values": "int"}},
                {
                    "name": "place",
                    "type": {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "double"}]},
                },
            ],
        }
    )
    record = {
        "id": 1,
        "day": datetime.date(2024, 2, 29),
        "price": Decimal("3.50"),
        "size": "L",
        "tags": None,
        "counts": {"a": 1},
        "place": {"x": 0.5},
    }
    factory = AvroParquetWriters.for_generic_record(schema)
    write(tmp_path, factory, [record])
    source = FileSource.for_record_stream_format(AvroParquetReaders.for_generic_record(schema), tmp_path)
    assert read(source.build()) == [record]
    with pytest.raises(FormatError, match="a record does not match the schema") as caught:
        write(tmp_path, factory, [record, {**record, "id": "one"}])
    assert "'one'" in (caught.value.example or "")
    with pytest.raises(FormatError, match="field 'id' must not be null"):
        write(tmp_path, factory, [{**record, "id": None}])
    later = AvroSchema({"type": "record", "name": "O", "fields": [{"name": "new", "type": ["null", "int"]}]})
    reader = AvroParquetReaders.for_generic_record(later)
    (tmp_path / "part").unlink()
    write(tmp_path, factory, [record])
    assert read(FileSource.for_record_stream_format(reader, tmp_path / "part").build()) == [{"new": None}]


def test_csv_with_a_header_comments_quotes_and_breaks(tmp_path: Path) -> None:
    schema = (
        CsvSchema.builder()
        .add_number_column("id", DataTypes.INT())
        .add_string_column("text")
        .add_array_column("n", "|", DataTypes.INT())
        .set_column_separator(";")
        .set_use_header()
        .set_strict_headers()
        .set_allow_comments()
        .build()
    )
    rows = [Row(1, 'a "quoted" one', [1, 2]), Row(2, "two\nlines; and more", [])]
    write(tmp_path, CsvBulkWriters.for_schema(schema), rows)
    part = tmp_path / "part"
    assert part.read_text().startswith("id;text;n\n1;")
    part.write_text(part.read_text() + "# a comment\n\n")
    assert (
        read(FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), tmp_path).build())
        == rows
    )
    part.write_text("text;id;n\n")
    with pytest.raises(FormatError, match="expected the header id,text,n"):
        read(FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), tmp_path).build())


def test_bad_records_fail_the_job_are_left_out_or_become_dead_letters(tmp_path: Path) -> None:
    (tmp_path / "f.gz").write_bytes(gzip.compress(b"1,a\nx,b\n3,c\n4\n"))
    schema = CsvSchema.builder().add_number_column("id").add_string_column("name").build()
    csv_format = CsvReaderFormat.for_schema(schema)
    with pytest.raises(FormatError, match=r"FileSource: .*/f.gz, record 1: CSV: field 'id'"):
        read(FileSource.for_record_stream_format(csv_format, tmp_path).build())
    lenient = FileSource.for_record_stream_format(csv_format.with_ignore_parse_errors(), tmp_path).build()
    assert read(lenient) == [Row(1, "a"), Row(None, "b"), Row(3, "c"), Row(4, None)]
    context = Context()
    builder = FileSource.for_record_stream_format(csv_format, tmp_path)
    assert read(builder.set_dead_letter_tag(OutputTag("bad")).build(), context) == [Row(1, "a"), Row(3, "c")]
    tag, letter = context.sides[0]
    assert (tag, letter.data, letter.position) == ("bad", b"x,b", f"{tmp_path}/f.gz, record 1")
    assert len(context.sides) == 2
    assert context._metrics.values() == {"numRecordsInErrors": 2}


def test_bad_json_lines_are_named_by_their_byte(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b'{"a": 1}\n{"a": \n{"a": 3}')
    schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(["a"], [Types.INT()])).build()
    builder = FileSource.for_record_stream_format(StreamFormat.schema_line_format(schema), tmp_path)
    with pytest.raises(FormatError, match=r"FileSource: .*/f, byte 9: "):
        read(builder.build())
    context = Context()
    assert read(builder.set_dead_letter_tag(OutputTag("bad")).build(), context) == [Row(1), Row(3)]
    assert [letter.position for _, letter in context.sides] == [f"{tmp_path}/f, byte 9"]
    assert isinstance(context.sides[0][1], DeadLetter)


def test_what_cannot_be_honoured_is_refused(tmp_path: Path) -> None:
    factory = ParquetBulkWriters.for_row_type(row_type(a=DataTypes.INT()))
    with pytest.raises(JobDefinitionError, match="can only roll files on checkpoints"):
        FileSink.for_bulk_format(tmp_path, factory).with_rolling_policy(
            RollingPolicy.default_rolling_policy()
        )
    with pytest.raises(UnsupportedFeatureError, match="hadoop_config"):
        ParquetColumnarRowInputFormat(NESTED, hadoop_config={})  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeatureError, match=r"property 'orc\.bloom"):
        OrcBulkWriters.for_row_type(NESTED, {"orc.bloom.filter.columns": "a"})
    with pytest.raises(JobDefinitionError, match="expected the type of a row"):
        ParquetBulkWriters.for_row_type(DataTypes.INT())  # type: ignore[arg-type]
    with pytest.raises(JobDefinitionError, match="does not support a dead-letter tag"):
        FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(NESTED), tmp_path).set_dead_letter_tag(
            OutputTag("bad")
        )
    with pytest.raises(JobDefinitionError, match="not a valid Avro schema"):
        AvroSchema.parse_string('{"type": "nonsense"}')
    with pytest.raises(JobDefinitionError, match="must use the same separator"):
        CsvSchema.builder().add_array_column("a", ";").add_array_column("b", "|")
