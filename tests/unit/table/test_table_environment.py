"""Statements and tables without Spark: names, plans, refusals."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import datetime

import pandas as pd
import pytest

from headrace.common import Configuration, JobClient, JobID, JobStatus
from headrace.common.types import Row
from headrace.datastream.started_jobs import StartedJobs
from headrace.errors import (
    CatalogError,
    ConfigurationError,
    JobDefinitionError,
    SqlError,
    SqlValidationError,
    UnsupportedFeatureError,
)
from headrace.planner.logical import Field
from headrace.table import (
    DataTypes,
    EnvironmentSettings,
    ExplainDetail,
    ModuleEntry,
    ResultKind,
    Schema,
    TableDescriptor,
    TableEnvironment,
)
from headrace.table._elements import pandas_of
from headrace.table.expression import (
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryWrapper,
    JsonValueOnEmptyOrError,
)
from headrace.table.expressions import (
    col,
    json,
    json_array,
    json_array_agg,
    json_object,
    json_object_agg,
    json_string,
    lit,
    range_,
    temporal_overlaps,
    with_columns,
    without_columns,
)
from headrace.table.udf import udf
from headrace.table.window import Tumble

CLICKS = """
    CREATE TABLE clicks (
      user_id BIGINT, url STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ) WITH ('connector' = 'datagen', 'number-of-rows' = '10')
"""


@pytest.fixture
def t_env() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(CLICKS)
    return environment


@udf(result_type=DataTypes.BIGINT())
def double(n):
    return n * 2


class FakeJob:
    """A job that does what it is asked at once."""

    def __init__(self, name):
        self.job_id = JobID(name)
        self.state = JobStatus.RUNNING
        self.asked = []

    def status(self):
        return self.state

    def cancel(self):
        self.state = JobStatus.CANCELED
        return _done(None)

    def stop_with_savepoint(self, *, advance_to_end_of_event_time, savepoint_directory):
        self.asked.append((advance_to_end_of_event_time, savepoint_directory))
        self.state = JobStatus.FINISHED
        return _done("/savepoints/1")


def _done(value):
    future = Future()
    future.set_result(value)
    return future


def test_jobs_are_shown_described_and_stopped(t_env):
    first, second = FakeJob("a" * 32), FakeJob("b" * 32)
    for name, job in (("one", first), ("two", second)):
        t_env._env._started_jobs.add(name, JobClient(job))

    def shown(statement):
        return [list(row)[:3] for row in t_env.execute_sql(statement).collect()]

    assert shown("SHOW JOBS") == [["a" * 32, "one", "RUNNING"], ["b" * 32, "two", "RUNNING"]]
    assert shown(f"DESCRIBE JOB '{second.job_id}'") == [["b" * 32, "two", "RUNNING"]]
    assert shown(f"STOP JOB '{first.job_id}'") == [["OK"]]
    assert shown(f"STOP JOB '{second.job_id}' WITH SAVEPOINT WITH DRAIN") == [["/savepoints/1"]]
    assert second.asked == [(True, None)]
    assert [row[2] for row in shown("SHOW JOBS")] == ["CANCELED", "FINISHED"]
    with pytest.raises(SqlValidationError, match="already CANCELED"):
        t_env.execute_sql(f"STOP JOB '{first.job_id}'")
    with pytest.raises(SqlValidationError, match="no job 'x' was started in this session"):
        t_env.execute_sql("DESCRIBE JOB 'x'")


def test_of_jobs_that_are_over_the_last_ones_are_listed():
    jobs = StartedJobs()
    running = FakeJob("f" * 32)
    jobs.add("running", JobClient(running))
    for number in range(150):
        job = FakeJob(f"{number:032x}")
        jobs.add(str(number), JobClient(job))
        job.cancel()
    listed = jobs.jobs()
    assert [job.name for job in listed] == ["running", *map(str, range(50, 150))]
    assert [job.name for job in listed if job.client is not None] == ["running"]


def test_partitions_are_the_directories_of_a_table(t_env, tmp_path):
    for directory in ("day=1/city=a%2Fb", "day=2/city=c", "day=2/_tmp", "other"):
        (tmp_path / directory).mkdir(parents=True)
    t_env.execute_sql(
        f"CREATE TABLE f (n INT, `day` INT, city STRING) PARTITIONED BY (`day`, city) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv')"
    )

    def shown(statement):
        return [row[0] for row in t_env.execute_sql(statement).collect()]

    assert shown("SHOW PARTITIONS f") == ["day=1/city=a/b", "day=2/city=c"]
    assert shown("SHOW PARTITIONS f PARTITION (`day` = 2)") == ["day=2/city=c"]
    t_env.execute_sql("CREATE TABLE g (n INT) PARTITIONED BY (n) WITH ('connector' = 'blackhole')")
    with pytest.raises(UnsupportedFeatureError, match="SHOW PARTITIONS"):
        t_env.execute_sql("SHOW PARTITIONS g")


def test_expressions_of_json_and_percentiles_are_queries(t_env):
    clicks = t_env.from_path("clicks")
    made = clicks.select(
        json_object(
            JsonOnNull.NULL, "u", col("url"), "n", json_array(JsonOnNull.ABSENT, 1, json("[2]"))
        ).alias("o"),
        json_string(col("user_id")).alias("s"),
        col("url").json_quote().json_unquote().alias("q"),
        col("url").inet_aton().inet_ntoa().alias("i"),
        temporal_overlaps(col("ts"), lit(1).hour, col("ts"), col("ts")).alias("v"),
        col("url").json_query("$", JsonQueryWrapper.CONDITIONAL_ARRAY).alias("j"),
        col("url").json_exists("$.a", JsonExistsOnError.UNKNOWN).alias("e"),
        col("url").json_value("$.a", DataTypes.INT(), JsonValueOnEmptyOrError.DEFAULT, 7).alias("d"),
    )
    assert [each.type_name() for each in made.get_schema().get_field_data_types()] == [
        *["VARCHAR"] * 4,
        "BOOLEAN",
        "VARCHAR",
        "BOOLEAN",
        "INT",
    ]
    groups = clicks.group_by(col("user_id")).select(
        json_array_agg(JsonOnNull.ABSENT, col("url")).alias("a"),
        json_object_agg(JsonOnNull.NULL, col("url"), col("ts")).alias("o"),
        col("user_id").percentile(0.5).alias("p"),
    )
    assert [each.type_name() for each in groups.get_schema().get_field_data_types()] == [
        "VARCHAR",
        "VARCHAR",
        "DOUBLE",
    ]


def test_replace_wants_a_table(t_env):
    with pytest.raises(CatalogError, match=r"cannot replace table"):
        t_env.execute_sql("REPLACE TABLE nowhere WITH ('connector' = 'blackhole') AS SELECT 1 AS a")


def test_modules_have_pyflinks_names(t_env):
    assert t_env.list_full_modules() == [ModuleEntry("core", True)]
    t_env.use_modules()
    assert t_env.list_full_modules() == [ModuleEntry("core", False)]
    assert t_env.list_modules() == []
    t_env.unload_module("core")
    assert t_env.list_full_modules() == []


def test_a_table_prints_how_it_is_declared(t_env, capsys):
    t_env.execute_sql(
        "CREATE TABLE orders (id BIGINT, cents INT, euros AS cents / 100, at TIMESTAMP(3) METADATA FROM 'timestamp' "
        "VIRTUAL, WATERMARK FOR at AS at - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'blackhole')"
    )
    t_env.from_path("orders").print_schema()
    t_env.from_path("orders").select(col("at")).print_schema()
    assert capsys.readouterr().out == (
        "(\n"
        "  `id` BIGINT NOT NULL,\n"
        "  `cents` INT,\n"
        "  `euros` INT AS `cents` / 100,\n"
        "  `at` TIMESTAMP(3) *ROWTIME* METADATA FROM 'timestamp' VIRTUAL,\n"
        "  WATERMARK FOR `at`: TIMESTAMP(3) AS `at` - INTERVAL '5' SECOND,\n"
        "  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED\n"
        ")\n"
        "(\n"
        "  `at` TIMESTAMP(3) *ROWTIME*\n"
        ")\n"
    )


def test_the_kind_of_a_result_and_the_modules_print_as_in_pyflink(t_env):
    shown = t_env.execute_sql("SHOW TABLES").get_result_kind()

    assert (str(shown), f"{ResultKind.SUCCESS}", shown == 1) == ("1", "0", True)
    assert str(t_env.list_full_modules()) == "[ModuleEntry{name='core', used=true}]"


def test_statements_about_the_catalog_answer_at_once(t_env):
    assert (
        t_env.execute_sql("CREATE VIEW v AS SELECT user_id FROM clicks").get_result_kind()
        is ResultKind.SUCCESS
    )
    assert [row[0] for row in t_env.execute_sql("SHOW TABLES").collect()] == ["clicks", "v"]
    assert t_env.list_tables() == ["clicks", "v"]
    assert t_env.list_views() == ["v"]
    t_env.execute_sql("DROP VIEW v")
    assert t_env.list_tables() == ["clicks"]
    assert t_env.get_current_database() == "default_database"


def test_a_wrong_statement_shows_the_place(t_env):
    with pytest.raises(SqlError) as caught:
        t_env.execute_sql("SELECT usr_id FROM clicks")

    assert (caught.value.line, caught.value.column) == (1, 8)


def test_sql_query_takes_queries_only(t_env):
    with pytest.raises(SqlValidationError, match="sql_query"):
        t_env.sql_query("SHOW TABLES")


def test_set_changes_the_configuration_and_refuses_unknown_keys(t_env):
    t_env.execute_sql("SET 'table.exec.state.ttl' = '1 h'")

    assert t_env.get_config().get("table.exec.state.ttl", "") == "1 h"
    assert [tuple(row) for row in t_env.execute_sql("SET").collect()] == [("table.exec.state.ttl", "1 h")]
    with pytest.raises(ConfigurationError, match=r"unknown configuration key 'table\.exec\.state\.tll'"):
        t_env.execute_sql("SET 'table.exec.state.tll' = '1 h'")
    with pytest.raises(ConfigurationError, match="lengths of strings are not checked"):
        t_env.get_config().set("table.exec.sink.type-length-enforcer", "TRIM_PAD")
    t_env.execute_sql("RESET 'table.exec.state.ttl'")
    assert t_env.get_config().to_map() == {}


def test_explain_shows_the_operators_and_their_changelogs(t_env):
    text = t_env.explain_sql("SELECT url, COUNT(*) FROM clicks GROUP BY url", ExplainDetail.CHANGELOG_MODE)

    assert "== Abstract Syntax Tree ==" in text
    assert "GroupAggregate(groupBy=[url], select=[url, COUNT(*) AS agg0], changelogMode=[I,UB,UA])" in text
    assert (
        text
        == next(
            t_env.execute_sql(
                "EXPLAIN CHANGELOG_MODE SELECT url, COUNT(*) FROM clicks GROUP BY url"
            ).collect()
        )[0]
    )


def test_texts_of_several_lines_are_printed_as_they_are(t_env, capsys):
    t_env.execute_sql("SHOW CREATE TABLE clicks").print()
    t_env.execute_sql("EXPLAIN SELECT 1").print()

    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "CREATE TABLE `default_catalog`.`default_database`.`clicks` ("
    assert "== Optimized Physical Plan ==" in printed


@pytest.mark.parametrize(
    "settings", [EnvironmentSettings.in_streaming_mode(), EnvironmentSettings.in_batch_mode()]
)
def test_a_select_without_from_has_a_row_that_spark_can_give(settings):
    jobs = (t_env := TableEnvironment.create(settings))._jobs
    scan = jobs.nodes(jobs.plan_query(t_env.sql_query("SELECT 1 + 1 AS two")._plan))[0].declaration

    assert [column.name for column in scan.schema] == ["ZERO"]
    assert scan.source.rows == ((0,),)


def test_explain_can_show_the_plan_as_json(t_env):
    import json

    text = t_env.sql_query("SELECT url FROM clicks").explain(ExplainDetail.JSON_EXECUTION_PLAN)
    nodes = json.loads(text.partition("== Physical Execution Plan ==\n")[2])["nodes"]

    assert [node["type"] for node in nodes] == ["TableSourceScan", "WatermarkAssigner", "Calc", "Sink"]


def test_explain_gives_advice(t_env):
    def advised(query):
        return t_env.sql_query(query).explain(ExplainDetail.PLAN_ADVICE).splitlines()

    assert "== Optimized Physical Plan With Advice ==" in advised("SELECT url FROM clicks")
    assert advised("SELECT url FROM clicks")[-1] == "No available advice..."
    counted = "SELECT url, COUNT(*) FROM clicks GROUP BY url"
    assert "keeps its state forever unless table.exec.state.ttl is set" in advised(counted)[-1]
    t_env.get_config().set("table.exec.state.ttl", "1 h")
    assert advised(counted)[-1] == "No available advice..."


def test_explain_can_estimate_rows_and_costs(t_env):
    t_env.execute_sql(
        "CREATE TABLE few (k STRING, v INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1000')"
    )
    text = t_env.explain_sql(
        "SELECT k, COUNT(*) FROM few WHERE v > 3 AND k = 'a' GROUP BY k", ExplainDetail.ESTIMATED_COST
    )
    counts = [line.partition("rowcount = ")[2].partition(",")[0] for line in text.splitlines()]

    assert [count for count in counts if count] == ["7.5", "7.5", "7.5", "75.0", "75.0", "1000.0"]
    assert (
        "fields=[k, v]): rowcount = 1000.0, cumulative cost = "
        "{1000.0 rows, 1000.0 cpu, 28000.0 io, 0.0 network, 0.0 memory}" in text
    )
    t_env.execute_sql("CREATE TABLE many (k STRING) WITH ('connector' = 'datagen')")
    unknown = t_env.explain_sql("SELECT k FROM many", ExplainDetail.ESTIMATED_COST)
    assert "rowcount = 1.0E8, cumulative cost = {1.0E8 rows" in unknown


def test_a_table_is_put_together_call_by_call(t_env):
    clicks = t_env.from_path("clicks")
    table = (
        clicks.filter(col("user_id") > 3)
        .group_by(col("url").upper_case.alias("page"))
        .select(col("page"), col("user_id").count.distinct.alias("users"))
    )

    assert table.get_schema().get_field_names() == ["page", "users"]
    assert "where=[(user_id > " in table.explain()
    assert "COUNT(DISTINCT user_id)" in table.explain()


def test_columns_are_added_renamed_replaced_and_dropped(t_env):
    clicks = t_env.from_path("clicks").drop_columns(col("ts"))

    def names(table):
        return table.get_schema().get_field_names()

    assert names(clicks.add_columns((col("user_id") + 1).alias("next"))) == ["user_id", "url", "next"]
    assert names(clicks.add_or_replace_columns(lit(1).alias("url"))) == ["user_id", "url"]
    assert names(clicks.rename_columns(col("url").alias("page"))) == ["user_id", "page"]
    assert names(clicks.alias("a")) == ["a", "url"]
    assert names(clicks.select(with_columns(range_(1, 2)))) == ["user_id", "url"]
    assert names(clicks.select(without_columns(col("url")))) == ["user_id"]
    assert str(clicks.url) == "url"
    with pytest.raises(SqlValidationError, match="column 'nope' not found"):
        clicks.drop_columns(col("nope"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT COUNT(*) FROM clicks GROUP BY TUMBLE(ts, ROW_INTERVAL(3))", "over processing time"),
        ("SELECT COUNT(*) FROM timed GROUP BY SESSION(p, ROW_INTERVAL(3))", "TUMBLE or HOP"),
        ("SELECT COUNT(*) FROM timed GROUP BY TUMBLE(p, ROW_INTERVAL(0))", "a number of rows"),
        (
            "SELECT COUNT(*) FROM timed GROUP BY HOP(p, INTERVAL '1' SECOND, ROW_INTERVAL(3))",
            "a number of rows",
        ),
        (
            "SELECT TUMBLE_START(p, ROW_INTERVAL(3)) FROM timed GROUP BY TUMBLE(p, ROW_INTERVAL(3))",
            "no start",
        ),
    ],
)
def test_what_a_window_of_rows_cannot_be(t_env, query, message):
    t_env.create_temporary_view("timed", t_env.sql_query("SELECT user_id, PROCTIME() AS p FROM clicks"))
    with pytest.raises(SqlValidationError, match=message):
        t_env.sql_query(query)


def test_a_group_window_of_the_table_api_is_one_of_sql(t_env):
    window = Tumble.over(lit(10).minutes).on(col("ts")).alias("w")
    table = (
        t_env.from_path("clicks")
        .window(window)
        .group_by(col("w"), col("url"))
        .select(col("url"), col("w").start.alias("s"), col("w").end.alias("e"), col("user_id").max.alias("m"))
    )

    assert table.get_schema().get_field_names() == ["url", "s", "e", "m"]
    assert "GroupWindowAggregate(groupBy=[url], window=[TUMBLE(time_col=ts, size=10 min)]" in table.explain()
    with pytest.raises(SqlValidationError, match="the window 'w' is missing from the grouping"):
        t_env.from_path("clicks").window(window).group_by(col("url"))


def test_joins_and_set_operations(t_env):
    clicks = t_env.from_path("clicks").select(col("user_id"), col("url"))
    users = t_env.from_elements([(1, "ann")], ["id", "name"])

    joined = clicks.left_outer_join(users, col("user_id") == col("id"))
    assert joined.get_schema().get_field_names() == ["user_id", "url", "id", "name"]
    assert "joinType=[LeftJoin]" in joined.explain()
    with pytest.raises(SqlValidationError, match="both tables have a column 'user_id'"):
        clicks.join(clicks)
    assert "Union" in clicks.union_all(clicks).explain()
    assert (
        "SortLimit(orderBy=[url DESC], offset=[0], fetch=[3]"
        in clicks.order_by(col("url").desc).fetch(3).explain()
    )
    assert (
        " IN "
        not in clicks.filter(col("user_id").in_(users.select(col("id")))).explain().split("Physical")[1]
    )


def test_python_functions_are_called_by_name_and_as_objects(t_env):
    t_env.create_temporary_system_function("twice", double)

    assert "twice(user_id)" in t_env.sql_query("SELECT twice(user_id) FROM clicks").explain()
    assert "double(user_id)" in t_env.from_path("clicks").select(double(col("user_id"))).explain()
    assert t_env.list_user_defined_functions() == ["double", "twice"]
    assert t_env.drop_temporary_system_function("twice")
    with pytest.raises(JobDefinitionError, match=r"created with udf"):
        t_env.create_temporary_function("f", len)


def test_a_python_function_of_the_catalog_is_imported_when_it_is_called(t_env):
    t_env.execute_sql("CREATE FUNCTION f AS 'tests.unit.table.functions.triple' LANGUAGE PYTHON")
    t_env.execute_sql("CREATE FUNCTION g AS 'tests.unit.table.functions.nothing' LANGUAGE PYTHON")

    assert "f(user_id)" in t_env.sql_query("SELECT f(user_id) FROM clicks").explain()
    with pytest.raises(SqlError, match="cannot import"):
        t_env.sql_query("SELECT g(user_id) FROM clicks")


def test_a_table_is_described_by_a_descriptor(t_env):
    schema = Schema.new_builder().column("id", DataTypes.BIGINT()).column("name", "STRING").build()
    descriptor = TableDescriptor.for_connector("print").schema(schema).option("print-identifier", "x").build()

    t_env.create_temporary_table("out", descriptor)

    assert "out" in t_env.list_tables()
    statement_set = t_env.create_statement_set()
    statement_set.add_insert_sql("INSERT INTO `out` SELECT user_id, url FROM clicks")
    statement_set.add_insert("out", t_env.from_path("clicks").select(col("user_id"), col("url")))
    text = statement_set.explain()
    assert text.count("Sink(table=[default_catalog.default_database.out]") == 2
    assert "Reused(reference_id=[1])" in text
    with pytest.raises(CatalogError):
        t_env.create_temporary_table("out", descriptor)


def test_an_unknown_option_or_connector_is_refused(t_env):
    t_env.execute_sql("CREATE TABLE a (id INT) WITH ('connector' = 'datagen', 'number-of-rosw' = '1')")
    t_env.execute_sql("CREATE TABLE b (id INT) WITH ('connector' = 'pulsar')")
    t_env.execute_sql("CREATE TABLE c (id INT) WITH ('connector' = 'print')")

    with pytest.raises(SqlValidationError, match="has no option 'number-of-rosw'"):
        t_env._jobs.job_graph(t_env._jobs.plan_query(t_env.from_path("a")._plan), "x")
    with pytest.raises(UnsupportedFeatureError, match="unknown table connector 'pulsar'"):
        t_env._jobs.job_graph(t_env._jobs.plan_query(t_env.from_path("b")._plan), "x")
    with pytest.raises(SqlValidationError, match="not as a source"):
        t_env._jobs.job_graph(t_env._jobs.plan_query(t_env.from_path("c")._plan), "x")


def test_a_sink_that_only_appends_refuses_changes(t_env, tmp_path):
    t_env.execute_sql(
        f"CREATE TABLE files (url STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', "
        "'format' = 'json')"
    )

    with pytest.raises(
        SqlValidationError, match="does not support update changes, which GroupAggregate produces"
    ):
        t_env.execute_sql("INSERT INTO files SELECT url, COUNT(*) FROM clicks GROUP BY url")


def test_hints_change_options_unless_that_is_switched_off(t_env):
    query = "SELECT url FROM clicks /*+ OPTIONS('number-of-rows' = '3') */"

    jobs = t_env._jobs
    source = jobs.nodes(jobs.plan_query(t_env.sql_query(query)._plan))[0].declaration.source
    assert source.count == 3
    t_env.get_config().set("table.dynamic-table-options.enabled", False)
    with pytest.raises(SqlValidationError, match="has an OPTIONS hint"):
        t_env.sql_query(query).explain()


def test_the_first_catalog_and_database_have_the_names_that_are_configured():
    settings = (
        EnvironmentSettings.new_instance()
        .with_configuration(Configuration.from_dict({"table.builtin-database-name": "db"}))
        .with_built_in_catalog_name("cat")
        .build()
    )

    t_env = TableEnvironment.create(settings)

    assert (t_env.get_current_catalog(), t_env.get_current_database()) == ("cat", "db")


def test_elements_have_types_that_are_found_or_given(t_env):
    found = t_env.from_elements([(1, 1.5, None), (2, 3, "x")], ["a", "b", "c"])
    assert [each.summary() for each in found.get_schema().get_field_data_types()] == [
        "BIGINT",
        "DOUBLE",
        "STRING",
    ]
    given = t_env.from_elements([(1,)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]))
    assert str(given.get_schema().get_field_data_type("a")) == "INT"
    assert t_env.from_elements([{"x": 1}]).get_schema().get_field_names() == ["x"]
    with pytest.raises(JobDefinitionError, match="there are no elements"):
        t_env.from_elements([])
    with pytest.raises(JobDefinitionError, match=r"cannot convert 'x' to INT \(column 'a'\)"):
        t_env.from_elements([("x",)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]))


def test_rows_inside_of_elements_are_rows_of_the_table(t_env):
    guest = DataTypes.ROW(
        [DataTypes.FIELD("name", DataTypes.STRING()), DataTypes.FIELD("age", DataTypes.INT())]
    )
    table = DataTypes.ROW([DataTypes.FIELD("host", guest), DataTypes.FIELD("guests", DataTypes.ARRAY(guest))])

    made = t_env.from_elements([(Row("ann", 30), [Row("bob", 7), None])], table)

    assert made._plan.table.attachment.rows == (
        ({"name": "ann", "age": 30}, [{"name": "bob", "age": 7}, None]),
    )
    with pytest.raises(
        JobDefinitionError, match=r"cannot convert <Row\('ann'\)> to ROW<.*> \(column 'host'\)"
    ):
        t_env.from_elements([(Row("ann"), [])], table)


def test_a_pandas_frame_is_a_table(t_env):
    table = t_env.from_pandas(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))

    assert [each.summary() for each in table.get_schema().get_field_data_types()] == ["BIGINT", "STRING"]


def test_times_and_categories_of_a_pandas_frame_are_columns(t_env):
    times = pd.to_datetime(["2024-02-29 12:00:00.123456789"])
    frame = pd.DataFrame({"at": times, "moment": times.tz_localize("UTC"), "kind": pd.Categorical(["tea"])})

    table = t_env.from_pandas(frame)

    assert [each.type.summary() for each in table._plan.schema] == [
        "TIMESTAMP(6)",
        "TIMESTAMP_LTZ(6)",
        "STRING",
    ]
    (row,) = table._plan.table.attachment.rows
    assert (row[0].isoformat(), row[2]) == ("2024-02-29T12:00:00.123456", "tea")


@pytest.mark.parametrize(
    ("frame", "message"),
    [([1, 2], "expected a DataFrame"), (pd.DataFrame({"a": [1, "x"]}), "Could not convert 'x'")],
)
def test_an_invalid_frame_of_columns_is_refused(t_env, frame, message):
    with pytest.raises(JobDefinitionError, match=message):
        t_env.from_pandas(frame)


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([(1, "a"), (2,)], r"expected 2 values \(id, name\); got \(2,\)"),
        (5, "expected a list of elements; got 5"),
    ],
)
def test_elements_of_another_width_and_no_elements_are_refused(t_env, elements, message):
    with pytest.raises(JobDefinitionError, match=message):
        t_env.from_elements(elements, ["id", "name"])


def test_a_value_that_is_neither_a_table_nor_a_statement_is_refused(t_env):
    clicks = t_env.from_path("clicks")

    with pytest.raises(SqlValidationError, match=r"join\(\): expected a Table; got 'users'"):
        clicks.join("users")
    with pytest.raises(SqlValidationError, match=r"minus_all\(\): expected a Table; got 5"):
        clicks.minus_all(5)
    with pytest.raises(JobDefinitionError, match="expected a statement as text; got None"):
        t_env.execute_sql(None)


def test_a_function_is_called_with_as_many_arguments_as_it_takes(t_env):
    t_env.create_temporary_function("double", double)

    for call, count in (("double()", "0 arguments"), ("double(user_id, 1)", "2 arguments")):
        with pytest.raises(SqlValidationError, match=f"double does not take {count}") as error:
            t_env.sql_query(f"SELECT {call} FROM clicks")
        assert error.value.hint == "it is double(n)"


def test_a_table_that_cannot_be_written_is_named(t_env):
    with pytest.raises(
        SqlValidationError, match=r"table 'default_catalog.default_database.clicks': .*not as a sink"
    ):
        t_env.execute_sql("INSERT INTO clicks SELECT * FROM clicks")


def test_null_is_the_greatest_value_in_an_order_of_the_table_api(t_env):
    clicks = t_env.from_path("clicks")

    def nulls_first(table):
        return [key.nulls_first for key in table._plan.keys]

    assert nulls_first(clicks.order_by(col("url"), col("url").asc, col("url").desc)) == [False, False, True]
    assert nulls_first(t_env.sql_query("SELECT * FROM clicks ORDER BY url, url DESC")) == [True, False]


def test_two_columns_of_one_name_are_refused(t_env):
    clicks = t_env.from_path("clicks")

    with pytest.raises(SqlValidationError, match="2 columns are named 'url'"):
        clicks.select(col("url"), col("url"))
    with pytest.raises(SqlValidationError, match="2 columns are named 'url'"):
        clicks.add_columns(col("user_id").alias("url"))


def test_a_column_that_is_not_there_comes_with_the_nearest(t_env):
    with pytest.raises(AttributeError, match="no column or method 'user'; did you mean 'user_id'"):
        t_env.from_path("clicks").user  # noqa: B018  # it is asked for


def test_a_result_is_a_frame_with_nanoseconds_where_they_reach_and_maps_as_dictionaries():
    noon, far = (datetime.fromisoformat(f"{year}-02-28T12:00:00") for year in (2024, 9999))
    schema = (
        Field("at", DataTypes.TIMESTAMP(3)),
        Field("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
    )

    near = pandas_of([Row(noon, {"a": 1})], schema, is_insert_only=True)
    later = pandas_of([Row(far, None)], schema, is_insert_only=True)

    assert (str(near["at"].dtype), near["m"][0]) == ("datetime64[ns]", {"a": 1})
    assert later["at"][0] == far


def test_rows_inside_of_rows_become_dictionaries_of_a_pandas_frame():
    guest = DataTypes.ROW(
        [DataTypes.FIELD("name", DataTypes.STRING()), DataTypes.FIELD("age", DataTypes.INT())]
    )
    schema = (Field("host", guest), Field("guests", DataTypes.ARRAY(guest)))

    made = pandas_of([Row(Row("ann", 30), [Row("bob", 7), None])], schema, is_insert_only=True)

    assert made["host"][0] == {"name": "ann", "age": 30}
    assert list(made["guests"][0]) == [{"name": "bob", "age": 7}, None]


def test_a_pandas_frame_takes_names_or_types_of_its_columns(t_env):
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2]})

    named = t_env.from_pandas(frame, ["x", "y"])
    typed = t_env.from_pandas(frame, [DataTypes.INT(), DataTypes.SMALLINT()])

    assert named.get_schema().get_field_names() == ["x", "y"]
    assert [each.type.summary() for each in typed._plan.schema] == ["INT", "SMALLINT"]
    with pytest.raises(JobDefinitionError, match=r"the schema has 1 columns, the DataFrame 2: a, b"):
        t_env.from_pandas(frame, ["x"])


def names_of(table):
    return table.get_schema().get_field_names()


def test_columns_without_a_name_are_called_as_flink_calls_them(t_env):
    clicks = t_env.from_path("clicks")
    user, url = col("user_id"), col("url")

    assert names_of(clicks.select(user + 1, url, url.upper_case)) == ["_c0", "url", "_c2"]
    assert names_of(clicks.select(user.cast(DataTypes.STRING()))) == ["user_id-STRING"]
    places = t_env.from_elements([((1, (2, 3)),)], ["place"])
    assert names_of(places.select(col("place").get("_1"), col("place").get("_2").get("_1"))) == [
        "place$_1",
        "place$_2$_1",
    ]
    assert names_of(clicks.add_columns(user + 1)) == ["user_id", "url", "ts", "_c3"]
    grouped = clicks.group_by(url).select(url, user.sum, user.max + 1, user.max, user.min.alias("least"))
    assert names_of(grouped) == ["url", "EXPR$0", "_c2", "EXPR$1", "least"]
    windows = clicks.window(Tumble.over(lit(1).minutes).on(col("ts")).alias("w")).group_by(col("w"), url)
    assert names_of(windows.select(url, col("w").start, user.sum.alias("s"), user.max)) == [
        "url",
        "EXPR$0",
        "s",
        "EXPR$2",
    ]
    assert names_of(t_env.sql_query("SELECT user_id + 1, url FROM clicks")) == ["EXPR$0", "url"]


def test_map_gives_the_fields_of_the_row_that_a_function_returns(t_env):
    pair = DataTypes.ROW(
        [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("word", DataTypes.STRING())]
    )
    both = udf(lambda row: row, result_type=pair)
    clicks = t_env.from_path("clicks")

    assert names_of(clicks.map(both(col("user_id")))) == ["id", "word"]
    assert "CAST(ROW(user_id, url, ts) AS ROW<`user_id` BIGINT" in clicks.map(both).explain()
    assert names_of(clicks.map(double(col("user_id")))) == ["f0"]


def test_a_query_is_kept_as_a_view_of_the_catalog(t_env):
    t_env.create_view("urls", t_env.sql_query("SELECT url FROM clicks"))
    t_env.create_view("urls", t_env.sql_query("SELECT 1 AS n"), True)

    assert t_env.list_views() == ["urls"]
    assert names_of(t_env.from_path("urls")) == ["url"]
    with pytest.raises(CatalogError, match="already"):
        t_env.create_view("urls", t_env.sql_query("SELECT 1 AS n"))
    with pytest.raises(UnsupportedFeatureError, match="made by Table API calls"):
        t_env.create_view("others", t_env.from_path("clicks").select(col("url")))


def test_a_method_that_is_not_called_is_not_an_expression(t_env):
    with pytest.raises(SqlValidationError) as error:
        t_env.from_path("clicks").select(col("url").list_agg)

    assert error.value.hint == "it is a function: write list_agg(...)"


def test_batch_mode_writes_one_statement_of_spark_sql():
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    table = t_env.from_elements([("a", 1)], ["k", "v"])

    text = t_env.sql_query(f"SELECT k, AVG(v) AS m FROM {table} WHERE k <> '{{x}}' GROUP BY k").explain()

    assert "CAST(sum(c1) DIV count(c1) AS bigint)" in text
    assert "\\u007Bx\\u007D" in text


def test_python_functions_of_a_batch_query_are_registered_with_it():
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    table = t_env.from_elements([("a", 1)], ["k", "v"])
    t_env.create_temporary_function("twice", double)
    jobs = t_env._jobs
    plan = jobs.plan_query(
        t_env.sql_query(f"SELECT twice(twice(v) + 1) FROM {table} WHERE twice(v) > 1")._plan
    )

    (query,) = (node.declaration for node in jobs.nodes(plan) if hasattr(node.declaration, "sql"))

    assert [call.result.name for call in query.functions] == ["headrace_udf_0"]
    assert query.sql.count("headrace_udf_0(") == 3
    assert query.functions[0].function(4) == 8


def test_the_job_of_a_query_has_a_vertex_for_each_node_with_state(t_env):
    t_env.get_config().set("table.exec.resource.default-parallelism", 3)
    t_env.get_config().set("table.exec.state.ttl", "1 min")
    jobs = t_env._jobs
    plan = jobs.plan_query(t_env.sql_query("SELECT url, COUNT(*) FROM clicks GROUP BY url")._plan)

    graph = jobs.job_graph(plan, "query")

    assert [vertex.name for vertex in graph.vertices] == [
        "Source: clicks[1]",
        "GroupAggregate[2]",
        "Sink: collect",
    ]
    assert {vertex.parallelism for vertex in graph.vertices} == {3}
    assert graph.vertices[1].head.declaration.ttl_ms == 60_000
    assert graph.vertices[0].head.declaration.watermark is not None
    assert graph.session_settings["spark.sql.ansi.enabled"] == "false"
