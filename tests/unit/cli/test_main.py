from __future__ import annotations

import json
import subprocess
import sys

import pytest

import headrace as package
from headrace.cli import version
from headrace.errors import InvariantViolation, JobExecutionError, TypeInferenceError, UnsupportedFeatureError


def test_the_help_names_the_commands_and_the_exit_codes(headrace):
    result = headrace("--help")

    assert result.exit_code == 0
    for word in ("run", "info", "config", "version", "Exit codes:", "130"):
        assert word in result.stdout


def test_an_unknown_command_is_wrong_usage(headrace):
    result = headrace("rum")

    assert result.exit_code == 2
    assert result.stderr == (
        "error: no such command 'rum'. Did you mean 'run'?\nhint: 'headrace --help' shows what there is\n"
    )


def test_the_command_line_comes_up_without_spark_and_the_api():
    heavy = "pyspark", "headrace.datastream", "headrace.graph", "yaml", "rich"
    script = f"import sys, headrace.cli.main; print([name for name in {heavy!r} if name in sys.modules])"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "[]"


def test_versions_are_there_for_machines(headrace, monkeypatch):
    monkeypatch.setattr(version, "java_version", lambda: "17.0.1")
    shown = json.loads(headrace("version", "--json").stdout)
    assert (shown["headrace"], shown["java"]) == (package.__version__, "17.0.1")


@pytest.mark.parametrize("way", ["version", "--version"])
def test_version_names_headrace_and_what_it_runs_on(headrace, monkeypatch, way):
    monkeypatch.setattr(version, "java_version", lambda: "17.0.1")

    result = headrace(way)

    assert result.exit_code == 0
    shown = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert list(shown) == ["headrace", "python", "pyspark", "java"]
    assert shown["headrace"] == package.__version__
    assert shown["java"] == "17.0.1"


def test_a_missing_java_is_said_in_words(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)

    assert version.java_version().startswith("not found: set JAVA_HOME")


def test_a_java_home_without_java_is_said_in_words(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert version.java_version().startswith("not usable: ")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TypeInferenceError("which type?"), 2),
        (UnsupportedFeatureError.not_yet("CEP"), 2),
        (JobExecutionError("no space left"), 1),
        (InvariantViolation("finished twice"), 1),
    ],
)
def test_an_error_of_ours_is_a_message_and_an_exit_code(headrace, monkeypatch, error, code):
    def fail() -> str:
        raise error

    monkeypatch.setattr(version, "java_version", fail)

    result = headrace("version")

    assert result.exit_code == code
    assert result.stderr == f"error: {error}\n"


def test_wrong_options_of_a_command_are_shown_as_other_errors_are(headrace):
    result = headrace("run", "--paralelism", "2", "job.py")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: no such option '--paralelism'. Did you mean '--parallelism'?\n"
        "hint: 'headrace run --help' shows what there is\n"
    )
    assert headrace("rescale").stderr.startswith(
        "error: missing argument 'JOB'\nhint: 'headrace rescale --help'"
    )
