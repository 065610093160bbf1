"""ON CONFLICT: when it is needed, what it is refused for, and which operator comes of it."""

import pytest

from headrace.errors import SqlError, SqlValidationError, UnsupportedFeatureError
from headrace.table import EnvironmentSettings, TableEnvironment

_TABLES = """
CREATE TABLE orders (id BIGINT, name STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE TABLE plain (id BIGINT, name STRING) WITH ('connector' = 'datagen');
CREATE TABLE latest (name STRING, id BIGINT, PRIMARY KEY (name) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:1',
        'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE printed (name STRING, id BIGINT, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector' = 'print');
CREATE TABLE files (name STRING, id BIGINT) WITH ('connector' = 'filesystem', 'path' = '/tmp/none', 'format' = 'json');
"""
_COUNTS = "SELECT name, c FROM (SELECT MAX(name) AS name, COUNT(*) AS c, id FROM {} GROUP BY id)"


@pytest.fixture
def t_env():
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for statement in _TABLES.strip().split(";\n"):
        made.execute_sql(statement.strip().rstrip(";"))
    return made


def plan(t_env, query, clause="", sink="latest"):
    text = f"INSERT INTO {sink} {query} {clause}"
    return t_env.explain_sql(text).split("== Optimized Physical Plan ==")[1]


def test_a_query_whose_key_is_the_primary_key_needs_nothing(t_env):
    t_env.get_config().set("table.exec.sink.require-on-conflict", "true")
    found = plan(t_env, "SELECT name, COUNT(*) FROM plain GROUP BY name")
    assert "upsertMaterialize" not in found


@pytest.mark.parametrize("query", [_COUNTS.format("plain"), "SELECT name, id FROM plain"])
def test_a_query_with_another_key_needs_on_conflict_if_it_is_required(t_env, query):
    plan(t_env, query)
    t_env.get_config().set("table.exec.sink.require-on-conflict", "true")
    with pytest.raises(SqlValidationError, match=r"which is not its primary key \(name\)") as caught:
        plan(t_env, query)
    assert "ON CONFLICT DO DEDUPLICATE" in caught.value.hint
    plan(t_env, query, "ON CONFLICT DO DEDUPLICATE")
    t_env.get_config().set("table.exec.sink.upsert-materialize", "NONE")
    assert "upsertMaterialize" not in plan(t_env, query)


def test_do_deduplicate_works_out_the_last_row_of_updates_only(t_env):
    clause = "ON CONFLICT DO DEDUPLICATE"
    updated = plan(t_env, _COUNTS.format("plain"), clause)
    assert "upsertMaterialize=[true], conflictStrategy=[DEDUPLICATE]" in updated
    assert "upsertMaterialize" not in plan(t_env, "SELECT name, id FROM plain", clause)


@pytest.mark.parametrize("clause", ["NOTHING", "ERROR"])
def test_do_nothing_and_do_error_need_watermarks(t_env, clause):
    found = plan(t_env, "SELECT name, id FROM orders", f"ON CONFLICT DO {clause}")
    assert f"upsertMaterialize=[true], conflictStrategy=[{clause}]" in found
    with pytest.raises(
        SqlValidationError, match=r"these tables have no watermark: default_catalog.default_database.plain"
    ):
        plan(t_env, "SELECT name, id FROM plain", f"ON CONFLICT DO {clause}")


@pytest.mark.parametrize(("sink", "reason"), [("printed", "UPDATE_BEFORE"), ("files", "insert-only")])
def test_on_conflict_needs_a_sink_with_a_primary_key(t_env, sink, reason):
    with pytest.raises(SqlValidationError, match=reason):
        plan(t_env, "SELECT name, id FROM orders", "ON CONFLICT DO DEDUPLICATE", sink)


@pytest.mark.parametrize(
    "clause", ["ON CONFLICT", "ON CONFLICT DO UPDATE", "ON CONFLICT (name) DO NOTHING", "ON"]
)
def test_other_clauses_are_refused_with_their_place(t_env, clause):
    with pytest.raises(SqlError, match=r"\^|expected"):
        plan(t_env, "SELECT name, id FROM orders", clause)


def test_in_batch_mode_only_deduplicate_is_supported():
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.execute_sql(
        "CREATE TABLE t (name STRING, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector' = 'print')"
    )
    t_env.explain_sql("INSERT INTO t SELECT 'a' ON CONFLICT DO DEDUPLICATE")
    with pytest.raises(UnsupportedFeatureError, match="ON CONFLICT DO NOTHING in BATCH mode"):
        t_env.explain_sql("INSERT INTO t SELECT 'a' ON CONFLICT DO NOTHING")
