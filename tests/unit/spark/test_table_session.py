"""How the session of a table job is set up."""

from __future__ import annotations

import pytest

from headrace.operators.table.declarations import StatefulNode
from headrace.runtime.task.table_task import operator_of
from headrace.spark.table_session import RowWidths, row_widths
from headrace.table import DataTypes, EnvironmentSettings, TableEnvironment
from headrace.table.udf import udf

NUMBERS = "k BIGINT, n INT, d DECIMAL(10, 2), b BOOLEAN, t TIMESTAMP(3)"
JOIN = "SELECT a.k, a.n, b.d FROM numbers a JOIN numbers b ON a.k = b.k"


@udf(result_type=DataTypes.BIGINT())
def plus_one(number: int) -> int:
    return number + 1


@pytest.mark.parametrize(
    ("query", "widths"),
    [
        (JOIN, RowWidths.FIXED),
        ("SELECT k, SUM(d), MAX(t) FROM numbers GROUP BY k", RowWidths.FIXED),
        ("SELECT k, n FROM texts WHERE s = 'a'", RowWidths.FIXED),  # the text does not leave Spark
        ("SELECT a.k, b.s FROM numbers a JOIN texts b ON a.k = b.k", RowWidths.TEXTS),
        ("SELECT k, LISTAGG(CAST(n AS STRING)) FROM numbers GROUP BY k", RowWidths.UNKNOWN),
        ("SELECT k, ARRAY_AGG(n) FROM numbers GROUP BY k", RowWidths.UNKNOWN),
        ("SELECT plus_one(k), COUNT(*) FROM numbers GROUP BY plus_one(k)", RowWidths.UNKNOWN),
    ],
)
def test_how_wide_rows_are_that_go_to_python(query: str, widths: RowWidths) -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.create_temporary_function("plus_one", plus_one)
    t_env.execute_sql(f"CREATE TABLE numbers ({NUMBERS}) WITH ('connector' = 'datagen')")
    t_env.execute_sql("CREATE TABLE texts (k BIGINT, n INT, s STRING) WITH ('connector' = 'datagen')")
    job = t_env._jobs.job_graph(t_env._jobs.plan_query(t_env.sql_query(query)._plan), "job")
    nodes = [vertex for vertex in job.vertices if isinstance(vertex.head.declaration, StatefulNode)]
    assert row_widths(job, [operator_of(job, vertex) for vertex in nodes]) is widths
