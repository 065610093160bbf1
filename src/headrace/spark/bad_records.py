"""Records of JSON and CSV files that Spark cannot read.

Spark is asked for the text of such a record in a column of its own. Without it, what cannot be parsed is a row of NULLs
when errors are ignored; and when they are not, Spark says what is wrong, but not with which record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.connectors.base import FileRead
from headrace.errors import FormatError
from headrace.operators.table.base import quote
from headrace.operators.table.steps import Column

#: The column that has the text of a record that cannot be read, or not all of it; NULL in others.
RECORD = "__headrace_bad_record"
_FORMATS = ("json", "csv")
#: How much of a record an error shows.
_SHOWN = 200
_SAID = re.compile(r"bad record in (?P<path>\S+): (?P<record>.*)", re.DOTALL)


@dataclass(frozen=True)
class BadRecords:
    """What is done with the records of some files that cannot be read."""

    read: FileRead
    #: The columns that are in the files.
    columns: Sequence[Column]

    @classmethod
    def of(cls, read: FileRead, stored: Sequence[Column]) -> BadRecords | None:
        """Return what is done about bad records; None if the format has no such thing, or the files no columns."""
        columns = [column for column in stored if column.name not in read.partition_keys]
        return cls(read, columns) if read.format in _FORMATS and columns else None

    @property
    def reader_options(self) -> dict[str, str]:
        made = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RECORD}
        if self.read.format == "csv":
            # A line with a column too few or a quote too many is noticed by those who look at all columns.
            made["columnPruning"] = "false"
        return made

    @property
    def kept(self) -> str:
        """The condition, in Spark SQL, of rows that go on; where errors are not ignored it raises one."""
        # Spark refuses to read this column alone, as for COUNT(*): another must be seen to take part.
        record = f"concat({RECORD}, left(CAST({quote(self.columns[0].name)} IS NULL AS STRING), 0))"
        if not self.read.ignores_errors:
            told = f"concat('bad record in ', _metadata.file_path, ': ', left({record}, {_SHOWN}))"
            return f"{RECORD} IS NULL OR raise_error({told})"
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
        options = {**self.read.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "bad"}
        return f"map({', '.join(f'{_literal(key)}, {_literal(value)}' for key, value in options.items())})"


def bad_record(said: str) -> FormatError | None:
    """Return the error for a record that `BadRecords` has refused, by what Spark says it raised."""
    found = _SAID.fullmatch(said)
    if found is None:
        return None
    return FormatError(
        f"{found['path']}: cannot read a record as a row of the table: {found['record']!r}",
        example=found["record"].encode(),
        hint="correct the file or the table; the option 'json.ignore-parse-errors' or 'csv.ignore-parse-errors' "
        "skips records that cannot be read",
    )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
    return f"'{escaped}'"
