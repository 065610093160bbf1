"""A query that was changed continues from the savepoint of the one it was, as a job on Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.common.types import Row, RowKind
from headrace.errors import StateError
from headrace.table import StreamTableEnvironment, TableResult
from tests.conftest import EnvironmentFactory

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

_GROUPS = "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY k"


class Program:
    """Runs queries over the files of a directory, each from a savepoint."""

    def __init__(self, env: EnvironmentFactory, directory: Path) -> None:
        self._env = env
        self._directory = directory
        (directory / "in").mkdir()

    def write(self, name: str, *lines: str) -> None:
        """Make a file, which is there as a whole or not at all."""
        made = self._directory / name
        made.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        made.rename(self._directory / "in" / name)

    def run(self, query: str, savepoint: str | None = None, **options: str) -> TableResult:
        """Start a query."""
        if savepoint is not None:
            options["execution.state-recovery.path"] = savepoint
        t_env = StreamTableEnvironment.create(self._env(parallelism=1, options=options))
        t_env.execute_sql(
            "CREATE TABLE t (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{self._directory}/in', 'source.monitor-interval' = '100 ms')"
        )
        return t_env.execute_sql(query)

    def stop(self, result: TableResult) -> str:
        """Stop a query with a savepoint."""
        client = result.get_job_client()
        assert client is not None
        return str(client.stop_with_savepoint(False, str(self._directory / "savepoints")).result(120))


def read_until(
    rows: Iterator[Row],
    table: Counter[tuple[object, ...]],
    expected: set[tuple[str, int]] | set[tuple[str, int, int]],
) -> None:
    """Follow changes until the table is the expected one."""
    while set(+table) != expected:
        row = next(rows)
        is_new = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        table[tuple(row)] += 1 if is_new else -1


def test_a_changed_query_continues_where_it_means_the_same_and_says_where_not(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    program = Program(env, tmp_path)
    program.write("1.csv", "a,1", "a,2", "b,5")
    first = program.run(_GROUPS)
    with first.collect() as rows:
        read_until(rows, Counter(), {("a", 3, 2), ("b", 5, 1)})
        savepoint = program.stop(first)

    # Another column and another filter: the groups go on. Their retractions are those of the groups before.
    program.write("2.csv", "a,-3")
    second = program.run(f"SELECT k, s * 10 AS t FROM ({_GROUPS}) WHERE n > 2", savepoint)
    with second.collect() as rows:
        read_until(rows, Counter(), {("a", 0)})
        program.stop(second)

    changed = "SELECT k, MAX(v) AS m FROM t GROUP BY k"
    with pytest.raises(StateError, match=r"GroupAggregate\(groupBy=\[k\], select=\[k, MAX\(v\)"):
        program.run(changed, savepoint).wait()
    for choice, expected in (("EMPTY", {("a", -3)}), ("BOOTSTRAP", {("a", 2), ("b", 5)})):
        started = program.run(changed, savepoint, **{"headrace.sql.changed-operators": choice})
        with started.collect() as rows:
            read_until(rows, Counter(), expected)
            program.stop(started)
