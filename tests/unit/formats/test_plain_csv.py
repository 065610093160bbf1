"""Plain CSV as columns: what is read is what Spark's reader reads, and all else is refused."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.connectors.file._csv_pieces import CsvPiece, csv_pieces
from headrace.errors import FormatError
from headrace.formats.plain_csv import NotPlainError, PlainCsv
from headrace.formats.tables import SPARK_TIMESTAMPS
from headrace.storage.locations import Location

OPTIONS = {"sep": ",", "timestampNTZFormat": SPARK_TIMESTAMPS, "quote": '"', "escape": '"'}
COLUMNS = [
    ("i", pa.int32()),
    ("b", pa.int64()),
    ("d", pa.decimal128(5, 2)),
    ("f", pa.float64()),
    ("t", pa.timestamp("us")),
    ("day", pa.date32()),
    ("yes", pa.bool_()),
    ("s", pa.string()),
]
EMPTY = ["", "", "", "", "", "", "", ""]


def layout(*wanted: str, **options: str) -> PlainCsv | None:
    return PlainCsv.of({**OPTIONS, **options}, COLUMNS, wanted or [name for name, _ in COLUMNS])


def line(column: str, text: str) -> bytes:
    """A line with one column that is not empty."""
    at = [name for name, _ in COLUMNS].index(column)
    return ",".join([*EMPTY[:at], text, *EMPTY[at + 1 :]]).encode()


def read(data: bytes, *wanted: str) -> list[dict[str, object]]:
    plain = layout(*wanted)
    assert plain is not None
    table = plain.read(data)
    return [] if table is None else table.to_pylist()


def test_columns_of_all_types_are_read_and_empty_ones_are_null() -> None:
    full = "1,-2,3.5,1e3,2020-02-29 01:02:03.456,2020-02-29,true,é"
    first, second = read(f"{full}\r\n\n{','.join(EMPTY)}\n".encode())
    assert first == {
        "i": 1,
        "b": -2,
        "d": Decimal("3.50"),
        "f": 1000.0,
        "t": datetime.fromisoformat("2020-02-29 01:02:03.456"),
        "day": date(2020, 2, 29),
        "yes": True,
        "s": "é",
    }
    assert set(second.values()) == {None}


def test_only_what_is_wanted_is_converted() -> None:
    assert read(line("i", "no number"), "s", "b") == [{"b": None, "s": None}]
    # Somebody counts rows: one column is read nevertheless.
    plain = PlainCsv.of(OPTIONS, COLUMNS, [])
    assert plain is not None
    assert [name for name, _ in plain.wanted] == ["i"]


def test_blank_lines_are_not_rows() -> None:
    assert read(b"\n\r\n\n") == []


@pytest.mark.parametrize(
    "bad",
    [
        b"1,2",
        b",,,,,,,,",
        line("s", '"quoted"'),
        line("s", 'a"b'),
        b"\xef\xbb\xbf" + line("i", "1"),
        line("s", "x")[:-1] + b"\xff",
        line("s", "x")[:-1] + b"\xed\xa0\x80",
        line("i", "3000000000"),
        line("i", "1.5"),
        line("i", "0x1F"),
        line("b", "0X1f"),
        b"\n" + line("b", "-0x1F"),
        line("b", "1e3"),
        line("d", "12345.6"),
        line("d", "1.234"),
        line("f", "inf"),
        line("f", "NaN"),
        line("yes", "1"),
        line("day", "2020-02-30"),
        line("t", "2020-01-01"),
        line("t", "2020-01-01 10"),
        line("t", "2020-01-01 10:11"),
        line("t", "2020-01-01T10:11:12"),
        line("t", "2020-01-01 10:11:12Z"),
        line("t", "2020-01-01 10:11:12."),
        line("t", "2020-01-01 10:11:12.1234567"),
        line("t", "2020-01-01 10:11:12+01:00"),
        line("t", "2020-02-30 00:00:00"),
        line("t", "99999-01-01 00:00:00"),
    ],
)
def test_lines_that_spark_may_read_differently_are_refused(bad: bytes) -> None:
    good = line("s", "good")
    with pytest.raises(NotPlainError):
        read(b"\n".join([good, bad, good]))


def test_texts_with_an_x_are_not_taken_for_numbers() -> None:
    assert [row["s"] for row in read(line("s", "0x1F"))] == ["0x1F"]


@pytest.mark.parametrize(
    "options",
    [
        {"sep": "||"},
        {"sep": '"'},
        {"sep": "é"},
        {"comment": "#"},
        {"basePath": "/x"},
        {"timestampNTZFormat": "yyyy"},
    ],
)
def test_options_that_arrow_does_not_know(options: dict[str, str]) -> None:
    assert layout(**options) is None


def test_types_that_arrow_reads_otherwise() -> None:
    columns = [*COLUMNS, ("moment", pa.timestamp("us", "UTC"))]
    assert PlainCsv.of(OPTIONS, columns, ["moment"]) is None
    assert PlainCsv.of(OPTIONS, columns, ["s"]) is not None


def test_options_of_the_dialect() -> None:
    plain = layout("s", "i", sep=";", nullValue="n/a", quote="'", escape="\\")
    assert plain is not None
    table = plain.read(b'1;;;;;;;"a"\n;;;;;;;n/a\nn/a;;;;;;;')
    assert table is not None
    assert table.to_pylist() == [{"i": 1, "s": '"a"'}, {"i": None, "s": None}, {"i": None, "s": None}]
    for mark in (b"'", b"\\"):
        with pytest.raises(NotPlainError):
            plain.read(b"1;;;;;;;a" + mark)


@pytest.mark.parametrize("size", [1, 2, 7, 50, 10_000])
def test_each_line_is_in_one_range(tmp_path: Path, size: int) -> None:
    columns = [("n", pa.int64()), ("s", pa.string())]
    (tmp_path / "f").write_text("".join(f"{n},{'x' * (n * 7 % 31)}\n" for n in range(60)))
    plain = PlainCsv.of(OPTIONS, columns, ["n"])
    assert plain is not None
    whole = (tmp_path / "f").stat().st_size
    pieces = [
        CsvPiece(Location("", str(tmp_path / "f")), start, min(start + size, whole), plain)
        for start in range(0, whole, size)
    ]
    assert [n for piece in pieces for table in piece.read() for n in table["n"].to_pylist()] == list(
        range(60)
    )


def test_files_that_are_not_plain_are_left_to_spark(tmp_path: Path) -> None:
    columns = [("n", pa.int64()), ("s", pa.string())]

    def pieces(name: str, content: bytes) -> list[CsvPiece] | None:
        (tmp_path / name).write_bytes(content)
        return csv_pieces([(Location("", str(tmp_path / name)), len(content))], OPTIONS, columns, ["n"])

    assert pieces("plain.csv", b"1,a\n") is not None
    assert pieces("quoted.csv", b'1,"a"\n') is None
    assert pieces("plain.csv.gz", b"1,a\n") is None
    (piece,) = pieces("bad", b"x,a\n") or []
    with pytest.raises(FormatError, match=r"bad: .*x"):
        list(piece.read())
    (tmp_path / "bad").unlink()
    with pytest.raises(FormatError, match="bad"):
        list(piece.read())
