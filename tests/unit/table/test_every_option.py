"""Every option that a connector or format accepts makes a difference to what reads, writes or looks up its tables.

The options are those that factories ask for while they make a table, with values of the kind that they ask for. What is
made with one value must not be the same as what is made with another, or without the option; being refused is a
difference, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark import cloudpickle

from headrace.catalog.objects import CatalogTable, Column, PhysicalColumn, PrimaryKey
from headrace.config.table_options import TableOptions
from headrace.connectors.tables import TableRequest
from headrace.errors import HeadraceError
from headrace.table._connectors import CONNECTORS
from headrace.types import DataTypes

COLUMNS: Final = (
    PhysicalColumn("id", DataTypes.BIGINT().not_null()),
    PhysicalColumn("name", DataTypes.STRING()),
)


class RecordingOptions(TableOptions):
    """Notes which options are read, and as what."""

    kinds: dict[str, Any]

    def text(self, key: str, default: str | None = None) -> str | None:
        self.kinds.setdefault(self._prefix + key, "text")
        return super().text(key, default)

    def choice(self, key: str, values: Sequence[str], default: str) -> str:
        self.kinds[self._prefix + key] = tuple(values)
        return super().choice(key, values, default)

    def integer(self, key: str) -> int | None:
        self.kinds[self._prefix + key] = ("7", "8", "0", "-1")
        return super().integer(key)

    def number(self, key: str) -> float | None:
        self.kinds[self._prefix + key] = ("0.5", "0.25", "7", "8")
        return super().number(key)

    def boolean(self, key: str, *, default: bool) -> bool:
        self.kinds[self._prefix + key] = ("true", "false")
        return super().boolean(key, default=default)

    def duration(self, key: str) -> Any:
        self.kinds[self._prefix + key] = ("7 s", "8 s")
        return super().duration(key)

    def memory(self, key: str) -> Any:
        self.kinds[self._prefix + key] = ("7 mb", "8 mb")
        return super().memory(key)


@dataclass
class Case:
    """A table whose options are tried."""

    options: Mapping[str, str]
    columns: tuple[Column, ...] = COLUMNS
    key: str | None = None
    partitions: tuple[str, ...] = ()
    kinds: dict[str, Any] = field(default_factory=dict)

    def made(self, more: Mapping[str, str]) -> tuple[bytes, ...]:
        """Return what the connector makes of the table, or how it refuses to."""
        options = {**self.options, **more}
        primary = None if self.key is None else PrimaryKey("pk", (self.key,))
        table = CatalogTable(self.columns, options, primary_key=primary, partition_keys=self.partitions)
        factory = CONNECTORS.make(options["connector"])
        made: list[bytes] = []
        for use, arguments in (("source", ()), ("sink", ()), ("lookup", (["id"],))):
            recorded = RecordingOptions("t", options)
            recorded.kinds = self.kinds
            if not hasattr(factory, use):
                continue
            try:
                product = getattr(factory, use)(TableRequest("t", table, recorded), *arguments)
                recorded.check()
            except HeadraceError as error:
                made.append(str(error).encode())
            else:
                made.append(cloudpickle.dumps(product))
        with suppress(HeadraceError, AttributeError):
            made.append(repr(factory.ability(table)).encode())
        return tuple(made)


def cases(folder: Path) -> dict[str, Case]:
    """Return a table of every connector and format, with everything that it needs."""
    descriptors = folder / "shop.desc"
    descriptors.write_bytes(_descriptors())
    kafka = {
        "connector": "kafka",
        "properties.bootstrap.servers": "localhost:1",
        "topic": "t",
        "properties.group.id": "g",
    }
    needs = {
        "avro-confluent": {"avro-confluent.url": "http://localhost:1"},
        "debezium-avro-confluent": {"debezium-avro-confluent.url": "http://localhost:1"},
        "protobuf": {
            "protobuf.message-class-name": "shop.Order",
            "protobuf.descriptor-set": str(descriptors),
        },
    }
    files = {"connector": "filesystem", "path": str(folder)}
    jdbc = {"connector": "jdbc", "url": f"jdbc:sqlite:{folder}/db", "table-name": "t"}
    cdc = {
        "connector": "postgres-cdc",
        "hostname": "h",
        "username": "u",
        "password": "p",
        "database-name": "d",
    }
    timed = (*COLUMNS, PhysicalColumn("at", DataTypes.TIMESTAMP(3)))
    found = {f"kafka {name}": Case({**kafka, "format": name, **needs.get(name, {})}) for name in FORMATS}
    found |= {
        f"filesystem {name}": Case({**files, "format": name}, timed, partitions=("name",))
        for name in ("csv", "json", "parquet", "orc", "avro")
    }
    keyed = {**kafka, "value.format": "json", "key.format": "json"}
    return found | {
        "kafka avro": Case({**kafka, "format": "avro"}, timed),
        "kafka raw": Case({**kafka, "format": "raw"}, COLUMNS[1:]),
        "kafka with keys": Case({**keyed, "key.fields": "id"}),
        "upsert-kafka": Case({**keyed, "connector": "upsert-kafka"}, key="id"),
        "files that are looked up": Case({**files, "format": "json"}),
        "jdbc": Case(jdbc),
        "jdbc with a key": Case(jdbc, key="id"),
        "datagen": Case({"connector": "datagen"}),
        "print": Case({"connector": "print"}),
        "blackhole": Case({"connector": "blackhole"}),
        "postgres-cdc": Case({**cdc, "schema-name": "s", "table-name": "t", "slot.name": "s"}, key="id"),
    }


FORMATS: Final = (
    *(
        "csv",
        "json",
        "avro-confluent",
        "canal-json",
        "debezium-json",
        "debezium-avro-confluent",
        "maxwell-json",
    ),
    *("ogg-json", "protobuf"),
)
#: What else has to be set for an option to be allowed, or for its value to matter; and values that it may have.
NEEDS: Final[Mapping[str, Mapping[str, str]]] = {
    "compaction.file-size": {"auto-compaction": "true"},
    "sink.partition-commit.delay": {"sink.partition-commit.policy.kind": "success-file"},
    "sink.partition-commit.success-file.name": {"sink.partition-commit.policy.kind": "success-file"},
    "partition.time-extractor.timestamp-formatter": {
        "sink.partition-commit.trigger": "partition-time",
        "sink.partition-commit.policy.kind": "success-file",
    },
    "partition.time-extractor.timestamp-pattern": {
        "sink.partition-commit.trigger": "partition-time",
        "sink.partition-commit.policy.kind": "success-file",
    },
    "lookup.cache.caching-missing-key": {"lookup.cache.max-rows": "5", "lookup.cache.ttl": "5 s"},
    "lookup.cache.max-rows": {"lookup.cache.ttl": "5 s"},
    "lookup.cache.ttl": {"lookup.cache.max-rows": "5"},
    "lookup.full-cache.timed-reload.interval-in-days": {
        "lookup.cache": "FULL",
        "lookup.full-cache.reload-strategy": "TIMED",
        "lookup.full-cache.timed-reload.iso-time": "10:15",
    },
    "lookup.full-cache.timed-reload.iso-time": {
        "lookup.cache": "FULL",
        "lookup.full-cache.reload-strategy": "TIMED",
    },
    "scan.bounded.specific-offsets": {"scan.bounded.mode": "specific-offsets"},
    "scan.bounded.timestamp-millis": {"scan.bounded.mode": "timestamp"},
    "scan.startup.specific-offsets": {"scan.startup.mode": "specific-offsets"},
    "scan.startup.timestamp-millis": {"scan.startup.mode": "timestamp"},
    "key.fields": {"key.format": "json"},
    "key.format": {"key.fields": "id"},
    "value.fields-include": {"key.format": "json", "key.fields": "id"},
    "key.fields-prefix": {"value.fields-include": "EXCEPT_KEY", "key.format": "json", "key.fields": "id"},
    "sink.buffer-flush.interval": {"sink.buffer-flush.max-rows": "5"},
    **{
        f"scan.partition.{each}": {
            **{"scan.partition.column": "id", "scan.partition.num": "3"},
            **{"scan.partition.lower-bound": "1", "scan.partition.upper-bound": "9"},
        }
        for each in ("column", "num", "lower-bound", "upper-bound")
    },
}
VALUES: Final[Mapping[str, Sequence[str]]] = {
    "lookup.full-cache.timed-reload.iso-time": ("10:15", "11:15"),
    "scan.bounded.specific-offsets": ("partition:0,offset:4", "partition:0,offset:5"),
    "scan.startup.specific-offsets": ("partition:0,offset:4", "partition:0,offset:5"),
    "scan.bounded.timestamp-millis": ("1000", "2000"),
    "scan.startup.timestamp-millis": ("1000", "2000"),
    "key.fields": ("id", "name"),
    "key.fields-prefix": ("i", "id"),
    "key.format": ("json", "csv"),
    "sink.partition-commit.delay": ("1 s", "2 s"),
    "raw.charset": ("UTF-8", "UTF-16"),
}
#: What makes no difference, and why that is Flink's behaviour.
MAKES_NO_DIFFERENCE: Final = {
    ("filesystem avro", "source.report-statistics"): "Flink has no statistics of Avro files either",
}


#: Options that only tables with partitions have; these on the other hand refuse lookups.
OF_PARTITIONS: Final = ("partition.", "sink.partition-commit.", "sink.shuffle-by-partition.")
PICKLED: Final = b"\x80"


def _descriptors() -> bytes:
    descriptor_pb2: Any = pytest.importorskip("google.protobuf.descriptor_pb2")
    files = descriptor_pb2.FileDescriptorSet()
    message = files.file.add(name="a.proto", package="shop", syntax="proto3").message_type.add(name="Order")
    message.field.add(name="id", number=1, type="TYPE_INT64", label="LABEL_OPTIONAL")
    message.field.add(name="name", number=2, type="TYPE_STRING", label="LABEL_OPTIONAL")
    encoded: bytes = files.SerializeToString()
    return encoded


def test_every_option_makes_a_difference(tmp_path: Path) -> None:
    same: set[tuple[str, str]] = set()
    #: Options of kafka tables that were tried: they are the same for all formats.
    of_kafka: set[str] = set()
    tried = 0
    for name, case in cases(tmp_path).items():
        usual = case.made({})
        assert usual == case.made({}), f"{name}: what is made is never the same"
        assert any(each.startswith(PICKLED) for each in usual), f"{name}: {usual!r}"
        for key, kind in sorted(case.kinds.items()):
            needs, values = NEEDS.get(key, {}), VALUES.get(key, ("aa", "bb") if kind == "text" else kind)
            is_elsewhere = key.startswith("lookup." if case.partitions else OF_PARTITIONS)
            is_known = name.startswith("kafka ") and (key in of_kafka)
            if is_elsewhere or is_known or not any(each.startswith(PICKLED) for each in case.made(needs)):
                continue
            if name.startswith("kafka "):
                of_kafka.add(key)
            tried += 1
            if len({case.made(needs), *(case.made({**needs, key: value}) for value in values)}) == 1:
                same.add((name, key))
    assert tried > 250
    assert same == set(MAKES_NO_DIFFERENCE)
