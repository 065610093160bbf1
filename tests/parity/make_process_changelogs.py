"""Writes ``flink_process_changelogs.json``: what Flink emits for calls of process table functions, and what it refuses.

    javac -parameters -cp "$FLINK/lib/*" -d classes tests/parity/java/ProcessFunctions.java
    jar cf functions.jar -C classes .
    python tests/parity/make_process_changelogs.py functions.jar        with PyFlink's own environment

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
from process_queries import FUNCTIONS, QUERIES, REFUSED, VIEWS

TARGET = Path(__file__).parent / "flink_process_changelogs.json"
#: Names the archive with the functions.
JAR = "PROCESS_FUNCTIONS_JAR"
_CAUSE = re.compile(
    r"(?:ValidationException|TableException|SqlParserException|CalciteContextException): (.+)"
)


def prepare(t_env: Any) -> None:
    """Make the functions known to Flink."""
    t_env.get_config().set("pipeline.jars", f"file://{os.environ[JAR]}")
    for name in FUNCTIONS:
        t_env.create_java_temporary_function(name, f"ProcessFunctions${name}")


def answers() -> dict[str, Any]:
    """Ask Flink for the columns of all queries, and why it refuses others."""
    t_env = timed.tables(1, 3, prepare)[0]
    schemas, refused = {}, {}
    for name, query in QUERIES.items():
        resolved = t_env.sql_query(query)._j_table.getResolvedSchema()
        schemas[name] = [column.asSummaryString() for column in resolved.getColumns()]
    for name, query in REFUSED.items():
        try:
            t_env.sql_query(query).explain()
        except Exception as error:
            causes = _CAUSE.findall(str(error))
            refused[name] = causes[-1] if causes else str(error).splitlines()[0]
        else:
            refused[name] = None
    return {"schemas": schemas, "refused": refused}


def main() -> None:
    """Write the file; with a seed and a number of rows: run Flink and print."""
    timed.QUERIES, timed.VIEWS = QUERIES, VIEWS
    if len(sys.argv) > 2:
        timed.run(int(sys.argv[1]), int(sys.argv[2]), prepare)
        return
    os.environ[JAR] = str(Path(sys.argv[1]).resolve())
    make_changelogs.QUERIES = QUERIES
    make_changelogs.changes = timed.changes
    make_changelogs.SILENCE = timed.SILENCE
    asked = answers()
    made = [make_changelogs.recorded(1, 48, __file__)]
    for each in made:
        last = str(len(each["rows"]) - 1)
        for emitted in each["emitted"].values():
            emitted.pop(last, None)
    answered = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, indent=0)}" for key, value in asked.items())
    TARGET.write_text(
        f'{{"scripts": {make_changelogs.as_text(made).rstrip()},\n{answered}}}\n', encoding="utf-8"
    )


if __name__ == "__main__":
    main()
