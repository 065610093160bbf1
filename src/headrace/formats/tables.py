"""Formats of records in tables: 'format' = 'json', with its options, for a connector that reads and writes messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headrace.common.serialization import DeserializationSchema, SerializationSchema
from headrace.config.table_options import TableOptions
from headrace.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from headrace.formats.avro_types import avro_schema
from headrace.formats.csv import CsvDialect, CsvRowDeserializationSchema, CsvRowSerializationSchema
from headrace.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from headrace.formats.raw import Endianness, RawDeserializationSchema, RawSerializationSchema
from headrace.types.logical import DataType
from headrace.types.type_information import row_type_information

__all__ = ["MessageFormat"]

_FORMATS: Final = ("json", "csv", "avro", "raw")


@dataclass(frozen=True)
class MessageFormat:
    """One format of a table.

    Args:
        options: Of the table.
        kind: json, csv, avro or raw.
        prefix: In front of the format's own options: ``key.`` or ``value.`` where the format is named so.
    """

    options: TableOptions
    kind: str
    prefix: str = ""

    @staticmethod
    def named(options: TableOptions, *keys: str) -> MessageFormat:
        """Return the format that one of the options names; the first that is set.

        Raises:
            SqlValidationError: None is set, or it names no format there is.
        """
        key = next((key for key in keys if options.text(key) is not None), keys[0])
        kind = options.required(key)
        if kind not in _FORMATS:
            raise options.wrong(key, f"one of {', '.join(_FORMATS)}")
        return MessageFormat(options, kind, key.removesuffix("format"))

    def reader(self, names: Sequence[str], types: Sequence[DataType]) -> DeserializationSchema:
        """Return what reads rows of these columns."""
        row = row_type_information(names, types)
        lenient = self.kind in ("json", "csv") and self._boolean("ignore-parse-errors")
        match self.kind:
            case "json":
                self._timestamp_format()  # both are read
                return JsonRowDeserializationSchema(
                    row,
                    fail_on_missing_field=self._boolean("fail-on-missing-field"),
                    ignore_parse_errors=lenient,
                )
            case "csv":
                return CsvRowDeserializationSchema(row, self._dialect(), ignore_parse_errors=lenient)
            case "avro":
                return AvroRowDeserializationSchema(avro_schema_string=avro_schema(names, types))
        return RawDeserializationSchema(row, charset=self._charset(), endianness=self._endianness())

    def writer(self, names: Sequence[str], types: Sequence[DataType]) -> SerializationSchema:
        """Return what writes rows of these columns."""
        row = row_type_information(names, types)
        match self.kind:
            case "json":
                self._boolean("fail-on-missing-field")  # these are for reading
                self._boolean("ignore-parse-errors")
                return JsonRowSerializationSchema(row, timestamp_format=self._timestamp_format())
            case "csv":
                self._boolean("ignore-parse-errors")
                return CsvRowSerializationSchema(row, self._dialect())
            case "avro":
                return AvroRowSerializationSchema(avro_schema_string=avro_schema(names, types))
        return RawSerializationSchema(row, charset=self._charset(), endianness=self._endianness())

    def _key(self, name: str) -> str:
        return f"{self.prefix}{self.kind}.{name}"

    def _boolean(self, name: str) -> bool:
        return self.options.boolean(self._key(name), default=False)

    def _timestamp_format(self) -> str:
        key = self._key("timestamp-format.standard")
        given = self.options.text(key, "SQL") or "SQL"
        if given not in ("SQL", "ISO-8601"):
            raise self.options.wrong(key, "SQL or ISO-8601")
        return given

    def _dialect(self) -> CsvDialect:
        text = self.options.text
        is_quoted = not self.options.boolean(self._key("disable-quote-character"), default=False)
        return CsvDialect(
            field_delimiter=text(self._key("field-delimiter"), ",") or ",",
            array_element_delimiter=text(self._key("array-element-delimiter"), ";") or ";",
            quote_character=(text(self._key("quote-character"), '"') or '"') if is_quoted else None,
            escape_character=text(self._key("escape-character")),
            null_literal=text(self._key("null-literal")),
            allow_comments=self._boolean("allow-comments"),
            line_delimiter="",
        )

    def _charset(self) -> str:
        return self.options.text(self._key("charset"), "UTF-8") or "UTF-8"

    def _endianness(self) -> Endianness:
        key = self._key("endianness")
        given = self.options.text(key, "big-endian")
        if given == "little-endian":
            return "little-endian"
        if given != "big-endian":
            raise self.options.wrong(key, "big-endian or little-endian")
        return "big-endian"
