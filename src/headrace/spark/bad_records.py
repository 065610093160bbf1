"""Records of JSON and CSV files that Spark cannot read.

Spark is asked for the text of such a record in a column of its own. Without it, what cannot be parsed is a row of NULLs
when errors are ignored; and when they are not, Spark says what is wrong, but not with which record.

Spark replaces bytes of a CSV file that are not UTF-8 with U+FFFD. So it is told that the file is ISO-8859-1, in which
every byte is a character; texts are made of the bytes afterwards, and checked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from headrace.connectors.base import FileRead
from headrace.errors import FormatError
from headrace.operators.table.base import quote
from headrace.operators.table.steps import StepColumn

#: The column that has the text of a record that cannot be read, or not all of it; NULL in others.
RECORD = "__headrace_bad_record"
_FORMATS = ("json", "csv")
#: The character set in which every byte is a character.
_BYTES = "ISO-8859-1"
#: How much of a record an error shows.
_SHOWN = 200
#: Larger files are not searched for the line of a record.
_SEARCHED_BYTES = 64 << 20
_SAID = re.compile(r"bad (?P<format>\w+) record in (?P<path>\S+): (?P<record>.*)", re.DOTALL)


@dataclass(frozen=True)
class BadRecords:
    """What is done with the records of some files that cannot be read."""

    read: FileRead
    #: The columns that are in the files.
    columns: Sequence[StepColumn]

    @classmethod
    def of(cls, read: FileRead, stored: Sequence[StepColumn]) -> BadRecords | None:
        """Return what is done about bad records; None if the format has no such thing, or the files no columns."""
        columns = [column for column in stored if column.name not in read.partition_keys]
        return cls(read, columns) if read.format in _FORMATS and columns else None

    @property
    def reader_options(self) -> dict[str, str]:
        made = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RECORD}
        if self.read.format == "csv":
            # A line with a column too few or a quote too many is noticed by those who look at all columns.
            made |= {**self._format_options, "columnPruning": "false"}
        return made

    @property
    def _format_options(self) -> dict[str, str]:
        if not self._reads_bytes:
            return dict(self.read.options)
        options = {key: value.encode().decode(_BYTES) for key, value in self.read.options.items()}
        return {**options, "encoding": _BYTES}

    @property
    def _reads_bytes(self) -> bool:
        """Whether characters that Spark reads are bytes; a quote of several bytes it would not understand."""
        marks = (self.read.options.get(key, "") for key in ("quote", "escape", "comment"))
        return self.read.format == "csv" and all(mark.isascii() for mark in marks)

    @property
    def _texts(self) -> list[str]:
        """The columns of text whose characters are bytes, quoted."""
        texts = [quote(column.name) for column in self.columns if column.spark_type == "string"]
        return texts if self._reads_bytes else []

    def value_of(self, column: StepColumn) -> str:
        """Return the value of a column, in Spark SQL."""
        name = quote(column.name)
        if name not in self._texts:
            return name
        value = _decoded(name)
        return f"IF(is_valid_utf8({value}), {value}, NULL)" if self.read.ignores_errors else value

    @property
    def error(self) -> str:
        """Something, in Spark SQL, that is NULL only in rows without errors."""
        return f"coalesce({RECORD}, {self._not_utf8})" if self._texts else RECORD

    @property
    def _not_utf8(self) -> str:
        """The texts of a record of which one is not UTF-8; NULL if all of them are."""
        conditions = [f"NOT is_valid_utf8({_decoded(name)})" for name in self._texts]
        return f"IF({' OR '.join(conditions)}, concat_ws(', ', {', '.join(self._texts)}), NULL)"

    @property
    def kept(self) -> str:
        """The condition, in Spark SQL, of rows that are kept; where errors are not ignored it raises one."""
        # Spark refuses to read this column alone, as for COUNT(*): another must be seen to take part.
        record = f"concat({RECORD}, left(CAST({quote(self.columns[0].name)} IS NULL AS STRING), 0))"
        if not self.read.ignores_errors:
            text = f"coalesce({record}, {self._not_utf8})" if self._texts else record
            shown = f"make_valid_utf8({_decoded(text)})" if self._reads_bytes else text
            told = f"'bad {self.read.format} record in ', _metadata.file_path, ': ', left({shown}, {_SHOWN})"
            return f"({self.error}) IS NULL OR raise_error(concat({told}))"
        # What has the shape of a record has fields that could not be converted. They are NULL.
        check = self._is_json_object if self.read.format == "json" else self._has_all_columns
        return f"{RECORD} IS NULL OR {check(record)}"

    def _is_json_object(self, record: str) -> str:
        parsed = f"from_json({record}, 'MAP<STRING, STRING>', {self._options()})"
        return f"(is_valid_utf8({record}) AND {parsed} IS NOT NULL)"

    def _has_all_columns(self, record: str) -> str:
        """Return the condition of a CSV record with as many columns as are declared, whatever is in them."""
        names = [f"c{index} STRING" for index in range(len(self.columns))]
        return f"from_csv({record}, '{', '.join([*names, 'bad STRING'])}', {self._options()}).bad IS NULL"

    def _options(self) -> str:
        options = {**self._format_options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "bad"}
        return f"map({', '.join(f'{_literal(key)}, {_literal(value)}' for key, value in options.items())})"


def bad_record(said: str) -> FormatError | None:
    """Return the error for a record that `BadRecords` has refused, by what Spark says it raised."""
    found = _SAID.fullmatch(said)
    if found is None:
        return None
    line = _line_of(found["path"], found["record"])
    place = found["path"] if line is None else f"{found['path']}, line {line}"
    return FormatError(
        f"{place}: a record does not match the columns of the table",
        example=found["record"],
        hint=f"correct the file or the table, or set '{found['format']}.ignore-parse-errors' = 'true' to skip them",
    )


def _line_of(path: str, record: str) -> int | None:
    """Return the first line of a file on this machine that has this record; None if it is not to be found quickly."""
    parts = urlsplit(path)
    first = record.splitlines()[0] if record.strip() else ""
    if parts.scheme != "file" or not first:
        return None
    with suppress(OSError):
        file = Path(url2pathname(parts.path))
        if file.stat().st_size <= _SEARCHED_BYTES:
            with file.open(encoding="utf-8", errors="replace", newline="\n") as lines:
                for number, line in enumerate(lines, 1):
                    text = line.rstrip("\r\n")
                    if text == first or (len(first) >= _SHOWN and text.startswith(first)):
                        return number
    return None


def _decoded(text: str) -> str:
    """Return the text whose bytes are characters, in Spark SQL."""
    return (
        f"IF(octet_length({text}) = char_length({text}), {text}, CAST(encode({text}, '{_BYTES}') AS STRING))"
    )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
    return f"'{escaped}'"
