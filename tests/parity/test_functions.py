"""Programs with functions in Python give what Flink recorded; where Flink refuses one, that is written down, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import HeadraceError
from tests.parity.function_programs import WRONG, Names, environment, final_rows, programs

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "flink_functions.json").read_text())
#: Some of each kind, for a quick look; all of them take minutes.
QUICK = {
    "streaming": (
        "a left join with a table function",
        "an aggregate function beside built-in ones",
        "flat_aggregate",
    ),
    "batch": ("a pandas aggregate function OVER rows", "one table function behind another"),
}
#: Why Flink fails in BATCH mode, where headrace gives what Flink gives in STREAMING mode.
ONLY_STREAMING = (
    "non-Pandas UDAFs are not supported in batch mode",
    "It should be removed by CalcRemoveRule",  # of two table functions in a row
)


def check(mode: str, name: str) -> None:
    names = Names("headrace")
    t_env = environment(names, mode)
    found = final_rows(programs(names, t_env, mode)[name]().execute())
    recorded = RECORDED[mode][name]
    if isinstance(recorded, dict):
        assert any(reason in recorded["error"] for reason in ONLY_STREAMING)
        recorded = RECORDED["streaming"][name]
    assert found == recorded


@pytest.mark.parametrize(("mode", "name"), [(mode, name) for mode in QUICK for name in QUICK[mode]])
def test_a_program_gives_what_flink_gives(mode: str, name: str):
    check(mode, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "name"),
    [(mode, name) for mode in QUICK for name in RECORDED[mode] if name not in QUICK[mode]],
)
def test_all_programs_give_what_flink_gives(mode: str, name: str):
    check(mode, name)


@pytest.mark.parametrize("name", WRONG)
def test_what_flink_refuses_is_refused(name: str):
    assert "error" in RECORDED["wrong"][name]
    t_env = environment(Names("headrace"), "streaming")
    with pytest.raises(HeadraceError):
        t_env.execute_sql(WRONG[name])
