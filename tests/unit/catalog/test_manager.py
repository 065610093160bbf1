"""Catalogs: names without a catalog, temporary objects over permanent ones, what is near a wrong name."""

from __future__ import annotations

import pytest

from headrace.catalog import (
    CatalogFunction,
    CatalogManager,
    CatalogTable,
    ComputedColumn,
    InMemoryCatalog,
    MetadataColumn,
    PhysicalColumn,
)
from headrace.catalog.manager import nearest
from headrace.errors import CatalogError
from headrace.types import DataTypes as T


def table(name: str) -> CatalogTable:
    return CatalogTable((PhysicalColumn(name, T.INT()),))


def test_names_are_completed_with_the_current_catalog_and_database() -> None:
    manager = CatalogManager()
    manager.register_catalog("other", InMemoryCatalog("main"))
    assert manager.qualify(["t"]).parts == ("default_catalog", "default_database", "t")
    manager.use_catalog("other")
    assert manager.qualify(["t"]).parts == ("other", "main", "t")
    assert manager.qualify(["d", "t"]).parts == ("other", "d", "t")
    assert manager.qualify(["c", "d", "t"]).parts == ("c", "d", "t")


def test_a_temporary_table_hides_a_permanent_one_until_it_is_dropped() -> None:
    manager = CatalogManager()
    name = manager.qualify(["t"])
    manager.put_table(name, table("stored"))
    manager.put_temporary_table(name, table("temporary"))
    assert manager.table(name) == table("temporary")
    assert manager.permanent_table(name) == table("stored")
    assert manager.drop_temporary_table(name)
    assert manager.table(name) == table("stored")
    assert not manager.drop_temporary_table(name)


def test_functions_do_not_mind_capitals_and_those_of_the_environment_come_first() -> None:
    manager = CatalogManager()
    stored, system = CatalogFunction("m.f", "PYTHON"), CatalogFunction("m.g", "PYTHON")
    manager.put_function(manager.qualify(["Count_Char"]), stored)
    assert manager.function(["COUNT_CHAR"]) is stored
    manager.put_system_function("count_char", system)
    assert manager.function(["count_char"]) is system
    assert manager.user_functions() == ["count_char"]


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    assert nearest("Auctoin", ["auction", "bid"]) == "did you mean 'auction'?"
    assert nearest("zzz", ["auction", "bid"]) == "available: auction, bid"
    with pytest.raises(CatalogError, match="default_catlog") as caught:
        CatalogManager().catalog("default_catlog")
    assert caught.value.hint == "did you mean 'default_catalog'?"


def test_a_catalog_in_use_is_not_dropped() -> None:
    with pytest.raises(CatalogError, match="in use"):
        CatalogManager().drop_catalog("default_catalog")


def test_a_table_knows_what_is_read_and_what_is_written() -> None:
    made = CatalogTable(
        (
            MetadataColumn("offset", T.BIGINT(), virtual=True),
            PhysicalColumn("a", T.INT()),
            ComputedColumn("b", T.INT(), "a + 1"),
            MetadataColumn("ts", T.TIMESTAMP_LTZ(3), key="timestamp"),
        )
    )
    assert [column.name for column in made.source_columns] == ["a", "offset", "ts"]
    assert [column.name for column in made.sink_columns] == ["a", "ts"]
    assert [column.metadata_key for column in made.metadata_columns] == ["offset", "timestamp"]
    with pytest.raises(CatalogError, match="duplicate column names: a"):
        CatalogTable((PhysicalColumn("a", T.INT()), PhysicalColumn("a", T.INT())))
