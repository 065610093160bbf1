"""Live jobs on Spark: workers and regions that are killed, and savepoints that go from one mode to the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.live_program import KEYS, RECORDS

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

_PROGRAM = Path(__file__).with_name("live_program.py")
_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run the program: all jobs on one Spark, because starting it takes longer than running them."""
    path = f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"
    ended = subprocess.run(
        [sys.executable, str(_PROGRAM), str(tmp_path_factory.mktemp("live"))],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": path},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


EXPECTED = sorted(f"{number % KEYS} {number // KEYS + 1}" for number in range(RECORDS))


@pytest.mark.parametrize("job", ["killed", "moved"])
def test_every_record_counts_once(outcomes: Any, job: str) -> None:
    assert outcomes[job]["lines"] == EXPECTED


def test_a_region_whose_worker_is_killed_starts_again_alone(outcomes: Any) -> None:
    outcome = outcomes["regions"]
    assert outcome["left"] == outcome["right"] == EXPECTED
    assert outcome["right had workers"] == outcome["right has had workers"] == 2


def test_workers_of_live_jobs_are_forked_from_the_process_that_was_started_with_spark(outcomes: Any) -> None:
    assert outcomes["regions"]["forked from the first"]
