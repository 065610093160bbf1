"""The statements that documents show are what they say: each is read, and planned where it would run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.planner.sql import Statement, bind, parse_statements
from headrace.planner.statements import (
    CompilePlan,
    CreateTableAs,
    ExecutePlan,
    Insert,
    QueryStatement,
    ShowJobs,
    StatementSet,
    StopJob,
)
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.table._functions import load_function
from tests.docs.documents import DOCUMENTS, ROOT, blocks_of


def statements(path: Path) -> Iterator[Statement]:
    for block in blocks_of(path):
        if block.info.split()[:1] == ["sql"]:
            yield from parse_statements(block.text)


def run(t_env: TableEnvironment, statement: Statement) -> None:
    """Do what a statement says to catalogs and settings, and plan what it would run."""
    jobs = t_env._jobs
    bound = bind(statement, t_env._manager, load_function)
    match bound:
        case QueryStatement(plan):
            jobs.job_graph(jobs.plan_query(plan), "query")
        case Insert(sink):
            jobs.job_graph(jobs.plan_inserts([sink]), "insert")
        case StatementSet(inserts):
            jobs.job_graph(jobs.plan_inserts([insert.sink for insert in inserts]), "inserts")
        case CreateTableAs(create, insert):
            t_env._statements.execute(create)
            jobs.job_graph(jobs.plan_inserts([insert.sink]), "insert")
        case CompilePlan(inserts=inserts):
            t_env._statements.plans.compile([insert.sink for insert in inserts])
        case ShowJobs() | StopJob() | ExecutePlan():
            pass  # about jobs that run, and files
        case _:
            t_env._statements.execute(bound)


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if any(True for _ in statements(path))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_statements_of_a_document_can_be_said_one_after_the_other(path: Path):
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for statement in statements(path):
        run(t_env, statement)
