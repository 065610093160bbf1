"""Writes ``flink_changelogs.json``: what Flink emits for each row of random changelogs, for every query.

    python tests/parity/make_changelogs.py        with PyFlink's own environment

All queries are one job of parallelism 1, without mini-batches. A row comes when the one before has long gone through.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from changelog_queries import QUERIES

#: A table's name, a kind of change, and a row.
Change = list[Any]

TARGET = Path(__file__).parent / "flink_changelogs.json"
#: Seconds between two rows, and without output until a row is over.
PAUSE, SILENCE = 0.8, 0.3
_LINE = re.compile(r"(\w+)> ([+-][IUD])\[(.*)\]$")


def changes(seed: int, count: int) -> list[Change]:
    """Draw rows for all tables, in the order in which they come; an update is two rows, one after the other."""
    choose = random.Random(seed)
    live: dict[str, dict[int, Change]] = {name: {} for name in "tup"}
    made: list[Change] = []
    while len(made) < count:
        name = choose.choice(["t", "t", "t", "u", "u", "u", "p", "e", "e", "clocked"])
        row = [choose.choice(["a", "a", "b", None]), choose.choice([0, 1, 2, 3, 4, None])]
        if name == "e":
            made.append([name, "+I", len(made), *row, choose.randrange(60)])
        elif name == "clocked":
            made.append([name, "+I", len(made), *row])
        elif name == "p":
            number = choose.randrange(3)
            if number in live[name] and choose.random() < 0.3:
                made.append([name, "-D", *live[name].pop(number)])
            else:
                kind = "+U" if number in live[name] else "+I"
                live[name][number] = [number, *row]
                made.append([name, kind, number, *row])
        elif live[name] and choose.random() < 0.5:
            number = choose.choice(list(live[name]))
            old = live[name].pop(number)
            if choose.random() < 0.5:
                made.append([name, "-D", *old])
            else:
                live[name][number] = [number, *row]
                made += [[name, "-U", *old], [name, "+U", number, *row]]
        else:
            number = min(set(range(99)) - set(live[name]))
            live[name][number] = [number, *row]
            made.append([name, "+I", number, *row])
    return made


def run(seed: int, count: int) -> None:
    """Run all queries on Flink, which prints what they emit."""
    from pyflink.common import Configuration, Row, RowKind, Types
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.table import DataTypes, Schema, StreamTableEnvironment, TableDescriptor
    from pyflink.table.changelog_mode import ChangelogMode

    configuration = Configuration()
    configuration.set_string("python.fn-execution.bundle.size", "1")
    configuration.set_string("execution.buffer-timeout.interval", "0 ms")
    configuration.set_string("taskmanager.memory.network.max", "512m")
    configuration.set_string("taskmanager.memory.network.min", "512m")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set("table.local-time-zone", "UTC")

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
        Row.of_kind(kinds[kind], place, name, *values, *([None] if name != "e" else []))
        for place, (name, kind, *values) in enumerate(changes(seed, count))
    ]

    def slowly(row: Any) -> Any:
        time.sleep(PAUSE * (4 if row[0] == 0 else 1))
        return row

    stream = env.from_collection(rows, row_type).map(slowly, output_type=row_type)
    columns = Schema.new_builder()
    for name, kind in zip(names, ["BIGINT", "STRING", "BIGINT", "STRING", "BIGINT", "BIGINT"], strict=True):
        columns.column(name, f"{kind} NOT NULL" if name == "id" else kind)
    changing = t_env.from_changelog_stream(stream, columns.build())
    t_env.create_temporary_view("changing", changing)
    for name in "tu":
        t_env.execute_sql(
            f"CREATE TEMPORARY VIEW {name} AS SELECT id, k, v FROM changing WHERE tab = '{name}'"
        )
    plain = (
        Schema.new_builder()
        .column("id", DataTypes.BIGINT().not_null())
        .column("k", "STRING")
        .column("v", "BIGINT")
    )
    short = Types.ROW_NAMED(names[2:5], types[2:5])

    def of(name: str) -> Any:
        return stream.filter(lambda row: row[1] == name)

    def as_short(row: Any) -> Any:
        made = Row(row[2], row[3], row[4])
        made.set_row_kind(row.get_row_kind())
        return made

    upserts = plain.primary_key("id").build()
    t_env.create_temporary_view(
        "p",
        t_env.from_changelog_stream(
            of("p").map(as_short, output_type=short), upserts, ChangelogMode.upsert()
        ),
    )
    clocked = (
        Schema.new_builder()
        .column("id", DataTypes.BIGINT().not_null())
        .column("k", "STRING")
        .column("v", "BIGINT")
        .column_by_expression("pt", "PROCTIME()")
    )
    t_env.create_temporary_view(
        "clocked", t_env.from_data_stream(of("clocked").map(as_short, output_type=short), clocked.build())
    )
    timed = (
        Schema.new_builder()
        .column("id", DataTypes.BIGINT().not_null())
        .column("k", "STRING")
        .column("v", "BIGINT")
        .column("sec", "BIGINT")
        .column_by_expression("ts", "CAST(TO_TIMESTAMP_LTZ(sec * 1000, 3) AS TIMESTAMP(3))")
        .watermark("ts", "ts - INTERVAL '1' DAY")
    )
    events = of("e").map(
        lambda row: Row(row[2], row[3], row[4], row[5]),
        output_type=Types.ROW_NAMED(names[2:6], types[2:6]),
    )
    t_env.create_temporary_view("e", t_env.from_data_stream(events, timed.build()))

    statements = t_env.create_statement_set()

    def show(name: str, query: str) -> None:
        sink = TableDescriptor.for_connector("print").option("print-identifier", name).build()
        statements.add_insert(sink, t_env.sql_query(query))

    show("row", "SELECT place FROM changing")
    for number, query in enumerate(QUERIES.values()):
        show(f"q{number}", query)
    statements.execute().wait()


def recorded(seed: int, count: int, script: str = __file__) -> dict[str, Any]:
    """Run Flink in a process of its own; say what each query emitted for which row."""
    command = [sys.executable, script, str(seed), str(count)]
    found: dict[str, dict[str, list[list[str]]]] = {name: {} for name in QUERIES}
    texts = list(QUERIES)
    rows, place = 0, ""
    for burst in _bursts(command):
        came = [values for name, _, values in burst if name == "row"]
        if came:
            (place,) = came
            rows += 1
        assert int(place) == rows - 1, f"row {place} is the {rows}th that came through"
        for name, kind, values in burst:
            if name != "row":
                emitted = found[texts[int(name[1:])]].setdefault(place, [])
                emitted.append([kind, *values.split(", ")])
    given = changes(seed, count)
    assert rows == len(given), f"{rows} of {len(given)} rows came through"
    return {"rows": given, "emitted": found}


def _bursts(command: list[str]) -> Iterator[list[tuple[str, str, str]]]:
    """Lines that Flink prints one right after the other."""
    burst: list[tuple[str, str, str]] = []
    last = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found = _LINE.search(line.strip())
            if found is None:
                print(line.rstrip(), file=sys.stderr)
                continue
            now = time.monotonic()
            if burst and now - last > SILENCE:
                yield burst
                burst = []
            burst.append((found[1], found[2], found[3]))
            last = now
    yield burst


def main() -> None:
    """Write the file; with a seed and a number of rows: run Flink and print."""
    if len(sys.argv) > 1:
        run(int(sys.argv[1]), int(sys.argv[2]))
        return
    made = [recorded(seed, 60) for seed in (1, 2, 3)]
    TARGET.write_text(as_text(made), encoding="utf-8")


def as_text(made: Sequence[Mapping[str, Any]]) -> str:
    """Return what was recorded as JSON, a query a line."""
    parts = []
    for each in made:
        emitted = [f"{json.dumps(name)}: {json.dumps(changes)}" for name, changes in each["emitted"].items()]
        parts.append(f'{{"rows": {json.dumps(each["rows"])},\n"emitted": {{\n' + ",\n".join(emitted) + "}}")
    return "[\n" + ",\n".join(parts) + "\n]\n"


if __name__ == "__main__":
    main()
