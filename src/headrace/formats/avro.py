"""Avro: a message is a record in Avro's binary form, without the schema.

Both sides must know the schema: the writer's, which was used to write, and the reader's, which says what rows look
like; Avro resolves one to the other. With a schema registry each message names its writer's schema: `avro_confluent`.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable
from decimal import Decimal
from types import ModuleType
from typing import Any, Literal

import msgspec

from headrace.common.serialization import SerializationSchema
from headrace.common.typeinfo import TypeInformation, Types
from headrace.common.types import Row, make_row
from headrace.config.table_options import TableOptions
from headrace.errors import ConnectorError, FormatError, JobDefinitionError
from headrace.formats._avro_names import with_names_of
from headrace.formats.avro_types import avro_schema
from headrace.formats.base import FormatDeserializationSchema, MadeInEachProcess, row_values
from headrace.types.logical import RowType

#: A schema as JSON has it.
Schema = Any
#: Avro's encodings of records.
Encoding = Literal["binary", "json"]

_PRIMITIVES: dict[str, Callable[[], TypeInformation]] = {
    "string": Types.STRING,
    "boolean": Types.BOOLEAN,
    "int": Types.INT,
    "long": Types.LONG,
    "float": Types.FLOAT,
    "double": Types.DOUBLE,
    "null": Types.PICKLED_BYTE_ARRAY,
}
_LOGICAL: dict[str, Callable[[], TypeInformation]] = {
    "date": Types.SQL_DATE,
    "time-millis": Types.SQL_TIME,
    "time-micros": Types.SQL_TIME,
    "timestamp-millis": Types.SQL_TIMESTAMP,
    "timestamp-micros": Types.SQL_TIMESTAMP,
    "local-timestamp-millis": Types.SQL_TIMESTAMP,
    "local-timestamp-micros": Types.SQL_TIMESTAMP,
    "decimal": Types.BIG_DEC,
    "uuid": Types.STRING,
}
_UTC_TIMESTAMPS = ("timestamp-millis", "timestamp-micros")


class AvroRowDeserializationSchema(MadeInEachProcess, FormatDeserializationSchema):
    """Reads an Avro record as a row.

    Args:
        record_class: A generated Java class in PyFlink; there are none here.
        avro_schema_string: The schema, as JSON.
        writer_schema_string: The schema that messages were written with, if it is another.
        encoding: `binary` or `json`, Avro's two encodings.
        ignore_parse_errors: Whether messages that cannot be read are left out.

    Raises:
        JobDefinitionError: There is no schema, or it does not describe a record.
        ConnectorError: fastavro is not installed.
    """

    made_here = ("_reader",)

    def __init__(
        self,
        record_class: str | None = None,
        avro_schema_string: str | None = None,
        *,
        writer_schema_string: str | None = None,
        encoding: Encoding = "binary",
        ignore_parse_errors: bool = False,
    ) -> None:
        self._schema = record_schema(record_class, avro_schema_string, "AvroRowDeserializationSchema")
        self._writer_schema = None if writer_schema_string is None else parse_schema(writer_schema_string)
        self._encoding = encoding
        super().__init__(type_of(self._schema), ignore_parse_errors=ignore_parse_errors)
        self._prepare()

    def _prepare(self) -> None:
        self._reader = RecordReader(self._schema, self._encoding)

    def parse(self, message: bytes) -> Row:
        """Return the row.

        Raises:
            FormatError: The bytes are not a record of the schema.
        """
        return self._reader.read(io.BytesIO(message), self._writer_schema or self._schema, message)


class AvroRowSerializationSchema(MadeInEachProcess, SerializationSchema):
    """Writes a row as an Avro record.

    Args:
        record_class: A generated Java class in PyFlink; there are none here.
        avro_schema_string: The schema, as JSON.
        encoding: `binary` or `json`, Avro's two encodings.

    Raises:
        JobDefinitionError: There is no schema, or it does not describe a record.
        ConnectorError: fastavro is not installed.
    """

    made_here = ("_writer",)

    def __init__(
        self,
        record_class: str | None = None,
        avro_schema_string: str | None = None,
        *,
        encoding: Encoding = "binary",
    ) -> None:
        self._schema = record_schema(record_class, avro_schema_string, "AvroRowSerializationSchema")
        self._encoding = encoding
        self._prepare()

    def _prepare(self) -> None:
        self._writer = RecordWriter(self._schema, self._encoding)

    def serialize(self, element: Any) -> bytes:
        """Return the record.

        Raises:
            FormatError: The row is not as the schema says.
        """
        stream = io.BytesIO()
        self._writer.write(stream, element)
        return stream.getvalue()


# --- schemas --------------------------------------------------------------------------------------


class AvroFormat:
    """'format' = 'avro': messages whose schema follows from the columns."""

    def __init__(self, options: TableOptions) -> None:
        fastavro()
        self._options = options

    def reader(self, row_type: RowType) -> AvroRowDeserializationSchema:
        return AvroRowDeserializationSchema(
            avro_schema_string=table_schema(self._options, row_type), encoding=self._encoding()
        )

    def writer(self, row_type: RowType) -> AvroRowSerializationSchema:
        return AvroRowSerializationSchema(
            avro_schema_string=table_schema(self._options, row_type), encoding=self._encoding()
        )

    def _encoding(self) -> Encoding:
        found: Any = self._options.choice("encoding", ("binary", "json"), "binary")
        return found  # type: ignore[no-any-return]  # one of the choices


def table_schema(options: TableOptions, row_type: RowType) -> str:
    """Return the schema of a table's rows, as the options of the format want it."""
    is_legacy = options.boolean("timestamp_mapping.legacy", default=True)
    return avro_schema(row_type, has_local_timestamps=not is_legacy)


def fastavro() -> ModuleType:
    """Import fastavro.

    Raises:
        ConnectorError: It is not installed.
    """
    try:
        import fastavro as module
        import fastavro.schema
    except ImportError as error:
        raise ConnectorError(
            "avro: fastavro is not installed",
            hint="run pip install 'headrace[avro]' where the program runs and on every worker",
            retryable=False,
        ) from error
    for kind in ("bytes-decimal", "fixed-decimal"):
        module.read.LOGICAL_READERS[kind] = _exact_decimal
    return module


def parse_schema(text: str) -> Schema:
    """Return a schema with all names resolved.

    Raises:
        JobDefinitionError: It is no JSON, or no schema.
    """
    module = fastavro()
    try:
        parsed = module.parse_schema(msgspec.json.decode(text))
    except (
        msgspec.DecodeError,
        module.schema.SchemaParseException,
        module.schema.UnknownType,
        TypeError,
    ) as error:
        raise JobDefinitionError(
            f"avro: not a valid schema: {error}", hint="give the schema as JSON"
        ) from None
    return parsed


def record_schema(record_class: str | None, text: str | None, who: str) -> Schema:
    """Return the schema that a format was given.

    Raises:
        JobDefinitionError: There is none, or it does not describe a record.
    """
    if record_class is not None:
        raise JobDefinitionError(
            f"{who}: cannot load the Java class {record_class}",
            hint="pass the schema as avro_schema_string=...",
        )
    if text is None:
        raise JobDefinitionError(f"{who}: a schema is required", hint="pass it as avro_schema_string=...")
    schema = parse_schema(text)
    if isinstance(schema, str | list) or schema.get("type") not in ("record", "error"):
        raise JobDefinitionError(f"{who}: the schema must describe a record; got {text}")
    return schema


def type_of(schema: Any) -> TypeInformation:
    """Return the type of the values that a schema describes."""
    return _Types().convert(schema)


class _Types:
    def __init__(self) -> None:
        #: Named types seen so far. One that contains itself has no finite type, and is left open.
        self._named: dict[str, TypeInformation] = {}

    def convert(self, schema: Any) -> TypeInformation:
        if isinstance(schema, list):
            kinds = [each for each in schema if each != "null"]
            return self.convert(kinds[0]) if len(kinds) == 1 else Types.PICKLED_BYTE_ARRAY()
        if isinstance(schema, str):
            if schema == "bytes":
                return Types.PRIMITIVE_ARRAY(Types.BYTE())
            make = _PRIMITIVES.get(schema)
            return make() if make is not None else self._named.get(schema, Types.PICKLED_BYTE_ARRAY())
        logical = _LOGICAL.get(schema.get("logicalType", ""))
        return logical() if logical is not None else self._complex(schema)

    def _complex(self, schema: Schema) -> TypeInformation:
        kind = schema["type"]
        if kind in ("record", "error"):
            self._named[schema["name"]] = Types.PICKLED_BYTE_ARRAY()
            names = [field["name"] for field in schema["fields"]]
            found = Types.ROW_NAMED(names, [self.convert(field["type"]) for field in schema["fields"]])
            self._named[schema["name"]] = found
            return found
        if kind == "array":
            return Types.OBJECT_ARRAY(self.convert(schema["items"]))
        if kind == "map":
            return Types.MAP(Types.STRING(), self.convert(schema["values"]))
        if kind in ("enum", "fixed"):
            named = Types.STRING() if kind == "enum" else Types.PRIMITIVE_ARRAY(Types.BYTE())
            self._named[schema["name"]] = named
            return named
        return self.convert(kind)


# --- records <-> rows -----------------------------------------------------------------------------


class RecordReader:
    """Reads records as rows of the reader's schema."""

    def __init__(self, schema: Schema, encoding: Encoding = "binary") -> None:
        self._schema = schema
        self._read = fastavro().schemaless_reader if encoding == "binary" else _read_json
        self._convert = row_converter(schema)
        #: The last schema of a writer, and the reader's for it.
        self._resolved: tuple[Schema, Schema] = (schema, None)

    def read(self, stream: io.BytesIO, writer_schema: Schema, message: bytes) -> Row:
        """Read a record that was written with another schema, or the same.

        Raises:
            FormatError: The bytes are not a record of it; or the schemas do not fit each other.
        """
        try:
            if writer_schema is not self._resolved[0]:
                self._resolved = writer_schema, with_names_of(self._schema, writer_schema)
            row: Row = self._convert(self._read(stream, writer_schema, self._resolved[1]))
        except Exception as error:  # noqa: BLE001 - damaged bytes raise anything: EOFError, IndexError, MemoryError
            raise FormatError(
                f"avro: expected a record of {self._schema['name']}: {type(error).__name__}: {error}",
                example=message,
            ) from None
        if stream.tell() != len(message):
            raise FormatError(
                f"avro: {len(message) - stream.tell()} bytes are left over after a record of {self._schema['name']}",
                example=message,
                hint="the message was written with another schema, or contains a schema id: see avro_confluent",
            )
        return row


class RecordWriter:
    """Writes rows as records."""

    def __init__(self, schema: Schema, encoding: Encoding = "binary") -> None:
        self._schema = schema
        self._write = fastavro().schemaless_writer if encoding == "binary" else _write_json
        self._convert = record_converter(schema)

    def write(self, stream: io.BytesIO, row: Any) -> None:
        """Write a row.

        Raises:
            FormatError: It is not as the schema says.
        """
        try:
            self._write(stream, self._schema, self._convert(row))
        except (TypeError, ValueError, AttributeError, OverflowError, KeyError, IndexError) as error:
            raise FormatError(
                f"avro: expected a record of {self._schema['name']}: {error}", example=row
            ) from error


def _read_json(stream: io.BytesIO, writer_schema: Schema, reader_schema: Schema | None) -> Any:
    text = io.StringIO(stream.read().decode())
    (record,) = fastavro().json_reader(text, writer_schema, reader_schema)
    return record


def _write_json(stream: io.BytesIO, schema: Schema, record: Any) -> None:
    text = io.StringIO()
    fastavro().json_writer(text, schema, [record])
    stream.write(text.getvalue().strip().encode())


def row_converter(schema: Any, named: dict[str, Any] | None = None) -> Callable[[Any], Any]:
    """Compile what turns what fastavro has read into what rows hold; the identity where they are the same."""
    named = {} if named is None else named
    if isinstance(schema, list):
        return _union_converter([row_converter(each, named) for each in schema], schema)
    if isinstance(schema, str):
        plain = _int if schema == "int" else _same
        return _later(named, schema) if schema in named else plain
    kind = schema["type"]
    if schema.get("logicalType") in _UTC_TIMESTAMPS:
        return lambda value: value.replace(tzinfo=None)
    if schema.get("logicalType") == "uuid":
        return str
    if kind in ("record", "error"):
        named[schema["name"]] = None
        names = tuple(field["name"] for field in schema["fields"])
        converters = [row_converter(field["type"], named) for field in schema["fields"]]

        def convert(record: Any) -> Row:
            return make_row(names, [c(record[name]) for name, c in zip(names, converters, strict=True)], 0)

        named[schema["name"]] = convert
        return convert
    return _container_converter(schema, lambda inner: row_converter(inner, named))


def _union_converter(converters: list[Callable[[Any], Any]], schema: list[Any]) -> Callable[[Any], Any]:
    wanted = [c for c, each in zip(converters, schema, strict=True) if each != "null"]
    if all(each is _same for each in wanted):
        return _same
    if len(wanted) == 1:
        only = wanted[0]
        return lambda value: None if value is None else only(value)
    # Which branch it was, fastavro does not say: records come as dictionaries, and only they must be changed.
    return lambda value: Row(**value) if isinstance(value, dict) else value


def record_converter(schema: Any, named: dict[str, Any] | None = None) -> Callable[[Any], Any]:
    """Compile what turns what rows hold into what fastavro writes; the identity where they are the same."""
    named = {} if named is None else named
    if isinstance(schema, list):
        wanted = [record_converter(each, named) for each in schema if each != "null"]
        only = wanted[0] if len(wanted) == 1 else _named_record
        return _same if only is _same else lambda value: None if value is None else only(value)
    if isinstance(schema, str):
        return _later(named, schema) if schema in named else _same
    kind = schema["type"]
    if schema.get("logicalType") in _UTC_TIMESTAMPS:
        # fastavro takes a timestamp of no zone for local time; ours are UTC.
        return lambda value: value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value
    if kind in ("record", "error"):
        named[schema["name"]] = None
        names = [field["name"] for field in schema["fields"]]
        converters = [record_converter(field["type"], named) for field in schema["fields"]]

        def convert(row: Any) -> dict[str, Any]:
            values = row_values(row, names, "avro")
            return {name: c(value) for name, c, value in zip(names, converters, values, strict=True)}

        named[schema["name"]] = convert
        return convert
    return _container_converter(schema, lambda inner: record_converter(inner, named))


def _container_converter(
    schema: Any, converter_of: Callable[[Any], Callable[[Any], Any]]
) -> Callable[[Any], Any]:
    """Compile what converts each value of an array or a map; other types are named, or stay as they are."""
    kind = schema["type"]
    if kind == "array":
        inner = converter_of(schema["items"])
        return _same if inner is _same else lambda values: [inner(value) for value in values]
    if kind == "map":
        inner = converter_of(schema["values"])
        return (
            _same if inner is _same else lambda values: {key: inner(value) for key, value in values.items()}
        )
    # Values of a logical type are not what their bytes are.
    return _same if "logicalType" in schema and isinstance(kind, str) else converter_of(kind)


def _named_record(value: Any) -> Any:
    """Which branch of a union a row is, its field names must say."""
    return value.as_dict(recursive=True) if isinstance(value, Row) else value


def _later(named: dict[str, Any], name: str) -> Callable[[Any], Any]:
    """Return the converter of a named type, which may be the one that is being compiled."""

    def convert(value: Any) -> Any:
        return named[name](value)

    return convert


def _same(value: Any) -> Any:
    return value


def _int(value: int) -> int:
    """Take a number of 32 bits: an int and a long look alike in the bytes, and fastavro reads both as a long."""
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{value} does not fit int")
    return value


def _exact_decimal(data: bytes, writer_schema: Any = None, reader_schema: Any = None) -> Decimal:
    """Read a decimal; fastavro's own reader rounds one that has more digits than its schema says."""
    unscaled = int.from_bytes(data, "big", signed=True)
    if abs(unscaled) >= 10 ** writer_schema["precision"]:
        raise ValueError(f"a decimal has more than {writer_schema['precision']} digits")
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Decimal((sign, digits, -writer_schema.get("scale", 0)))
