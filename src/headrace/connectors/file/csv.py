"""CSV files, with headers, comments and line breaks within quotes, under PyFlink's names.

    bytes -> lines -> records, which are lines until all quotes are closed -> rows, by the CSV format

From a byte in the middle of a file nobody can tell whether it is within quotes. So a file is read by one subtask,
unless there are no quotes or whoever reads it knows that they hold no line breaks: then it is shared as text is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Self

from headrace.common.serialization import BulkWriterFactory
from headrace.common.typeinfo import RowDataTypeInfo, RowTypeInfo, TypeInformation, Types
from headrace.connectors.base import BATCH_RECORDS, ReaderContext
from headrace.connectors.file import _lines
from headrace.connectors.file._bulk import BulkFormat, RecordBlock, Values
from headrace.connectors.file._formats import StreamFormat, compression_by_name
from headrace.connectors.file._line_reader import record_decoder
from headrace.errors import FormatError, JobDefinitionError, UnsupportedFeatureError, require
from headrace.formats.csv import CsvDialect, CsvRowDeserializationSchema, CsvRowSerializationSchema
from headrace.formats.dead_letter import RecordDecoder
from headrace.types import DataType, DataTypes

_NUMBERS: dict[DataType, TypeInformation] = {
    DataTypes.TINYINT(): Types.BYTE(),
    DataTypes.SMALLINT(): Types.SHORT(),
    DataTypes.INT(): Types.INT(),
    DataTypes.BIGINT(): Types.LONG(),
    DataTypes.FLOAT(): Types.FLOAT(),
    DataTypes.DOUBLE(): Types.DOUBLE(),
}
_ELEMENTS: dict[DataType, TypeInformation] = {
    **_NUMBERS,
    DataTypes.STRING(): Types.STRING(),
    DataTypes.BOOLEAN(): Types.BOOLEAN(),
}


@dataclass(frozen=True)
class CsvSchema:
    """The columns of CSV files and how they are written. Build one with `CsvSchema.builder()`.

    Example:
        >>> CsvSchema.builder().add_string_column("name").add_number_column("age").build().size()
        2
    """

    row_type: RowTypeInfo
    dialect: CsvDialect
    use_header: bool = False
    skip_first_data_row: bool = False
    strict_headers: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Return a builder for a schema; add columns in the order they have in the file."""
        return CsvSchemaBuilder()

    def size(self) -> int:
        """How many columns there are."""
        return len(self.row_type.get_field_names())

    def __len__(self) -> int:
        return self.size()


class CsvSchemaBuilder:
    """Collects columns and settings."""

    def __init__(self) -> None:
        self._columns: list[tuple[str, TypeInformation]] = []
        self._dialect: dict[str, Any] = {}
        self._flags: dict[str, bool] = {}

    def build(self) -> CsvSchema:
        """Make the schema.

        Raises:
            JobDefinitionError: There is no column, two have one name, or a separator is not one character.
        """
        names = [name for name, _ in self._columns]
        if not names or len(set(names)) < len(names):
            raise JobDefinitionError(f"CsvSchema: column names must be unique; got {names}")
        row_type = Types.ROW_NAMED(names, [column for _, column in self._columns])
        return CsvSchema(row_type, CsvDialect(**self._dialect), **self._flags)

    def add_array_column(
        self, name: str, separator: str = ";", element_type: DataType | None = None
    ) -> CsvSchemaBuilder:
        """Add a column that holds several values. All such columns have the same separator.

        Raises:
            JobDefinitionError: The separator is another one than that of a column before.
        """
        before = self._dialect.setdefault("array_element_delimiter", separator)
        if before != separator:
            raise JobDefinitionError(
                f"CsvSchema: column {name!r}: all array columns must use the same separator; got {before!r} and "
                f"{separator!r}"
            )
        return self._add(
            name, Types.OBJECT_ARRAY(_known(name, element_type or DataTypes.STRING(), _ELEMENTS))
        )

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of true and false."""
        return self._add(name, Types.BOOLEAN())

    def add_number_column(self, name: str, number_type: DataType | None = None) -> CsvSchemaBuilder:
        """Add a column of numbers, BIGINT by default."""
        return self._add(name, _known(name, number_type or DataTypes.BIGINT(), _NUMBERS))

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of text."""
        return self._add(name, Types.STRING())

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema."""
        row_type = schema.row_type
        self._columns += zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Forget the columns so far."""
        self._columns = []
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Leave out lines that begin with #."""
        return self._set(allow_comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Refuse: columns beyond the schema are an error."""
        raise UnsupportedFeatureError.not_yet("CsvSchemaBuilder.set_any_property_name", "add all columns")

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Refuse: without a separator there are no arrays."""
        raise UnsupportedFeatureError.not_yet(
            "CsvSchemaBuilder.disable_array_element_separator", "use string columns"
        )

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Read an array column as text."""
        name, _ = self._columns[index]
        self._columns[index] = name, Types.STRING()
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the separator of array elements."""
        return self._set(array_element_delimiter=separator)

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the column delimiter; a comma by default."""
        return self._set(field_delimiter=char)

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Take every character as it is. The default."""
        return self._set(escape_character=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Set the escape character."""
        return self._set(escape_character=char)

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        r"""Set what ends a line that is written: `\n` or `\r\n`. Both are read."""
        return self._set(line_delimiter=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the text that is read and written as None."""
        return self._set(null_literal=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Read and write columns without quotes."""
        return self._set(quote_character=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set what columns are quoted with."""
        return self._set(quote_character=char)

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Leave out the first line, or the one after the header."""
        self._flags["skip_first_data_row"] = skip
        return self

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """With a header: fail if its names are not those of the columns, in order."""
        self._flags["strict_headers"] = strict
        return self

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Take the first line for names, not for data; and write one."""
        self._flags["use_header"] = use
        return self

    def size(self) -> int:
        """How many columns there are so far."""
        return len(self._columns)

    def __len__(self) -> int:
        return self.size()

    def _add(self, name: str, column: TypeInformation) -> Self:
        self._columns.append((name, column))
        return self

    def _set(self, **settings: Any) -> Self:
        self._dialect.update(settings)
        return self


def _known(name: str, given: Any, known: dict[DataType, TypeInformation]) -> TypeInformation:
    found = known.get(given.with_nullability(True)) if isinstance(given, DataType) else None
    if found is None:
        raise JobDefinitionError(
            f"CsvSchema: column {name!r}: expected one of {', '.join(each.summary() for each in known)}; got {given!r}"
        )
    return found


@dataclass(frozen=True)
class CsvReaderFormat(BulkFormat, StreamFormat):
    """Reads CSV files as rows. Create one with `for_schema`."""

    schema: CsvSchema
    ignores_parse_errors: bool = False
    dead_letters: str | None = None
    has_single_lines: bool = False
    _decoder: RecordDecoder | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Read files with these columns.

        Raises:
            JobDefinitionError: It is not a schema.
        """
        require(
            isinstance(schema, CsvSchema),
            "CsvReaderFormat.for_schema",
            "a CsvSchema",
            schema,
            hint="build one with CsvSchema.builder()",
        )
        return CsvReaderFormat(schema)

    def with_ignore_parse_errors(self) -> CsvReaderFormat:
        """Read columns that are wrong as None, and leave out lines that are wrong as a whole."""
        return replace(self, ignores_parse_errors=True)

    def with_dead_letters(self, tag_id: str) -> CsvReaderFormat:
        """Send lines that cannot be read to a side output."""
        return replace(self, dead_letters=tag_id)

    def with_single_line_records(self) -> CsvReaderFormat:
        """Take every line for a record, whatever its quotes. Large files can be shared then.

        For files without line breaks within quotes, which are most of them. A record that has one cannot be read: the
        job fails, or does what it was told to do with such records. PyFlink does not have it.
        """
        return replace(self, has_single_lines=True)

    def get_produced_type(self) -> TypeInformation:
        """Return the row of the schema's columns."""
        columns = self.schema.row_type
        return RowDataTypeInfo(columns.get_field_types(), columns.get_field_names())

    def can_split(self, compression: str | None) -> bool:
        """Whether it is known that every line break ends a record."""
        return compression is None and self._is_by_line

    @property
    def _is_by_line(self) -> bool:
        return self.has_single_lines or self.schema.dialect.quote_character is None

    def compression_of(self, path: str) -> str | None:
        """Return what a file is packed with, by its name."""
        return compression_by_name(path)

    def opened(self, context: ReaderContext) -> CsvReaderFormat:
        """Return the format with what decodes its records."""
        rows = CsvRowDeserializationSchema(
            self.schema.row_type, self.schema.dialect, ignore_parse_errors=self.ignores_parse_errors
        )
        return replace(self, _decoder=record_decoder(rows, self.dead_letters, context))

    def blocks(self, file: Any, start: int, end: int) -> Iterator[RecordBlock]:
        """Cut the range into a few thousand records each."""
        waiting: list[bytes] = []
        for record in self._records(file, start, end):
            waiting.append(record)
            if len(waiting) == BATCH_RECORDS:
                yield _CsvBlock(waiting)
                waiting = []
        yield _CsvBlock(waiting)

    def records_of(self, values: Values, place: Callable[[int], str]) -> Values:
        """Make rows of records."""
        assert isinstance(values, list)
        decoder = self._decoder or self.opened(ReaderContext())._decoder
        assert decoder is not None
        return decoder.decode(values, position_of=place).values

    def _records(self, file: Any, start: int, end: int) -> Iterator[bytes]:
        # What is packed cannot be read from the middle, nor is the end of the range one of the lines.
        if self._is_by_line and file.seekable():
            lines = self._lines_in(file, start, end)
        else:
            lines = _joined(_all_lines(file), self.schema.dialect)
        records = (line for line in lines if line.strip())
        if start == 0:
            self._take_head(records)
        return records

    def _lines_in(self, file: Any, start: int, end: int) -> Iterator[bytes]:
        """Yield the lines that begin in a range; those in front of the data belong to the first range, all of them."""
        head_end = self._end_of_head(file)
        end = max(end, head_end) if start == 0 else end
        first = _lines.first_line_start(file, 0 if start == 0 else max(start, head_end), end)
        for data in _lines.lines_before(file, first, end):
            yield from _lines.split_lines(data)

    def _end_of_head(self, file: Any) -> int:
        """Return where the data begins."""
        head = self.schema.use_header + self.schema.skip_first_data_row
        position = 0
        file.seek(0)
        lines = _all_lines(file)
        while head:
            line = next(lines, None)
            if line is None:
                return position
            position += len(line) + 1
            head -= bool(line.strip())
        return position

    def _take_head(self, records: Iterator[bytes]) -> None:
        if self.schema.use_header:
            header = next(records, None)
            if header is not None and self.schema.strict_headers:
                self._check_header(header)
        if self.schema.skip_first_data_row:
            next(records, None)

    def _check_header(self, header: bytes) -> None:
        names = self.schema.row_type.get_field_names()
        texts = Types.ROW_NAMED(names, [Types.STRING()] * len(names))
        try:
            found = list(CsvRowDeserializationSchema(texts, self.schema.dialect).parse(header) or ())
        except FormatError:
            found = []
        if found != names:
            raise FormatError(f"CSV: expected the header {','.join(names)}", example=header)


def _all_lines(file: Any) -> Iterator[bytes]:
    for data in _lines.whole_lines(_lines.blocks_of(file)):
        yield from _lines.split_lines(data)


def _joined(lines: Iterator[bytes], dialect: CsvDialect) -> Iterator[bytes]:
    """Put lines together whose break is within quotes."""
    if dialect.quote_character is None:
        yield from lines
        return
    quote = dialect.quote_character.encode()
    escaped = None if dialect.escape_character is None else dialect.escape_character.encode() + quote
    begun: list[bytes] = []
    is_open = False
    for line in lines:
        count = line.count(quote) - (line.count(escaped) if escaped else 0)
        is_open ^= bool(count % 2)
        begun.append(line)
        if not is_open:
            yield b"\n".join(begun)
            begun = []
    if begun:
        yield b"\n".join(begun)


class _CsvBlock:
    def __init__(self, records: list[bytes]) -> None:
        self._records = records

    def skip(self, count: int) -> int:
        count = min(count, len(self._records))
        self._records = self._records[count:]
        return count

    def batches(self) -> Iterator[list[Any]]:
        if self._records:
            yield self._records


class CsvBulkWriters:
    """Makes what writes CSV files. PyFlink's name."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Write rows (or tuples, or dictionaries by name), with a header if the schema has one.

        Raises:
            JobDefinitionError: It is not a schema.
        """
        require(
            isinstance(schema, CsvSchema),
            "CsvBulkWriters.for_schema",
            "a CsvSchema",
            schema,
            hint="build one with CsvSchema.builder()",
        )
        return _CsvFiles(schema)


class _CsvFiles(BulkWriterFactory):
    def __init__(self, schema: CsvSchema) -> None:
        self._schema = schema

    def create(self, stream: BinaryIO) -> _CsvWriter:
        return _CsvWriter(stream, self._schema)


class _CsvWriter:
    def __init__(self, stream: BinaryIO, schema: CsvSchema) -> None:
        self._stream = stream
        self._rows = CsvRowSerializationSchema(schema.row_type, schema.dialect)
        if schema.use_header:
            names = schema.row_type.get_field_names()
            texts = Types.ROW_NAMED(names, [Types.STRING()] * len(names))
            stream.write(CsvRowSerializationSchema(texts, schema.dialect).serialize(tuple(names)))

    def add_element(self, element: Any) -> None:
        self._stream.write(self._rows.serialize(element))

    def flush(self) -> None:
        self._stream.flush()

    def finish(self) -> None:
        self._stream.flush()
