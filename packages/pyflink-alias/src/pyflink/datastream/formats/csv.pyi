from headrace.datastream.formats.csv import CsvBulkWriters as CsvBulkWriters
from headrace.datastream.formats.csv import CsvReaderFormat as CsvReaderFormat
from headrace.datastream.formats.csv import CsvRowDeserializationSchema as CsvRowDeserializationSchema
from headrace.datastream.formats.csv import CsvRowSerializationSchema as CsvRowSerializationSchema
from headrace.datastream.formats.csv import CsvSchema as CsvSchema
from headrace.datastream.formats.csv import CsvSchemaBuilder as CsvSchemaBuilder
