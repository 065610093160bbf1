"""The Table API calls process table functions as SQL does: both give the same plan."""

import pytest

from headrace.errors import JobDefinitionError, SqlError, SqlValidationError
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.table.expressions import col, descriptor, lit, map_
from tests.parity import process_functions as functions


@pytest.fixture
def t_env():
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name in ("e", "f"):
        made.execute_sql(
            f"CREATE TABLE {name} (id BIGINT, k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
            "WITH ('connector' = 'datagen')"
        )
    for name in ("Greeting", "Counting", "Timers", "Pairing", "Ordered"):
        made.create_temporary_function(name, getattr(functions, name))
    return made


def physical(table):
    return table.explain().split("== Optimized Physical Plan ==")[1]


def test_calls_of_the_table_api_are_those_of_sql(t_env):
    e, f = t_env.from_path("e"), t_env.from_path("f")
    pairs = {
        "Greeting(TABLE e, 2)": e.process("Greeting", 2),
        "Greeting(input => TABLE e, least => 3)": e.process(functions.Greeting, lit(3).as_argument("least")),
        "Counting(TABLE e PARTITION BY (v, k))": e.partition_by(col("v"), col("k")).process("Counting"),
        "Counting(TABLE e, DEFAULT, 'mine')": e.process("Counting", None, "mine"),
        "Timers(input => TABLE e PARTITION BY k, on_time => DESCRIPTOR(ts))": e.partition_by(
            col("k")
        ).process("Timers", descriptor("ts").as_argument("on_time")),
        "Ordered(TABLE e PARTITION BY k ORDER BY (ts ASC, v DESC))": e.partition_by(col("k"))
        .order_by(col("ts").asc, col("v").desc)
        .process("Ordered"),
        "Pairing(visit => TABLE e PARTITION BY k, purchase => TABLE f PARTITION BY k)": t_env.from_call(
            "Pairing",
            f.partition_by(col("k")).as_argument("purchase"),
            e.partition_by(col("k")).as_argument("visit"),
        ),
        "TO_CHANGELOG(TABLE e)": e.to_changelog(),
        "FROM_CHANGELOG(input => TABLE e, op => DESCRIPTOR(k), op_mapping => MAP['a', 'INSERT'])": (
            e.from_changelog(descriptor("k").as_argument("op"), map_("a", "INSERT").as_argument("op_mapping"))
        ),
    }
    for sql, table in pairs.items():
        wanted = physical(t_env.sql_query(f"SELECT * FROM {sql}"))
        assert physical(table).replace("Greeting$1", "Greeting") == wanted, sql


def test_a_function_is_called_without_being_registered(t_env):
    made = t_env.from_path("e").partition_by(col("k")).process(functions.Viewing)
    assert made.get_schema().get_field_names() == ["k", "elements", "counts"]
    assert "uid=[Viewing]" in physical(made)


def test_equal_calls_with_one_uid_run_once(t_env):
    t_env.execute_sql("CREATE TABLE a (k STRING, n BIGINT, last BIGINT) WITH ('connector' = 'print')")
    t_env.execute_sql("CREATE TABLE b LIKE a")
    inserts = t_env.create_statement_set()
    for sink in "ab":
        inserts.add_insert_sql(f"INSERT INTO {sink} SELECT * FROM Counting(TABLE e PARTITION BY k)")
    assert inserts.explain().split("== Optimized Physical Plan ==")[1].count("ProcessTableFunction(") <= 2
    inserts.add_insert_sql("INSERT INTO a SELECT * FROM Counting(TABLE f PARTITION BY k)")
    with pytest.raises(SqlValidationError, match="have the uid 'Counting'"):
        inserts.explain()


def test_wrong_calls_are_refused(t_env):
    table = t_env.from_path("e")
    with pytest.raises(JobDefinitionError, match="expected a process table function"):
        table.process(3)
    with pytest.raises(SqlValidationError, match="called without a table"):
        t_env.from_call("Greeting", 1)
    with pytest.raises(SqlError, match="needs the argument 'least'"):
        table.process("Greeting")


def test_on_time_of_a_joined_table_is_refused(t_env):
    t_env.execute_sql("CREATE VIEW j AS SELECT e.id, e.k, e.v, e.ts FROM e JOIN f ON e.id = f.id")
    made = t_env.sql_query("SELECT * FROM Timers(input => TABLE j PARTITION BY k, on_time => DESCRIPTOR(ts))")
    with pytest.raises(SqlValidationError, match="'ts' is a plain timestamp after a join"):
        made.explain()


def test_process_table_functions_are_refused_in_batch_mode():
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.execute_sql("CREATE TABLE t (op STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '1')")
    for call in ("TO_CHANGELOG(TABLE t)", "FROM_CHANGELOG(TABLE t)"):
        with pytest.raises(SqlValidationError, match="run in streaming mode only, as in Flink"):
            t_env.sql_query(f"SELECT * FROM {call}")


def test_create_function_names_a_process_table_function(t_env):
    t_env.execute_sql("CREATE FUNCTION kinds AS 'tests.parity.process_functions.Kinds' LANGUAGE PYTHON")
    made = t_env.sql_query("SELECT * FROM kinds(input => TABLE e PARTITION BY k)")
    assert made.get_schema().get_field_names() == ["k", "flag", "was"]


def test_results_can_be_joined_and_renamed(t_env):
    made = t_env.sql_query(
        "SELECT c.n, g.x FROM Counting(TABLE e PARTITION BY k) AS c JOIN Greeting(TABLE f, 1) AS g(x) ON c.k = g.x"
    )
    assert made.get_schema().get_field_names() == ["n", "x"]
