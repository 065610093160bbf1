"""Tables of data streams and streams of tables, as far as they are found out before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.common import Types
from headrace.common.types import Row, RowKind
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.errors import (
    CatalogError,
    JobDefinitionError,
    SqlError,
    SqlValidationError,
    UnsupportedFeatureError,
)
from headrace.table import (
    ChangelogMode,
    DataTypes,
    EnvironmentSettings,
    Schema,
    StreamTableEnvironment,
    TableEnvironment,
)
from headrace.table.expressions import col

ROW = Types.ROW_NAMED(["id", "name", "score"], [Types.LONG(), Types.STRING(), Types.DOUBLE()])


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def t_env(env: StreamExecutionEnvironment) -> StreamTableEnvironment:
    return StreamTableEnvironment.create(env)


@pytest.fixture
def stream(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([(1, "a", 0.5)], ROW)


def columns(table: Any) -> list[str]:
    return [f"{field.name} {field.summary()}" for field in table._plan.schema]


def test_fields_of_rows_and_tuples_are_columns_and_a_value_is_one(env, t_env, stream):
    assert columns(t_env.from_data_stream(stream)) == ["id BIGINT", "name STRING", "score DOUBLE"]
    pairs = env.from_collection([(1, "a")], Types.TUPLE([Types.INT(), Types.STRING()]))
    assert columns(t_env.from_data_stream(pairs)) == ["f0 INT", "f1 STRING"]
    assert columns(t_env.from_data_stream(env.from_collection(["a"], Types.STRING()))) == ["f0 STRING"]


def test_a_schema_adds_time_and_computed_columns_behind_those_of_the_records(t_env, stream):
    schema = (
        Schema.new_builder()
        .column_by_expression("twice", "score * 2")
        .column_by_expression("p", "PROCTIME()")
        .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")
        .watermark("rowtime", "SOURCE_WATERMARK()")
        .build()
    )
    assert columns(t_env.from_data_stream(stream, schema)) == [
        "id BIGINT",
        "name STRING",
        "score DOUBLE",
        "twice DOUBLE",
        "p TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*",
        "rowtime TIMESTAMP_LTZ(3) *ROWTIME*",
    ]


def test_columns_of_a_schema_are_found_by_name_in_any_order_and_have_its_types(t_env, stream):
    schema = Schema.new_builder().column("score", DataTypes.DECIMAL(5, 2)).column("id", "INT").build()
    assert columns(t_env.from_data_stream(stream, schema)) == ["score DECIMAL(5, 2)", "id INT"]
    wrong = Schema.new_builder().column("nam", "STRING").build()
    with pytest.raises(SqlValidationError, match="no field 'nam'; they have id, name, score"):
        t_env.from_data_stream(stream, wrong)


def test_fields_can_be_named_by_expressions(t_env, stream):
    by_name = t_env.from_data_stream(stream, col("name"), col("id").alias("number"), col("t").rowtime)
    assert columns(by_name) == ["name STRING", "number BIGINT", "t TIMESTAMP_LTZ(3) *ROWTIME*"]
    by_position = t_env.from_data_stream(stream, col("a"), col("b"), col("now").proctime)
    assert columns(by_position) == ["a BIGINT", "b STRING", "now TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*"]


def test_records_without_a_type_need_a_schema(env, t_env):
    untyped = env.from_collection([(1, "a")])
    with pytest.raises(JobDefinitionError, match="have no declared type") as raised:
        t_env.from_data_stream(untyped)
    assert "output_type=Types.ROW_NAMED" in (raised.value.hint or "")
    schema = Schema.new_builder().column("id", "BIGINT").column("name", "STRING").build()
    assert columns(t_env.from_data_stream(untyped, schema)) == ["id BIGINT", "name STRING"]


def test_records_have_no_metadata_but_their_timestamp(t_env, stream):
    other = Schema.new_builder().column_by_metadata("offset", "BIGINT").build()
    with pytest.raises(SqlValidationError, match="no metadata 'offset'"):
        t_env.from_data_stream(stream, other)
    zoneless = Schema.new_builder().column_by_metadata("rowtime", "TIMESTAMP(3)").build()
    with pytest.raises(SqlValidationError, match=r"TIMESTAMP_LTZ\(3\), not TIMESTAMP\(3\)"):
        t_env.from_data_stream(stream, zoneless)


def test_a_stream_can_have_the_name_of_a_view(t_env, stream):
    t_env.create_temporary_view("people", stream)
    assert t_env.list_temporary_views() == ["people"]
    assert columns(t_env.sql_query("SELECT UPPER(name) AS loud FROM people")) == ["loud STRING"]
    with pytest.raises(CatalogError):
        t_env.create_temporary_view("people", stream)


def test_only_a_stream_table_environment_has_tables_of_streams(stream):
    plain = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    with pytest.raises(SqlValidationError, match="expected a Table"):
        plain.create_temporary_view("people", stream)


def test_a_changelog_is_refused_in_batch_mode(env):
    t_env = StreamTableEnvironment.create(env, EnvironmentSettings.in_batch_mode())
    changes = env.from_collection([Row(1)], Types.ROW_NAMED(["v"], [Types.LONG()]))
    table = t_env.from_changelog_stream(changes)
    with pytest.raises(UnsupportedFeatureError, match="is a changelog, but the query runs in BATCH mode"):
        t_env.to_changelog_stream(table)


def test_a_value_that_is_neither_a_stream_nor_a_table_is_refused(t_env):
    with pytest.raises(JobDefinitionError, match="expected a DataStream"):
        t_env.from_data_stream([1, 2])
    with pytest.raises(JobDefinitionError, match="expected a Table"):
        t_env.to_data_stream("people")


# -- streams of tables ---------------------------------------------------------------------------------


def test_rows_that_change_are_refused_with_what_changes_them(t_env, stream):
    table = t_env.from_data_stream(stream)
    counts = t_env.sql_query(f"SELECT name, COUNT(*) AS n FROM {table} GROUP BY name")
    with pytest.raises(SqlValidationError, match="GroupAggregate makes update changes") as raised:
        t_env.to_data_stream(counts)
    assert "to_changelog_stream()" in (raised.value.hint or "")
    with pytest.raises(SqlValidationError, match=r"to_append_stream\(\): GroupAggregate"):
        t_env.to_append_stream(counts, Types.ROW([Types.STRING(), Types.LONG()]))


def test_a_stream_of_a_table_has_the_type_of_its_columns(t_env, stream):
    made = t_env.to_data_stream(t_env.from_data_stream(stream))
    assert made.get_type() == ROW


def test_upserts_need_a_key_on_both_sides(t_env, stream):
    table = t_env.from_data_stream(stream)
    with pytest.raises(SqlValidationError, match="key"):
        t_env.to_changelog_stream(table, None, ChangelogMode.upsert())
    with pytest.raises(SqlValidationError, match="key"):
        t_env.from_changelog_stream(stream, None, ChangelogMode.upsert())
    keyed = (
        Schema.new_builder()
        .column("id", "BIGINT NOT NULL")
        .column("name", "STRING")
        .primary_key("id")
        .build()
    )
    assert (
        columns(t_env.from_changelog_stream(stream, keyed, ChangelogMode.upsert()))[0] == "id BIGINT NOT NULL"
    )


def test_a_changelog_is_made_of_rows(env, t_env):
    with pytest.raises(SqlValidationError, match="plain values"):
        t_env.from_changelog_stream(env.from_collection([1], Types.LONG()))
    without_inserts = ChangelogMode.of(RowKind.DELETE)
    row = env.from_collection([Row(1, 2)], Types.ROW([Types.LONG(), Types.LONG()]))
    with pytest.raises(SqlValidationError, match="has no inserts"):
        t_env.from_changelog_stream(row, None, without_inserts)


def test_a_target_schema_chooses_columns_and_takes_the_timestamp_out(t_env, stream):
    schema = (
        Schema.new_builder()
        .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")
        .watermark("rowtime", "SOURCE_WATERMARK()")
        .build()
    )
    table = t_env.from_data_stream(stream, schema)
    target = (
        Schema.new_builder()
        .column("name", "STRING")
        .column("id", "INT")
        .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")
        .build()
    )
    made = t_env.to_changelog_stream(table, target)
    assert made.get_type() == Types.ROW_NAMED(["name", "id"], [Types.STRING(), Types.INT()])
    short = Schema.new_builder().column("x", "STRING").build()
    with pytest.raises(SqlValidationError, match="the schema has 1 columns, x, and the table 4"):
        t_env.to_changelog_stream(table, short)


def test_a_table_with_two_event_times_has_no_one_timestamp(t_env, stream):
    schema = (
        Schema.new_builder()
        .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")
        .watermark("rowtime", "SOURCE_WATERMARK()")
        .build()
    )
    table = t_env.from_data_stream(stream, schema)
    twice = t_env.sql_query(f"SELECT rowtime, rowtime AS again FROM {table}")
    with pytest.raises(SqlValidationError, match="several event-time columns: rowtime, again"):
        t_env.to_data_stream(twice)


def test_source_watermark_is_for_streams_alone(t_env):
    t_env.execute_sql(
        "CREATE TABLE t (ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS SOURCE_WATERMARK()) WITH ('connector' = 'datagen')"
    )
    with pytest.raises(SqlError, match="only tables created from data streams"):
        t_env.to_data_stream(t_env.from_path("t"))


def test_an_empty_statement_set_has_nothing_to_attach(t_env):
    with pytest.raises(SqlValidationError, match="empty"):
        t_env.create_statement_set().attach_as_datastream()


def test_types_of_rows_must_have_as_many_fields_as_the_table(t_env, stream):
    table = t_env.from_data_stream(stream)
    with pytest.raises(JobDefinitionError, match="1 fields, and the table 3 columns"):
        t_env.to_append_stream(table, Types.LONG())
    with pytest.raises(JobDefinitionError, match=r"Types.ROW\(...\)"):
        t_env.to_retract_stream(table, Types.LONG())


def test_expressions_may_use_fields_that_the_schema_does_not_declare(t_env, stream):
    schema = (
        Schema.new_builder()
        .column_by_expression("double_score", "score * 2")
        .column("name", DataTypes.STRING())
        .build()
    )

    assert columns(t_env.from_data_stream(stream, schema)) == ["double_score DOUBLE", "name STRING"]


def test_what_never_ends_is_said_when_its_end_is_waited_for(t_env, monkeypatch):
    t_env.execute_sql("CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen')")
    monkeypatch.setattr(t_env._jobs._env, "_submit_job_graph", lambda graph: pytest.fail("it runs"))

    with pytest.warns(UserWarning, match=r"to_pandas\(\) returns when the query has ended, and its source"):
        with pytest.raises(pytest.fail.Exception):
            t_env.from_path("numbers").to_pandas()


def test_a_value_of_json_has_a_type_and_both_of_its_behaviours(t_env):
    table = t_env.from_elements([('{"a": 1}',)], ["data"])

    assert columns(table.select(col("data").json_value("$.a", DataTypes.STRING()))) == ["_c0 STRING"]


def test_a_misspelled_option_that_is_required_is_suggested(t_env):
    t_env.execute_sql(
        "CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'filesystem', 'pth' = '/tmp', 'format' = 'csv')"
    )

    with pytest.raises(SqlValidationError, match="did you mean 'path' instead of 'pth'"):
        t_env.from_path("t").to_pandas()


def test_an_error_of_a_statement_has_no_frames_of_headrace_but_one(t_env):
    with pytest.raises(SqlError) as raised:
        t_env.execute_sql("SELECT nothing FROM nowhere")

    assert len(raised.traceback) == 2
