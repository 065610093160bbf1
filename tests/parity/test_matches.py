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
from tests.engines import MINI
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


def as_text(row: list[Any]) -> list[str]:
    return ["NULL" if value is None else str(value) for value in row]


def of_flink(answer: dict[str, Any]) -> list[list[str]]:
    """Flink's rows, with times as the local engine has them.

    For a NOT NULL column of a variable without rows, Flink gives -1, which is whatever Java has in place of NULL.
    """
    made = []
    for row in answer["rows"]:
        cells = []
        for name, kind, value in zip(answer["columns"], answer["types"], row, strict=True):
            if value is None or (value == "-1" and name in PLACES):
                cells.append("NULL")
            elif kind.startswith("TIMESTAMP"):
                cells.append(str((datetime.fromisoformat(value) - _BEGIN) // timedelta(microseconds=1)))
            else:
                cells.append(value)
        made.append(cells)
    return made


#: Columns that are the NOT NULL id of a row.
PLACES = {*(f"{first}{name}" for first in "fl" for name in "ABCD12"), "before"}
#: Functions that sqlite does not have; they are compared on Spark.
ON_SPARK = ("functions of strings", "time between", "casts")
ANSWERED = [name for name in all_queries() if "rows" in RECORDED["streaming"][name]]
FAILED = [name for name in all_queries() if name not in ANSWERED]


def check(env: Any, name: str, **how: Any) -> None:
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=how.get("parallelism", 1))))
    found = found_by(t_env, all_queries()[name], **how)
    assert sorted(as_text(row) for _, *row in found) == sorted(of_flink(RECORDED["streaming"][name]))


@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("name", [name for name in ANSWERED if name not in ON_SPARK])
def test_matches_are_those_of_flink(env, name):
    # Where epochs end says which rows are late.
    check(env, name, rows_per_epoch=1 if "late" in name else 9)
