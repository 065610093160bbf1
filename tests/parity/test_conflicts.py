"""INSERT with and without ON CONFLICT writes what Flink writes, row by row, and is refused where Flink refuses it.

``flink_conflicts.json`` was written by Flink itself (`make_conflicts.py`).
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from headrace.common.changelog import UPSERT
from headrace.errors import HeadraceError
from headrace.planner.logical import OnConflict
from headrace.planner.optimize import SinkRequest
from headrace.planner.physical import CollectTarget
from headrace.table import StreamTableEnvironment
from tests.differential.local_engine import LocalEngine
from tests.differential.runs import scans_of
from tests.differential.tables import register
from tests.engines import MINI
from tests.operators.table_harness import Change
from tests.parity.conflict_queries import INSERTS, PLANNED, Insert, table
from tests.parity.test_timed_changelogs import as_text, tables_of

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "flink_conflicts.json").read_text(encoding="utf-8")
)
_UPSERT_KAFKA = (
    ", 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:1', "
    "'key.format' = 'json', 'value.format' = 'json'"
)
#: What is not followed, with the reason.
OTHERWISE = {
    f"{clause} into blackhole": "blackhole writes by key here; in Flink only for queries with updates"
    for clause in ("NOTHING", "ERROR", "DEDUPLICATE")
}
#: What writes by primary key, in Flink's recordings and here.
_SINKS = {"upsert-print": ("upsert-kafka", _UPSERT_KAFKA)}


def request(t_env: StreamTableEnvironment, insert: Insert) -> SinkRequest:
    """The query of an INSERT, for a sink that takes changes by the first column."""
    strategy = OnConflict[insert.clause.rpartition(" ")[2]] if insert.clause else None
    names = tuple(column.split()[0] for column in insert.columns.split(", "))
    plan = t_env.sql_query(insert.query)._plan
    types = tuple(field.type for field in plan.schema)
    target = CollectTarget(uuid.uuid4().hex)
    return SinkRequest(plan, names[0], target, UPSERT, (0,), names, types, on_conflict=strategy)


def written(env: Any, rows: list[list[Any]]) -> dict[str, list[list[Change]]]:
    """What the sink of each INSERT gets for each row, which has an epoch of its own; then its watermark has another."""
    tables = tables_of(rows)
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    for name, each in tables.items():
        register(t_env, name, each)
    jobs = t_env._jobs
    job = jobs.job_graph(jobs._plan([request(t_env, insert) for insert in INSERTS.values()]), "inserts")
    scans = scans_of(job)
    found: dict[str, list[list[Change]]] = {name: [] for name in INSERTS}
    with tempfile.TemporaryDirectory() as directory:
        engine = LocalEngine(job, Path(directory), parallelism=1, forgets=False)
        for place in range(len(rows)):
            emitted = [len(changes) for changes in engine.results]
            for half in (0, 1):
                epoch = {scan: tables[name].epochs[2 * place + half] for scan, name in scans.items()}
                engine.run(epoch, dict.fromkeys(scans, False), 1000 * place + half)
            for name, changes, start in zip(INSERTS, engine.results, emitted, strict=True):
                found[name].append(changes[start:])
    return found


def held(epochs: Iterable[list[list[str]]]) -> list[dict[str, list[str]]]:
    """What a sink that writes by its first column holds after each row."""
    table: dict[str, list[str]] = {}
    found = []
    for changes in epochs:
        for kind, key, *rest in changes:
            if kind in ("+I", "+U"):
                table[key] = rest
            elif kind == "-D":
                table.pop(key, None)
        found.append(dict(table))
    return found


@pytest.mark.parametrize("engine", [MINI])
def test_sinks_hold_what_they_hold_in_flink_after_every_row(env: Any) -> None:
    script = RECORDED["scripts"][0]
    rows = script["rows"][:-1]
    wrong = {}
    for name, epochs in written(env, rows).items():
        ours = held([as_text(change) for change in changes] for changes in epochs)
        flinks = held(script["emitted"][name].get(str(at), []) for at in range(len(rows)))
        assert any(flinks), name
        different = [each for each in zip(rows, ours, flinks, strict=True) if each[1] != each[2]]
        if different:
            wrong[name] = different
    assert wrong == {}


@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("name", [name for name in PLANNED if name not in OTHERWISE])
def test_what_flink_refuses_is_refused(env: Any, name: str) -> None:
    insert, connector, settings = PLANNED[name]
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    for each, rows in tables_of(RECORDED["scripts"][0]["rows"][:1]).items():
        register(t_env, each, rows)
    for key, value in settings.items():
        t_env.get_config().set(key, value)
    kind, options = _SINKS.get(connector, (connector, ""))
    t_env.execute_sql(table(insert, "sink", kind, options))
    refused = RECORDED["planned"][name] is not None
    try:
        t_env.explain_sql(insert.statement("sink"))
    except HeadraceError:
        assert refused
    else:
        assert not refused
