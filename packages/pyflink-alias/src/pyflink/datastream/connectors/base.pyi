from headrace.datastream.connectors.base import DeliveryGuarantee as DeliveryGuarantee
from headrace.datastream.connectors.base import Sink as Sink
from headrace.datastream.connectors.base import Source as Source
from headrace.datastream.connectors.base import StreamTransformer as StreamTransformer
from headrace.datastream.connectors.base import SupportsPreprocessing as SupportsPreprocessing
