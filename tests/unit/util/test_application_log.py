from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from headrace.config import Configuration
from headrace.util import application_log as module
from headrace.util.application_log import ApplicationLog, BoundedFile, DriverLogging, application_log


@pytest.fixture(autouse=True)
def _no_log_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_current", None)


def test_a_full_log_file_is_rotated_and_the_one_before_is_kept(tmp_path: Path) -> None:
    file = BoundedFile(tmp_path / "log", max_bytes=10)
    for line in ("1 one\n", "2\n", "3 three\n", "4 four\n"):
        file.write(line)
    file.close()
    assert (tmp_path / "log").read_text() == "4 four\n"
    assert (tmp_path / "log.1").read_text() == "3 three\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]


def test_a_process_has_one_directory(tmp_path: Path) -> None:
    configuration = Configuration({"env.log.dir": str(tmp_path)})
    log = application_log(configuration)
    assert log is application_log(configuration)
    assert log.directory.parent == tmp_path
    assert log.directory.name.endswith(f"-{os.getpid()}")


def test_logs_of_processes_that_ended_long_ago_are_deleted(tmp_path: Path) -> None:
    # No process has such a number.
    old = [tmp_path / f"2026010{day}-000000-{2**30}" for day in range(1, 6)]
    others = [tmp_path / f"20250101-000000-{os.getpid()}", tmp_path / "what else is there"]
    for folder in (*old, *others):
        folder.mkdir()
    log = application_log(Configuration({"env.log.dir": str(tmp_path), "env.log.max": "3"}))
    assert sorted(tmp_path.iterdir()) == sorted([*others, *old[3:], log.directory])


def test_a_directory_that_cannot_be_written_is_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    log = application_log(Configuration({"env.log.dir": str(tmp_path / "file")}))
    try:
        assert log.directory.is_dir()
        assert str(log.directory) in caplog.text
    finally:
        log.directory.rmdir()


def test_only_files_of_the_directory_are_read(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "secret").write_text("secret")
    log = ApplicationLog(tmp_path / "logs")
    log.path("headrace.log").write_text("hello\n")
    assert log.read("headrace.log") == b"hello\n"
    assert [log.read(name) for name in ("../secret", "secret", str(tmp_path / "secret"), "")] == [None] * 4


def test_what_headrace_logs_is_in_the_file_and_where_the_program_wants_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("headrace.runtime")
    logging_to_file = DriverLogging(ApplicationLog(tmp_path))
    logging_to_file.start()
    try:
        logger.info("not for the terminal")
        logger.warning("for both")
    finally:
        logging_to_file.stop()
    logger.warning("for the terminal")
    lines = (tmp_path / "headrace.log").read_text().splitlines()
    assert [line.rpartition(" - ")[2] for line in lines] == ["not for the terminal", "for both"]
    assert caplog.messages == ["for both", "for the terminal"]


def test_a_program_that_logs_its_own_messages_does_not_get_those_of_headrace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("headrace.runtime")
    logging_to_file = DriverLogging(ApplicationLog(tmp_path))
    caplog.set_level(logging.INFO)
    logging_to_file.start()
    try:
        logger.info("switched to RUNNING")
        logging.getLogger("program").info("its own")
    finally:
        logging_to_file.stop()
    assert caplog.messages == ["its own"]


def test_a_program_that_asks_for_the_messages_of_headrace_gets_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="headrace"):
        caplog.set_level(logging.INFO)
        logging_to_file = DriverLogging(ApplicationLog(tmp_path))
        logging_to_file.start()
        try:
            logging.getLogger("headrace.runtime").info("switched to RUNNING")
        finally:
            logging_to_file.stop()
    assert caplog.messages == ["switched to RUNNING"]
