"""Where the class of live stages is kept, and where it logs to."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pyspark
import pytest

from headrace.spark import pipelined_exchange
from headrace.util.host_directories import DirectoryVerdict, find_directories


@pytest.fixture
def cache_directory() -> Iterator[Path]:
    pipelined_exchange._directory_of_this_process.cache_clear()
    yield pipelined_exchange._cache_directory()
    pipelined_exchange._directory_of_this_process.cache_clear()


@pytest.fixture
def without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pipelined_exchange, "cache_home", lambda: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_without_a_home_it_is_in_one_directory_that_is_swept_when_this_process_is_gone(
    without_a_home: None, cache_directory: Path, tmp_path: Path
) -> None:
    assert pipelined_exchange._cache_directory() == cache_directory
    (found,) = find_directories([str(tmp_path)])
    assert (found.path, found.verdict) == (str(cache_directory), DirectoryVerdict.IN_USE)
    assert found.owner is not None
    assert found.owner.holds_lease


def test_what_live_stages_log_when_others_have_failed_is_in_the_file_only() -> None:
    files = resources.files("headrace.spark")
    package = re.search(r"^package ([\w.]+);", files.joinpath("LiveStage.java").read_text(), re.MULTILINE)
    assert package is not None
    lines = files.joinpath("log4j2.properties").read_text().splitlines()
    name = next(line for line in lines if line.endswith(f".name = {package[1]}")).removesuffix(
        f".name = {package[1]}"
    )
    assert {f"{name}.additivity = false", f"{name}.appenderRef.file.ref = file"} <= set(lines)


#: Logs an exception that gets a cause while it is written.
_CHANGING = """
public class Changing {
  static class Failure extends RuntimeException {
    int left;
    Failure(int left) { this.left = left; }
    public Throwable getCause() { return left-- > 0 ? null : new RuntimeException("late"); }
  }
  public static void main(String[] arguments) {
    var log = org.slf4j.LoggerFactory.getLogger("org.apache.spark.util.ErrorNotifier");
    for (int left = 0; left < 30; left++) log.error("failed", new Failure(left));
    log.error("the end");
  }
}
"""


@pytest.mark.skipif(shutil.which("javac") is None, reason="Java has no compiler here")
def test_an_exception_that_changes_while_it_is_logged_shows_nothing_on_the_terminal(tmp_path: Path) -> None:
    program = tmp_path / "Changing.java"
    program.write_text(_CHANGING)
    log = tmp_path / "spark.log"
    with resources.as_file(resources.files("headrace.spark").joinpath("log4j2.properties")) as settings:
        options = {
            "headrace.log.file": log,
            "headrace.log.size": 1 << 20,
            "log4j2.configurationFile": settings,
        }
        ended = subprocess.run(
            [
                *("java", "-cp", str(Path(pyspark.__file__).parent / "jars" / "*")),
                *(f"-D{key}={value}" for key, value in options.items()),
                str(program),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    assert (ended.stdout, ended.stderr) == ("", "")
    assert log.read_text().endswith("ErrorNotifier - the end\n")
