from headrace.datastream.formats.avro import AvroBulkWriters as AvroBulkWriters
from headrace.datastream.formats.avro import AvroRowDeserializationSchema as AvroRowDeserializationSchema
from headrace.datastream.formats.avro import AvroRowSerializationSchema as AvroRowSerializationSchema
from headrace.datastream.formats.avro import AvroSchema as AvroSchema
