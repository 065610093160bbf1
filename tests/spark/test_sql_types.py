"""Values of all types on their way: to operators and their state, out of it epochs later, to programs and files."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.common.types import Row, RowKind
from headrace.table import DataTypes, EnvironmentSettings, StreamTableEnvironment
from headrace.table.udf import FunctionContext, ScalarFunction, udf
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import run_together

pytestmark = pytest.mark.spark

#: Each row stands for what it is made of, so that what is expected can be said in Python.
SOURCE = "(VALUES (1, 1, 'aa'), (2, 2, 'bb'), (CAST(NULL AS INT), 3, 'cc'), (1, 4, CAST(NULL AS STRING)), (1, 1, 'aa'))"
ROWS = [(1, 1, "aa"), (2, 2, "bb"), (None, 3, "cc"), (1, 4, None), (1, 1, "aa")]
VIEW = f"""CREATE TEMPORARY VIEW t AS SELECT
  k, ARRAY[n, n + 1] AS ar, MAP['x', n] AS m, ROW(n, s) AS r, CAST(n AS DECIMAL(10, 2)) AS d, CAST(s AS BYTES) AS b,
  n > 1 AS f, TIME '10:11:12' AS ti, TIMESTAMP '2024-02-29 12:00:00.123' AS ts,
  CAST(TIMESTAMP '2024-02-29 12:00:00.123' AS TIMESTAMP_LTZ(3)) AS ltz
FROM {SOURCE} AS v(k, n, s)"""
TIME = datetime.time(10, 11, 12)
MOMENT = datetime.datetime.fromisoformat("2024-02-29 12:00:00.123")


def values(k: int | None, n: int, s: str | None) -> tuple[Any, ...]:
    """What a row of the view is in Python."""
    nested = ([n, n + 1], {"x": n}, Row(n, s))
    return (k, *nested, Decimal(f"{n}.00"), s.encode() if s else None, n > 1, TIME, MOMENT)


def table(changelog: list[Row]) -> Counter[str]:
    """What a changelog comes to."""
    result: Counter[str] = Counter()
    for row in changelog:
        added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        result[repr([_plain(value) for value in row])] += 1 if added else -1
    assert min(result.values()) >= 0, "a row was taken back that was not there"
    return +result


def expected(rows: list[tuple[Any, ...]]) -> Counter[str]:
    return Counter(repr([_plain(value) for value in row]) for row in rows)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, Row) else value


def test_values_of_all_types_go_through_state(env: EnvironmentFactory) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=3))
    t_env.execute_sql(VIEW)
    columns = "k, ar, m, r, d, b, f, ti, ts"
    joined, ranked, summed = run_together(
        t_env,
        [
            f"SELECT x.*, y.ar FROM (SELECT {columns} FROM t) x LEFT JOIN t y ON x.r = y.r",
            f"SELECT {columns} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY d DESC) AS n FROM t) "
            "WHERE n = 1",
            "SELECT k, FIRST_VALUE(ar), FIRST_VALUE(r), FIRST_VALUE(m), COUNT(DISTINCT ar), ARRAY_AGG(m['x']), "
            "MIN(ti), MAX(ts), MIN(f), CAST(MIN(ltz) AS STRING) FROM t GROUP BY k",
        ],
    )
    assert table(joined) == expected(
        [(*values(*row), [row[1], row[1] + 1]) for row in ROWS for _ in range(ROWS.count(row))]
    )
    assert table(ranked) == expected([values(1, 4, None), values(2, 2, "bb"), values(None, 3, "cc")])
    last = (TIME, MOMENT)
    assert table(summed) == expected(
        [
            (1, [1, 2], (1, "aa"), {"x": 1}, 2, [1, 4, 1], *last, False, "2024-02-29 12:00:00.123"),
            (2, [2, 3], (2, "bb"), {"x": 2}, 1, [2], *last, True, "2024-02-29 12:00:00.123"),
            (None, [3, 4], (3, "cc"), {"x": 3}, 1, [3], *last, True, "2024-02-29 12:00:00.123"),
        ]
    )


class Scaled(ScalarFunction):
    """Multiplies by a parameter of the job."""

    def open(self, function_context: FunctionContext) -> None:
        self._factor = int(function_context.get_job_parameter("factor", "1"))
        self._attempt = function_context.get_attempt_number()

    def eval(self, number: int) -> int:
        assert self._attempt == 0
        return number * self._factor


@pytest.mark.parametrize("mode", ["in_streaming_mode", "in_batch_mode"])
def test_functions_take_and_return_rows_and_times_and_know_the_job(
    env: EnvironmentFactory, mode: str
) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), getattr(EnvironmentSettings, mode)())
    pair = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])
    t_env.create_temporary_function("pair", udf(lambda n: Row(n, str(n)), result_type=pair))
    t_env.create_temporary_function(
        "swapped",
        udf(lambda rows: [Row(a=int(each.b), b="?") for each in rows], result_type=DataTypes.ARRAY(pair)),
    )
    t_env.create_temporary_function(
        "clock", udf(lambda n: datetime.time(n, 30), result_type=DataTypes.TIME())
    )
    t_env.create_temporary_function("scaled", udf(Scaled(), result_type=DataTypes.INT()))
    t_env.get_config().set("pipeline.global-job-parameters", "factor:6")
    query = (
        "SELECT pair(n), pair(n).b, swapped(ARRAY[pair(n)]), clock(n), scaled(n) FROM (VALUES (7)) AS v(n)"
    )
    [row] = t_env.execute_sql(query).collect()
    assert row == Row(Row(a=7, b="7"), "7", [Row(a=7, b="?")], datetime.time(7, 30), 42)


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_rows_in_rows_are_written_to_files_and_read(
    env: EnvironmentFactory, tmp_path: Path, kind: str
) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(
        "CREATE TABLE f (r ROW<a INT, b STRING>, ar ARRAY<ROW<a INT, b STRING>>) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = '{kind}')"
    )
    t_env.execute_sql("INSERT INTO f SELECT ROW(1, 'x'), ARRAY[ROW(2, 'y')]").wait()
    [row] = t_env.execute_sql("SELECT r, ar FROM f").collect()
    assert row == Row(Row(a=1, b="x"), [Row(a=2, b="y")])
