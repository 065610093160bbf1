"""The life of the user's functions in queries: opened, called, closed; and what they count."""

from __future__ import annotations

from datetime import time
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import JobExecutionError, UserFunctionError
from headrace.metrics import Counter
from headrace.table import DataTypes, EnvironmentSettings, StreamTableEnvironment, TableResult
from headrace.table.udf import FunctionContext, ScalarFunction, udf
from tests.conftest import EnvironmentFactory
from tests.spark.support import RECORDER

pytestmark = pytest.mark.spark

THREE_ROWS = "(VALUES (1), (2), (3)) AS v(n)"


class Diary(ScalarFunction):
    """Notes in a file what happens to it, and counts its calls."""

    _calls: Counter

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self, function_context: FunctionContext) -> None:
        self._calls = function_context.get_metric_group().add_group("diary").counter("calls")
        index, width = (
            function_context.get_index_of_this_subtask(),
            function_context.get_number_of_parallel_subtasks(),
        )
        name = function_context.get_task_name()
        assert function_context.get_task_name_with_subtasks() == f"{name} (1/1)"
        assert function_context.get_max_number_of_parallel_subtasks() == 128
        self._note(f"open {index} of {width}")

    def eval(self, number: Any) -> Any:
        self._calls.inc()
        self._note("eval")
        return 100 // number

    def close(self) -> None:
        self._note("close")

    def _note(self, what: str) -> None:
        with self._path.open("a") as diary:
            diary.write(f"{what}\n")


def calls(result: TableResult) -> int:
    """How many calls the job's metrics tell of."""
    return sum(
        each.increment
        for epoch in RECORDER.of(result.get_job_client())
        for report in epoch.reports
        for metrics in report.user_metrics.values()
        for name, each in metrics.items()
        if name.dotted == "diary.calls"
    )


@pytest.mark.parametrize("kind", ["general", "pandas"])
@pytest.mark.parametrize("mode", ["in_streaming_mode", "in_batch_mode"])
def test_functions_are_opened_and_closed_and_count_for_the_job(
    env: EnvironmentFactory, tmp_path: Path, mode: str, kind: str
) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), getattr(EnvironmentSettings, mode)())
    diary = tmp_path / "diary"
    function = udf(Diary(diary), result_type=DataTypes.INT(), func_type=kind)
    t_env.create_temporary_function("noted", function)
    t_env.execute_sql("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole')")
    result = t_env.execute_sql(f"INSERT INTO nowhere SELECT noted(n) FROM {THREE_ROWS}")
    result.wait()
    notes = diary.read_text().splitlines()
    lives = notes.count("open 0 of 1")
    assert lives >= 1
    assert notes[-1] == "close"
    assert notes.count("close") == lives
    assert calls(result) == notes.count("eval") >= 1


def test_a_function_that_fails_is_closed_too(env: EnvironmentFactory, tmp_path: Path) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_streaming_mode())
    diary = tmp_path / "diary"
    t_env.create_temporary_function("noted", udf(Diary(diary), result_type=DataTypes.INT()))
    with pytest.raises(UserFunctionError, match="by zero"):
        list(t_env.execute_sql("SELECT noted(n) FROM (VALUES (1), (0)) AS v(n)").collect())
    notes = diary.read_text().splitlines()
    assert notes[-1] == "close"
    assert notes.count("close") == notes.count("open 0 of 1") >= 1


def test_a_table_is_replaced_by_a_query_and_its_job_is_shown(env: EnvironmentFactory, tmp_path: Path) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_batch_mode())
    t_env.execute_sql("CREATE TABLE t (old INT) WITH ('connector' = 'blackhole')")
    files = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    result = t_env.execute_sql(f"REPLACE TABLE t WITH ({files}) AS SELECT n * 2 AS twice FROM {THREE_ROWS}")
    result.wait()
    assert sorted(row[0] for row in t_env.execute_sql("SELECT twice FROM t").collect()) == [2, 4, 6]
    client = result.get_job_client()
    assert client is not None
    [job] = t_env.execute_sql(f"DESCRIBE JOB '{client.get_job_id()}'").collect()
    assert list(job)[1:3] == ["insert-into_default_catalog.default_database.t", "FINISHED"]


#: Of (k, v) = (a, 1), (a, 4), (b, NULL), (b, 10): what Flink gives for the two groups.
AGGREGATES = {
    "JSON_ARRAYAGG(v)": ("[1,4]", "[10]"),
    "JSON_ARRAYAGG(v NULL ON NULL)": ("[1,4]", "[null,10]"),
    "JSON_ARRAYAGG(JSON_OBJECT('v' VALUE v))": ('[{"v":1},{"v":4}]', '[{"v":null},{"v":10}]'),
    "JSON_OBJECTAGG(KEY n VALUE v)": ('{"x":1,"y":4}', '{"x":null,"y":10}'),
    "JSON_OBJECTAGG(n VALUE v ABSENT ON NULL)": ('{"x":1,"y":4}', '{"y":10}'),
    "PERCENTILE(v, 0.5)": (2.5, 10.0),
    "PERCENTILE(v, ARRAY[0.25, 1])": ([1.75, 4.0], [10.0, 10.0]),
    "PERCENTILE(v, 0.5, 3 - v)": (1.0, None),
    "PERCENTILE(v, 0.5) FILTER (WHERE v > 1)": (4.0, 10.0),
}
GROUPS = "(VALUES ('a', 'x', 1), ('a', 'y', 4), ('b', 'x', CAST(NULL AS INT)), ('b', 'y', 10)) AS g(k, n, v)"


@pytest.mark.parametrize("mode", ["in_streaming_mode", "in_batch_mode"])
def test_aggregates_of_lists_give_what_flink_gives(env: EnvironmentFactory, mode: str) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), getattr(EnvironmentSettings, mode)())
    calls = ", ".join(AGGREGATES)
    rows = t_env.execute_sql(f"SELECT k, {calls} FROM {GROUPS} GROUP BY k").collect()
    found = {row[0]: list(row)[1:] for row in rows}
    assert found == {
        key: [values[place] for values in AGGREGATES.values()] for place, key in enumerate(["a", "b"])
    }


def test_times_of_files_are_aggregated_in_every_query_of_a_process(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    (tmp_path / "moments.csv").write_text("1,2024-01-01 10:00:00\n1,2024-01-01 12:30:00\n")
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(
        "CREATE TABLE moments (id INT, ts TIMESTAMP(3)) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv')"
    )
    for function, expected in [("MAX", time(12, 30)), ("MIN", time(10))]:
        result = t_env.execute_sql(f"SELECT id, {function}(CAST(ts AS TIME)) FROM moments GROUP BY id")
        assert [tuple(row) for row in result.collect()] == [(1, expected)]


def test_names_within_functions_hide_no_column(env: EnvironmentFactory) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_streaming_mode())
    query = (
        "SELECT ARRAY_REMOVE(ARRAY[1, 2], `one`), ARRAY_CONTAINS(ARRAY[1, 2], `one`), "
        "JSON_VALUE(`text`, 'lax $.b' DEFAULT `text` ON EMPTY), JSON_QUERY(`value`, '$.a'), "
        # Of keys that are the same the last one counts.
        "JSON_OBJECT('\"' VALUE `one`, 'a' VALUE NULLIF(1, 1), '\"' VALUE JSON(`value`)), "
        "JSON_OBJECT('\"' VALUE NULLIF(1, 1), 'a' VALUE `k` ABSENT ON NULL), INSTR(`text`, `k`, `one` - 4, `one` - 1) "
        """FROM (VALUES (2, '{"a":1}', '{"a":[2]}', '"')) AS t(`one`, `text`, `value`, `k`)"""
    )
    [row] = t_env.execute_sql(query).collect()
    assert list(row) == [
        *([1], True, '{"a":1}', "[2]"),
        *('{"\\"":{"a":[2]},"a":null}', '{"a":"\\""}', 4),
    ]


@pytest.mark.parametrize(
    ("rows", "message"), [("('a', 1), ('a', 2)", "the same key"), ("(CAST(NULL AS STRING), 1)", "is NULL")]
)
def test_keys_of_json_are_there_and_differ(env: EnvironmentFactory, rows: str, message: str) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_batch_mode())
    with pytest.raises(JobExecutionError, match=message):
        list(t_env.execute_sql(f"SELECT JSON_OBJECTAGG(k VALUE v) FROM (VALUES {rows}) AS t(k, v)").collect())


def test_a_format_from_a_column_gives_null_where_it_does_not_fit(env: EnvironmentFactory) -> None:
    expected = {
        "%d %s": "65 abc",
        "%2$.2s": "ab",
        "%-5d|": "65   |",
        "%05d": "00065",
        "%c%%": "A%",
        "%5%|%,d": "    %|65",
        "%S %<s": "65 65",
        "none": "none",
        "%s %d": None,
        "%3$s": None,
        "%": None,
        "%<s": None,
        "%-d": None,
        "%.1d": None,
        "%tY": None,
        "%e": None,
    }
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    formats = ", ".join(f"('{each}')" for each in expected)
    query = f"SELECT f, PRINTF(f, 65, 'abc') FROM (VALUES {formats}, (CAST(NULL AS STRING))) AS v(f)"
    with t_env.execute_sql(query).collect() as found:
        assert {row[0]: row[1] for row in found} == {**expected, None: None}
