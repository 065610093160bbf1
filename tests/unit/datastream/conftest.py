from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.config import Configuration
from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from tests.unit.datastream.fakes import FakeJob, RecordingExecutor, make_env


@pytest.fixture(autouse=True)
def _no_configuration_from_outside() -> Iterator[None]:
    with ExecutionContext(Configuration()).entered():
        yield


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[FakeJob]:
    """The jobs that were submitted in the test."""
    submitted: list[FakeJob] = []
    monkeypatch.setattr(RecordingExecutor, "jobs", submitted)
    return submitted


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return make_env()
