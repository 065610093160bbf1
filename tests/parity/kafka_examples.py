"""Flink's Kafka examples, prepared to run: with a broker's address instead of localhost:9092, and jars that exist.

The examples as they come name jars that nobody has (`/path/to/…`). PyFlink gets Flink's own, from Maven; headrace
passes them over. Each side has a topic of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kafka import KafkaBroker, NoBrokerError, cached_jars, run_broker

#: The last one that was published for Flink 2.
_CONNECTOR = ("flink-sql-connector-kafka", "4.0.1-2.0")
#: PyFlink 2.3 calls AvroRowSerializationSchema, which no Avro jar for Flink 2 has (2.0.0 to 2.3.0), so its own example
#: fails. That of flink-sql-avro 1.20.0 is there in a plain Java process on Flink 2.3 once joda-time and the class
#: TypeInformationRawType of flink-table-common 1.20 are on the class path; PyFlink's gateway ends when asked for it.
_AVRO = ("flink-sql-avro", "2.0.0")
_TOPIC = re.compile(r"(?:set_topics?\(|'topic' = )['\"]([\w-]+)['\"]")
_JAR = re.compile(r"file:///path/to/(flink-sql-[a-z-]+?)-\d[\d.]*\.jar")


@dataclass(frozen=True)
class KafkaPlace:
    """What examples run against."""

    broker: KafkaBroker

    def prepared(self, program: Path, side: str, directory: Path) -> Path:
        """Write the example for one side, make its topic, and return where it is."""
        text = program.read_text(encoding="utf-8").replace("localhost:9092", self.broker.address)
        for topic in set(_TOPIC.findall(text)):
            own = f"{topic}-{side}"
            text = re.sub(rf"(['\"]){topic}(['\"])", rf"\g<1>{own}\g<2>", text)
            self.broker.create_topic(name=own)
        written = directory / program.name
        written.write_text(_JAR.sub(lambda found: f"file://{_jar(found[1])}", text), encoding="utf-8")
        return written


def _jar(module: str) -> Path:
    """Return a jar of Flink's, with all it needs in it."""
    name, version = _AVRO if module == _AVRO[0] else _CONNECTOR
    directory = cached_jars(f"{name}-{version}", "org.apache.flink", name, version)
    return next(directory.glob(f"{name}-*.jar"))


@contextmanager
def kafka_place() -> Iterator[KafkaPlace | None]:
    """Run a broker; None if there can be none here."""
    with ExitStack() as stack:
        place = None
        try:
            place = KafkaPlace(stack.enter_context(run_broker()))
        except NoBrokerError as error:
            print(f"examples that need Kafka are left out: {error}", flush=True)
        yield place
