"""The package `headrace-pyflink`: plain Python and type checkers find `pyflink`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "packages" / "pyflink-alias" / "src"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_pyflink_alias.py"


def test_there_is_a_current_stub_for_every_module():
    spec = importlib.util.spec_from_file_location("make_pyflink_alias", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    expected = script.stubs()
    folder = PACKAGE / "pyflink"
    found = {each.relative_to(folder).as_posix(): each.read_text() for each in folder.rglob("*.pyi")}

    assert found == expected, "run python scripts/make_pyflink_alias.py"
    assert "StreamExecutionEnvironment" in found["datastream/__init__.pyi"]


def test_plain_python_finds_headrace_under_the_name_of_pyflink():
    program = "import pyflink.table, headrace.table; print(pyflink.table is headrace.table)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "True\n"
