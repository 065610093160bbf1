"""Modules of built-in functions through PyFlink's calls."""

from __future__ import annotations

import pytest

from headrace.errors import CatalogError, JobDefinitionError, SqlValidationError, UnsupportedFeatureError
from headrace.table import EnvironmentSettings, Module, TableEnvironment
from headrace.table.module import CoreModule, HiveModule


@pytest.fixture
def t_env() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def test_a_module_brings_its_functions_under_any_name(t_env: TableEnvironment) -> None:
    t_env.load_module("more", HiveModule("3.1.3"))

    assert t_env.list_modules() == ["core", "more"]
    assert t_env.sql_query("SELECT weekofyear('2024-01-01') AS a").get_schema().get_field_names() == ["a"]
    t_env.use_modules("core")
    with pytest.raises(SqlValidationError, match="weekofyear"):
        t_env.sql_query("SELECT weekofyear('2024-01-01')")


def test_the_core_module_comes_back(t_env: TableEnvironment) -> None:
    t_env.unload_module("core")
    t_env.load_module("core", CoreModule())

    assert t_env.list_modules() == ["core"]


def test_load_module_refuses_duplicate_names_and_values_that_are_not_modules(t_env: TableEnvironment) -> None:
    with pytest.raises(CatalogError, match="'core' is already loaded"):
        t_env.load_module("core", HiveModule())
    with pytest.raises(JobDefinitionError, match=r"load_module\('hive'\): expected a Module; got 'hive'"):
        t_env.load_module("hive", "hive")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeatureError, match="the modules HiveModule and CoreModule"):
        Module()
