"""Random programs of the Table API come to what the SQL that says the same comes to: the types, and every row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.table import StreamTableEnvironment
from tests.differential.programs import Program, programs
from tests.differential.runs import Case, job_of_tables, register_all, run_locally, tables_of
from tests.engines import MINI
from tests.operators.table_harness import materialized
from tests.surveys import examples

pytestmark = pytest.mark.parametrize("engine", [MINI])
_ANY_PACE = settings(deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Program, Case]:
    """A program, and the rows that it reads."""
    program = draw(programs())
    tables = tables_of(draw, [program.sql])
    return program, Case((program.sql,), tables, parallelism=draw(st.integers(1, 2)))


def check(env: Any, program: Program, case: Case) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    register_all(t_env, case)
    table, query = program.table(t_env), t_env.sql_query(program.sql)
    assert table.get_schema() == query.get_schema()
    ours, theirs = run_locally(job_of_tables(t_env, [table, query]), case).results
    assert materialized(ours) == materialized(theirs)


@settings(_ANY_PACE, derandomize=True, database=None, max_examples=15)
@given(given=cases())
def test_programs_say_what_sql_says(env, given):
    check(env, *given)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(_ANY_PACE, max_examples=examples(1000))
@given(given=cases())
def test_many_programs_say_what_sql_says(env, given):
    check(env, *given)
