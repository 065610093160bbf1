from headrace.datastream.connectors import DeliveryGuarantee as DeliveryGuarantee
from headrace.datastream.connectors import Sink as Sink
from headrace.datastream.connectors import Source as Source
