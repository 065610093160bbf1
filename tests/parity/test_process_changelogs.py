"""Process table functions, TO_CHANGELOG and FROM_CHANGELOG emit Flink's rows, and refuse what Flink refuses.

``flink_process_changelogs.json`` was written by Flink itself (`make_process_changelogs.py`), with functions in Java;
here the same functions in Python are called.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.table import StreamTableEnvironment
from tests.differential.tables import register
from tests.engines import MINI
from tests.parity import process_functions
from tests.parity.process_queries import FUNCTIONS, QUERIES, REFUSED, VIEWS
from tests.parity.test_timed_changelogs import as_text, emitted_by, flinks, tables_of

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "flink_process_changelogs.json").read_text(encoding="utf-8")
)
#: What Flink 2.3 does otherwise, with the reason (docs/sql/process_functions.md).
NOT_FOLLOWED: dict[str, str] = {}
#: What is refused here, and not in Flink, or the other way round.
OTHERWISE: dict[str, str] = {"unknown argument": "Flink 2.3 leaves out arguments that it does not know"}
#: A column that only Flink's tables have.
_ONLY_FLINKS = "`sec` BIGINT"


def prepare(t_env: StreamTableEnvironment) -> None:
    """Make functions and views."""
    for name in FUNCTIONS:
        t_env.create_temporary_function(name, getattr(process_functions, name))
    for name, view in VIEWS.items():
        t_env.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {view}")


@pytest.fixture
def t_env(env):
    made = StreamTableEnvironment.create(env(parallelism=1))
    for name, each in tables_of(RECORDED["scripts"][0]["rows"][:1]).items():
        register(made, name, each)
    prepare(made)
    return made


@pytest.mark.parametrize("engine", [MINI])
def test_the_columns_of_a_call_are_those_of_flink(t_env):
    found = {}
    for name in RECORDED["schemas"]:
        plan = t_env.sql_query(QUERIES[name])._plan
        found[name] = [f"`{each.name}` {each.summary()}" for each in plan.schema]
    assert found == {
        name: [column for column in columns if column != _ONLY_FLINKS]
        for name, columns in RECORDED["schemas"].items()
    }


@pytest.mark.parametrize("engine", [MINI])
def test_what_flink_refuses_is_refused(t_env):
    for name, reason in RECORDED["refused"].items():
        if reason is None or name in OTHERWISE:
            continue
        # Every message points at its place in the statement.
        with pytest.raises(HeadraceError, match=r"\n +\^+"):
            t_env.sql_query(REFUSED[name]).explain()


def _flinks(change: list[str]) -> list[str]:
    """Flink's text of a row, with times as the local engine has them."""
    return [flinks([each])[0] if each[:1].isdigit() else each for each in change]


def check(env: Any, count: int) -> None:
    """Compare all queries over the first rows of the script; of the last row nobody knows what is the end's."""
    script = RECORDED["scripts"][0]
    rows = script["rows"][:-1][:count]
    names = [name for name in script["emitted"] if name not in NOT_FOLLOWED]
    found = emitted_by(env, {name: QUERIES[name] for name in names}, rows, prepare)
    for name, epochs in found.items():
        made = [[as_text(change) for change in changes] for changes in epochs]
        columns = ["kind", *RECORDED["schemas"][name]]
        kept = [at for at, column in enumerate(columns) if column != _ONLY_FLINKS]
        expected = [
            [_flinks([each[place] for place in kept]) for each in script["emitted"][name].get(str(at), [])]
            for at in range(len(rows))
        ]
        for row, ours, theirs in zip(rows, made, expected, strict=True):
            assert sorted(ours) == sorted(theirs), (name, row)


@pytest.mark.parametrize("engine", [MINI])
def test_rows_make_the_changes_of_flink(env):
    check(env, 12)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", [MINI])
def test_many_rows_make_the_changes_of_flink(env):
    check(env, len(RECORDED["scripts"][0]["rows"]))
