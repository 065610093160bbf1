"""The protobuf format: a message is one record of a protobuf message type. Flink's `protobuf`.

Flink finds the type in a generated Java class. Here it is a class that `protoc --python_out` has generated, or a type
of a descriptor set that `protoc --descriptor_set_out` has written. Its definition travels with the job, so workers need
no generated module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.common.serialization import SerializationSchema
from headrace.common.types import Row, make_row
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError
from headrace.formats.base import FormatDeserializationSchema, MadeInEachProcess, row_values
from headrace.formats.protobuf_types import (
    MessageDefinition,
    check_columns,
    definition_from_class,
    definition_from_file,
    is_map,
    map_fields,
)
from headrace.types import logical as t
from headrace.types.type_information import type_information

_Convert = Callable[[Any], Any]
_DESCRIPTOR_SET = "descriptor-set"
_CLASS = "message-class-name"
#: Columns that do not hold every number of an enum.
_SMALL_BITS: dict[type[t.DataType], int] = {t.TinyIntType: 8, t.SmallIntType: 16}
#: Unsigned numbers, by their names in descriptors: rows have numbers with a sign, of the same bits.
_UNSIGNED_BITS = {"TYPE_UINT32": 32, "TYPE_FIXED32": 32, "TYPE_UINT64": 64, "TYPE_FIXED64": 64}


class ProtobufRowDeserializationSchema(MadeInEachProcess, FormatDeserializationSchema):
    """Reads a protobuf message as a row.

    Args:
        definition: The message type.
        row_type: The columns, by names of the message's fields.
        read_default_values: Whether fields that are not set have the default of their type, instead of NULL. A field
            that cannot tell, as proto3's without `optional`, always has its default.
        ignore_parse_errors: Whether messages that cannot be read are left out.

    Raises:
        JobDefinitionError: A column is not a field of the message, or has another type.
    """

    made_here = ("_message_class", "_convert")

    def __init__(
        self,
        definition: MessageDefinition,
        row_type: t.RowType,
        *,
        read_default_values: bool = False,
        ignore_parse_errors: bool = False,
    ) -> None:
        super().__init__(type_information(row_type), ignore_parse_errors=ignore_parse_errors)
        self._definition, self._row_type = definition, row_type
        self._reads_defaults = read_default_values
        self._prepare()

    def _prepare(self) -> None:
        self._message_class = self._definition.message_class()
        check_columns(self._message_class.DESCRIPTOR, self._row_type)
        self._convert = _row_reader(self._message_class.DESCRIPTOR, self._row_type, self._reads_defaults)

    def parse(self, message: bytes) -> Row:
        """Return the row.

        Raises:
            FormatError: The bytes are not a message of the type.
        """
        record = self._message_class()
        try:
            record.ParseFromString(message)
            row: Row = self._convert(record)
        except Exception as error:  # noqa: BLE001 - DecodeError belongs to a library that is imported late
            raise FormatError(
                f"protobuf: expected a message of {self._definition.name}: {error}", example=message
            ) from None
        return row


class ProtobufRowSerializationSchema(MadeInEachProcess, SerializationSchema):
    """Writes a row as a protobuf message. A NULL leaves its field unset.

    Args:
        definition: The message type.
        row_type: The columns, by names of the message's fields.
        null_literal: What stands for a NULL in an array or map of strings; other types have their default there.

    Raises:
        JobDefinitionError: A column is not a field of the message, or has another type.
    """

    made_here = ("_message_class", "_fill")

    def __init__(self, definition: MessageDefinition, row_type: t.RowType, *, null_literal: str = "") -> None:
        self._definition, self._row_type, self._null_literal = definition, row_type, null_literal
        self._prepare()

    def _prepare(self) -> None:
        self._message_class = self._definition.message_class()
        check_columns(self._message_class.DESCRIPTOR, self._row_type)
        self._fill = _row_writer(self._message_class.DESCRIPTOR, self._row_type, self._null_literal)

    def serialize(self, element: Any) -> bytes:
        """Return the message.

        Raises:
            FormatError: The row is not as the columns say, or a required field is NULL.
        """
        record = self._message_class()
        try:
            self._fill(record, element)
            made: bytes = record.SerializeToString(deterministic=True)
        except FormatError:
            raise
        except Exception as error:  # noqa: BLE001 - EncodeError belongs to a library that is imported late
            raise FormatError(
                f"protobuf: expected a row for {self._definition.name}: {error}", example=element
            ) from None
        return made


class ProtobufFormat:
    """'format' = 'protobuf': messages of a generated class, or of a type in a descriptor set."""

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        name, path = options.required(_CLASS), options.text(_DESCRIPTOR_SET)
        self._reads_defaults = options.boolean("read-default-values", default=False)
        self._ignores_errors = options.boolean("ignore-parse-errors", default=False)
        self._null_literal = options.text("write-null-string-literal", "") or ""
        self._definition = definition_from_class(name) if path is None else definition_from_file(path, name)

    def reader(self, row_type: t.RowType) -> ProtobufRowDeserializationSchema:
        return ProtobufRowDeserializationSchema(
            self._definition,
            row_type,
            read_default_values=self._reads_defaults,
            ignore_parse_errors=self._ignores_errors,
        )

    def writer(self, row_type: t.RowType) -> ProtobufRowSerializationSchema:
        return ProtobufRowSerializationSchema(self._definition, row_type, null_literal=self._null_literal)


# --- messages -> rows -----------------------------------------------------------------------------


def _row_reader(descriptor: Any, row_type: t.RowType, reads_defaults: bool) -> _Convert:
    names = tuple(row_type.field_names())
    readers = [
        _field_reader(descriptor.fields_by_name[each.name], each.data_type, reads_defaults)
        for each in row_type
    ]

    def convert(message: Any) -> Row:
        return make_row(names, [read(message) for read in readers], 0)

    return convert


def _field_reader(field: Any, data_type: t.DataType, reads_defaults: bool) -> _Convert:
    name = field.name
    if is_map(field):
        assert isinstance(data_type, t.MapType)
        key, value = map_fields(field)
        read_key = _value_reader(key, data_type.key_type, reads_defaults)
        read_value = _value_reader(value, data_type.value_type, reads_defaults)

        def read_map(message: Any) -> Any:
            found = getattr(message, name)
            if not found and not reads_defaults:
                return None
            return {read_key(each): read_value(found[each]) for each in found}

        return read_map
    if field.is_repeated:
        assert isinstance(data_type, t.ArrayType)
        read_element = _value_reader(field, data_type.element_type, reads_defaults)

        def read_list(message: Any) -> Any:
            found = getattr(message, name)
            return [read_element(each) for each in found] if found or reads_defaults else None

        return read_list
    read = _value_reader(field, data_type, reads_defaults)
    if reads_defaults or not field.has_presence:
        return lambda message: read(getattr(message, name))
    return lambda message: read(getattr(message, name)) if message.HasField(name) else None


def _value_reader(field: Any, data_type: t.DataType, reads_defaults: bool) -> _Convert:
    if isinstance(data_type, t.RowType):
        return _row_reader(field.message_type, data_type, reads_defaults)
    if field.enum_type is not None:
        if isinstance(data_type, t.CharType | t.VarCharType):
            names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
            return lambda number: names.get(number, "UNRECOGNIZED")
        return _number_reader(field, data_type)
    bits = _unsigned_bits(field)
    if bits is not None:
        return lambda value: value - (1 << bits) if value >> (bits - 1) else value
    return _text_reader(field) if field.type == field.TYPE_STRING else _same


def _text_reader(field: Any) -> _Convert:
    """Read texts: those of proto2 are not checked when a message is parsed, and are bytes if they are not texts."""

    def text_of(value: Any) -> str:
        if type(value) is not str:
            raise ValueError(f"{field.full_name}: expected text in UTF-8; got {value!r}")
        return value

    return text_of


def _number_reader(field: Any, data_type: t.DataType) -> _Convert:
    """Read the numbers of an enum: any may come, also from a producer that knows more values."""
    bits = next((bits for kind, bits in _SMALL_BITS.items() if isinstance(data_type, kind)), None)
    if bits is None:
        return int

    def number_of(number: int) -> int:
        if number >> (bits - 1) not in (0, -1):
            raise ValueError(f"{field.full_name}: {number} does not fit {data_type.summary()}")
        return number

    return number_of


def _unsigned_bits(field: Any) -> int | None:
    return next((bits for kind, bits in _UNSIGNED_BITS.items() if field.type == getattr(field, kind)), None)


# --- rows -> messages -----------------------------------------------------------------------------


def _row_writer(descriptor: Any, row_type: t.RowType, null_literal: str) -> Callable[[Any, Any], None]:
    names = row_type.field_names()
    writers = [
        _field_writer(descriptor.fields_by_name[each.name], each.data_type, null_literal) for each in row_type
    ]

    def fill(message: Any, row: Any) -> None:
        for write, value in zip(writers, row_values(row, names, "protobuf"), strict=True):
            if value is not None:
                write(message, value)

    return fill


def _field_writer(field: Any, data_type: t.DataType, null_literal: str) -> Callable[[Any, Any], None]:
    name = field.name
    if is_map(field):
        assert isinstance(data_type, t.MapType)
        return _map_writer(field, data_type, null_literal)
    if field.is_repeated:
        assert isinstance(data_type, t.ArrayType)
        return _list_writer(field, data_type.element_type, null_literal)
    if isinstance(data_type, t.RowType):
        fill = _row_writer(field.message_type, data_type, null_literal)

        def write_message(message: Any, value: Any) -> None:
            inner = getattr(message, name)
            # A message without fields is set, too.
            inner.SetInParent()
            fill(inner, value)

        return write_message
    made = _value_writer(field, data_type)
    return lambda message, value: setattr(message, name, made(value))


def _map_writer(field: Any, data_type: t.MapType, null_literal: str) -> Callable[[Any, Any], None]:
    name = field.name
    key_field, value_field = map_fields(field)
    key, null_key = _value_writer(key_field, data_type.key_type), _default(key_field, null_literal)
    if isinstance(data_type.value_type, t.RowType):
        fill = _row_writer(value_field.message_type, data_type.value_type, null_literal)

        def write_messages(message: Any, values: Any) -> None:
            found = getattr(message, name)
            for each, value in values.items():
                inner = found[null_key if each is None else key(each)]
                if value is not None:
                    fill(inner, value)

        return write_messages
    made, null_value = _value_writer(value_field, data_type.value_type), _default(value_field, null_literal)

    def write_values(message: Any, values: Any) -> None:
        found = getattr(message, name)
        for each, value in values.items():
            found[null_key if each is None else key(each)] = null_value if value is None else made(value)

    return write_values


def _list_writer(field: Any, element_type: t.DataType, null_literal: str) -> Callable[[Any, Any], None]:
    name = field.name
    if isinstance(element_type, t.RowType):
        fill = _row_writer(field.message_type, element_type, null_literal)

        def write_messages(message: Any, values: Any) -> None:
            found = getattr(message, name)
            for value in values:
                inner = found.add()
                if value is not None:
                    fill(inner, value)

        return write_messages
    made, null_value = _value_writer(field, element_type), _default(field, null_literal)

    def write_values(message: Any, values: Any) -> None:
        getattr(message, name).extend(null_value if each is None else made(each) for each in values)

    return write_values


def _value_writer(field: Any, data_type: t.DataType) -> _Convert:
    if field.enum_type is not None and isinstance(data_type, t.CharType | t.VarCharType):
        numbers: dict[str, int] = {each.name: each.number for each in field.enum_type.values}

        def number_of(name: str) -> int:
            if name not in numbers:
                raise FormatError(
                    f"protobuf: enum {field.enum_type.full_name} has no value {name!r}",
                    hint=f"available: {', '.join(numbers)}",
                )
            return numbers[name]

        return number_of
    bits = _unsigned_bits(field)
    if bits is not None:
        return lambda value: value & ((1 << bits) - 1)
    return bytes if isinstance(data_type, t.BinaryType | t.VarBinaryType) else _same


def _default(field: Any, null_literal: str) -> Any:
    """Return what stands for a NULL in an array or a map, which have none."""
    if field.type == field.TYPE_STRING:
        return null_literal
    if field.enum_type is not None:
        return field.enum_type.values[0].number
    return b"" if field.type == field.TYPE_BYTES else 0


def _same(value: Any) -> Any:
    return value


__all__ = [
    "ProtobufFormat",
    "ProtobufRowDeserializationSchema",
    "ProtobufRowSerializationSchema",
]
