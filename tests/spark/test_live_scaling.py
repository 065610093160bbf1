"""Live jobs on Spark whose width changes: rescaled, following the slots, and as wide as sixteen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.test_live import EXPECTED

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

_PROGRAM = Path(__file__).with_name("live_scaling_program.py")
_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run the program: all jobs on one Spark, because starting it takes longer than running them."""
    path = f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"
    ended = subprocess.run(
        [sys.executable, str(_PROGRAM), str(tmp_path_factory.mktemp("live-scaling"))],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": path},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("job", ["wide", "rescaled", "adaptive"])
def test_every_record_counts_once_however_wide_the_job_is(outcomes: Any, job: str) -> None:
    assert outcomes[job]["lines"] == EXPECTED


def test_a_job_may_have_sixteen_subtasks_for_each_vertex(outcomes: Any) -> None:
    assert outcomes["wide"]["workers"] == 16


def test_a_running_job_gets_wider_and_narrower(outcomes: Any) -> None:
    assert outcomes["rescaled"]["widths"] == [5, 1]


def test_an_adaptive_job_gets_wider_when_another_job_releases_its_slots(outcomes: Any) -> None:
    assert outcomes["adaptive"]["widths"] == [1, 2]
