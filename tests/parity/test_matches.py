"""MATCH_RECOGNIZE finds Flink's matches, and refuses what Flink refuses.

``flink_matches.json`` was written by Flink itself (`make_matches.py`). Rows come one by one, each in an epoch of its
own, and so does the watermark; keys are in several subtasks, and the job goes on with other ones halfway.
"""

from __future__ import annotations

import json
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.catalog.objects import CatalogTable, Column, ComputedColumn, PhysicalColumn, WatermarkSpec
from headrace.common.changelog import INSERT_ONLY
from headrace.errors import HeadraceError
from headrace.table import StreamTableEnvironment
from headrace.table.attachments import AttachedRows
from headrace.types import DataTypes
from tests.differential.local_engine import LocalEngine
from tests.differential.runs import job_of_tables, scans_of
from tests.operators.table_harness import Change
from tests.parity.match_queries import REFUSED, TABLES, Row, all_queries

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "flink_matches.json").read_text(encoding="utf-8")
)
_BEGIN = datetime.fromisoformat("1970-01-01")


def changes_of(rows: list[Row]) -> list[Change]:
    return [("+I", *row, _BEGIN + timedelta(seconds=row[-1])) for row in rows]


def with_tables(t_env: StreamTableEnvironment) -> StreamTableEnvironment:
    """Register all tables."""
    for name, rows in {**TABLES, "clocked": TABLES["plain"]}.items():
        columns: list[Column] = [
            PhysicalColumn("id", DataTypes.BIGINT().not_null()),
            PhysicalColumn("k", DataTypes.STRING()),
            PhysicalColumn("c", DataTypes.STRING()),
            PhysicalColumn("v", DataTypes.BIGINT()),
            PhysicalColumn("f", DataTypes.DOUBLE()),
            PhysicalColumn("sec", DataTypes.BIGINT()),
            PhysicalColumn("ts", DataTypes.TIMESTAMP(3)),
        ]
        is_clocked = name == "clocked"
        if is_clocked:
            columns.append(ComputedColumn("pt", DataTypes.TIMESTAMP_LTZ(3).not_null(), "PROCTIME()"))
        table = CatalogTable(
            tuple(columns),
            watermark=None if is_clocked else WatermarkSpec("ts", "ts - INTERVAL '2' SECOND"),
            attachment=AttachedRows(tuple(tuple(values) for _, *values in changes_of(rows)), INSERT_ONLY),
        )
        manager = t_env._manager
        manager.put_temporary_table(manager.qualify([name]), table)
    return t_env


def found_by(
    t_env: StreamTableEnvironment,
    query: str,
    *,
    rows_per_epoch: int,
    parallelism: int = 1,
    forgets: bool = False,
) -> list[Change]:
    """Run a query; time goes on in an epoch behind each one with rows."""
    job = job_of_tables(t_env, [t_env.sql_query(query)])
    scans = scans_of(job)
    tables = {scan: changes_of({**TABLES, "clocked": TABLES["plain"]}[name]) for scan, name in scans.items()}
    steps = range(0, max(map(len, tables.values())), rows_per_epoch)
    with tempfile.TemporaryDirectory() as directory:
        engine = LocalEngine(job, Path(directory), parallelism=parallelism, forgets=forgets)
        for at in steps:
            fresh = {scan: rows[at : at + rows_per_epoch] for scan, rows in tables.items()}
            for rows in (fresh, dict.fromkeys(scans, [])):
                engine.run(rows, dict.fromkeys(scans, False), 1000 * at)
            if parallelism > 1 and at == steps[len(steps) // 2]:
                engine.rescale(parallelism + 1)
        for _ in range(2):
            engine.run(dict.fromkeys(scans, []), dict.fromkeys(scans, True), 1000 * len(steps))
        (written,) = engine.results
    return written


def as_text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value)


def of_flink(value: str | None, kind: str) -> str | None:
    if value is not None and kind.startswith("TIMESTAMP"):
        return str((datetime.fromisoformat(value) - _BEGIN) // timedelta(microseconds=1))
    return value


ANSWERED = [name for name in all_queries() if "rows" in RECORDED["streaming"][name]]


@pytest.mark.parametrize("name", ANSWERED)
def test_matches_are_those_of_flink(sql_env: Any, name: str) -> None:
    query, answer = all_queries()[name], RECORDED["streaming"][name]
    t_env = with_tables(StreamTableEnvironment.create(sql_env(parallelism=2)))
    found = found_by(t_env, query, parallelism=2, forgets=True)
    expected = [
        [of_flink(*each) for each in zip(row, answer["types"], strict=True)] for row in answer["rows"]
    ]
    assert sorted(map(str, ([*map(as_text, row)] for _, *row in found))) == sorted(map(str, expected))
