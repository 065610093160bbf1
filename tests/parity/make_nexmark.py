"""Writes ``flink_nexmark.json``: the final table of each query of Nexmark on Flink, as sorted lines.

    python -m tests.parity.make_nexmark FLINK_PYTHON        the interpreter of PyFlink's own environment

All queries are one job of parallelism 1, which prints its changes; they come to the tables here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.parity.nexmark_tables import KEYS, NAMES, TARGET, statements, tables, write_events, written_down

_LINE = re.compile(r"(q\d+)> ([+-][IUD])\[(.*)\]$")

#: What PyFlink runs: it reads definitions, and INSERTs of one job.
_PROGRAM = """
import json, sys
from pyflink.table import EnvironmentSettings, TableEnvironment

env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
env.get_config().set("parallelism.default", "1")
env.get_config().set("table.local-time-zone", "UTC")
env.get_config().set("taskmanager.memory.network.max", "512m")
env.get_config().set("taskmanager.memory.network.min", "512m")
definitions, inserts = json.load(sys.stdin)
for each in definitions:
    env.execute_sql(each)
together = env.create_statement_set()
for each in inserts:
    together.add_insert_sql(each)
together.execute().wait()
"""


def printed(flink: str, directory: Path) -> str:
    """Run all queries on Flink; return what it prints."""
    definitions, inserts = tables(directory), []
    for name in NAMES:
        *before, insert = statements(name, f"'connector' = 'print', 'print-identifier' = '{name}'")
        definitions += before
        inserts.append(insert)
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [flink, "-c", _PROGRAM],
            input=json.dumps([definitions, inserts]),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd=elsewhere,
        )
    return done.stdout


def final_tables(lines: str, keys: Mapping[str, Sequence[int]] = KEYS) -> dict[str, list[str]]:
    """Return the table that the changes of each query come to."""
    found: dict[str, Counter[str]] = {name: Counter() for name in NAMES}
    by_key: dict[str, dict[tuple[str, ...], str]] = {name: {} for name in keys}
    for line in lines.splitlines():
        matched = _LINE.match(line)
        if matched is None:
            continue
        name, kind, row = matched.groups()
        values = row.split(", ")
        text = written_down(values)
        if name in keys:
            key = tuple(values[place] for place in keys[name])
            if kind in ("+I", "+U"):
                by_key[name][key] = text
            else:
                assert by_key[name].pop(key) == text
        else:
            found[name][text] += 1 if kind in ("+I", "+U") else -1
            assert found[name][text] >= 0, line
    for name, rows in by_key.items():
        found[name] = Counter(rows.values())
    return {name: sorted(rows.elements()) for name, rows in found.items()}


def main() -> None:
    """Record."""
    with tempfile.TemporaryDirectory() as directory:
        write_events(Path(directory), files=1)
        made = final_tables(printed(sys.argv[1], Path(directory)))
    TARGET.write_text(json.dumps(made, indent=0) + "\n", encoding="utf-8")
    for name, rows in made.items():
        print(name, len(rows), rows[:1])


if __name__ == "__main__":
    main()
