"""Connectors under PyFlink's names: `pyflink.datastream.connectors`.

What PyFlink has and headrace has not yet is named in a table here. Importing such a name says so, instead
of leaving people with a module that is not found.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from headrace.common._missing import MissingNameError
from headrace.datastream.connectors.base import DeliveryGuarantee, Sink, Source
from headrace.pyflink_alias import name_from_elsewhere

__all__ = ["DeliveryGuarantee", "Sink", "Source"]

#: Modules of PyFlink that are missing, with their names. A connector that arrives takes its row out.
_MISSING = {
    "cassandra": "CassandraSink ConsistencyLevel MapperOptions ClusterBuilder CassandraCommitter "
    "CassandraFailureHandler",
    "dynamic_kafka": "DynamicKafkaSource DynamicKafkaSourceBuilder KafkaMetadataService "
    "KafkaRecordDeserializationSchema KafkaStreamSetSubscriber KafkaStreamSubscriber "
    "StreamPatternSubscriber SingleClusterTopicMetadataService",
    "elasticsearch": "FlushBackoffType ElasticsearchEmitter Elasticsearch6SinkBuilder "
    "Elasticsearch7SinkBuilder ElasticsearchSink ElasticsearchSinkBuilderBase",
    "kinesis": "KinesisShardAssigner KinesisDeserializationSchema WatermarkTracker PartitionKeyGenerator "
    "FlinkKinesisConsumer KinesisStreamsSink KinesisStreamsSinkBuilder KinesisFirehoseSink "
    "KinesisFirehoseSinkBuilder",
    "pulsar": "PulsarSource PulsarSourceBuilder StartCursor StopCursor RangeGenerator PulsarSink "
    "PulsarSinkBuilder MessageDelayer TopicRoutingMode",
    "rabbitmq": "RMQConnectionConfig RMQSource RMQSink",
}


class _MissingModule(ModuleType):
    """A placeholder for a module of PyFlink: accessing any of its names raises an error."""

    def __getattr__(self, name: str) -> Any:
        module = self.__name__.replace("headrace", "pyflink", 1)
        if name in self.__all__:
            raise MissingNameError.not_yet(
                f"{module}.{name}",
                "write a Source or Sink of your own (headrace.connectors.base), or use PythonSource and "
                "FunctionSink (headrace.connectors.function_source)",
            )
        raise AttributeError(f"module {module!r} has no attribute {name!r}")


def _stand_in(name: str, names: str) -> None:
    module = _MissingModule(f"{__name__}.{name}", f"`{name}` of PyFlink, not supported yet.")
    module.__dict__["__all__"] = names.split()
    sys.modules.setdefault(module.__name__, module)


for _name, _names in _MISSING.items():
    _stand_in(_name, _names)

if not TYPE_CHECKING:  # checkers should go on to report what is in none of the modules

    def __getattr__(name: str) -> Any:
        """Look up what PyFlink has here, too, when it is asked for: a program imports the connectors it uses."""
        return name_from_elsewhere("datastream.connectors", name)
