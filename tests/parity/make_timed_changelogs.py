"""Writes ``flink_timed_changelogs.json``: what Flink emits for each row, for queries that follow time.

    python tests/parity/make_timed_changelogs.py        with PyFlink's own environment

As `make_changelogs.py`: a row comes when the one before has long gone through, and so has its watermark.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import make_changelogs
from make_changelogs import Change
from timed_queries import QUERIES, VIEWS

TARGET = Path(__file__).parent / "flink_timed_changelogs.json"
PAUSE, SILENCE = 2.5, 1.2
TABLES = ("e", "f", "w", "t", "clocked")


def changes(seed: int, count: int) -> list[Change]:
    """Draw rows for all tables; the last ones are far ahead, so that time passes all others.

    With an odd seed some rows are late. Times are far from 0, which Flink takes for no time at some places.
    """
    choose = random.Random(seed)
    newest = dict.fromkeys("efw", 0)
    live: dict[str, dict[int, Change]] = {"t": {}, "w": {}}
    made: list[Change] = []
    while len(made) < count:
        name = choose.choice(["e", "e", "e", "e", "f", "f", "f", "w", "t", "t", "clocked"])
        row = [choose.choice(["a", "a", "b", None]), choose.choice([0, 1, 2, 3, None])]
        second = 100 + len(made) // 3 + choose.randrange(-8, 5)
        if seed % 2 == 0 and name in newest:
            second = max(second, newest[name] - 4)
        if name in newest:
            newest[name] = max(newest[name], second)
        if name in "ef":
            made.append([name, "+I", len(made), *row, second])
        elif name == "clocked":
            made.append([name, "+I", len(made), *row, None])
        elif name == "w":
            number = choose.randrange(3)
            if number in live[name] and choose.random() < 0.3:
                gone = live[name].pop(number)
                made.append([name, "-D", *gone[:3], second])
            else:
                old = live[name].get(number)
                live[name][number] = [number, row[0] or "c", row[1]]
                if old is not None:
                    made.append([name, "-U", *old, second])
                made.append([name, "+U" if old else "+I", *live[name][number], second])
        elif live[name] and choose.random() < 0.5:
            number = choose.choice(list(live[name]))
            old = live[name].pop(number)
            if choose.random() < 0.5:
                made.append([name, "-D", *old, None])
            else:
                live[name][number] = [number, *row]
                made += [[name, "-U", *old, None], [name, "+U", number, *row, None]]
        else:
            number = min(set(range(99)) - set(live[name]))
            live[name][number] = [number, *row]
            made.append([name, "+I", number, *row, None])
    made += [[name, "+I", 1000, "z", 9, 1000] for name in "wfe"]
    # What the end of input does cannot be told from what its last row does: nobody looks at this one.
    return [*made, ["clocked", "+I", 1000, "z", 9, None]]


def nothing(t_env: Any) -> None:
    """Prepare nothing: all functions are Flink's."""


def tables(seed: int, count: int, prepare: Callable[[Any], None] = nothing) -> tuple[Any, Any]:
    """Make the tables of a script in Flink; return the environment, and the stream of all rows."""
    from pyflink.common import Configuration, Row, RowKind, Types
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.table import DataTypes, Schema, StreamTableEnvironment
    from pyflink.table.changelog_mode import ChangelogMode

    configuration = Configuration()
    configuration.set_string("python.fn-execution.bundle.size", "1")
    configuration.set_string("execution.buffer-timeout.interval", "0 ms")
    configuration.set_string("pipeline.auto-watermark-interval", "50 ms")
    configuration.set_string("taskmanager.memory.network.max", "768m")
    configuration.set_string("taskmanager.memory.network.min", "768m")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set("table.local-time-zone", "UTC")
    prepare(t_env)
    kinds = {
        "+I": RowKind.INSERT,
        "-U": RowKind.UPDATE_BEFORE,
        "+U": RowKind.UPDATE_AFTER,
        "-D": RowKind.DELETE,
    }
    names = ["place", "tab", "id", "k", "v", "sec"]
    types = [Types.LONG(), Types.STRING(), Types.LONG(), Types.STRING(), Types.LONG(), Types.LONG()]
    row_type = Types.ROW_NAMED(names, types)
    rows = [
        Row.of_kind(kinds[kind], place, name, *values)
        for place, (name, kind, *values) in enumerate(changes(seed, count))
    ]

    def slowly(row: Any) -> Any:
        time.sleep(PAUSE * (4 if row[0] == 0 else 1))
        return row

    stream = env.from_collection(rows, row_type).map(slowly, output_type=row_type)
    modes = {"w": ChangelogMode.all(), "t": ChangelogMode.all()}
    short = Types.ROW_NAMED(names[2:], types[2:])

    def shortened(row: Any) -> Any:
        made = Row(*list(row)[2:])
        made.set_row_kind(row.get_row_kind())
        return made

    for name in TABLES:
        of = stream.filter(lambda row, name=name: row[1] == name).map(shortened, output_type=short)
        columns = Schema.new_builder().column("id", DataTypes.BIGINT().not_null())
        columns.column("k", "STRING").column("v", "BIGINT").column("sec", "BIGINT")
        if name in "efw":
            columns.column_by_expression("ts", "CAST(TO_TIMESTAMP_LTZ(sec * 1000, 3) AS TIMESTAMP(3))")
            columns.watermark("ts", "ts - INTERVAL '5' SECOND")
        if name == "clocked":
            columns.column_by_expression("pt", "PROCTIME()")
        if name == "w":
            columns.primary_key("id")
        if name in modes:
            table = t_env.from_changelog_stream(of, columns.build(), modes[name])
        else:
            table = t_env.from_data_stream(of, columns.build())
        t_env.create_temporary_view(name, table)
    for name, query in VIEWS.items():
        t_env.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {query}")
    return t_env, stream


def run(seed: int, count: int, prepare: Callable[[Any], None] = nothing) -> None:
    """Run all queries on Flink, which prints what they emit."""
    from pyflink.table import TableDescriptor

    t_env, stream = tables(seed, count, prepare)
    statements = t_env.create_statement_set()

    def show(name: str, query: str) -> None:
        sink = TableDescriptor.for_connector("print").option("print-identifier", name).build()
        statements.add_insert(sink, t_env.sql_query(query))

    t_env.create_temporary_view("everything", t_env.from_changelog_stream(stream))
    show("row", "SELECT place FROM everything")
    for number, query in enumerate(QUERIES.values()):
        show(f"q{number}", query)
    statements.execute().wait()


def main() -> None:
    """Write the file; with a seed and a number of rows: run Flink and print."""
    if len(sys.argv) > 1:
        run(int(sys.argv[1]), int(sys.argv[2]))
        return
    make_changelogs.QUERIES = QUERIES
    make_changelogs.changes = changes
    make_changelogs.SILENCE = SILENCE
    made = [make_changelogs.recorded(seed, 60, __file__) for seed in (1, 2)]
    for each in made:
        last = str(len(each["rows"]) - 1)
        for emitted in each["emitted"].values():
            emitted.pop(last, None)
    TARGET.write_text(make_changelogs.as_text(made), encoding="utf-8")


if __name__ == "__main__":
    main()
