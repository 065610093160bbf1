"""PRINTF: what does not fit its format is NULL, as in Flink, and no failing query."""

from __future__ import annotations

import pytest

from headrace.planner.emit import emit
from headrace.planner.logical import Project
from headrace.planner.statements import QueryStatement
from tests.planner.environment import Session

TABLE = "CREATE TABLE t (id BIGINT, s STRING, d DOUBLE, de DECIMAL(5, 2), ts TIMESTAMP(3)) WITH ('connector'='datagen')"


def sql_of(call: str) -> str:
    (query,) = Session(TABLE).run(f"SELECT {call} AS x FROM t")
    assert isinstance(query, QueryStatement)
    assert isinstance(query.plan, Project)
    return emit(query.plan.expressions[0], ["`id`", "`s`", "`d`", "`de`", "`ts`"])


@pytest.mark.parametrize(
    "call",
    [
        "PRINTF('%s %2$5.1f %<s %3$d %%', s, d, id)",
        "PRINTF('%x %n', id)",
        "PRINTF('none')",
    ],
)
def test_values_that_fit_are_formatted(call: str) -> None:
    assert sql_of(call).startswith("CAST(format_string(")


@pytest.mark.parametrize("pattern", ["%s %s", "%", "%q", "%.2d", "%3$s"])
def test_a_wrong_format_is_null(pattern: str) -> None:
    assert "format_string" not in sql_of(f"PRINTF('{pattern}', id)")


@pytest.mark.parametrize(
    ("pattern", "column"),
    [("%d", "s"), ("%5.2f", "de"), ("%f", "id"), ("%x", "d"), ("%c", "id"), ("%tY", "ts")],
)
def test_a_value_of_another_type_is_null_unless_it_is_null(pattern: str, column: str) -> None:
    assert f"IF(`{column}` IS NULL, format_string(" in sql_of(f"PRINTF('{pattern}', {column})")


def test_a_format_of_a_column_is_checked_for_each_row() -> None:
    sql = sql_of("PRINTF(s, id)")
    assert "THEN format_string(__f, `id`) END" in sql
    assert "forall(regexp_extract_all(__f, " in sql


@pytest.mark.parametrize("pattern", ["%-d", "%05s", "%+ d", "%#d", "%0-5d", "%<s", "% s", "%-%", "%00d"])
def test_flags_that_java_refuses_are_null(pattern: str) -> None:
    assert "format_string" not in sql_of(f"PRINTF('{pattern}', id)")
