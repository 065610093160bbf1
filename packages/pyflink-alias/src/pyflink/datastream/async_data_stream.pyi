from headrace.datastream.async_data_stream import AsyncDataStream as AsyncDataStream
from headrace.datastream.functions import AsyncFunction as AsyncFunction
from headrace.datastream.functions import AsyncFunctionDescriptor as AsyncFunctionDescriptor
from headrace.datastream.functions import AsyncRetryStrategy as AsyncRetryStrategy
from headrace.datastream.data_stream import DataStream as DataStream
from headrace.common.time import Time as Time
from headrace.common.typeinfo import TypeInformation as TypeInformation
