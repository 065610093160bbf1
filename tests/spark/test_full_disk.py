"""A table job on a full disk fails and says why, instead of losing its workers; with space it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small_disk import UNSHARE, why_not
from tests.spark.full_disk_program import KEYS

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_table_job_on_a_full_disk_fails_with_an_error_that_names_it(tmp_path: Path) -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-m", "tests.spark.full_disk_program", str(tmp_path)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["error"] == "DiskFullError"
    assert "cannot write the copy of state in" in outcome["text"]
    assert str(tmp_path / "disk") in outcome["text"]
    assert "set headrace.state.local-dir" in outcome["text"]
    assert "Python worker exited" not in done.stderr
    assert outcome["second"] == [[KEYS, KEYS]]
    # Late writers of the first job may still be at work at its end, not at that of the second.
    assert outcome["left then"] == []
