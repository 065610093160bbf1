"""CSV: one line a message, its columns in the order of the row's fields.

Flink's rules: a line must have as many columns as the row has fields; an empty column is None unless the field is a
text; arrays and rows within a column have a delimiter of their own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal, Self

from headrace.common.serialization import SerializationSchema
from headrace.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from headrace.common.typeinfo.collections import ElementTypeInfo
from headrace.common.types import Row, make_row
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError, JobDefinitionError
from headrace.formats._scalars import reader_of, without_zeros, write_scalar
from headrace.formats.base import FormatDeserializationSchema, MadeInEachProcess, row_type, row_values
from headrace.formats.tables import SPARK_TIMESTAMPS, SparkReader
from headrace.types.logical import RowType
from headrace.types.type_information import row_type_information

_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
#: How decimals are written: as Python shows them, without zeros at their end and maybe with an exponent, or neither.
Decimals = Literal["as given", "scientific", "plain"]
_LINE_DELIMITERS = ("\n", "\r", "\r\n", "")


@dataclass(frozen=True)
class CsvDialect:
    """How a line is cut into columns."""

    field_delimiter: str = ","
    array_element_delimiter: str = ";"
    #: None: columns are not quoted.
    quote_character: str | None = '"'
    escape_character: str | None = None
    #: A column that holds this is None.
    null_literal: str | None = None
    #: Whether lines that begin with # are left out.
    allow_comments: bool = False
    line_delimiter: str = "\n"

    def __post_init__(self) -> None:
        for name in ("field_delimiter", "quote_character", "escape_character"):
            value = getattr(self, name)
            if value is not None and len(value) != 1:
                raise JobDefinitionError(f"CSV: {name} must be one character; got {value!r}")
        if self.line_delimiter not in _LINE_DELIMITERS:
            raise JobDefinitionError(
                f"CSV: the line delimiter must be one of \\n, \\r, \\r\\n or empty; got {self.line_delimiter!r}"
            )

    def options(self) -> dict[str, Any]:
        """Return the settings as Python's csv module has them."""
        return {
            "delimiter": self.field_delimiter,
            "quotechar": self.quote_character,
            "escapechar": self.escape_character,
            "doublequote": True,
            "quoting": csv.QUOTE_NONE if self.quote_character is None else csv.QUOTE_MINIMAL,
        }


class _CsvBuilder:
    """Collects settings that reading and writing share.

    Args:
        type_info: The type of the rows.

    Raises:
        JobDefinitionError: It is not the type of a row.
    """

    #: The format that is built, for errors.
    _built: ClassVar[str]

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = row_type(type_info, self._built)
        self._settings: dict[str, Any] = {}

    def set_array_element_delimiter(self, delimiter: str) -> Self:
        """Set the separator of array elements; a semicolon by default."""
        self._settings["array_element_delimiter"] = delimiter
        return self

    def set_quote_character(self, c: str) -> Self:
        """Set what columns are quoted with; `"` by default."""
        self._settings["quote_character"] = c
        return self

    def set_escape_character(self, c: str) -> Self:
        """Set the escape character; by default there is no escape character."""
        self._settings["escape_character"] = c
        return self


class CsvRowDeserializationSchema(MadeInEachProcess, FormatDeserializationSchema):
    """Reads a line of CSV as a row. Build one with `CsvRowDeserializationSchema.Builder(type_info)`.

    Example:
        >>> row_type = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
        >>> CsvRowDeserializationSchema.Builder(row_type).build().deserialize(b'"Alice, the first",11')
        Row(name='Alice, the first', age=11)
    """

    made_here = ("_readers",)

    def __init__(
        self, type_info: RowTypeInfo, dialect: CsvDialect | None = None, *, ignore_parse_errors: bool = False
    ) -> None:
        super().__init__(type_info, ignore_parse_errors=ignore_parse_errors)
        self._row_type = type_info
        self._dialect = dialect or CsvDialect()
        self._prepare()

    def _prepare(self) -> None:
        self._names = tuple(self._row_type.get_field_names())
        self._readers = [_column_reader(each, self._dialect) for each in self._row_type.get_field_types()]
        self._options = self._dialect.options()

    def parse(self, message: bytes) -> Row | None:
        """Return the row; None for a comment.

        Raises:
            FormatError: The line has another number of columns, or one is not of its type.
        """
        columns = self._columns(message)
        if columns is None:
            return None
        if len(columns) != len(self._names):
            raise FormatError(
                f"CSV: expected {len(self._names)} fields; got {len(columns)}",
                example=message,
            )
        values = []
        for name, reader, column in zip(self._names, self._readers, columns, strict=True):
            try:
                values.append(reader(column))
            except ValueError as error:
                raise FormatError(f"CSV: field {name!r}: {error}", example=message) from None
        return make_row(self._names, values, 0)

    def parse_leniently(self, message: bytes) -> Row | None:
        """Return the row with None for columns that are wrong or missing; what is too much is dropped."""
        try:
            columns = self._columns(message) or []
        except FormatError:
            return None
        values: list[Any] = [None] * len(self._names)
        for index, (reader, column) in enumerate(zip(self._readers, columns, strict=False)):
            try:
                values[index] = reader(column)
            except ValueError:
                continue
        return make_row(self._names, values, 0)

    def _columns(self, message: bytes) -> list[str] | None:
        try:
            text = message.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"CSV: expected UTF-8: {error.reason}", example=message) from None
        text = text.removeprefix("\ufeff").removesuffix("\n").removesuffix("\r")
        if self._dialect.allow_comments and text.startswith("#"):
            return None
        try:
            lines = list(csv.reader(io.StringIO(text, newline=""), strict=True, **self._options))
        except csv.Error as error:
            raise FormatError(f"CSV: {error}", example=message) from None
        if len(lines) > 1:
            raise FormatError("CSV: expected one line", example=message)
        return lines[0] if lines and lines[0] else [""]

    class Builder(_CsvBuilder):
        """Collects the settings.

        Args:
            type_info: The type of the rows.

        Raises:
            JobDefinitionError: It is not the type of a row.
        """

        _built = "CsvRowDeserializationSchema"
        _ignore_parse_errors = False

        def set_field_delimiter(self, delimiter: str) -> Self:
            """Set the column delimiter; a comma by default."""
            self._settings["field_delimiter"] = delimiter
            return self

        def set_allow_comments(self, allow_comments: bool) -> Self:
            """Leave out lines that begin with #."""
            self._settings["allow_comments"] = allow_comments
            return self

        def set_null_literal(self, null_literal: str) -> Self:
            """Set the text that is read and written as None."""
            self._settings["null_literal"] = null_literal
            return self

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> Self:
            """Read columns that cannot be parsed as None, and skip lines that are not CSV."""
            self._ignore_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """Make the format.

            Raises:
                JobDefinitionError: A delimiter is not one character, or a type cannot be read from CSV.
            """
            return CsvRowDeserializationSchema(
                self._type_info, CsvDialect(**self._settings), ignore_parse_errors=self._ignore_parse_errors
            )


class CsvRowSerializationSchema(SerializationSchema):
    r"""Writes a row as a line of CSV. Build one with `CsvRowSerializationSchema.Builder(type_info)`.

    Args:
        type_info: The type of the rows.
        dialect: How columns are distinguished.
        decimals: How decimals are written.

    Example:
        >>> row_type = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
        >>> CsvRowSerializationSchema.Builder(row_type).build().serialize(Row("Alice, the first", 11))
        b'"Alice, the first",11\n'
    """

    def __init__(
        self, type_info: RowTypeInfo, dialect: CsvDialect | None = None, decimals: Decimals = "as given"
    ) -> None:
        self._row_type = type_info
        self._dialect = dialect or CsvDialect()
        self._decimals = decimals
        self._names = type_info.get_field_names()
        self._writers = [
            _column_writer(each, self._dialect, decimals) for each in type_info.get_field_types()
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvRowSerializationSchema, (self._row_type, self._dialect, self._decimals)

    def serialize(self, element: Any) -> bytes:
        """Return the line.

        Raises:
            FormatError: The row has other fields, or a column cannot be written without quotes.
        """
        values = row_values(element, self._names, "CSV")
        line = io.StringIO(newline="")
        # Both kinds of line ends are quoted in a column, whichever of them ends the line.
        writer = csv.writer(line, lineterminator="\r\n", **self._dialect.options())
        try:
            writer.writerow([write(value) for write, value in zip(self._writers, values, strict=True)])
        except (csv.Error, TypeError) as error:
            raise FormatError(f"CSV: {error}", example=element) from error
        return (line.getvalue()[:-2] + self._dialect.line_delimiter).encode()

    class Builder(_CsvBuilder):
        """Collects the settings.

        Args:
            type_info: The type of the rows.

        Raises:
            JobDefinitionError: It is not the type of a row.
        """

        _built = "CsvRowSerializationSchema"

        def set_field_delimiter(self, c: str) -> Self:
            """Set the column delimiter; a comma by default."""
            self._settings["field_delimiter"] = c
            return self

        def set_line_delimiter(self, delimiter: str) -> Self:
            r"""Set what ends a line: `\n` by default; empty for messages, which need none."""
            self._settings["line_delimiter"] = delimiter
            return self

        def disable_quote_character(self) -> Self:
            """Write columns without quotes; one that would need them cannot be written."""
            self._settings["quote_character"] = None
            return self

        def set_null_literal(self, s: str) -> Self:
            """Set the text that is read and written as None; empty by default."""
            self._settings["null_literal"] = s
            return self

        def build(self) -> CsvRowSerializationSchema:
            """Make the format.

            Raises:
                JobDefinitionError: A delimiter is not one character, or a type cannot be written as CSV.
            """
            return CsvRowSerializationSchema(self._type_info, CsvDialect(**self._settings))


class CsvFormat:
    """'format' = 'csv': messages, and files of lines."""

    def __init__(self, options: TableOptions) -> None:
        self._options = options

    def reader(self, row_type: RowType) -> CsvRowDeserializationSchema:
        self._decimals()  # for writing
        return CsvRowDeserializationSchema(
            row_type_information(row_type),
            self._dialect(),
            ignore_parse_errors=self._options.boolean("ignore-parse-errors", default=False),
        )

    def writer(self, row_type: RowType) -> CsvRowSerializationSchema:
        self._options.boolean("ignore-parse-errors", default=False)  # for reading
        return CsvRowSerializationSchema(row_type_information(row_type), self._dialect(), self._decimals())

    file_writer = writer

    def spark_reader(self) -> SparkReader:
        text, boolean = self._options.text, self._options.boolean
        self._decimals()  # for writing
        quote = text("quote-character", '"') or '"'
        if boolean("disable-quote-character", default=False):
            quote = ""
        options = {
            "sep": text("field-delimiter", ",") or ",",
            "timestampNTZFormat": SPARK_TIMESTAMPS,
            "quote": quote,
            # A quote within quotes stands there twice, unless there is a character to put before it. None at all: NUL.
            "escape": text("escape-character") or quote or "\0",
        }
        null = text("null-literal")
        if null is not None:
            options["nullValue"] = null
        text("array-element-delimiter")  # Spark has no arrays in CSV files
        if boolean("allow-comments", default=False):
            options["comment"] = "#"
        return SparkReader(
            "csv", options, ignores_errors=self._options.boolean("ignore-parse-errors", default=False)
        )

    def _decimals(self) -> Decimals:
        is_scientific = self._options.boolean("write-bigdecimal-in-scientific-notation", default=True)
        return "scientific" if is_scientific else "plain"

    def _dialect(self) -> CsvDialect:
        text = self._options.text
        is_quoted = not self._options.boolean("disable-quote-character", default=False)
        quote = text("quote-character", '"') or '"'
        return CsvDialect(
            field_delimiter=text("field-delimiter", ",") or ",",
            array_element_delimiter=text("array-element-delimiter", ";") or ";",
            quote_character=quote if is_quoted else None,
            escape_character=text("escape-character"),
            null_literal=text("null-literal"),
            allow_comments=self._options.boolean("allow-comments", default=False),
            line_delimiter="",
        )


def _element_types(type_info: TypeInformation) -> list[TypeInformation] | TypeInformation | None:
    """Return the types inside a column: one for arrays, a list for rows and tuples, None for scalars."""
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return type_info.get_field_types()
    return type_info.element_type if isinstance(type_info, ElementTypeInfo) else None


def _column_reader(type_info: TypeInformation, dialect: CsvDialect) -> Callable[[str], Any]:
    """Return what turns the text of a column into a value; it raises ValueError."""
    if type_info == _BYTES:
        return lambda text: None if text == dialect.null_literal else text.encode()
    inner = _element_types(type_info)
    if inner is None:
        return _scalar_column(type_info, dialect.null_literal)
    delimiter = dialect.array_element_delimiter
    if not isinstance(inner, list):
        read_element = _nested_reader(inner, dialect.null_literal)
        return lambda text: _split(
            text, delimiter, dialect, lambda parts: [read_element(p) for p in parts], []
        )
    readers = [_nested_reader(each, dialect.null_literal) for each in inner]
    names = tuple(type_info.get_field_names()) if isinstance(type_info, RowTypeInfo) else None

    def build(parts: list[str]) -> Any:
        if len(parts) != len(readers):
            raise ValueError(f"expected {len(readers)} fields; got {len(parts)}")
        values = [read(part) for read, part in zip(readers, parts, strict=True)]
        return tuple(values) if names is None else make_row(names, values, 0)

    return lambda text: _split(text, delimiter, dialect, build, None)


def _split(
    text: str, delimiter: str, dialect: CsvDialect, build: Callable[[list[str]], Any], empty: list[Any] | None
) -> Any:
    if text == dialect.null_literal:
        return None
    return build(text.split(delimiter)) if text else copy(empty)


def _nested_reader(type_info: TypeInformation, null_literal: str | None) -> Callable[[str], Any]:
    if _element_types(type_info) is not None:
        raise JobDefinitionError(f"CSV: a column cannot hold {type_info.summary()} inside an array or row")
    return _scalar_column(type_info, null_literal)


def _scalar_column(type_info: TypeInformation, null_literal: str | None) -> Callable[[str], Any]:
    from_text = reader_of(type_info)
    if from_text is None:
        raise JobDefinitionError(f"CSV: cannot read or write values of type {type_info.summary()}")
    is_text = isinstance(type_info, BasicTypeInfo) and type_info.basic_type in (
        BasicType.STRING,
        BasicType.CHAR,
    )
    if is_text:
        return lambda text: None if text == null_literal else text
    return lambda text: None if text == null_literal or not text.strip() else from_text(text)


def _decimal_writer(decimals: Decimals) -> Callable[[Any], str]:
    """Return what writes a value that is not NULL."""
    if decimals == "as given":
        return write_scalar
    if decimals == "plain":
        return lambda value: format(value, "f") if isinstance(value, Decimal) else write_scalar(value)
    return lambda value: str(without_zeros(value)) if isinstance(value, Decimal) else write_scalar(value)


def _column_writer(
    type_info: TypeInformation, dialect: CsvDialect, decimals: Decimals = "as given"
) -> Callable[[Any], str]:
    scalar = _decimal_writer(decimals)
    null = dialect.null_literal or ""
    if type_info == _BYTES:
        return lambda value: null if value is None else bytes(value).decode()
    _column_reader(type_info, dialect)  # what could not be read again is not written
    if _element_types(type_info) is None:
        return lambda value: null if value is None else scalar(value)
    delimiter = dialect.array_element_delimiter

    def write(value: Any) -> str:
        if value is None:
            return null
        return delimiter.join(null if each is None else scalar(each) for each in value)

    return write
