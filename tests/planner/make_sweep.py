"""Writes ``flink_sweep.json``: what Flink makes of every expression of ``sweep_cases``, in both modes.

    python tests/planner/make_sweep.py              with PyFlink's own environment
    python tests/planner/make_sweep.py --missing    only those that the file does not have yet

An answer is the type and the value as a string, null for NULL; ``fails`` if the job fails; ``refused`` if the planner
does not take it. Expressions are columns of a few inserts, all in one job. An insert that fails says nothing of its
columns: in the next job each of them is an insert of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sweep_cases import COLUMNS, expressions

TARGET = Path(__file__).parent / "flink_sweep.json"
#: Seconds without output until what has not come has failed, and until the first has to come.
SILENCE, PATIENCE = 25.0, 150.0
#: Expressions of an insert at first, and inserts of a job.
WIDTH, INSERTS = 16, 350
MISSING = "--missing"
_LINE = re.compile(r"(g\d+)> \+I\[(.*)\]$")


def column_name(text: str, data_type: str) -> str:
    """An expression as one string."""
    # Joined with nothing: what is made by a JSON function would be a part of the JSON around it.
    if data_type.startswith("VARIANT"):
        return f"JSON_STRING({text}) || ''"  # Flink has no CAST of it
    return f"CAST(({text}) AS STRING) || ''"


class Recorder:
    """Flink in one mode."""

    def __init__(self, mode: str, output: Path) -> None:
        from pyflink.table import EnvironmentSettings, TableEnvironment

        self.output = output
        #: The types of the expressions that are not refused.
        self.types: dict[str, str] = {}
        settings = (
            EnvironmentSettings.in_batch_mode()
            if mode == "batch"
            else EnvironmentSettings.in_streaming_mode()
        )
        self.t_env = TableEnvironment.create(settings)
        for key, value in {
            "parallelism.default": "1",
            "table.local-time-zone": "UTC",
            "table.optimizer.reuse-sub-plan-enabled": "false",
            "table.optimizer.reuse-source-enabled": "false",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000000",
            "restart-strategy.fixed-delay.delay": "1 h",
            "taskmanager.memory.network.min": "256m",
            "taskmanager.memory.network.max": "256m",
        }.items():
            self.t_env.get_config().set(key, value)
        file = output.with_suffix(".row")
        file.write_text(json.dumps({name: value for name, (_, value) in COLUMNS.items()}), encoding="utf-8")
        columns = ", ".join(f"`{name}` {kind}" for name, (kind, _) in COLUMNS.items())
        self.t_env.execute_sql(
            f"CREATE TABLE edge ({columns}) WITH ('connector' = 'filesystem', 'path' = 'file://{file}', "
            "'format' = 'json', 'json.timestamp-format.standard' = 'SQL')"
        )

    def find_types(self, texts: list[str]) -> None:
        """Find the types of those that are not refused."""
        for text in texts:
            try:
                schema = self.t_env.sql_query(f"SELECT {text} AS x FROM edge")._j_table.getResolvedSchema()
            except Exception:  # whatever Java throws
                continue
            self.types[text] = str(schema.getColumnDataTypes().get(0).getLogicalType().asSummaryString())

    def json_array(self, texts: list[str]) -> str:
        """Expressions as one column."""
        columns = (column_name(text, self.types[text]) for text in texts)
        return f"JSON_ARRAY({', '.join(columns)} NULL ON NULL)"

    def is_planned(self, texts: list[str]) -> bool:
        """Whether a job can be made of expressions."""
        try:
            self.t_env.explain_sql(f"SELECT {self.json_array(texts)} FROM edge")
        except Exception:  # whatever Java throws
            return False
        return True

    def planned(self, texts: list[str]) -> list[str]:
        """Those of which a job can be made."""
        if not texts or self.is_planned(texts):
            return texts
        if len(texts) == 1:
            return []
        half = len(texts) // 2
        return self.planned(texts[:half]) + self.planned(texts[half:])

    def run(self, groups: list[list[str]]) -> dict[str, str | None]:
        """The values of those that do not fail."""
        start = self.output.stat().st_size
        statements = self.t_env.create_statement_set()
        for place, group in enumerate(groups):
            self.t_env.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS g{place}")
            options = f"'connector' = 'print', 'print-identifier' = 'g{place}'"
            self.t_env.execute_sql(f"CREATE TEMPORARY TABLE g{place} (x STRING) WITH ({options})")
            statements.add_insert_sql(f"INSERT INTO g{place} SELECT {self.json_array(group)} FROM edge")
        try:
            client = statements.execute().get_job_client()
        except Exception:  # what only a job of several expressions finds
            half = len(groups) // 2
            return self.run(groups[:half]) | self.run(groups[half:]) if half else {}
        found, size, last = {}, start, time.monotonic()
        while len(found) < len(groups) and time.monotonic() - last < (SILENCE if found else PATIENCE):
            time.sleep(0.5)
            if self.output.stat().st_size != size:
                size, last = self.output.stat().st_size, time.monotonic()
            with self.output.open(encoding="utf-8") as lines:
                lines.seek(start)
                found = {match[1]: match[2] for line in lines if (match := _LINE.match(line.rstrip("\n")))}
        try:
            client.cancel().result()
        except Exception:  # it has ended
            pass
        values: dict[str, str | None] = {}
        for place, group in enumerate(groups):
            if f"g{place}" in found:
                values |= dict(zip(group, json.loads(found[f"g{place}"]), strict=True))
        return values

    def values(self, texts: list[str]) -> dict[str, str | None]:
        """The values of all that do not fail."""
        values: dict[str, str | None] = {}
        for width in (WIDTH, 4, 1):
            left = [text for text in texts if text not in values]
            groups = [left[place : place + width] for place in range(0, len(left), width)]
            for place in range(0, len(groups), INSERTS):
                values |= self.run(groups[place : place + INSERTS])
                print(width, place, len(values), len(texts), file=sys.stderr, flush=True)
        return values


def record(mode: str) -> dict[str, Any]:
    """The answers in one mode."""
    output = Path(tempfile.mkdtemp()) / "output"
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    recorder = Recorder(mode, output)
    known_answers = json.loads(TARGET.read_text(encoding="utf-8")) if MISSING in sys.argv else {}
    texts = [text for text in expressions() if text not in known_answers]
    recorder.find_types(texts)
    types = recorder.types
    print(mode, "types", len(types), "of", len(texts), file=sys.stderr, flush=True)
    typed = list(types)
    planned = [
        one for place in range(0, len(typed), WIDTH) for one in recorder.planned(typed[place : place + WIDTH])
    ]
    print(mode, "planned", len(planned), "of", len(typed), file=sys.stderr, flush=True)
    values = recorder.values(planned)
    known = set(planned)
    return {
        text: ["refused"]
        if text not in known
        else [types[text], values[text]]
        if text in values
        else [types[text], {"fails": True}]
        for text in texts
    }


def merged() -> dict[str, Any]:
    """The answers of both modes, which have to be the same; each mode is a process of its own."""
    found = []
    for mode in ("streaming", "batch"):
        target = Path(tempfile.mkdtemp()) / mode
        environment = {
            **os.environ,
            "LC_ALL": "C.UTF-8",
            "JAVA_TOOL_OPTIONS": "-Dfile.encoding=UTF-8 -Dsun.stdout.encoding=UTF-8 -Xss4m",
        }
        command = [sys.executable, __file__, mode, str(target), *sys.argv[1:]]
        subprocess.run(command, check=True, env=environment)
        found.append(json.loads(target.read_text(encoding="utf-8")))
    streaming, batch = found
    differing = [text for text in streaming if streaming[text] != batch[text]]
    for text in differing:
        print("left out, not the same in both modes:", text, streaming[text], batch[text], file=sys.stderr)
    return {text: answer for text, answer in batch.items() if text not in differing}


def main() -> None:
    """Record one mode, or write the answers of both."""
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(record(sys.argv[1])), encoding="utf-8")
        return
    answers = merged()
    if MISSING in sys.argv:
        answers = json.loads(TARGET.read_text(encoding="utf-8")) | answers
    lines = (
        f"{json.dumps(text, ensure_ascii=False)}: {json.dumps(answer, ensure_ascii=False)}"
        for text, answer in answers.items()
    )
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
