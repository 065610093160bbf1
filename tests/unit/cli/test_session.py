"""`headrace session`: what Spark is started with before there is a job."""

from __future__ import annotations

from pathlib import Path

import pytest

# Imported while the test has replaced `spark_context`, it would keep the replacement for later tests.
import headrace.spark.executor  # noqa: F401
from headrace.cli.session import serve
from headrace.config import Configuration


def test_a_session_starts_spark_with_threads_for_a_live_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def start(configuration: Configuration, *, least_threads: int = 0) -> None:
        asked.append(least_threads)
        raise KeyboardInterrupt

    monkeypatch.setattr("headrace.spark.session.spark_context", start)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    configuration = Configuration({"headrace.spark.master": "local[3]", "rest.port": "0"})
    serve(configuration, str(tmp_path), has_gateway=False)
    assert asked == [12], "one for each subtask of a job of four levels with the default parallelism"
