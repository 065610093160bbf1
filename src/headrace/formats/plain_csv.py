"""Plain CSV as columns: lines without quotes and comments, which Arrow reads many times as fast as Python makes rows.

Arrow takes some things that Spark's reader does not, and the other way round: times without seconds, `0x1f`. What is
not read exactly as Spark would is refused, so that whoever asked can have Spark read it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from headrace.formats.tables import SPARK_TIMESTAMPS

#: Options of Spark's reader that have a meaning here.
_KNOWN = {"sep", "quote", "escape", "nullValue", "timestampNTZFormat"}
_TIMES = pa.timestamp("us")
#: Lengths of a time with seconds, and with the most digits after them; one with a dot and no digit.
_SHORTEST, _LONGEST, _NO_DIGIT = 19, 26, 20
#: Where a blank stands between day and time.
_BLANK_AT = 10
#: Arrow counts the bytes of a block in 32 bits.
_MOST_BYTES = 1 << 30
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: The bytes 0x as a number, and what makes a capital letter after a digit a small one.
_HEXADECIMAL_MARK = np.uint16(int.from_bytes(b"0x", "little"))
_SMALL_SECOND = np.uint16(0x2000)


class NotPlainError(ValueError):
    """Something that Spark's reader may read otherwise, or not at all."""


@dataclass(frozen=True)
class PlainCsv:
    """How lines become columns.

    Args:
        names: The columns of a line.
        wanted: Those to read, with their types.
        delimiter: Stands between them.
        marks: Characters that have a meaning, so that lines with them are not plain.
        nulls: Texts that stand for NULL.
    """

    names: tuple[str, ...]
    wanted: tuple[tuple[str, pa.DataType], ...]
    delimiter: str = ","
    marks: str = '"'
    nulls: tuple[str, ...] = ("",)

    @classmethod
    def of(
        cls, options: Mapping[str, str], columns: Sequence[tuple[str, pa.DataType]], wanted: Collection[str]
    ) -> PlainCsv | None:
        """Return how files with these columns are read, by the options of Spark's reader; None if they cannot be.

        Args:
            options: Of Spark's reader.
            columns: The columns of a line.
            wanted: Names of those to read.
        """
        delimiter = options.get("sep", ",")
        marks = {options.get("quote", '"'), options.get("escape", "\\")} - {"", "\0"}
        single = all(len(each) == 1 and each.isascii() for each in (delimiter, *marks))
        is_blank = delimiter.isspace() and delimiter != "\t"
        if not single or delimiter in marks or is_blank or len(columns) < 2:
            return None
        if not set(options) <= _KNOWN or options.get("timestampNTZFormat") != SPARK_TIMESTAMPS:
            return None
        chosen = tuple((name, _read_as(kind)) for name, kind in columns if name in wanted) or (columns[0],)
        if not all(_is_read(kind) for _, kind in chosen):
            return None
        # What Spark takes for NULL, it takes an empty column for, too.
        nulls = tuple(dict.fromkeys(["", options.get("nullValue", "")]))
        names = tuple(name for name, _ in columns)
        return cls(names, chosen, delimiter, "".join(sorted(marks)), nulls)

    def is_plain(self, data: bytes) -> bool:
        """Whether whole lines have nothing in them that is not plain, as far as a first look tells."""
        return not any(mark.encode() in data for mark in self.marks) and not data.startswith(_BYTE_ORDER_MARK)

    def read(self, data: bytes) -> pa.Table | None:
        """Read whole lines; None if there are none.

        Raises:
            NotPlainError: Spark's reader may read them otherwise.
        """
        if not data or data.isspace():
            return None
        if not self.is_plain(data):
            raise NotPlainError("the file contains quotes")
        if len(data) > _MOST_BYTES:
            raise NotPlainError("a line is very long")
        try:
            if not data.isascii():
                data.decode()
            table = self._parsed(data, {name: _parsed_as(kind) for name, kind in self.wanted})
            self._check_whole_numbers(data)
            columns = [_converted(table.column(name), kind) for name, kind in self.wanted]
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise NotPlainError(str(error)) from error
        return pa.table(columns, names=[name for name, _ in self.wanted])

    def _parsed(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        return csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=len(data) + 1, column_names=list(self.names)
            ),
            parse_options=csv.ParseOptions(delimiter=self.delimiter, quote_char=False, double_quote=False),
            convert_options=csv.ConvertOptions(
                check_utf8=False,  # all of it has been
                column_types=types,
                include_columns=list(types),
                null_values=list(self.nulls),
                true_values=["true", "TRUE", "True"],
                false_values=["false", "FALSE", "False"],
                strings_can_be_null=True,
            ),
        )

    def _check_whole_numbers(self, data: bytes) -> None:
        """Refuse numbers in hexadecimal digits, which Arrow reads."""
        types = {name: pa.string() for name, kind in self.wanted if pa.types.is_integer(kind)}
        if types and _has_hexadecimal_mark(data):
            for column in self._parsed(data, types).columns:
                if pc.any(pc.match_substring_regex(column, "[xX]")).as_py():
                    raise NotPlainError("a number has hexadecimal digits")


def _has_hexadecimal_mark(data: bytes) -> bool:
    """Whether there is a 0x anywhere, several times as fast as python looks for it: two bytes at a time."""
    for start in (0, 1):
        pairs = np.frombuffer(data, "<u2", (len(data) - start) // 2, start)
        if bool(((pairs | _SMALL_SECOND) == _HEXADECIMAL_MARK).any()):
            return True
    return False


def _read_as(kind: pa.DataType) -> pa.DataType:
    return _TIMES if pa.types.is_timestamp(kind) and kind.tz is None else kind


def _parsed_as(kind: pa.DataType) -> pa.DataType:
    return pa.string() if kind == _TIMES else kind


def _is_read(kind: pa.DataType) -> bool:
    is_ = pa.types
    checks = (is_.is_string, is_.is_signed_integer, is_.is_boolean, is_.is_floating, is_.is_decimal128)
    return kind == _TIMES or is_.is_date32(kind) or any(check(kind) for check in checks)


def _converted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if kind == _TIMES:
        for chunk in column.chunks:
            _check_times(chunk)
        return column.cast(kind)
    if pa.types.is_floating(kind) and pc.any(pc.invert(pc.is_finite(column))).as_py():
        raise NotPlainError("a number is not finite, which every system writes differently")
    return column


def _check_times(texts: pa.Array) -> None:
    """Refuse times that are not written as SQL writes them: Arrow reads days, hours and ISO 8601 as well."""
    if texts.null_count:
        texts = texts.drop_null()
    if not len(texts):
        return
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(starts)
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest < _SHORTEST or longest > _LONGEST or bool((lengths == _NO_DIGIT).any()):
        raise NotPlainError("a time is not in SQL format")
    if not bool((np.frombuffer(data, np.uint8)[starts[:-1] + _BLANK_AT] == ord(" ")).all()):
        raise NotPlainError("a date and a time must be separated by a space")
