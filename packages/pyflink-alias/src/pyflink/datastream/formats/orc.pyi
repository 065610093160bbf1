from headrace.common.serialization import BulkWriterFactory as BulkWriterFactory
from headrace.common.configuration import Configuration as Configuration
from headrace.datastream.formats.orc import OrcBulkWriters as OrcBulkWriters
from headrace.common.serialization import RowDataBulkWriterFactory as RowDataBulkWriterFactory
