"""Apache Kafka, under PyFlink's names: `pyflink.datastream.connectors.kafka`.

What PyFlink leaves to Java, records with their keys and headers, goes with them.
"""

from __future__ import annotations

from headrace.common._missing import missing_names
from headrace.connectors import kafka
from headrace.connectors.kafka import *  # noqa: F403 - PyFlink's place for all of it

__all__: list[str] = []
__all__ += kafka.__all__

__getattr__ = missing_names(__name__)
