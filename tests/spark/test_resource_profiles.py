"""Fine-grained resources on executors: tasks that ask for two cores of an executor with two run one after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyspark
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

_PROGRAM = Path(__file__).with_name("resource_profiles_program.py")
_ROOT = Path(__file__).parents[2]


def overlap(times: list[tuple[float, float]]) -> bool:
    ordered = sorted(times)
    return any(after[0] < before[1] for before, after in pairwise(ordered))


def test_tasks_of_a_group_take_the_cores_it_asks_for(tmp_path: Path) -> None:
    home = tmp_path / "spark-home"  # a local cluster leaves executors' directories in Spark's home
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    path = f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"
    ended = subprocess.run(
        [sys.executable, str(_PROGRAM)],
        capture_output=True,
        text=True,
        timeout=380,
        env={**os.environ, "SPARK_HOME": str(home), "PYTHONWARNINGS": "ignore", "PYTHONPATH": path},
        cwd=tmp_path,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    ran = json.loads(ended.stdout.splitlines()[-1])
    assert len(ran["one"]) == len(ran["two"]) == 8
    assert overlap(ran["one"]), "two tasks of one core each do not run at the same time"
    assert not overlap(ran["two"]), "two tasks of two cores each ran at the same time"
