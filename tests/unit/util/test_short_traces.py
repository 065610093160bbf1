"""Errors at Python's interactive prompt."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headrace.util import short_traces

_SESSION = """from headrace.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1])
env.execute()
1 // 0
"""


def test_the_prompt_shows_an_error_without_frames_of_headrace() -> None:
    done = subprocess.run(
        [sys.executable, "-qi"], input=_SESSION, capture_output=True, text=True, check=False
    )

    shown = done.stderr.replace(">>> ", "")
    assert "InvalidTopologyError: " in shown
    assert "short_traces.py" not in shown
    assert "stream_execution_environment.py" not in shown
    assert "ZeroDivisionError" in shown
    assert "<DataStream 'Collection Source'>" in done.stdout


def test_a_program_has_its_own_way_to_show_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "ps1", raising=False)
    before = sys.excepthook
    short_traces.shorten_in_repl()
    assert sys.excepthook is before
