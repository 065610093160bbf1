"""Writes ``flink_conflicts.json``: what Flink writes for each row of INSERTs with ON CONFLICT, and what it refuses.

    javac -cp "$FLINK/lib/*" -d classes tests/parity/java/UpsertPrint.java
    mkdir -p classes/META-INF/services
    echo UpsertPrint > classes/META-INF/services/org.apache.flink.table.factories.Factory
    jar cf sink.jar -C classes .
    python tests/parity/make_conflicts.py sink.jar        with PyFlink's own environment

As `make_timed_changelogs.py`: a row comes when the one before has long gone through, and so has its watermark.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import make_changelogs
import make_timed_changelogs as timed
from conflict_queries import INSERTS, PLANNED, table

TARGET = Path(__file__).parent / "flink_conflicts.json"
#: What PyFlink puts on the class path of Java: connectors are not looked for in `pipeline.jars`.
CLASS_PATH = "HADOOP_CLASSPATH"
ROWS = 24
_CAUSE = re.compile(r"(?:ValidationException|TableException|SqlParserException): (.+)")


def prepare(t_env: Any) -> None:
    """Let INSERTs go without a clause."""
    t_env.get_config().set("table.exec.sink.require-on-conflict", "false")


def run(seed: int, count: int) -> None:
    """Run all INSERTs on Flink, which prints what the sinks get."""
    from pyflink.table import TableDescriptor

    t_env, stream = timed.tables(seed, count, prepare)
    statements = t_env.create_statement_set()
    t_env.create_temporary_view("everything", t_env.from_changelog_stream(stream))
    shown = TableDescriptor.for_connector("print").option("print-identifier", "row").build()
    statements.add_insert(shown, t_env.sql_query("SELECT place FROM everything"))
    for number, insert in enumerate(INSERTS.values()):
        name = f"q{number}"
        t_env.execute_sql(table(insert, name, "upsert-print", f", 'print-identifier' = '{name}'"))
        statements.add_insert_sql(insert.statement(name))
    statements.execute().wait()


def planned() -> dict[str, str | None]:
    """Ask Flink for plans: why there is none, or null."""
    t_env = timed.tables(1, 3, prepare)[0]
    answers: dict[str, str | None] = {}
    for place, (name, (insert, connector, settings)) in enumerate(PLANNED.items()):
        t_env.get_config().set("table.exec.sink.require-on-conflict", "false")
        for key, value in settings.items():
            t_env.get_config().set(key, value)
        t_env.execute_sql(table(insert, f"p{place}", connector))
        try:
            t_env.explain_sql(insert.statement(f"p{place}"))
        except Exception as error:  # whatever Java throws
            causes = _CAUSE.findall(str(error))
            answers[name] = causes[-1] if causes else str(error).splitlines()[0]
        else:
            answers[name] = None
    return answers


def main() -> None:
    """Write the file; with a seed and a number of rows: run Flink and print."""
    if len(sys.argv) > 2:
        run(int(sys.argv[1]), int(sys.argv[2]))
        return
    os.environ[CLASS_PATH] = str(Path(sys.argv[1]).resolve())
    make_changelogs.QUERIES = INSERTS
    make_changelogs.changes = timed.changes
    make_changelogs.SILENCE = timed.SILENCE
    answers = planned()
    script = make_changelogs.recorded(2, ROWS, __file__)
    last = str(len(script["rows"]) - 1)
    for emitted in script["emitted"].values():
        emitted.pop(last, None)
    text = make_changelogs.as_text([script]).rstrip()
    TARGET.write_text(
        f'{{"scripts": {text},\n"planned": {json.dumps(answers, indent=0)}}}\n', encoding="utf-8"
    )


if __name__ == "__main__":
    main()
