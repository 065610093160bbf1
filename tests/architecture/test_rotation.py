"""Slow tests run in rotation: `tests/rotation.py`."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_TESTS = """
import pytest

pytestmark = pytest.mark.slow

@pytest.mark.parametrize("number", range(8))
def test_short(number): ...

@pytest.mark.slow(seconds=5000)
def test_long(): ...
"""


@pytest.fixture
def run(tmp_path: Path):
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow(seconds): slow\n")

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "pytest", "-v", "-p", "tests.rotation", *options, str(tmp_path)]
        # From the root, where the plugin can be imported; with the settings of the folder, not ours. Without the
        # plugins that are installed it starts in a tenth of the time.
        done = subprocess.run(
            [*command, "-c", str(tmp_path / "pytest.ini")],
            cwd=ROOT,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def order(output: str) -> list[str]:
    return re.findall(r"(test_\w\.py::test_\w+(?:\[\d\])?) (?:PASSED|SKIPPED)", output)


def test_a_test_that_would_end_too_late_is_left_to_another_rotation(run):
    output = run("--rotation=7", "--within=3600")
    assert "rotation 7: 24 slow tests ran, 3 were left to other seeds" in output
    assert "test_long SKIPPED" in output


def test_all_tests_run_where_there_is_time(run):
    assert "rotation 7: 27 slow tests ran, 0 were left to other seeds" in run("--rotation=7", "--within=9999")


def test_processes_share_one_deadline(run):
    processes = ("-p", "xdist", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
    output = run("--rotation=7", "--within=3600", *processes)
    assert "rotation 7: 24 slow tests ran, 3 were left to other seeds" in output


def test_the_order_follows_from_the_seed_and_keeps_files_together(run):
    first, again, other = (order(run(f"--rotation={seed}", "--within=3600")) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other)
    files = [name.partition("::")[0] for name in first]
    assert sum(a != b for a, b in itertools.pairwise(files)) == 2
