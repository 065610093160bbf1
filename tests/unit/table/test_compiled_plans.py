"""COMPILE PLAN and EXECUTE PLAN: plans are read again as they were, with the ids of their operators."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.errors import SqlError, UnsupportedFeatureError
from headrace.graph.table_job import TableNode, node_ids
from headrace.planner.plan_files import VERSION
from headrace.planner.statements import Insert, StatementSet
from headrace.table import (
    CompiledPlan,
    DataTypes,
    EnvironmentSettings,
    PlanReference,
    TableEnvironment,
)
from headrace.table.udf import udaf, udf

_COUNTS = "INSERT INTO o SELECT k, COUNT(DISTINCT v) FROM t WHERE id > 3 GROUP BY k"
_STATEMENTS = {
    "aggregation": _COUNTS,
    "window and join with a condition": """
        INSERT INTO o SELECT a.k, a.n FROM (
            SELECT k, COUNT(*) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
            GROUP BY k, window_start, window_end
        ) a LEFT JOIN t b ON a.k = b.k AND a.n < b.v""",
    "values": "INSERT INTO o VALUES ('it''s', 1), (CAST(NULL AS STRING), 2)",
    "top n": """
        INSERT INTO o SELECT k, v FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t
        ) WHERE n <= 3""",
    "over and interval join": """
        INSERT INTO o SELECT a.k, SUM(a.v) OVER (PARTITION BY a.k ORDER BY a.ts) FROM t a, t b
        WHERE a.id = b.id AND a.ts BETWEEN b.ts - INTERVAL '1' MINUTE AND b.ts""",
    "set": f"EXECUTE STATEMENT SET BEGIN {_COUNTS}; INSERT INTO p SELECT k, v FROM t; END",
}


@pytest.fixture
def t_env() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(
        "CREATE TABLE t (id BIGINT, k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen')"
    )
    for name in "op":
        t_env.execute_sql(f"CREATE TABLE {name} (k STRING, n BIGINT) WITH ('connector' = 'print')")
    return t_env


def nodes_of(t_env: TableEnvironment, text: str) -> list[TableNode]:
    statement = t_env._bind_one(text)
    inserts = statement.inserts if isinstance(statement, StatementSet) else (statement,)
    assert all(isinstance(each, Insert) for each in inserts)
    return t_env._jobs.nodes(t_env._jobs.plan_inserts([each.sink for each in inserts]))


def loaded_nodes(t_env: TableEnvironment, plan: CompiledPlan) -> tuple[TableNode, ...]:
    return t_env._statements.plans.load(plan._plan).nodes


@pytest.mark.parametrize("text", _STATEMENTS.values(), ids=_STATEMENTS)
def test_a_plan_is_read_as_it_was_compiled(t_env, text):
    plan = t_env.compile_plan_sql(text)

    read = t_env.load_plan(PlanReference.from_json_string(plan.as_json_string()))

    planned, found = nodes_of(t_env, text), loaded_nodes(t_env, read)
    assert [node.inputs for node in found] == [node.inputs for node in planned]
    assert [node.declaration for node in found] == [node.declaration for node in planned]
    assert node_ids(found) == node_ids(planned)


def test_a_plan_is_written_once_and_executed_with_its_ids(t_env, tmp_path: Path, monkeypatch):
    path = tmp_path / "plan.json"
    submitted = []
    monkeypatch.setattr(t_env._jobs, "submit", submitted.append)
    t_env.execute_sql(f"COMPILE PLAN '{path}' FOR {_COUNTS}")
    data = json.loads(path.read_text(encoding="utf-8"))
    data["nodes"][1]["id"] = "ab" * 16
    path.write_text(json.dumps(data), encoding="utf-8")

    with pytest.raises(SqlError, match="cannot overwrite the plan"):
        t_env.execute_sql(f"COMPILE PLAN '{path}' FOR {_COUNTS}")
    t_env.execute_sql(f"COMPILE PLAN '{path}' IF NOT EXISTS FOR {_COUNTS}")
    result = t_env.execute_sql(f"EXECUTE PLAN '{path}'")

    assert result.get_table_schema().get_field_names() == ["default_catalog.default_database.o"]
    assert [vertex.head.operator_id for vertex in submitted[0].vertices][1] == "ab" * 16
    t_env.get_config().set("table.plan.force-recompile", "true")
    t_env.execute_sql(f"COMPILE AND EXECUTE PLAN '{path}' FOR {_COUNTS}")
    assert submitted[1].vertices[1].head.operator_id == node_ids(nodes_of(t_env, _COUNTS))[1]


def test_tables_come_from_the_catalog_or_from_the_plan(t_env):
    plan = t_env.compile_plan_sql(_COUNTS)

    t_env.execute_sql("DROP TABLE o")
    t_env.load_plan(PlanReference.from_json_string(plan.as_json_string()))
    t_env.get_config().set("table.plan.restore.catalog-objects", "IDENTIFIER")
    with pytest.raises(SqlError, match=r"only the name of table 'default_catalog\.default_database\.o'"):
        t_env.load_plan(PlanReference.from_json_string(plan.as_json_string()))
    t_env.get_config().set("table.plan.restore.catalog-objects", "ALL")
    t_env.execute_sql("CREATE TABLE o (k STRING, n INT) WITH ('connector' = 'print')")
    with pytest.raises(SqlError, match="no longer has the columns"):
        t_env.load_plan(PlanReference.from_json_string(plan.as_json_string()))


def test_a_plan_keeps_no_secrets(t_env):
    t_env.execute_sql(
        "CREATE TABLE s (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'jdbc', "
        "'url' = 'jdbc:postgresql://db/x', 'table-name' = 's', 'username' = 'ann', 'password' = 'geheim')"
    )
    plan = t_env.compile_plan_sql("INSERT INTO s SELECT k, v FROM t")

    assert "geheim" not in plan.as_json_string()
    t_env.execute_sql("DROP TABLE s")
    with pytest.raises(SqlError, match="does not keep secrets, so password is not known"):
        t_env.load_plan(PlanReference.from_json_string(plan.as_json_string()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a plan: "),
        ("[1]", "is not a plan of headrace"),
        ('{"flinkVersion": "2.3"}', "is not a plan of headrace"),
        (f'{{"headracePlan": {VERSION + 1}}}', f"this headrace reads version {VERSION}"),
        (f'{{"headracePlan": {VERSION}, "nodes": [{{}}]}}', "is damaged: KeyError"),
    ],
)
def test_a_plan_of_another_version_is_refused(t_env, text, message):
    with pytest.raises(SqlError, match=message):
        t_env.load_plan(PlanReference.from_json_string(text))


def test_a_plan_has_no_functions_and_rows_of_the_program(t_env):
    t_env.create_temporary_function("twice", udf(lambda x: 2 * x, result_type=DataTypes.BIGINT()))
    t_env.create_temporary_function(
        "most", udaf(lambda x: x.max(), result_type=DataTypes.BIGINT(), func_type="pandas")
    )
    rows = t_env.from_elements([("a", 1)], ["k", "v"])

    for text in ("SELECT k, twice(v) FROM t", "SELECT k, most(v) FROM t GROUP BY k"):
        with pytest.raises(UnsupportedFeatureError, match="cannot contain the function"):
            t_env.compile_plan_sql(f"INSERT INTO o {text}")
    with pytest.raises(UnsupportedFeatureError, match="whose rows are in the program"):
        rows.insert_into("o").compile_plan()
    with pytest.raises(SqlError, match="INSERT or STATEMENT SET"):
        t_env.execute_sql("COMPILE PLAN 'p' FOR SELECT 1")


def test_pipelines_and_sets_of_the_table_api_are_compiled(t_env):
    table = t_env.sql_query("SELECT k, v FROM t")

    pipeline = table.insert_into("o").compile_plan()
    whole = t_env.create_statement_set().add_insert("o", table).add_insert_sql(_COUNTS).compile_plan()

    assert "Sink(table=[default_catalog.default_database.o]" in pipeline.explain()
    assert whole.explain().count("Sink(") == 2
