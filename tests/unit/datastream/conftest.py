from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.config import Configuration
from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream.stream_execution_environment import set_default_configuration
from tests.unit.datastream.fakes import FakeJob, RecordingExecutor, make_env


@pytest.fixture(autouse=True)
def _no_configuration_from_outside() -> Iterator[None]:
    set_default_configuration(Configuration())
    yield
    set_default_configuration(None)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[FakeJob]:
    """The jobs that were submitted in the test."""
    submitted: list[FakeJob] = []
    monkeypatch.setattr(RecordingExecutor, "jobs", submitted)
    return submitted


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return make_env()
