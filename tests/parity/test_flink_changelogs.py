"""Every row makes the changes that it makes in Flink, where it has an epoch of its own.

``flink_changelogs.json`` was written by Flink itself (`make_changelogs.py`).
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.table import StreamTableEnvironment
from tests.differential.local_engine import LocalEngine
from tests.differential.runs import Case, job_of, scans_of
from tests.differential.tables import BEGIN, Rows
from tests.engines import MINI
from tests.operators.table_harness import Change
from tests.parity.changelog_queries import QUERIES

#: For each script the rows that came, and what each query emitted for which of them.
RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "flink_changelogs.json").read_text(encoding="utf-8")
)
#: What is not followed, with the reason.
NOT_FOLLOWED = {
    "first row of e": "+U comes without the row before it, though the sink does not know of a key",
    "best row of e": "the same",
    "limit and offset of t": "when a row before the first goes, nothing is emitted",
    "second row of t": "the same",
}
#: One node's rows are the next one's epoch, where Flink hands over one by one; what it comes to is the same.
SEVERAL_NODES = {
    "left join of an upsert table",
    "groups of an upsert table",
    "a part of an upsert table",
    "top 2 of groups",
    "top 2 of groups numbered",
    "left join of groups",
    "groups of a left join",
    "a value of all rows",
}
_NAMES = ("t", "u", "p", "e", "clocked")


def tables_of(rows: list[list[Any]]) -> dict[str, Rows]:
    """The tables of a script: every row of any of them has an epoch of its own."""
    tables = {}
    for name in _NAMES:
        changes: list[Change] = []
        cuts = []
        for table, mark, *values in rows:
            if table == name:
                time = [BEGIN + timedelta(seconds=values.pop())] if name == "e" else []
                changes.append((mark, *values, *time))
            cuts.append(len(changes))
        tables[name] = Rows(tuple(changes), (), tuple(cuts), tells_end=False)
    return tables


def emitted_by(env: Any, queries: dict[str, str], rows: list[list[Any]]) -> dict[str, list[list[Change]]]:
    """Run queries as one job; return what each of them emitted for each row."""
    case = Case(tuple(queries.values()), tables_of(rows), parallelism=1)
    job = job_of(StreamTableEnvironment.create(env(parallelism=1)), case)
    scans = scans_of(job)
    found: dict[str, list[list[Change]]] = {name: [] for name in queries}
    with tempfile.TemporaryDirectory() as directory:
        engine = LocalEngine(job, Path(directory), parallelism=1, forgets=False)
        for place in range(len(rows)):
            emitted = [len(changes) for changes in engine.results]
            engine.run(
                {scan: case.tables[name].epochs[place] for scan, name in scans.items()},
                dict.fromkeys(scans, False),
                place,
            )
            for name, changes, start in zip(queries, engine.results, emitted, strict=True):
                found[name].append(changes[start:])
    return found


def as_text(change: Change) -> list[str]:
    return ["null" if value is None else str(value) for value in change]


def table_of(changes: list[list[str]], before: Counter[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
    """The table that changes come to, from what it was before; nothing goes that is not there."""
    table = before.copy()
    for mark, *row in changes:
        table[tuple(row)] += 1 if mark in ("+I", "+U") else -1
        assert table[tuple(row)] >= 0, f"{mark}{row} takes away what is not there"
    return +table


def check(env: Any, script: int, count: int) -> None:
    """Compare every query over the first rows of a script."""
    rows, emitted = RECORDED[script]["rows"][:count], RECORDED[script]["emitted"]
    for name, epochs in emitted_by(env, QUERIES, rows).items():
        ours: Counter[tuple[str, ...]] = Counter()
        flinks = ours.copy()
        for place, changes in enumerate(epochs):
            made, expected = [as_text(change) for change in changes], emitted[name].get(str(place), [])
            ours = table_of(made, ours)
            if name in NOT_FOLLOWED:
                continue
            flinks = table_of(expected, flinks)
            assert ours == flinks, (name, rows[place])
            if name not in SEVERAL_NODES:
                assert sorted(made) == sorted(expected), (name, rows[place])


@pytest.mark.parametrize("engine", [MINI])
def test_a_row_makes_the_changes_of_flink(env):
    check(env, 0, 16)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("script", range(len(RECORDED)))
def test_many_rows_make_the_changes_of_flink(env, script):
    check(env, script, len(RECORDED[script]["rows"]))
