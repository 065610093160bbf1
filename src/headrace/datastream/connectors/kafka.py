"""Apache Kafka, under PyFlink's names: `pyflink.datastream.connectors.kafka`.

What PyFlink leaves to Java, records with their keys and headers, goes with them.
"""

from __future__ import annotations

from headrace.connectors import kafka
from headrace.connectors.kafka import *  # noqa: F403 - PyFlink's place for all of it
from headrace.datastream._missing import missing_names

__all__: list[str] = []
__all__ += kafka.__all__

_NEWER = "Flink's older connector; KafkaSource and KafkaSink with from_source and sink_to do the same"
__getattr__ = missing_names(
    __name__,
    FlinkKafkaConsumer=_NEWER,
    FlinkKafkaConsumerBase=_NEWER,
    FlinkKafkaProducer=_NEWER,
    FlinkKafkaProducerBase=_NEWER,
    Semantic=_NEWER,
)
