"""Connectors, formats and catalogs that packages bring: how they are found, and what is said if they are not."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from headrace.errors import CatalogError, ConfigurationError, ConnectorError, UnsupportedFeatureError
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.util.plugins import CATALOGS, CONNECTORS, FORMATS
from tests.packages import place_package

ROOT = Path(__file__).resolve().parents[3]
CONNECTOR = """
from headrace.connectors.sequence import NumberSequenceSource

class Numbers:
    def source(self, request):
        return NumberSequenceSource(1, request.options.integer("end"))
"""


def place_numbers(site: Path) -> None:
    place_package(
        site,
        "some-numbers",
        {CONNECTORS.group: {"numbers": "numbers_pkg:Numbers"}},
        {"numbers_pkg": CONNECTOR},
    )


@pytest.fixture
def t_env() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """Return a directory on the path of modules, and forget afterwards what was imported from there."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def plan(t_env: TableEnvironment, connector: str, **options: str):
    given = "".join(f", '{key}' = '{value}'" for key, value in options.items())
    t_env.execute_sql(f"CREATE TABLE t (id BIGINT) WITH ('connector' = '{connector}'{given})")
    jobs = t_env._jobs
    graph = jobs.job_graph(jobs.plan_query(t_env.from_path("t")._plan), "t")
    return graph.vertices[0].head.declaration.source


@pytest.mark.parametrize("plugins", [CATALOGS, CONNECTORS, FORMATS], ids=lambda each: each.group)
def test_the_environment_has_what_the_project_declares(plugins):
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][plugins.group]
    installed = {
        entry.name: entry.value
        for entry in entry_points(group=plugins.group)
        if entry.dist.name == "headrace"
    }
    assert installed == declared, "the environment is older than pyproject.toml: run make setup"
    for name in declared:
        assert plugins.load(name) is not None


def test_a_connector_of_a_package_is_found_by_its_name(t_env, site):
    place_numbers(site)
    assert "numbers" in CONNECTORS.names()
    assert "numbers_pkg" not in sys.modules, "nothing is imported before it is named"

    assert plan(t_env, "numbers", end="3").end == 3


def test_a_package_installed_after_the_first_statement_is_found(t_env, site):
    with pytest.raises(UnsupportedFeatureError, match="unknown table connector 'numbers'"):
        plan(t_env, "numbers")
    t_env.execute_sql("DROP TABLE t")

    place_numbers(site)

    assert plan(t_env, "numbers", end="3").end == 3


def test_options_that_a_packages_connector_does_not_read_are_refused(t_env, site):
    place_numbers(site)
    with pytest.raises(Exception, match="connector 'numbers' has no option 'ends'"):
        plan(t_env, "numbers", ends="3", end="1")


def test_a_connector_without_sinks_refuses_to_be_written(t_env, site):
    place_numbers(site)
    t_env.execute_sql("CREATE TABLE t (id BIGINT) WITH ('connector' = 'numbers')")
    with pytest.raises(Exception, match="'numbers' can only be used as a source, not as a sink"):
        t_env.explain_sql("INSERT INTO t VALUES (1)")


def test_an_unknown_connector_lists_those_that_are_installed(t_env, site):
    place_package(site, "some-numbers", {CONNECTORS.group: {"numbers": "numbers_pkg:Numbers"}})
    with pytest.raises(UnsupportedFeatureError, match="unknown table connector 'pulsar'") as caught:
        plan(t_env, "pulsar")
    assert (
        "available: blackhole, datagen, filesystem, hive, jdbc, kafka, nexmark, numbers, postgres-cdc, print"
        in caught.value.hint
    )


def test_a_name_that_two_packages_declare_is_refused_and_others_work(t_env, site):
    place_numbers(site)
    place_package(site, "other-print", {CONNECTORS.group: {"print": "numbers_pkg:Numbers"}})

    t_env.execute_sql("CREATE TABLE sink (id BIGINT) WITH ('connector' = 'print')")
    with pytest.raises(ConfigurationError) as caught:
        t_env.explain_sql("INSERT INTO sink VALUES (1)")
    assert "'print' is declared more than once, by: headrace 0.1" in str(caught.value)
    assert "other-print 1.0" in str(caught.value)
    assert "uninstall all but one" in caught.value.hint
    assert plan(t_env, "numbers", end="3").end == 3


@pytest.mark.parametrize(
    ("entry", "module", "message", "hint"),
    [
        (
            "lost_pkg:Factory",
            None,
            "ModuleNotFoundError: No module named 'lost_pkg'",
            "another version of broken-package",
        ),
        (
            "broken_pkg:Factory",
            "import no_such_client",
            "No module named 'no_such_client'",
            "has the module 'no_such_client'",
        ),
        (
            "broken_pkg:Factory [db]",
            "import no_such_client",
            "No module named",
            "pip install 'broken-package[db]'",
        ),
        ("broken_pkg:Factory", "1 / 0", "ZeroDivisionError", "another version of broken-package"),
        ("broken_pkg:Factory", "", "has no attribute 'Factory'", "another version of broken-package"),
        (
            "broken_pkg:Factory",
            "class Factory:\n    def __init__(self, x): ...",
            "TypeError",
            "another version",
        ),
        ("broken_pkg:Factory", "class Factory: ...", "has neither source\\(\\) nor", None),
    ],
)
def test_a_connector_that_cannot_be_loaded_names_its_package(t_env, site, entry, module, message, hint):
    place_package(
        site,
        "broken-package",
        {CONNECTORS.group: {"broken": entry}},
        {"broken_pkg": module} if module is not None else {},
    )
    with pytest.raises(ConfigurationError, match=message) as caught:
        plan(t_env, "broken")
    assert "the table connector 'broken' of broken-package 1.0 (" in str(caught.value)
    assert hint is None or hint in caught.value.hint


FORMATS_OF_KAFKA = (
    "avro, avro-confluent, canal-json, csv, debezium-avro-confluent, debezium-json, json, maxwell-json, ogg-json, "
    "protobuf, raw"
)


def test_a_format_of_a_package_reads_messages_with_its_own_options(t_env, site):
    text = """
from headrace.common.serialization import SimpleStringSchema

class Shouting:
    def __init__(self, options):
        self.charset = options.text("charset")
    def reader(self, row_type):
        return SimpleStringSchema(self.charset)
    def writer(self, row_type):
        return SimpleStringSchema(self.charset)
"""
    place_package(
        site, "shouting", {FORMATS.group: {"shout": "shouting_pkg:Shouting"}}, {"shouting_pkg": text}
    )
    kafka = {"properties.bootstrap.servers": "b:1", "topic": "t", "scan.startup.mode": "earliest-offset"}
    assert plan(t_env, "kafka", **kafka, format="shout", **{"shout.charset": "latin-1"}) is not None
    t_env.execute_sql("DROP TABLE t")
    with pytest.raises(
        Exception, match=f"option 'format' must be one of {FORMATS_OF_KAFKA}, shout; got 'sing'"
    ):
        plan(t_env, "kafka", **kafka, format="sing")
    t_env.execute_sql("DROP TABLE t")
    with pytest.raises(
        Exception, match="option 'format' must be one of avro, csv, json, orc, parquet; got 'shout'"
    ):
        plan(t_env, "filesystem", path="/data", format="shout")


def test_a_format_of_a_package_says_how_spark_reads_its_files(t_env, site):
    text = """
from headrace.formats.tables import SparkReader

class Text:
    def __init__(self, options):
        self.merges = options.boolean("merge-schema", default=False)
    def spark_reader(self):
        return SparkReader("text", {"mergeSchema": str(self.merges).lower()})
    def file_writer(self, row_type): ...
"""
    place_package(site, "text-tables", {FORMATS.group: {"text": "text_tables:Text"}}, {"text_tables": text})
    made = plan(t_env, "filesystem", path="/data", format="text", **{"text.merge-schema": "true"})
    assert (made.format, made.options) == ("text", {"mergeSchema": "true"})


def test_a_catalog_of_a_package_is_found_by_its_type(t_env, site):
    text = """
from headrace.catalog import InMemoryCatalog

def create(options, comment):
    return InMemoryCatalog("from_" + options["where"], options, comment)
"""
    entries = {"team": "team_catalog:create"}
    place_package(site, "team-catalog", {CATALOGS.group: entries}, {"team_catalog": text})
    t_env.execute_sql("CREATE CATALOG ours WITH ('type' = 'team', 'where' = 'disk')")
    t_env.use_catalog("ours")
    assert t_env.get_current_database() == "from_disk"


def test_a_catalog_type_must_be_known_and_make_a_catalog(t_env, site):
    place_package(site, "team-catalog", {CATALOGS.group: {"dict": "builtins:zip"}})
    with pytest.raises(UnsupportedFeatureError, match="unknown catalog type 'glue'") as caught:
        t_env.execute_sql("CREATE CATALOG c WITH ('type' = 'glue')")
    assert "available: dict, generic_in_memory" in caught.value.hint
    with pytest.raises(CatalogError, match="needs the option 'type'"):
        t_env.execute_sql("CREATE CATALOG c WITH ('x' = 'y')")
    with pytest.raises(ConfigurationError, match=r"team-catalog 1\.0"):
        t_env.execute_sql("CREATE CATALOG c WITH ('type' = 'dict')")


def test_metadata_that_declares_nothing_says_how_to_repair_it(monkeypatch):
    monkeypatch.setattr("headrace.util.plugins.entry_points", lambda group: [])
    monkeypatch.setattr(sys, "path", [*sys.path, "/elsewhere"])
    assert CONNECTORS.load("kafka") is None
    assert "make setup" in CONNECTORS.available()
    from headrace.util import plugins

    plugins._read.cache_clear()


@pytest.mark.parametrize(
    ("connector", "options", "module", "hint"),
    [
        (
            "kafka",
            {"properties.bootstrap.servers": "b:1", "topic": "t", "format": "json"},
            "confluent_kafka",
            "pip install 'headrace[kafka]'",
        ),
        (
            "jdbc",
            {"url": "jdbc:sqlite:x.db", "table-name": "t"},
            "sqlalchemy",
            "pip install 'headrace[jdbc]'",
        ),
        (
            "jdbc",
            {"url": "jdbc:mysql://h/d", "table-name": "t"},
            "pymysql",
            "pip install 'headrace[mysql]'",
        ),
        (
            "kafka",
            {
                "properties.bootstrap.servers": "b:1",
                "topic": "t",
                "format": "avro",
                "scan.startup.mode": "earliest-offset",
            },
            "fastavro",
            "pip install 'headrace[avro]'",
        ),
    ],
)
def test_a_table_whose_client_library_is_missing_says_what_to_install(
    t_env, monkeypatch, connector, options, module, hint
):
    monkeypatch.setattr("headrace.connectors.jdbc._connections._engines", {})
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConnectorError, match="is not installed") as caught:
        plan(t_env, connector, **options)
    assert hint in caught.value.hint
