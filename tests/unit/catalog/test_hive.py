"""The Hive catalog over a metastore in memory: what is kept of tables, views and functions, and what comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.catalog.catalog import Catalog
from headrace.catalog.functions import CatalogFunction
from headrace.catalog.hive import HiveColumn, HiveTable, MetastoreCatalog
from headrace.catalog.hive_types import from_hive_type, to_hive_type
from headrace.catalog.objects import (
    CatalogDatabase,
    CatalogTable,
    CatalogView,
    ComputedColumn,
    MetadataColumn,
    PhysicalColumn,
    PrimaryKey,
    WatermarkSpec,
)
from headrace.errors import CatalogError
from headrace.planner.dialect.cursor import Cursor
from headrace.planner.dialect.types import parse_type
from headrace.types import DataTypes as D

PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"


class MetastoreInMemory:
    """Keeps what it is told, and places tables as Hive does."""

    def __init__(self) -> None:
        self._databases = {"default": CatalogDatabase()}
        self.kept: dict[tuple[str, str], HiveTable] = {}
        self._functions: dict[tuple[str, str], str] = {}
        self.partitions: list[str] = []
        self.deleted: list[str] = []

    def databases(self) -> list[str]:
        return list(self._databases)

    def database(self, name: str) -> CatalogDatabase | None:
        return self._databases.get(name)

    def put_database(self, name: str, database: CatalogDatabase) -> None:
        self._databases[name] = database

    def drop_database(self, name: str) -> None:
        del self._databases[name]

    def tables(self, database: str) -> list[str]:
        return [name for place, name in self.kept if place == database]

    def views(self, database: str) -> list[str]:
        return [name for name in self.tables(database) if self.kept[database, name].view is not None]

    def table(self, database: str, name: str) -> HiveTable | None:
        return self.kept.get((database, name))

    def put_table(self, database: str, name: str, table: HiveTable) -> None:
        place = table.location or f"file:/warehouse/{database}.db/{name}"
        reader = {"parquet": PARQUET, "orc": "OrcInputFormat", "csv": "mapred.TextInputFormat"}
        self.kept[database, name] = replace(table, location=place, format=reader.get(table.format or ""))

    def drop_table(self, database: str, name: str, *, deletes_files: bool) -> None:
        found = self.kept.pop((database, name))
        if deletes_files:
            self.deleted.append(found.location or "")

    def partition_locations(self, database: str, name: str) -> list[str]:
        return self.partitions

    def functions(self, database: str) -> list[str]:
        return [name for place, name in self._functions if place == database]

    def function(self, database: str, name: str) -> str | None:
        return self._functions.get((database, name))

    def put_function(self, database: str, name: str, class_name: str) -> None:
        self._functions[database, name] = class_name

    def drop_function(self, database: str, name: str) -> None:
        del self._functions[database, name]


@pytest.fixture
def metastore() -> MetastoreInMemory:
    return MetastoreInMemory()


@pytest.fixture
def catalog(metastore: MetastoreInMemory) -> MetastoreCatalog:
    return MetastoreCatalog(lambda configuration: metastore, lambda text: parse_type(Cursor(text)))


ORDERS = (
    PhysicalColumn("id", D.INT()),
    PhysicalColumn("price", D.DECIMAL(10, 2), comment="in euro"),
    PhysicalColumn("day", D.STRING()),
)


def test_it_is_a_catalog(catalog: MetastoreCatalog) -> None:
    assert isinstance(catalog, Catalog)
    catalog.put_database("Shop", CatalogDatabase({}, "what is sold"))
    assert catalog.databases() == ["default", "shop"]
    assert catalog.database("SHOP") == CatalogDatabase({}, "what is sold")
    catalog.drop_database("shop")
    assert catalog.databases() == ["default"]


def test_a_table_of_another_connector_comes_back_as_it_was(catalog: MetastoreCatalog) -> None:
    table = CatalogTable(
        (
            PhysicalColumn("id", D.BIGINT(nullable=False), comment="a number"),
            PhysicalColumn("at", D.TIMESTAMP(3)),
            ComputedColumn("twice", D.BIGINT(), "id * 2"),
            MetadataColumn("offset", D.BIGINT(), None, True),
            MetadataColumn("sent", D.TIMESTAMP_LTZ(3), "timestamp", False),
        ),
        {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "localhost:9092"},
        watermark=WatermarkSpec("at", "at - INTERVAL '5' SECOND"),
        primary_key=PrimaryKey("PK_id", ("id",)),
        comment="what happens",
    )
    catalog.put_table("default", "Events", table)
    assert catalog.table("default", "events") == table
    assert catalog.tables("default") == ["events"]


def test_what_is_kept_has_the_names_of_flinks_hive_catalog(
    catalog: MetastoreCatalog, metastore: MetastoreInMemory
) -> None:
    catalog.put_table("default", "t", CatalogTable(ORDERS[:1], {"connector": "blackhole"}))
    assert metastore.kept["default", "t"].parameters == {
        "is_generic": "true",
        "EXTERNAL": "TRUE",
        "flink.connector": "blackhole",
        "flink.schema.0.name": "id",
        "flink.schema.0.data-type": "INT",
    }


def test_a_table_of_hive_is_read_and_written_as_files(
    catalog: MetastoreCatalog, metastore: MetastoreInMemory
) -> None:
    table = CatalogTable(
        ORDERS,
        {"connector": "hive", "sink.partition-commit.policy.kind": "success-file"},
        partition_keys=("day",),
        comment="orders",
    )
    catalog.put_table("default", "orders", table)
    kept = metastore.kept["default", "orders"]
    assert kept.columns == (HiveColumn("id", "int"), HiveColumn("price", "decimal(10,2)", "in euro"))
    assert kept.partition_keys == (HiveColumn("day", "string"),)
    found = catalog.table("default", "orders")
    assert isinstance(found, CatalogTable)
    assert found.columns == ORDERS
    assert found.partition_keys == ("day",)
    assert found.comment == "orders"
    assert found.options == {
        "connector": "hive",
        "path": "/warehouse/default.db/orders",
        "format": "parquet",
        "partition.default-name": "__HIVE_DEFAULT_PARTITION__",
        "sink.partition-commit.policy.kind": "success-file",
    }
    # An ALTER TABLE writes what it has read.
    catalog.put_table("default", "orders", found)
    assert catalog.table("default", "orders") == found


def test_text_files_have_hives_delimiters(catalog: MetastoreCatalog) -> None:
    table = CatalogTable(ORDERS, {"connector": "hive", "format": "csv"})
    catalog.put_table("default", "lines", table)
    found = catalog.table("default", "lines")
    assert isinstance(found, CatalogTable)
    assert found.options["csv.field-delimiter"] == "\x01"
    assert found.options["csv.null-literal"] == "\\N"


def test_files_are_deleted_only_where_the_metastore_has_placed_them(
    catalog: MetastoreCatalog, metastore: MetastoreInMemory
) -> None:
    catalog.put_table("default", "own", CatalogTable(ORDERS, {"connector": "hive"}))
    catalog.put_table("default", "other", CatalogTable(ORDERS, {"connector": "hive", "path": "/data"}))
    catalog.put_table("default", "topic", CatalogTable(ORDERS, {"connector": "kafka"}))
    for name in ("own", "other", "topic"):
        catalog.drop_table("default", name)
    assert metastore.deleted == ["file:/warehouse/default.db/own"]


def test_views_and_functions_are_kept(catalog: MetastoreCatalog) -> None:
    view = CatalogView("SELECT id FROM t", "SELECT id FROM `hive`.`default`.`t`", ORDERS[:1], "ids")
    catalog.put_table("default", "ids", view)
    assert catalog.table("default", "ids") == view
    assert catalog.views("default") == ["ids"]
    catalog.put_function("default", "Twice", CatalogFunction("my.module.twice", "PYTHON"))
    assert catalog.function("default", "TWICE") == CatalogFunction("my.module.twice", "PYTHON")
    assert catalog.functions("default") == ["twice"]
    catalog.drop_function("default", "twice")
    assert catalog.function("default", "twice") is None


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (CatalogTable((PhysicalColumn("t", D.TIME()),), {"connector": "hive"}), r"no type for TIME"),
        (CatalogTable(ORDERS, {"connector": "hive", "format": "json"}), "is not one of Hive's"),
        (
            CatalogTable(ORDERS, {"connector": "hive"}, primary_key=PrimaryKey("PK", ("id",))),
            "can only have physical columns",
        ),
    ],
)
def test_what_hive_cannot_keep_is_refused(catalog: MetastoreCatalog, table: CatalogTable, said: str) -> None:
    with pytest.raises(CatalogError, match=said):
        catalog.put_table("default", "t", table)


def test_tables_that_cannot_be_read_are_refused(
    catalog: MetastoreCatalog, metastore: MetastoreInMemory
) -> None:
    column = (HiveColumn("id", "int"),)
    kept = {
        "rc": HiveTable(column, location="/w/rc", format="RCFileInputFormat"),
        "acid": HiveTable(column, location="/w", format=PARQUET, parameters={"transactional": "true"}),
        "union": HiveTable((HiveColumn("u", "uniontype<int>"),), location="/w", format=PARQUET),
    }
    for name, said in (
        ("rc", "files that RCFileInputFormat reads are not supported"),
        ("acid", "is transactional"),
        ("union", "the type 'uniontype<int>' of Hive is not supported"),
    ):
        metastore.kept["default", name] = kept[name]
        with pytest.raises(CatalogError, match=said):
            catalog.table("default", name)
    catalog.put_table("default", "t", CatalogTable(ORDERS, {"connector": "hive"}, partition_keys=("day",)))
    metastore.partitions = ["file:/elsewhere/day=1"]
    with pytest.raises(CatalogError, match="a partition outside of its own directory"):
        catalog.table("default", "t")


@pytest.mark.parametrize(
    "text",
    [
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date"),
        *("timestamp", "decimal(38,18)", "char(3)", "varchar(20)", "array<array<int>>"),
        *("map<string,decimal(10,2)>", "struct<a:int,b:struct<c:array<string>>>"),
    ],
)
def test_types_come_back_as_they_were(text: str) -> None:
    assert to_hive_type("c", from_hive_type("c", text)) == text
