from headrace.datastream.connectors.number_seq import NumberSequenceSource as NumberSequenceSource
from headrace.datastream.connectors.base import Source as Source
