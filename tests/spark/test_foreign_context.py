"""Jobs on a Spark context that the program has made itself, with settings of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark import foreign_context_program

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]


def test_jobs_give_the_same_results_whatever_the_settings_of_the_context(
    env: Callable[..., Any], tmp_path: Path
) -> None:
    there = subprocess.run(
        [sys.executable, "-m", "tests.spark.foreign_context_program"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert there.returncode == 0, there.stderr
    env()  # a Spark that headrace has started
    assert json.loads(there.stdout.splitlines()[-1]) == foreign_context_program.results()
