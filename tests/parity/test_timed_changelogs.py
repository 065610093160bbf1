"""Queries that follow time emit Flink's rows: for each row those that it emits for it, and as many in all.

``flink_timed_changelogs.json`` was written by Flink itself (`make_timed_changelogs.py`): two scripts, in the first of
which some rows are late.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from headrace.table import StreamTableEnvironment
from tests.differential.local_engine import LocalEngine
from tests.differential.runs import job_of_tables, scans_of
from tests.differential.tables import Rows, register
from tests.engines import MINI
from tests.operators.table_harness import Change
from tests.parity.timed_queries import QUERIES, VIEWS

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "flink_timed_changelogs.json").read_text(encoding="utf-8")
)
_EPOCH = datetime.fromisoformat("1970-01-01")
_NAMES = ("e", "f", "w", "t", "clocked")
_TIMED = ("e", "f", "w")
#: What is not followed, with the reason (docs/differences.md).
NOT_FOLLOWED = {
    "ranks": "Flink counts rows of the same time as if they were different ones",
    "sums of t by v": "a row that is new in the result has the kind of its input",
    "sums of t by id": "the same",
    "numbers of t": "the same",
    "rows of t": "the same",
    "sums of groups": "the same",
    "inner temporal join of a deduplication": "keys that are NULL are joined",
    "left temporal join of a deduplication": "the same",
    "windows of padded rows": "Flink pads so late that the row is late behind the join",
}
#: Where late rows are not what they are in Flink, with the reason.
LATE_NOT_FOLLOWED = {
    **dict.fromkeys(
        ("over 2 rows", "over 3 seconds", "over all keys", "short lists"),
        "in Flink a row is late here when its key had a later one, and not when the watermark has passed it",
    ),
    **dict.fromkeys(
        ("left temporal join", "left temporal join with a condition"),
        "Flink 2.3 does not drop late rows here",
    ),
}
#: Rows that Flink tells later: it cleans up when the interval has passed by half its length.
PADDED = tuple(name for name in QUERIES if "interval join" in name and not name.startswith("inner"))


def tables_of(rows: list[list[Any]]) -> dict[str, Rows]:
    """The tables of a script: every row has an epoch of its own, and time advances in one after it."""
    tables = {}
    for name in _NAMES:
        changes: list[Change] = []
        cuts = []
        for table, mark, *values, second in rows:
            if table == name:
                time = [_EPOCH + timedelta(seconds=second)] if name in _TIMED else []
                changes.append((mark, *values, *time))
            cuts += [len(changes), len(changes)]
        tables[name] = Rows(tuple(changes), (), tuple(cuts), tells_end=False)
    return tables


def views(t_env: StreamTableEnvironment) -> None:
    """Make the views that queries read."""
    for name, view in VIEWS.items():
        t_env.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {view}")


def emitted_by(
    env: Any,
    queries: dict[str, str],
    rows: list[list[Any]],
    prepare: Callable[[StreamTableEnvironment], None] = views,
) -> dict[str, list[list[Change]]]:
    """Run queries as one job; return what each of them emitted for each row."""
    tables = tables_of(rows)
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    for name, each in tables.items():
        register(t_env, name, each)
    prepare(t_env)
    job = job_of_tables(t_env, [t_env.sql_query(query) for query in queries.values()])
    scans = scans_of(job)
    found: dict[str, list[list[Change]]] = {name: [] for name in queries}
    with tempfile.TemporaryDirectory() as directory:
        engine = LocalEngine(job, Path(directory), parallelism=1, forgets=False)
        for place in range(len(rows)):
            emitted = [len(changes) for changes in engine.results]
            for half in (0, 1):
                epoch = {scan: tables[name].epochs[2 * place + half] for scan, name in scans.items()}
                engine.run(epoch, dict.fromkeys(scans, False), 1000 * place + half)
            for name, changes, start in zip(queries, engine.results, emitted, strict=True):
                found[name].append(changes[start:])
    return found


def as_text(change: Change) -> list[str]:
    return ["null" if value is None else str(value) for value in change]


def flinks(change: list[str]) -> list[str]:
    """Flink's text of a row, with times as the local engine has them."""
    return [
        str((datetime.fromisoformat(each) - _EPOCH) // timedelta(microseconds=1)) if "T" in each else each
        for each in change
    ]


def check(env: Any, script: int, count: int) -> None:
    """Compare all queries over the first rows of a script; of the last row nobody knows what is the end's."""
    rows, emitted = RECORDED[script]["rows"][:-1], RECORDED[script]["emitted"]
    rows = rows[:count]
    for name, epochs in emitted_by(env, QUERIES, rows).items():
        if name in NOT_FOLLOWED or (script == 0 and name in LATE_NOT_FOLLOWED):
            continue
        made = [[as_text(change) for change in changes] for changes in epochs]
        expected = [[flinks(each) for each in emitted[name].get(str(at), [])] for at in range(len(rows))]
        if count < len(RECORDED[script]["rows"]) - 1 and name in PADDED:
            continue
        if name in PADDED:
            assert Counter(map(tuple, chain(*made))) == Counter(map(tuple, chain(*expected))), name
            continue
        for row, ours, theirs in zip(rows, made, expected, strict=True):
            assert sorted(ours) == sorted(theirs), (name, row)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("script", range(len(RECORDED)))
def test_many_rows_make_the_changes_of_flink(env, script):
    check(env, script, len(RECORDED[script]["rows"]) - 1)
