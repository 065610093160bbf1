from headrace.datastream.formats.orc import OrcBulkWriters as OrcBulkWriters
