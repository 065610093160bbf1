from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from tests.unit.datastream.fakes import FakeJob, RecordingExecutor

#: Adds a job to a program; with `-D execution.target=...` nothing of it runs.
JOB = """
from headrace.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(["to be", "or not"]).flat_map(lambda line: line.split()).name("words").print()
env.execute("word count")
"""

Invoke = Callable[..., Result]


@pytest.fixture(autouse=True)
def _no_configuration_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("HEADRACE_")]:
        monkeypatch.delenv(variable)


@pytest.fixture
def headrace() -> Invoke:
    """Call the command line in this process."""

    def invoke(*arguments: str | Path) -> Result:
        return CliRunner().invoke(cli, [str(each) for each in arguments], prog_name="headrace")

    return invoke


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """Write a program and return its path."""

    def write(text: str, name: str = "job.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[FakeJob]:
    """The jobs that were submitted to the recording executor in the test."""
    submitted: list[FakeJob] = []
    monkeypatch.setattr(RecordingExecutor, "jobs", submitted)
    return submitted
