"""Programs that Flink's users write, live on Spark with a killed worker: they give what they give in epochs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.live_users_program import KEYS, PROGRAMS, RECORDS

pytestmark = [pytest.mark.spark, pytest.mark.slow(seconds=150), pytest.mark.timeout(500)]

_PROGRAM = Path(__file__).with_name("live_users_program.py")
_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"
    ended = subprocess.run(
        [sys.executable, str(_PROGRAM), str(tmp_path_factory.mktemp("live-users"))],
        capture_output=True,
        text=True,
        timeout=480,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": path},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_killed_worker_changes_nothing(outcomes: Any, name: str) -> None:
    assert outcomes[name]["was killed"]
    assert outcomes[name]["live"] == outcomes[name]["epochs"]


def test_rules_and_asynchronous_calls_see_each_record_once(outcomes: Any) -> None:
    assert len(outcomes["rules"]["live"]) == len(outcomes["enrichment"]["live"]) == RECORDS


def test_sessions_end_after_each_silence(outcomes: Any) -> None:
    assert len(outcomes["sessions"]["live"]) == 4 * KEYS


def test_both_inputs_are_summed_up(outcomes: Any) -> None:
    total = sum(range(RECORDS)) + RECORDS * 1_000_000
    assert sum(outcomes["gathering"]["live"].values()) == total
