"""Avro with a schema registry: Confluent's wire format, which names the writer's schema in every message.

0 | number of the schema, 4 bytes | record
"""

from __future__ import annotations

import io
import struct
from typing import Any, ClassVar, Final

import msgspec

from headrace.common.serialization import SerializationSchema
from headrace.common.types import Row
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError, JobDefinitionError
from headrace.formats._registry import RegistryAddress, SchemaRegistry
from headrace.formats.avro import (
    RecordReader,
    RecordWriter,
    Schema,
    fastavro,
    parse_schema,
    record_schema,
    type_of,
)
from headrace.formats.avro_types import avro_schema
from headrace.formats.base import FormatDeserializationSchema, MadeInEachProcess
from headrace.types.logical import RowType

_MAGIC = 0
_HEADER = struct.Struct(">bI")
#: Options of Flink that cannot be honoured.
_REFUSED: Final = (
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "bearer-auth.credentials-source",
    "bearer-auth.token",
)


class ConfluentRegistryAvroRowDeserializationSchema(MadeInEachProcess, FormatDeserializationSchema):
    """Reads Avro records whose schemas are in a registry, as rows of one schema.

    Messages that were written with other schemas are resolved to it, as far as Avro's rules allow.

    Args:
        avro_schema_string: The schema of the rows, as JSON.
        url: Where the registry is.
        basic_auth_user_info: `user:password` for it; never shown.
        ignore_parse_errors: Whether messages that cannot be read are left out.

    Raises:
        JobDefinitionError: The schema does not describe a record, or the URL is not valid.
    """

    made_here = ("_reader", "_registry", "_writer_schemas")

    def __init__(
        self,
        avro_schema_string: str,
        url: str,
        *,
        basic_auth_user_info: str | None = None,
        ignore_parse_errors: bool = False,
    ) -> None:
        self._schema = record_schema(None, avro_schema_string, type(self).__name__)
        self._address = RegistryAddress(url, basic_auth_user_info)
        super().__init__(type_of(self._schema), ignore_parse_errors=ignore_parse_errors)
        self._prepare()

    def _prepare(self) -> None:
        self._reader = RecordReader(self._schema)
        self._registry = SchemaRegistry(self._address)
        self._writer_schemas: dict[int, Schema] = {}

    def parse(self, message: bytes) -> Row:
        """Return the row.

        Raises:
            FormatError: The message has another form, or is not a record of its schema.
            ConnectorError: The registry cannot be asked.
        """
        if len(message) < _HEADER.size or message[0] != _MAGIC:
            raise FormatError(
                "avro-confluent: expected a zero byte and a schema id",
                example=message,
                hint="if the messages were written without a schema registry, use AvroRowDeserializationSchema",
            )
        _, number = _HEADER.unpack_from(message)
        schema = self._writer_schemas.get(number)
        if schema is None:
            schema = self._writer_schemas[number] = self._writer_schema(number)
        stream = io.BytesIO(message)
        stream.seek(_HEADER.size)
        return self._reader.read(stream, schema, message)

    def _writer_schema(self, number: int) -> Schema:
        try:
            return parse_schema(self._registry.schema(number))
        except JobDefinitionError as error:
            raise FormatError(f"avro-confluent: schema {number}: {error.message}") from None


class ConfluentRegistryAvroRowSerializationSchema(MadeInEachProcess, SerializationSchema):
    """Writes rows as Avro records whose schema is in a registry.

    Args:
        subject: What the schema is registered under; for the values of a topic, `topic-value`.
        avro_schema_string: The schema, as JSON.
        url: Where the registry is.
        basic_auth_user_info: `user:password` for it; never shown.

    Raises:
        JobDefinitionError: The schema does not describe a record, or the URL is not valid.
    """

    made_here = ("_writer", "_registry", "_header")

    def __init__(
        self, subject: str, avro_schema_string: str, url: str, *, basic_auth_user_info: str | None = None
    ) -> None:
        self._subject = subject
        # As the user wrote it: what fastavro makes of it is for fastavro.
        self._schema_string = avro_schema_string
        self._schema = record_schema(None, avro_schema_string, type(self).__name__)
        self._address = RegistryAddress(url, basic_auth_user_info)
        self._prepare()

    def _prepare(self) -> None:
        self._writer = RecordWriter(self._schema)
        self._registry = SchemaRegistry(self._address)
        self._header: bytes | None = None

    def serialize(self, element: Any) -> bytes:
        """Return the message.

        Raises:
            FormatError: The row is not as the schema says.
            ConnectorError: The registry cannot be asked, or refuses the schema.
        """
        if self._header is None:
            text = msgspec.json.encode(msgspec.json.decode(self._schema_string)).decode()
            self._header = _HEADER.pack(_MAGIC, self._registry.register(self._subject, text))
        stream = io.BytesIO()
        stream.write(self._header)
        self._writer.write(stream, element)
        return stream.getvalue()


class AvroConfluentFormat:
    """'format' = 'avro-confluent': the schema follows from the columns, and is registered when it is first written."""

    #: Flink's name of the format.
    name: ClassVar[str] = "avro-confluent"

    def __init__(self, options: TableOptions) -> None:
        fastavro()
        self._options = options
        self._default_subject: str | None = None

    def default_subject(self, subject: str) -> None:
        """Say under which subject the schema is registered, unless the options do."""
        self._default_subject = subject

    def reader(self, row_type: RowType) -> ConfluentRegistryAvroRowDeserializationSchema:
        url, user_info = self._registry()
        self._options.text("subject")  # for writing
        return ConfluentRegistryAvroRowDeserializationSchema(
            self._schema(row_type), url, basic_auth_user_info=user_info
        )

    def writer(self, row_type: RowType) -> ConfluentRegistryAvroRowSerializationSchema:
        url, user_info = self._registry()
        subject = self._options.text("subject", self._default_subject)
        if subject is None:
            subject = self._options.required("subject")
        return ConfluentRegistryAvroRowSerializationSchema(
            subject, self._schema(row_type), url, basic_auth_user_info=user_info
        )

    def _schema(self, row_type: RowType) -> str:
        given = self._options.text("schema")
        derived = avro_schema(row_type)
        if given is None:
            return derived
        names = [each["name"] for each in record_schema(None, given, f"{self.name}.schema")["fields"]]
        if names != row_type.field_names():
            raise self._options.wrong(
                "schema", f"a record with the fields {', '.join(row_type.field_names())}"
            )
        return given

    def _registry(self) -> tuple[str, str | None]:
        source = self._options.text("basic-auth.credentials-source")
        if source not in (None, "USER_INFO", "URL"):
            raise self._options.wrong("basic-auth.credentials-source", "USER_INFO or URL")
        user_info = self._options.text("basic-auth.user-info")
        for key in _REFUSED:
            self._options.refuse(
                key,
                "certificates are those of the system, and only a user name and password can be sent",
                "set SSL_CERT_FILE for a certificate authority of your own",
            )
        return self._options.required("url"), user_info
