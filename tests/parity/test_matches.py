"""MATCH_RECOGNIZE finds Flink's matches, and refuses what Flink refuses.

``flink_matches.json`` was written by Flink itself (`make_matches.py`). Rows come one by one, each in an epoch of its
own, and so does the watermark; keys are in several subtasks, and the job continues with other ones halfway.
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
from headrace.errors import HeadraceError, SqlError, UnsupportedFeatureError
from headrace.table import StreamTableEnvironment
from headrace.table.attachments import AttachedRows
from headrace.types import DataTypes
from tests.differential.local_engine import LocalEngine
from tests.differential.runs import job_of_tables, scans_of
from tests.engines import MINI
from tests.operators.table_harness import Change
from tests.parity.match_queries import REFUSED, TABLES, Row, all_queries, match

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
    """Run a query; time advances in an epoch after each one with rows."""
    job = job_of_tables(t_env, [t_env.sql_query(query)])
    scans = scans_of(job)
    tables = {scan: changes_of({**TABLES, "clocked": TABLES["plain"]}[name]) for scan, name in scans.items()}
    steps = range(0, max(map(len, tables.values())), rows_per_epoch)
    with tempfile.TemporaryDirectory() as directory:
        engine = LocalEngine(job, Path(directory), parallelism=parallelism, forgets=forgets)
        for at in steps:
            fresh = {scan: rows[at : at + rows_per_epoch] for scan, rows in tables.items()}
            for rows in (fresh, {scan: [] for scan in scans}):
                engine.run(rows, dict.fromkeys(scans, False), 1000 * at)
            if parallelism > 1 and at == steps[len(steps) // 2]:
                engine.rescale(parallelism + 1)
        for _ in range(2):
            engine.run({scan: [] for scan in scans}, dict.fromkeys(scans, True), 1000 * len(steps))
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
ANSWERED = [name for name in all_queries() if "rows" in RECORDED["streaming"].get(name, {})]


def check(env: Any, name: str, **how: Any) -> None:
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=how.get("parallelism", 1))))
    found = found_by(t_env, all_queries()[name], **how)
    assert sorted(as_text(row) for _, *row in found) == sorted(of_flink(RECORDED["streaming"][name]))


@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize(
    "name",
    [name for name in ANSWERED if name not in ON_SPARK and "on plain" not in name and "random" not in name],
)
def test_matches_are_those_of_flink(env, name):
    # Where epochs end says which rows are late.
    check(env, name, rows_per_epoch=1 if "late" in name else 9)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize("name", [name for name in ANSWERED if name not in ON_SPARK])
def test_matches_are_the_same_whatever_the_epochs_and_subtasks(env, name):
    check(env, name, rows_per_epoch=1, parallelism=2, forgets=True)


# -- what is refused ---------------------------------------------------------------------------------------------

#: What Flink refuses, or its Python cannot show, and headrace takes.
TAKEN = {
    "optional at the end": "Flink takes it, too: the variable never has a row",
    "group without a quantifier": "Flink takes it, too",
    "IN a list with a variable": "Flink takes it, too",
    "MATCH_PROCTIME of event time": "Flink takes it, and its Python cannot read it",
    "no MEASURES": "the columns of PARTITION BY are a result, too",
}


def test_every_refusal_of_flink_is_one(env) -> None:
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=1)))
    refusals: dict[str, HeadraceError] = {}
    for name, query in REFUSED.items():
        try:
            job_of_tables(t_env, [t_env.sql_query(query)])
        except HeadraceError as refusal:
            refusals[name] = refusal
    assert [name for name in REFUSED if name not in refusals] == [name for name in REFUSED if name in TAKEN]
    assert all(isinstance(each, SqlError) for each in refusals.values())
    assert {name for name, each in refusals.items() if not each.hint} <= PLAIN
    theirs = {name for name in REFUSED if "rows" in RECORDED["streaming"][f"refused: {name}"]}
    assert theirs - TAKEN.keys() == set()


#: Refusals that need no hint.
PLAIN = {
    "defined twice",
    "condition that is none",
    "no PATTERN",
    "no DEFINE",
    "measure without a name",
    "star of a variable",
    "a query in DEFINE",
}


@pytest.mark.parametrize(
    ("name", "message", "shown"),
    [
        (
            "unknown variable like one",
            "pattern variable 'DOWM' is not part of PATTERN",
            "did you mean 'DOWN'?",
        ),
        ("skip to an unknown variable", "pattern variable 'X' is not part of PATTERN", "available: A, B"),
        ("greedy at the end", "no greedy quantifier at the end of a pattern", "B+?"),
        ("alternation", "no alternatives ('|') in a pattern", "OR"),
        ("PERMUTE", "no PERMUTE", "one after the other"),
        ("ALL ROWS PER MATCH", "no ALL ROWS PER MATCH", "ONE ROW PER MATCH"),
        ("no time", "must begin with a time attribute", "WATERMARK FOR"),
        ("time descending", "must be ascending", "DESC"),
        ("a variable twice", "occurs twice", "another name"),
        ("PREV", "no PREV", "LAST(variable.column, n)"),
        ("an anchor at the wrong end", "'^' is not allowed here", "^ must be first in PATTERN"),
        (
            "two variables in SUM",
            "columns of one pattern variable, and these are of A and B",
            "once for each",
        ),
    ],
)
def test_a_refusal_says_what_and_what_to_do(env, name: str, message: str, shown: str) -> None:
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=1)))
    with pytest.raises(SqlError) as refusal:
        job_of_tables(t_env, [t_env.sql_query(REFUSED[name])])
    assert message in str(refusal.value)
    assert shown in str(refusal.value)
    assert "^" in str(refusal.value)


def test_rows_that_are_updated_are_refused(env) -> None:
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=1)))
    latest = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM plain"
    query = match(f"(SELECT * FROM ({latest}) WHERE n = 1)", "A B")
    with pytest.raises(SqlError, match="Match does not support update and delete changes, which its input"):
        job_of_tables(t_env, [t_env.sql_query(query)])


def test_a_function_of_several_rows_that_python_does_not_know_is_refused_by_name(env) -> None:
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=1)))
    query = match("plain", "A B", define={"B": "REGEXP(B.c, A.c)"}, measures="A.id AS a")
    with pytest.raises(UnsupportedFeatureError, match="REGEXP of several rows at once in DEFINE"):
        job_of_tables(t_env, [t_env.sql_query(query)])


def test_explain_shows_the_pattern(env) -> None:
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=1)))
    plan = t_env.explain_sql(match("plain", "A B+? C", skip="TO FIRST B", within="'5' SECOND"))
    assert "after=[SKIP TO FIRST B], pattern=[(A B+? C)], within=[5000 ms]" in plan


def test_places_in_measures_that_flink_refuses_are_refused(env) -> None:
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=1)))
    names = [
        name
        for name, each in RECORDED["streaming"].items()
        if name.startswith("measure ") and "error" in each
    ]
    assert len(names) >= 8
    for name in names:
        with pytest.raises(SqlError):
            t_env.sql_query(all_queries()[name])


def test_rows_of_a_subset_are_refused_by_name(env) -> None:
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=1)))
    query = match("plain", "A B", measures="LAST(S.id) AS s").replace("DEFINE", "SUBSET S = (A, B) DEFINE")
    with pytest.raises(SqlError, match="no way to look at the rows of the SUBSET 'S'"):
        t_env.sql_query(query)
