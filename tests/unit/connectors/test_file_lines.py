"""Bytes to lines: any content, cut in any way, gives the lines of `str.split`."""

from __future__ import annotations

import bz2
import gzip
import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.connectors.base import Slice
from headrace.connectors.file import FileEnumeratorProvider, FileSource, StreamFormat, _lines
from headrace.connectors.file._line_reader import LineReader


def lines_of(content: bytes, charset: str) -> list[str]:
    """What is expected, said in the simplest way."""
    pieces = content.decode(charset, "replace").split("\n")
    if pieces[-1] == "":
        pieces.pop()
    return [piece.removesuffix("\r") for piece in pieces]


def make_source(path: Any, charset: str, split_bytes: int | None) -> FileSource:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), path)
    return builder.set_file_enumerator(FileEnumeratorProvider(split_bytes)).build()


def read_in_slices(source: FileSource, max_records: int | None, block_bytes: int) -> list[str]:
    """Read split after split, each slice with a reader of its own."""
    lines: list[str] = []
    enumerator = source.create_enumerator(1)
    for split in enumerator.discover():
        position, is_finished = enumerator.start_position(split), False
        while not is_finished:
            reader = LineReader(source.format.charset, block_bytes)
            before = len(lines)
            for batch in reader.read(Slice(split, position, max_records=max_records)):
                lines += batch.values
            assert max_records is None or len(lines) - before <= max_records
            progress = reader.progress()
            position, is_finished = progress.position, progress.is_finished
    return lines


# Few different bytes, so that endings, empty lines and halves of characters are met all the time.
LINES = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"xyz", "ü".encode(), b"\xe2\x82", b"\xff"]))
CONTENT = st.one_of(st.binary(max_size=60), LINES.map(b"".join))


@pytest.mark.parametrize(
    "charset", ["utf-8", "iso8859-1", "cp1252", "gb18030", "shift_jis", "euc_jp", "big5"]
)
@given(
    content=CONTENT,
    split_bytes=st.one_of(st.none(), st.integers(1, 70)),
    max_records=st.one_of(st.none(), st.integers(1, 10)),
    block_bytes=st.integers(1, 80),
)
@example(content=b"", split_bytes=1, max_records=1, block_bytes=1)
@example(content=b"\n\n\n", split_bytes=1, max_records=1, block_bytes=1)
@example(content=b"a line longer than range and block", split_bytes=4, max_records=1, block_bytes=2)
@example(content=b"\r", split_bytes=1, max_records=None, block_bytes=1)
@settings(deadline=None, max_examples=150)
def test_every_way_of_cutting_gives_the_same_lines(
    tmp_path_factory, charset, content, split_bytes, max_records, block_bytes
):
    path = tmp_path_factory.getbasetemp() / "content.txt"
    path.write_bytes(content)

    lines = read_in_slices(make_source(path, charset, split_bytes), max_records, block_bytes)

    assert lines == lines_of(content, charset)


@pytest.mark.parametrize(
    ("extension", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".zst", lambda data: pa.compress(data, codec="zstd", asbytes=True)),
    ],
)
@given(content=CONTENT, max_records=st.one_of(st.none(), st.integers(1, 10)), block_bytes=st.integers(1, 80))
@settings(deadline=None, max_examples=50)
def test_packed_files_give_the_same_lines(
    tmp_path_factory, extension, pack, content, max_records, block_bytes
):
    path = tmp_path_factory.getbasetemp() / f"content.txt{extension}"
    path.write_bytes(pack(content))

    lines = read_in_slices(make_source(path, "utf-8", 3), max_records, block_bytes)

    assert lines == lines_of(content, "utf-8")


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-be", "utf-32", "cp500", "utf-8-sig", "iso2022_jp"])
@given(
    text=st.text(alphabet=["\n", "\r", "a", "b", "\x0a", "日", "本", "ü"]),
    max_records=st.one_of(st.none(), st.integers(1, 10)),
    block_bytes=st.integers(1, 20),
)
@settings(deadline=None, max_examples=50)
def test_charsets_without_a_newline_byte_are_not_cut(
    tmp_path_factory, charset, text, max_records, block_bytes
):
    path = tmp_path_factory.getbasetemp() / "wide.txt"
    content = text.encode(charset, "replace")
    path.write_bytes(content)
    source = make_source(path, charset, 2)

    assert len(source.create_enumerator(4).discover()) <= 1
    assert read_in_slices(source, max_records, block_bytes) == lines_of(content, charset)


def test_concatenated_gzip_members_are_one_text(tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\nd\n"))

    assert read_in_slices(make_source(path, "utf-8", None), 1, 1 << 20) == ["a", "bc", "d"]


def test_the_same_lines_come_with_blocks_of_the_usual_size(tmp_path):
    path = tmp_path / "large.txt"
    content = b"".join(b"%d,%s\r\n" % (i, b"x" * (i % 300)) for i in range(30_000)) + b"end"
    path.write_bytes(content)

    lines = read_in_slices(make_source(path, "utf-8", 1 << 20), 7_000, _lines.BLOCK_BYTES)

    assert lines == lines_of(content, "utf-8")


def test_the_last_line_of_a_packed_file_ends_it_when_the_limit_is_just_reached(tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    source = make_source(path, "utf-8", None)
    [split] = source.create_enumerator(1).discover()
    reader = source.create_reader()

    assert [batch.values for batch in reader.read(Slice(split, 0, max_records=2))] == [["a", "b"]]
    assert reader.progress().is_finished


def test_a_range_within_a_huge_line_is_not_read_to_the_end_of_the_line():
    class Counting(io.BytesIO):
        count = 0

        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            self.count += len(data)
            return data

    file = Counting(b"x" * 10_000 + b"\n")

    assert _lines.first_line_start(file, 100, 200, block_bytes=64) == 200
    assert file.count < 300
