"""Writes ``flink_session_changelogs.json``: what Flink emits for each row, over sessions, watermarks and own functions.

    python tests/parity/make_session_changelogs.py        with PyFlink's own environment

As `make_timed_changelogs.py`. A query that Flink refuses is recorded with its reason.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import make_changelogs
import make_timed_changelogs
from make_timed_changelogs import changes, tables
from session_queries import QUERIES, VIEWS, series_mean

TARGET = Path(__file__).parent / "flink_session_changelogs.json"
REFUSED = "refused"


def prepare(t_env: Any) -> None:
    """Give Flink our functions."""
    from pyflink.table import DataTypes
    from pyflink.table.udf import udaf

    mean = udaf(series_mean, result_type=DataTypes.DOUBLE(), func_type="pandas")
    t_env.create_temporary_function("series_mean", mean)


def run(seed: int, count: int) -> None:
    """Run all queries on Flink, which prints what they emit; those that it refuses are printed with the reason."""
    from pyflink.table import TableDescriptor

    t_env, stream = tables(seed, count, prepare)
    for name, query in VIEWS.items():
        t_env.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {query}")
    statements = t_env.create_statement_set()

    def show(name: str, query: str) -> None:
        sink = TableDescriptor.for_connector("print").option("print-identifier", name).build()
        statements.add_insert(sink, t_env.sql_query(query))

    t_env.create_temporary_view("everything", t_env.from_changelog_stream(stream))
    show("row", "SELECT place FROM everything")
    for number, (name, query) in enumerate(QUERIES.items()):
        try:
            t_env.sql_query(query).explain()
        except Exception as problem:  # whatever Java throws
            causes = [line for line in str(problem).split("\n") if "Exception: " in line]
            reason = causes[-1].split("Exception: ", 1)[1] if causes else str(problem).split("\n")[0]
            print(json.dumps({REFUSED: [name, reason]}), file=sys.stderr, flush=True)
            continue
        show(f"q{number}", query)
    statements.execute().wait()


def main() -> None:
    """Write the file; with a seed and a number of rows: run Flink and print."""
    if len(sys.argv) > 1:
        run(int(sys.argv[1]), int(sys.argv[2]))
        return
    make_changelogs.QUERIES = QUERIES
    make_changelogs.changes = changes
    make_changelogs.SILENCE = make_timed_changelogs.SILENCE
    made = [make_changelogs.recorded(seed, 60, __file__) for seed in (1, 2)]
    for each in made:
        last = str(len(each["rows"]) - 1)
        for emitted in each["emitted"].values():
            emitted.pop(last, None)
    TARGET.write_text(make_changelogs.as_text(made), encoding="utf-8")


if __name__ == "__main__":
    main()
