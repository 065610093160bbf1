"""A catalog store in files: what one program creates, the next one finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.store import CatalogDefinition, FileCatalogStore
from headrace.common import Configuration
from headrace.errors import CatalogError, ConfigurationError
from headrace.table import TableEnvironment


def _environment(directory: Path) -> TableEnvironment:
    configuration = Configuration()
    configuration.set_string("table.catalog-store.kind", "file")
    configuration.set_string("table.catalog-store.file.path", str(directory))
    return TableEnvironment.create(configuration)


def test_the_next_program_finds_a_catalog(tmp_path: Path) -> None:
    options = "'type' = 'generic_in_memory', 'default-database' = 'd'"
    create = f"CREATE CATALOG `my catalog` COMMENT 'of orders' WITH ({options})"
    _environment(tmp_path).execute_sql(create)
    t_env = _environment(tmp_path)
    assert t_env.list_catalogs() == ["default_catalog", "my catalog"]
    t_env.use_catalog("my catalog")
    assert t_env.get_current_database() == "d"
    with pytest.raises(CatalogError, match="already exists"):
        t_env.execute_sql(create)


def test_a_dropped_catalog_is_gone_for_the_next_program(tmp_path: Path) -> None:
    _environment(tmp_path).execute_sql("CREATE CATALOG c WITH ('type' = 'generic_in_memory')")
    _environment(tmp_path).execute_sql("DROP CATALOG c")
    assert _environment(tmp_path).list_catalogs() == ["default_catalog"]


def test_a_catalog_whose_options_are_refused_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(CatalogError):
        _environment(tmp_path).execute_sql("CREATE CATALOG c WITH ('type' = 'generic_in_memory', 'a' = 'b')")
    assert FileCatalogStore(str(tmp_path)).names() == []


def test_names_of_catalogs_cannot_leave_the_directory(tmp_path: Path) -> None:
    store = FileCatalogStore(str(tmp_path / "store"))
    store.put("../x/é", CatalogDefinition({"type": "generic_in_memory"}))
    assert store.names() == ["../x/é"]
    assert store.get("../x/é") == CatalogDefinition({"type": "generic_in_memory"})
    assert [each.name for each in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("content", ["", "- a", "{", "a: b", "\x00"])
def test_a_damaged_definition_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.yaml").write_text(content)
    with pytest.raises(CatalogError, match=r"'c' cannot be read: .*c\.yaml"):
        FileCatalogStore(str(tmp_path)).get("c")


def test_a_file_store_needs_a_path() -> None:
    configuration = Configuration()
    configuration.set_string("table.catalog-store.kind", "file")
    with pytest.raises(ConfigurationError, match=r"table\.catalog-store\.file\.path is not set"):
        TableEnvironment.create(configuration)
