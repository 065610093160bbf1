"""PyFlink's `Catalog`: what a program sees of a catalog, and changes in it."""

from __future__ import annotations

import pytest

from headrace.catalog import InMemoryCatalog
from headrace.common import Configuration
from headrace.errors import CatalogError, SqlValidationError, UnsupportedFeatureError
from headrace.table import DataTypes, EnvironmentSettings, Schema, TableEnvironment, TableSchema
from headrace.table.catalog import (
    Catalog,
    CatalogBaseTable,
    CatalogDatabase,
    CatalogDescriptor,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
    HiveCatalog,
    ObjectPath,
)

_ORDERS = ObjectPath("default_database", "orders")


@pytest.fixture
def t_env() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


@pytest.fixture
def catalog(t_env: TableEnvironment) -> Catalog:
    found = t_env.get_catalog("default_catalog")
    assert found is not None
    return found


def _orders() -> CatalogBaseTable:
    schema = TableSchema(["id", "day"], [DataTypes.BIGINT(), DataTypes.STRING()])
    return CatalogBaseTable.create_table(schema, ["day"], {"connector": "print"}, "of the shop")


def test_databases_are_created_altered_and_dropped(catalog: Catalog) -> None:
    catalog.create_database("sales", CatalogDatabase.create_instance({"k": "v"}, "c"), False)
    assert catalog.get_database("sales").get_properties() == {"k": "v"}
    catalog.create_database("sales", CatalogDatabase.create_instance({}), True)
    with pytest.raises(CatalogError, match="already exists"):
        catalog.create_database("sales", CatalogDatabase.create_instance({}), False)
    catalog.alter_database("sales", CatalogDatabase.create_instance({}, "new"), False)
    assert catalog.get_database("sales").get_comment() == "new"
    catalog.drop_database("sales", False)
    assert not catalog.database_exists("sales")
    catalog.drop_database("sales", True)


def test_a_table_made_by_a_program_is_there_in_sql(t_env: TableEnvironment, catalog: Catalog) -> None:
    catalog.create_table(_ORDERS, _orders(), False)
    assert [row[0] for row in t_env.execute_sql("DESCRIBE orders").collect()] == ["id", "day"]
    shown = catalog.get_table(_ORDERS)
    assert shown.get_options() == {"connector": "print"}
    assert shown.get_comment() == "of the shop"
    assert "`id` BIGINT" in str(shown.get_unresolved_schema())
    with pytest.raises(CatalogError, match="is not empty"):
        catalog.drop_database("default_database", False)


def test_a_table_made_in_sql_shows_its_whole_schema(t_env: TableEnvironment, catalog: Catalog) -> None:
    t_env.execute_sql(
        "CREATE TABLE orders (id INT, up AS id + 1, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, "
        "PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'datagen')"
    )
    shown = catalog.get_table(_ORDERS)
    copied = ObjectPath("default_database", "copied")
    catalog.create_table(copied, shown, False)
    assert str(catalog.get_table(copied).get_unresolved_schema()) == str(shown.get_unresolved_schema())


def test_a_table_whose_schema_is_wrong_is_refused(catalog: Catalog) -> None:
    schema = Schema.new_builder().column("id", "BIGINT").column_by_expression("up", "nothing + 1").build()
    with pytest.raises(SqlValidationError, match="nothing"):
        catalog.create_table(_ORDERS, CatalogBaseTable.create_table(schema), False)
    assert not catalog.table_exists(_ORDERS)


def test_tables_are_renamed_and_dropped(catalog: Catalog) -> None:
    catalog.create_table(_ORDERS, _orders(), False)
    catalog.rename_table(_ORDERS, "sold", False)
    assert catalog.list_tables("default_database") == ["sold"]
    catalog.drop_table(ObjectPath("default_database", "sold"), False)
    with pytest.raises(CatalogError, match="does not exist"):
        catalog.drop_table(_ORDERS, False)


def test_views_are_tables_with_a_query(t_env: TableEnvironment, catalog: Catalog) -> None:
    schema = TableSchema(["n"], [DataTypes.INT()])
    view = CatalogBaseTable.create_view("SELECT 1 AS n", "SELECT 1 AS n", schema, {})
    catalog.create_table(ObjectPath("default_database", "one"), view, False)
    assert catalog.list_views("default_database") == ["one"] == t_env.list_views()


def test_functions_say_where_their_code_is(catalog: Catalog) -> None:
    path = ObjectPath("default_database", "shout")
    catalog.create_function(path, CatalogFunction.create_instance("shop.shout"), False)
    assert catalog.get_function(path).get_class_name() == "shop.shout"
    assert catalog.list_functions("default_database") == ["shout"]
    catalog.drop_function(path, False)
    assert not catalog.function_exists(path)


def test_partitions_are_found_by_their_values(catalog: Catalog) -> None:
    catalog.create_table(_ORDERS, _orders(), False)
    monday, tuesday = CatalogPartitionSpec({"day": "mon"}), CatalogPartitionSpec({"day": "tue"})
    for each in (monday, tuesday):
        catalog.create_partition(_ORDERS, each, CatalogPartition.create_instance({"of": str(each)}), False)
    assert catalog.list_partitions(_ORDERS) == [monday, tuesday]
    assert catalog.list_partitions(_ORDERS, tuesday) == [tuesday]
    catalog.drop_partition(_ORDERS, monday, False)
    assert not catalog.partition_exists(_ORDERS, monday)
    with pytest.raises(CatalogError, match="does not have the partition columns"):
        catalog.create_partition(
            _ORDERS, CatalogPartitionSpec({"hour": "1"}), CatalogPartition.create_instance({}), False
        )


def test_statistics_are_kept_until_the_table_is_dropped(catalog: Catalog) -> None:
    catalog.create_table(_ORDERS, _orders(), False)
    assert catalog.get_table_statistics(_ORDERS).get_row_count() == -1
    catalog.alter_table_statistics(_ORDERS, CatalogTableStatistics(10, 1, 100, 200), False)
    assert catalog.get_table_statistics(_ORDERS).get_row_count() == 10
    catalog.drop_table(_ORDERS, False)
    catalog.create_table(_ORDERS, _orders(), False)
    assert catalog.get_table_statistics(_ORDERS).get_row_count() == -1


def test_catalogs_are_created_registered_and_missed(t_env: TableEnvironment) -> None:
    options = Configuration()
    options.set_string("type", "generic_in_memory")
    t_env.create_catalog("first", CatalogDescriptor.of("first", options))
    t_env.register_catalog("second", InMemoryCatalog("db"))
    assert t_env.list_catalogs() == ["default_catalog", "first", "second"]
    second = t_env.get_catalog("second")
    assert second is not None
    assert second.get_default_database() == "db"
    assert t_env.get_catalog("third") is None
    with pytest.raises(CatalogError, match="expected a catalog"):
        t_env.register_catalog("fourth", "jdbc")  # type: ignore[arg-type]


def test_a_hive_catalog_takes_no_version() -> None:
    with pytest.raises(UnsupportedFeatureError, match="hive_version of HiveCatalog"):
        HiveCatalog("h", hive_version="3.1.3")
    assert HiveCatalog("h", "shop").get_default_database() == "shop"
