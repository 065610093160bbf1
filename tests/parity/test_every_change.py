"""Without mini-batches every row makes the changes that it makes in Flink, however many rows an epoch has.

Flink's answers are those of `test_flink_changelogs`. An epoch is as long as it may be: as long as rows of a query's
first table come before rows of its second, because of two inputs the first one is processed first.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headrace.table import StreamTableEnvironment
from tests.differential.local_engine import LocalEngine
from tests.differential.runs import Case, job_of, scans_of
from tests.differential.tables import Rows
from tests.engines import MINI
from tests.operators.table_harness import Change
from tests.parity.changelog_queries import QUERIES
from tests.parity.test_flink_changelogs import NOT_FOLLOWED, RECORDED, as_text, table_of, tables_of

#: What comes to the same table, by other changes.
OTHER_CHANGES = {
    "groups of a left join": "a row takes all its pairs away before rows without partners come, not in turns",
    "top 2 of counts": "an update of a row is taken as two changes, also where its rank can only get better",
    "left join of an upsert table": "a change of a column that the query does not use is passed on",
    "a part of an upsert table": "a row that no longer passes the filter goes with -U, not with -D",
}
_TABLE = re.compile(r"\b(?:FROM|JOIN) (t|u|p|e|clocked)\b")


def tables_in(query: str) -> tuple[str, ...]:
    """Return the tables of a query in the order of the inputs that they are; a subquery in SELECT comes last."""
    found = tuple(dict.fromkeys(_TABLE.findall(query)))
    return found[::-1] if query.startswith("SELECT id, (SELECT") else found


def epochs_of(rows: list[list[Any]], tables: tuple[str, ...]) -> list[range]:
    """Cut rows into epochs, in each of which rows of the tables come one table after the other."""
    begins, last = [0], 0
    for place, (table, *_) in enumerate(rows):
        if table in tables:
            if tables.index(table) < last:
                begins.append(place)
            last = tables.index(table)
    return [range(first, end) for first, end in pairwise([*begins, len(rows)])]


def emitted_by(
    env: Any, queries: list[str], rows: list[list[Any]], epochs: list[range]
) -> list[list[list[Change]]]:
    """Run queries as one job; return for each what it emitted in each epoch."""
    single = tables_of(rows)
    tables = {
        name: Rows(each.changes, (), tuple(each.cuts[epoch[-1]] for epoch in epochs), tells_end=False)
        for name, each in single.items()
    }
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.get_config().set("table.exec.mini-batch.enabled", "false")
    case = Case(tuple(queries), tables, parallelism=1)
    job = job_of(t_env, case)
    scans = scans_of(job)
    found: list[list[list[Change]]] = [[] for _ in queries]
    with tempfile.TemporaryDirectory() as directory:
        engine = LocalEngine(job, Path(directory), parallelism=1, forgets=False)
        for number in range(len(epochs)):
            emitted = [len(changes) for changes in engine.results]
            engine.run(
                {scan: tables[name].epochs[number] for scan, name in scans.items()},
                dict.fromkeys(scans, False),
                number,
            )
            for made, changes, start in zip(found, engine.results, emitted, strict=True):
                made.append(changes[start:])
    return found


def check(env: Any, script: int, count: int) -> int:
    """Compare every query over the first rows of a script; return the most rows that an epoch had."""
    rows, emitted = RECORDED[script]["rows"][:count], RECORDED[script]["emitted"]
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, query in QUERIES.items():
        if name not in NOT_FOLLOWED:
            alike.setdefault(tables_in(query), []).append(name)
    longest = 0
    for tables, names in alike.items():
        epochs = epochs_of(rows, tables)
        longest = max(longest, *(sum(rows[at][0] in tables for at in epoch) for epoch in epochs))
        made = emitted_by(env, [QUERIES[name] for name in names], rows, epochs)
        for name, by_epoch in zip(names, made, strict=True):
            ours: Counter[tuple[str, ...]] = Counter()
            flinks = ours.copy()
            for epoch, changes in zip(epochs, by_epoch, strict=True):
                left = [as_text(change) for change in changes]
                ours = table_of(left, ours)
                for place in epoch:
                    flinks = table_of(emitted[name].get(str(place), []), flinks)
                assert ours == flinks, (name, epoch)
                if name in OTHER_CHANGES:
                    continue
                for place in epoch:
                    expected = emitted[name].get(str(place), [])
                    own, left = left[: len(expected)], left[len(expected) :]
                    assert sorted(own) == sorted(expected), (name, place, rows[place])
                assert not left, (name, epoch)
    return longest


@pytest.mark.parametrize("engine", [MINI])
def test_each_of_many_rows_in_an_epoch_makes_the_changes_of_flink(env):
    assert check(env, 0, 16) > 3


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("script", range(len(RECORDED)))
def test_epochs_of_dozens_of_rows_make_the_changes_of_flink(env, script):
    assert check(env, script, len(RECORDED[script]["rows"])) > 15
