"""A file of SQL as a program: `headrace run job.sql`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headrace.planner import parse_statements
from headrace.planner.statements import CreateTableAs, Insert, StatementSet
from headrace.table.environment_settings import EnvironmentSettings
from headrace.table.result_kind import ResultKind
from headrace.table.table_environment import TableEnvironment
from headrace.table.table_result import TableResult

__all__ = ["execute_statements", "run_script"]

_WRITES = (Insert, StatementSet, CreateTableAs)


def run_script(path: str) -> None:
    """Execute the statements of a file, one after the other.

    Rows of queries, SHOW, DESCRIBE and EXPLAIN are printed; the next statement starts when a query has ended. Jobs of
    INSERTs run side by side, unless ``table.dml-sync`` is set.

    Args:
        path: The file, in UTF-8.

    Raises:
        SqlError: If a statement is wrong; the message shows the line of the file. A file whose syntax is wrong is
            refused as a whole.
    """
    text = Path(path).read_text(encoding="utf-8")
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for result, has_rows in execute_statements(t_env, text):
        if has_rows:
            result.print()


def execute_statements(t_env: TableEnvironment, text: str) -> Iterator[tuple[TableResult, bool]]:
    """Execute statements separated by semicolons, and yield each result, with whether it has rows to show.

    The next statement starts when the caller asks for its result.

    Raises:
        SqlError: If a statement is wrong. If its syntax is, nothing is executed.
    """
    for statement in parse_statements(text):
        bound = t_env._bind(statement)
        result = t_env._execute(statement.sql, bound)
        is_write = isinstance(bound, _WRITES)
        yield result, result.get_result_kind() is not ResultKind.SUCCESS and not is_write
