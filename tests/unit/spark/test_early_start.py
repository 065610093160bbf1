"""Spark that starts before a program asks for it."""

from __future__ import annotations

import logging
import os
import signal
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.config import Configuration
from headrace.spark import early_start
from headrace.spark.early_start import EarlySpark
from headrace.spark.settings import launch_variables
from headrace.util.application_log import ApplicationLog
from headrace.util.host_directories import DirectoryVerdict, find_directories, sweep

#: Says where it listens, as Spark's Java process does, and ends at the end of its input.
_SUBMIT = f"""#!{sys.executable}
import os, struct, sys
path = os.environ["_PYSPARK_DRIVER_CONN_INFO_PATH"]
with open(path + ".partial", "wb") as file:
    file.write({struct.pack(">ii", 4711, 6)!r} + b"secret")
os.replace(path + ".partial", path)
sys.stdin.read()
"""

_PHASE = "PYTEST_CURRENT_TEST"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "spark" / "bin" / "spark-submit"
    script.parent.mkdir(parents=True)
    script.write_text(_SUBMIT)
    script.chmod(0o755)
    monkeypatch.setattr(early_start, "spark_home", lambda: tmp_path / "spark")
    return tmp_path / "spark"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Collects where a context was asked for."""
    found: list[tuple[int, str]] = []

    def ask(early: EarlySpark, port: int, secret: str) -> None:
        found.append((port, secret))
        early._address = port, secret

    monkeypatch.setattr(EarlySpark, "_ask_for_context", ask)
    return found


@pytest.fixture
def spark(home: Path, asked: list[Any], tmp_path: Path) -> Iterator[EarlySpark]:
    early = EarlySpark(Configuration(), ApplicationLog(tmp_path), "streams")
    early._thread.join(10)
    yield early
    early.abandon()
    early.process.wait(10)


def _fits(early: EarlySpark, tmp_path: Path, *, directory: str | None = None, **changed: str) -> bool:
    configuration = Configuration({key.replace("_", "."): value for key, value in changed.items()})
    settings = early_start.spark_settings(configuration, ApplicationLog(tmp_path))
    # pytest says there which phase of the test it is in.
    variables = launch_variables(configuration, os.environ) | {_PHASE: early._expected[_PHASE]}
    return early.fits(settings, variables, directory or os.getcwd())


@pytest.fixture
def gateway_log() -> Iterator[logging.Logger]:
    log = logging.getLogger("py4j")
    before = log.level
    log.setLevel(logging.NOTSET)
    yield log
    log.setLevel(before)


def test_connections_to_java_are_not_in_the_log_of_a_program_that_logs_everything(
    gateway_log: logging.Logger,
    home: Path,
    asked: list[Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)  # of the root, as basicConfig() does
    early = EarlySpark(Configuration(), ApplicationLog(tmp_path), "streams")
    gateway_log.getChild("clientserver").info("Closing down clientserver connection")
    early.abandon()
    early.process.wait(10)
    assert caplog.messages == []


def test_a_context_is_made_as_soon_as_java_listens(spark: EarlySpark, asked: list[tuple[int, str]]) -> None:
    assert asked == [(4711, "secret")]
    assert not Path(spark._contact.path).exists()


def test_it_is_used_where_spark_would_be_started_the_same_way(spark: EarlySpark, tmp_path: Path) -> None:
    assert _fits(spark, tmp_path)
    assert not _fits(spark, tmp_path, headrace_spark_master="local[7]")  # a live job needs more threads


def test_the_context_has_all_that_pyspark_would_set(spark: EarlySpark) -> None:
    from pyspark.core.context import DEFAULT_CONFIGS

    missing = {key: str(value) for key, value in DEFAULT_CONFIGS.items()}.items() - spark._settings.items()
    assert dict(missing) == {}, "Spark is started a second time where the first start lacks one of them"


def test_a_spark_with_threads_for_live_jobs_is_used_by_those_that_need_no_more(
    home: Path, asked: list[Any], tmp_path: Path
) -> None:
    early = EarlySpark(Configuration(), ApplicationLog(tmp_path), "streams", 32)
    try:
        variables = dict(early._expected)

        def fits(needed: int) -> bool:
            threads = early.threads_for(needed)
            settings = early_start.spark_settings(Configuration(), ApplicationLog(tmp_path), threads)
            return early.fits(settings, variables, os.getcwd())

        assert [fits(needed) for needed in (1, 6, 32)] == [True, True, True]
        assert not fits(33), "it has too few threads"
        assert not fits(0), "a job in epochs would run more tasks at once than there are cores"
    finally:
        early.abandon()
        early.process.wait(10)


def test_settings_of_the_program_start_another(spark: EarlySpark, tmp_path: Path) -> None:
    assert not _fits(spark, tmp_path, spark_driver_memory="3g")


def test_workers_must_see_the_variables_and_the_directory_of_the_program(
    spark: EarlySpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not _fits(spark, tmp_path, directory="/elsewhere")
    monkeypatch.setenv("TOKEN_OF_THE_PROGRAM", "1")
    assert not _fits(spark, tmp_path)


def test_what_a_killed_process_leaves_is_swept(home: Path, tmp_path: Path) -> None:
    (home / "bin" / "spark-submit").write_text(f"#!{sys.executable}\nimport sys; sys.stdin.read()\n")
    killed = textwrap.dedent(f"""
        import os, signal, sys
        from pathlib import Path
        from headrace.config import Configuration
        from headrace.spark import early_start
        from headrace.util.application_log import ApplicationLog
        early_start.spark_home = lambda: Path({str(home)!r})
        early_start.EarlySpark(Configuration(), ApplicationLog(Path({str(tmp_path)!r})), "streams")
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    places = tmp_path / "places"
    places.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", killed], check=False, env=os.environ | {"TMPDIR": str(places)}
    )
    assert ended.returncode == -signal.SIGKILL
    (found,) = find_directories([str(places)])
    assert (found.verdict, str(found.owner).partition(",")[0]) == (DirectoryVerdict.LEFTOVER, "early start")
    assert sweep([str(places)]) == [found.path]


def test_results_that_are_not_fetched_are_discarded(spark: EarlySpark) -> None:
    spark.abandon()
    assert spark.process.wait(10) is not None


def test_a_java_that_does_not_start_is_left_to_the_next_start(
    home: Path, asked: list[Any], tmp_path: Path
) -> None:
    (home / "bin" / "spark-submit").write_text("#!/bin/sh\nexit 3\n")
    early = EarlySpark(Configuration(), ApplicationLog(tmp_path), "streams")
    assert early.take() is None
    assert asked == []


@pytest.mark.parametrize("variable", ["PYSPARK_GATEWAY_PORT", "SPARK_HOME"])
def test_other_ways_to_start_spark_are_left_alone(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("started"))
    early_start.begin(Configuration(), "streams")
    assert early_start._begun == []


def test_spark_of_a_cluster_is_not_started_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("started"))
    early_start.begin(Configuration({"headrace.spark.master": "spark://host:7077"}), "streams")
    assert early_start._begun == []


def test_secrets_are_not_in_the_command_line(
    home: Path, asked: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = Configuration({"spark.hadoop.fs.s3a.secret.key": "abc"})
    early = EarlySpark(configuration, ApplicationLog(tmp_path), "streams")
    try:
        assert "abc" not in Path(f"/proc/{early.process.pid}/cmdline").read_text()
        assert early._settings["spark.hadoop.fs.s3a.secret.key"] == "abc"
    finally:
        early.abandon()
        early.process.wait(10)
