"""JSON: one object a message, read and written by the type of a row.

Flink's rules: a field that is missing is None unless that is to fail; texts are taken for numbers and numbers for
texts where the type says so; bytes are base64. A field without a declared type (PICKLED_BYTE_ARRAY) is taken as it is.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from headrace.common.serialization import SerializationSchema
from headrace.common.typed_text import double_text
from headrace.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    ExternalTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from headrace.common.typeinfo.collections import ElementTypeInfo
from headrace.common.types import Row, make_row
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError, JobDefinitionError, UnsupportedFeatureError, shorten
from headrace.formats._json_decoding import TOO_DEEP, JsonDecoding, decoder_for, load_json
from headrace.formats._json_schema import type_from_json_schema
from headrace.formats._json_writers import (
    JsonEncoding,
    dump_json,
    json_encoding,
    text_of,
    writer_for,
)
from headrace.formats._scalars import (
    checked_int,
    finite_float,
    limits,
    read_decimal,
    read_float,
    read_integer,
    reader_of,
    whole_number,
)
from headrace.formats.base import FormatDeserializationSchema, MadeInEachProcess, required, row_type
from headrace.formats.tables import SPARK_TIMESTAMPS, SparkReader
from headrace.types.logical import RowType
from headrace.types.type_information import type_information

#: Turns a value as the JSON parser gives it into one of the declared type; raises ValueError.
Reader = Callable[[Any], Any]

_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
#: How deep a value without a declared type may be nested: pickling takes two of Python's 1000 levels for each.
_MOST_NESTED = 200


class JsonRowDeserializationSchema(MadeInEachProcess, FormatDeserializationSchema):
    """Reads a JSON object as a row. Build one with `builder()`.

    Example:
        >>> schema = (
        ...     JsonRowDeserializationSchema.builder()
        ...     .type_info(Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]))
        ...     .build()
        ... )
        >>> schema.deserialize(b'{"name": "Alice", "age": 11}')
        Row(name='Alice', age=11)
    """

    made_here = ("_decode", "_convert", "_convert_leniently")

    def __init__(
        self,
        type_info: TypeInformation,
        *,
        fail_on_missing_field: bool = False,
        ignore_parse_errors: bool = False,
        decoding: JsonDecoding = JsonDecoding.STREAM,
    ) -> None:
        super().__init__(type_info, ignore_parse_errors=ignore_parse_errors)
        self._fails_on_missing = fail_on_missing_field
        self._decoding = decoding
        self._prepare()

    def _prepare(self) -> None:
        kind, decoding = self._type_info, self._decoding
        self._decode = decoder_for(kind, decoding)
        self._convert = reader_for(kind, fail_on_missing=self._fails_on_missing, decoding=decoding)
        self._convert_leniently = reader_for(kind, is_lenient=True, decoding=decoding)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Begin without settings; the type is needed."""
        return JsonRowDeserializationSchema.Builder()

    def parse(self, message: bytes) -> Any:
        """Return the row.

        Raises:
            FormatError: It is not JSON, or not of the type; the message names the field.
        """
        return self._convert_or_fail(load_json(self._decode, message), message)

    def _convert_or_fail(self, node: Any, message: bytes) -> Any:
        try:
            return self._convert(node)
        except ValueError as error:
            raise FormatError(f"JSON: {error}", example=message) from None
        except RecursionError:
            raise FormatError(TOO_DEEP, example=message) from None

    def parse_leniently(self, message: bytes) -> Any:
        """Return the row with None for fields that cannot be parsed; None if the message is not a JSON object."""
        try:
            return self._convert_leniently(load_json(self._decode, message))
        except (FormatError, ValueError, RecursionError):
            return None

    class Builder:
        """Builder for `JsonRowDeserializationSchema`: the type, and how errors are handled."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False

        def type_info(self, type_info: RowTypeInfo) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows."""
            self._type_info = row_type(type_info, "JsonRowDeserializationSchema")
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Take the type from a JSON schema."""
            if json_schema is None:
                raise TypeError("JsonRowDeserializationSchema: json_schema must not be None")
            self._type_info = type_from_json_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Refuse objects that lack a field; by default it is None."""
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Read fields that cannot be parsed as None, and skip messages that are not JSON."""
            self._ignore_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Make the format.

            Raises:
                JobDefinitionError: There is no type; or missing fields are to fail and errors to be ignored.
            """
            if self._fail_on_missing_field and self._ignore_parse_errors:
                raise JobDefinitionError(
                    "JSON: fail_on_missing_field and ignore_parse_errors cannot both be enabled",
                    hint="call only one of fail_on_missing_field() and ignore_parse_errors()",
                )
            return JsonRowDeserializationSchema(
                required(self._type_info, "JsonRowDeserializationSchema: the type", "type_info(...)"),
                fail_on_missing_field=self._fail_on_missing_field,
                ignore_parse_errors=self._ignore_parse_errors,
            )


class JsonRowSerializationSchema(SerializationSchema):
    """Writes a row as a JSON object. Build one with `builder()`.

    Args:
        type_info: The type of the rows.
        encoding: How rows are written; by default as Flink's DataStream format writes them.

    Example:
        >>> row_type = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
        >>> JsonRowSerializationSchema.builder().with_type_info(row_type).build().serialize(Row("Alice", 11))
        b'{"name":"Alice","age":11}'
    """

    def __init__(self, type_info: TypeInformation, *, encoding: JsonEncoding = JsonEncoding()) -> None:  # noqa: B008 - frozen
        self._type_info = type_info
        self._encoding = encoding
        self._convert = writer_for(type_info, encoding)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_serializer, (self._type_info, self._encoding)

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Begin without settings; the type is needed."""
        return JsonRowSerializationSchema.Builder()

    def serialize(self, element: Any) -> bytes:
        """Return the row as JSON.

        Raises:
            FormatError: The row is not of the type.
        """
        return dump_json(self._convert, element)

    class Builder:
        """Builder for `JsonRowSerializationSchema`: the type of the rows."""

        def __init__(self) -> None:
            self._type_info: RowTypeInfo | None = None

        def with_type_info(self, type_info: RowTypeInfo) -> JsonRowSerializationSchema.Builder:
            """Set the type of the rows."""
            self._type_info = row_type(type_info, "JsonRowSerializationSchema")
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Make the format.

            Raises:
                JobDefinitionError: There is no type.
            """
            return JsonRowSerializationSchema(
                required(self._type_info, "JsonRowSerializationSchema: the type", "with_type_info(...)")
            )


#: Flink's choice between its decoders.
_PARSER: Final = "decode.json-parser.enabled"


class JsonFormat:
    """'format' = 'json': messages, and files with an object on each line."""

    def __init__(self, options: TableOptions) -> None:
        self._options = options

    def reader(self, row_type: RowType) -> JsonRowDeserializationSchema:
        json_encoding(self._options)  # the table may be written, too
        return JsonRowDeserializationSchema(
            type_information(row_type),
            fail_on_missing_field=self._options.boolean("fail-on-missing-field", default=False),
            ignore_parse_errors=self._options.boolean("ignore-parse-errors", default=False),
            decoding=self._decoding(),
        )

    def writer(self, row_type: RowType) -> JsonRowSerializationSchema:
        self._options.boolean("fail-on-missing-field", default=False)  # these are for reading
        self._options.boolean("ignore-parse-errors", default=False)
        self._decoding()
        return JsonRowSerializationSchema(type_information(row_type), encoding=json_encoding(self._options))

    file_writer = writer

    def spark_reader(self) -> SparkReader:
        options = {"allowSingleQuotes": "false"}
        if self._options.boolean("fail-on-missing-field", default=False):
            raise UnsupportedFeatureError(
                f"table {self._options.table!r}: option 'json.fail-on-missing-field' cannot be honoured: files are "
                "read by Spark, which reads a missing field as NULL",
                feature="json.fail-on-missing-field",
                hint="declare the column NOT NULL in the sink, or filter it: WHERE c IS NOT NULL",
            )
        if self._decoding() is JsonDecoding.TREE:
            raise UnsupportedFeatureError(
                f"table {self._options.table!r}: option 'json.{_PARSER}' cannot be false: files are read by Spark, "
                "which has one parser",
                feature=f"json.{_PARSER}",
                hint="leave it out",
            )
        if json_encoding(self._options).timestamp_format == "SQL":
            options["timestampNTZFormat"] = SPARK_TIMESTAMPS
        return SparkReader(
            "json", options, ignores_errors=self._options.boolean("ignore-parse-errors", default=False)
        )

    def _decoding(self) -> JsonDecoding:
        return JsonDecoding.WORDS if self._options.boolean(_PARSER, default=True) else JsonDecoding.TREE


def _make_serializer(type_info: TypeInformation, encoding: JsonEncoding) -> JsonRowSerializationSchema:
    return JsonRowSerializationSchema(type_info, encoding=encoding)


# --- nodes -> values ------------------------------------------------------------------------------


def reader_for(
    type_info: TypeInformation,
    *,
    fail_on_missing: bool = False,
    is_lenient: bool = False,
    decoding: JsonDecoding = JsonDecoding.STREAM,
) -> Reader:
    """Compile what turns a parsed message into a value of the type.

    Args:
        type_info: The type.
        fail_on_missing: Whether a field that is missing is an error.
        is_lenient: Whether what is wrong within a message becomes None.
        decoding: What becomes of a value of another type.

    Raises:
        JobDefinitionError: The type cannot be read from JSON.
    """
    compiler = _ReaderCompiler(fail_on_missing, is_lenient, decoding)
    # The message as a whole is never None: then it is left out.
    return compiler.strict_reader(type_info)


class _ReaderCompiler:
    def __init__(self, fail_on_missing: bool, is_lenient: bool, decoding: JsonDecoding) -> None:
        self._fails_on_missing = fail_on_missing
        self._is_lenient = is_lenient
        self._is_tree = decoding is JsonDecoding.TREE
        self._others = _READERS[decoding]

    def strict_reader(self, type_info: TypeInformation) -> Reader:
        """Return a reader for what is there, that is not null."""
        if isinstance(type_info, ExternalTypeInfo):
            (type_info,) = type_info._parts()  # type: ignore[assignment]  # the type inside
        if isinstance(type_info, PickledBytesTypeInfo):
            return _read_untyped
        if isinstance(type_info, RowTypeInfo):
            return self._row(type_info)
        if isinstance(type_info, TupleTypeInfo):
            return self._tuple(type_info)
        if isinstance(type_info, MapTypeInfo):
            return self._map(type_info)
        if type_info == _BYTES:
            return _read_bytes_of_tree if self._is_tree else _read_bytes
        if isinstance(type_info, ElementTypeInfo):
            return self._list(type_info)
        return self._others.get(type_info.summary()) or _scalar_reader(type_info)

    def _reader(self, type_info: TypeInformation) -> Reader:
        strict = self.strict_reader(type_info)
        if not self._is_lenient:
            return lambda node: None if node is None else strict(node)

        def read(node: Any) -> Any:
            try:
                return None if node is None else strict(node)
            except ValueError:
                return None

        return read

    def _row(self, type_info: RowTypeInfo) -> Reader:
        names = tuple(type_info.get_field_names())
        readers = [self._reader(each) for each in type_info.get_field_types()]
        fields = list(zip(names, readers, strict=True))
        fails_on_missing = self._fails_on_missing

        def read(node: Any) -> Row:
            if type(node) is not dict:
                raise ValueError(f"expected an object; got {_kind_of(node)}")
            if fails_on_missing and not node.keys() >= set(names):
                missing = [name for name in names if name not in node]
                raise ValueError(f"missing field {', '.join(missing)}")
            get = node.get
            try:
                return make_row(names, [reader(get(name)) for name, reader in fields], 0)
            except ValueError:
                _blame_field(fields, node)
                raise

        return read

    def _tuple(self, type_info: TupleTypeInfo) -> Reader:
        readers = [self._reader(each) for each in type_info.get_field_types()]

        def read(node: Any) -> tuple[Any, ...]:
            if type(node) is not list or len(node) != len(readers):
                raise ValueError(f"expected an array of {len(readers)}; got {_kind_of(node)}")
            return tuple(reader(each) for reader, each in zip(readers, node, strict=True))

        return read

    def _list(self, type_info: ElementTypeInfo) -> Reader:
        # Elements of primitive arrays cannot be None, whatever is tolerated elsewhere.
        is_primitive = isinstance(type_info, PrimitiveArrayTypeInfo)
        element = type_info.element_type
        reader = self.strict_reader(element) if is_primitive else self._reader(element)

        def read(node: Any) -> list[Any]:
            if type(node) is not list:
                raise ValueError(f"expected an array; got {_kind_of(node)}")
            return [reader(each) for each in node]

        return read

    def _map(self, type_info: MapTypeInfo) -> Reader:
        read_key = reader_of(type_info.key_type)
        if read_key is None:
            raise JobDefinitionError(f"JSON: keys of a map must be strings; got {type_info.summary()}")
        read_value = self._reader(type_info.value_type)
        is_tree = self._is_tree

        def read(node: Any) -> dict[Any, Any]:
            if type(node) is not dict:
                if is_tree:
                    return {}
                raise ValueError(f"expected an object; got {_kind_of(node)}")
            return {read_key(key): read_value(value) for key, value in node.items()}

        return read


def _blame_field(fields: list[tuple[str, Reader]], node: dict[str, Any]) -> None:
    """Find the field that is wrong, once it is known that one is: the quick way does not keep track."""
    for name, reader in fields:
        try:
            reader(node.get(name))
        except ValueError as error:
            raise ValueError(f"field {name!r}: {error}") from None


def _read_untyped(node: Any) -> Any:
    """Take a value as it is; one that could not be copied or pickled later on is refused here."""
    if type(node) in (dict, list):
        _check_depth(node, _MOST_NESTED)
    return node


def _check_depth(node: Any, left: int) -> None:
    if not left:
        raise ValueError(f"nested more than {_MOST_NESTED} levels deep")
    for each in node.values() if type(node) is dict else node:
        if type(each) in (dict, list):
            _check_depth(each, left - 1)


def _read_bytes(node: Any) -> bytes:
    if type(node) is not str:
        raise ValueError(f"expected base64; got {_kind_of(node)}")
    try:
        return base64.b64decode(node, validate=True)
    except ValueError as error:
        raise ValueError(f"expected base64: {error}") from None


def _read_bytes_of_tree(node: Any) -> bytes | None:
    return _read_bytes(node) if type(node) is str else None


def _read_text_of_tree(node: Any) -> str:
    """Return a text, of a number as Java writes it."""
    return double_text(float(node)) if isinstance(node, float | Decimal) else text_of(node)


def _read_decimal_of_tree(node: Any) -> Decimal:
    """Return a number, of a text only if there is nothing around it."""
    if type(node) is str and node != node.strip():
        raise ValueError(f"{shorten(node)} is not a number")
    return node if type(node) is Decimal else read_decimal(text_of(node))


def _whole_reader(basic: BasicType) -> Reader:
    """Make what reads whole numbers only: wider types drop what is behind the point."""
    return lambda node: checked_int(read_integer(text_of(node)), basic)


#: What reads scalars otherwise than in the DataStream API, by the summary of their type.
_WORDS: Final[Mapping[str, Reader]] = {
    Types.BYTE().summary(): _whole_reader(BasicType.BYTE),
    Types.SHORT().summary(): _whole_reader(BasicType.SHORT),
}
_READERS: Final[Mapping[JsonDecoding, Mapping[str, Reader]]] = {
    JsonDecoding.STREAM: {},
    JsonDecoding.WORDS: _WORDS,
    JsonDecoding.TREE: {
        **_WORDS,
        Types.STRING().summary(): _read_text_of_tree,
        Types.BIG_DEC().summary(): _read_decimal_of_tree,
    },
}


def _scalar_reader(type_info: TypeInformation) -> Reader:
    from_text = reader_of(type_info)
    if from_text is None:
        raise JobDefinitionError(f"JSON: cannot read values of type {type_info.summary()}")
    if not isinstance(type_info, BasicTypeInfo):
        return _from_text_only(from_text)
    basic = type_info.basic_type
    if basic in (BasicType.STRING, BasicType.CHAR):
        return _read_text
    if basic is BasicType.BOOLEAN:
        return lambda node: node if type(node) is bool else from_text(text_of(node))
    if basic in (BasicType.FLOAT, BasicType.DOUBLE):
        return _float_reader(basic)
    if basic is BasicType.BIG_DEC:
        return lambda node: node if type(node) is Decimal else read_decimal(text_of(node))
    if basic is BasicType.INSTANT:
        return _from_text_only(from_text)
    bounds = limits(basic)
    least, greatest = bounds or (0, -1)  # without bounds every number goes the long way

    def read_int(node: Any) -> int:
        if type(node) is int and least <= node <= greatest:
            return node
        found = _number(node, read_integer)
        return checked_int(found, basic) if type(found) is int else whole_number(found, basic)

    return read_int


def _float_reader(basic: BasicType) -> Reader:
    def read_number(node: Any) -> float:
        if type(node) is float and math.isfinite(node):
            return node
        return read_float(node) if type(node) is str else finite_float(_number(node, read_float), basic)

    return read_number


def _from_text_only(from_text: Callable[[str], Any]) -> Reader:
    def read(node: Any) -> Any:
        if type(node) is not str:
            raise ValueError(f"expected a string; got {_kind_of(node)}")
        return from_text(node)

    return read


def _read_text(node: Any) -> str:
    return node if type(node) is str else text_of(node)


def _number(node: Any, parse: Callable[[str], Any]) -> Any:
    if isinstance(node, int | float | Decimal) and type(node) is not bool:
        return node
    if type(node) is str:
        return parse(node)
    raise ValueError(f"expected a number; got {_kind_of(node)}")


_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def _kind_of(node: Any) -> str:
    return _KINDS.get(type(node), "a number")
