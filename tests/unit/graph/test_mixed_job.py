"""Programs of streams and tables as one job, and the parts in which it runs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.common import Types
from headrace.datastream import StreamExecutionEnvironment
from headrace.errors import InvariantViolation
from headrace.graph.job_graph import JobGraph
from headrace.graph.mixed_job import is_one_stream, part_job, parts_of
from headrace.table import EnvironmentSettings, StreamTableEnvironment

ROW = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def job_of(env: StreamExecutionEnvironment) -> JobGraph:
    return env._job_graph_of(env._operators, "job")


def parts(job: JobGraph) -> list[tuple[bool, Sequence[str]]]:
    return [(part.is_table, [vertex.name for vertex in part.vertices]) for part in parts_of(job)]


def test_a_stream_a_table_and_a_stream_are_three_parts(env):
    t_env = StreamTableEnvironment.create(env)
    table = t_env.from_data_stream(env.from_collection([("a", 1)], ROW))
    counts = t_env.sql_query(f"SELECT k, COUNT(*) AS n FROM {table} GROUP BY k")
    t_env.to_changelog_stream(counts).map(str).key_by(len).map(str).print()
    job = job_of(env)

    assert parts(job) == [
        (False, ["Source: Collection Source -> StreamToTable[1]"]),
        (True, ["GroupAggregate[2]"]),
        (False, ["TableToStream[3] -> Map", "Map -> Sink: Print to Std. Out"]),
    ]
    last = part_job(job, parts_of(job)[2])
    assert len(last.edges) == 1
    assert len(last.levels()) == 2
    assert job.session_settings["spark.sql.session.timeZone"]


def test_a_job_of_tables_alone_is_one_part(env):
    t_env = StreamTableEnvironment.create(env)
    t_env.execute_sql("CREATE TABLE t (k BIGINT) WITH ('connector' = 'datagen')")
    query = t_env.sql_query("SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    job = t_env._jobs.job_graph(t_env._jobs.plan_query(query._plan), "counts")

    [part] = parts_of(job)
    assert part.is_table
    assert part.vertices == job.vertices
    assert not is_one_stream(job)


def test_a_job_of_streams_alone_is_one_part(env):
    env.from_collection(["a"]).key_by(len).map(str).print()
    job = job_of(env)

    [part] = parts_of(job)
    assert not part.is_table
    assert is_one_stream(job)


def test_a_part_of_tables_is_not_divided_into_levels(env):
    t_env = StreamTableEnvironment.create(env)
    table = t_env.from_data_stream(env.from_collection([("a", 1)], ROW))
    t_env.to_changelog_stream(t_env.sql_query(f"SELECT DISTINCT k FROM {table}")).print()
    job = job_of(env)
    with pytest.raises(InvariantViolation):
        part_job(job, parts_of(job)[1])


def test_streams_that_only_pass_through_a_table_need_no_table_part(env):
    t_env = StreamTableEnvironment.create(env)
    table = t_env.from_data_stream(env.from_collection([("a", 1)], ROW))
    t_env.to_data_stream(t_env.sql_query(f"SELECT k FROM {table} WHERE v > 0")).print()
    assert [is_table for is_table, _ in parts(job_of(env))] == [False, False]


def test_a_stream_that_is_read_twice_is_there_once(env):
    t_env = StreamTableEnvironment.create(env)
    records = env.from_collection([("a", 1)], ROW)
    table = t_env.from_data_stream(records)
    t_env.to_changelog_stream(t_env.sql_query(f"SELECT k, COUNT(*) FROM {table} GROUP BY k")).print()
    t_env.to_changelog_stream(t_env.sql_query(f"SELECT v, COUNT(*) FROM {table} GROUP BY v")).print()
    records.print()
    assert sum(vertex.is_source for vertex in job_of(env).vertices) == 1


def test_ids_stay_the_same_when_the_program_is_built_again():
    def build() -> list[str]:
        env = StreamExecutionEnvironment.get_execution_environment()
        t_env = StreamTableEnvironment.create(env)
        table = t_env.from_data_stream(env.from_collection([("a", 1)], ROW))
        t_env.to_changelog_stream(t_env.sql_query(f"SELECT k, SUM(v) FROM {table} GROUP BY k")).print()
        return [node.operator_id for vertex in job_of(env).vertices for node in vertex.operators]

    assert build() == build()


def test_a_node_of_three_inputs_reads_them_all(env):
    t_env = StreamTableEnvironment.create(env)
    one, other = (t_env.from_data_stream(env.from_collection([("a", 1)], ROW)) for _ in range(2))
    joined = t_env.sql_query(
        f"SELECT l.k, l.v, r.v FROM {one} l FULL JOIN {other} r ON l.k = r.k AND l.v < r.v"
    )
    t_env.to_changelog_stream(joined).print()
    job = job_of(env)

    (second,) = [vertex for vertex in job.vertices if vertex.name.startswith("JoinAssociations")]
    assert sorted(edge.target_input for edge in job.inputs_of(second.vertex_id)) == [0, 1, 2]


def test_in_batch_mode_rows_are_gathered_before_the_query(env):
    t_env = StreamTableEnvironment.create(env, EnvironmentSettings.in_batch_mode())
    table = t_env.from_data_stream(env.from_collection([("a", 1)], ROW))
    counts = t_env.sql_query(f"SELECT k, COUNT(*) AS n FROM {table} GROUP BY k")
    t_env.to_data_stream(counts).print()

    assert parts(job_of(env)) == [
        (False, ["Source: Collection Source -> StreamToTable[1]"]),
        (True, ["Gather[2]", "SparkQuery[3]"]),
        (False, ["TableToStream[4] -> Sink: Print to Std. Out"]),
    ]
