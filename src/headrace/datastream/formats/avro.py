"""Rows as Avro, under PyFlink's names: `pyflink.datastream.formats.avro`.

Those of the schema registry, which PyFlink does not have, go with them.
"""

from __future__ import annotations

from headrace.common._missing import missing_names
from headrace.connectors.file.avro import AvroBulkFormat, AvroBulkWriters, AvroSchema
from headrace.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from headrace.formats.avro_confluent import (
    ConfluentRegistryAvroRowDeserializationSchema,
    ConfluentRegistryAvroRowSerializationSchema,
)

__all__ = [
    "AvroBulkFormat",
    "AvroBulkWriters",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "ConfluentRegistryAvroRowDeserializationSchema",
    "ConfluentRegistryAvroRowSerializationSchema",
]

__getattr__ = missing_names(
    __name__, "GenericRecordAvroTypeInfo", AvroInputFormat="use FileSource with AvroBulkFormat(schema)"
)
