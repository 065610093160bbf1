"""Options of catalogs that must not be seen."""

from __future__ import annotations

from headrace.catalog.catalog import InMemoryCatalog
from headrace.table import EnvironmentSettings, TableEnvironment


def test_passwords_of_a_catalog_are_not_described() -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    catalog = InMemoryCatalog("d", {"type": "mine", "password": "opensesame", "base-url": "jdbc:x://h"})
    t_env._manager.register_catalog("c", catalog)
    for statement in ("DESCRIBE CATALOG EXTENDED c", "SHOW CREATE CATALOG c"):
        shown = str([list(row) for row in t_env.execute_sql(statement).collect()])
        assert "jdbc:x://h" in shown
        assert "opensesame" not in shown
