from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.cli.detached import without_secrets
from tests.unit.cli.conftest import Invoke


def write_file(folder: Path, text: str) -> Path:
    (folder / "conf").mkdir()
    file = folder / "conf" / "headrace.yaml"
    file.write_text(text)
    return file


def test_config_says_where_values_come_from(headrace, tmp_path, monkeypatch):
    file = write_file(tmp_path, "parallelism.default: 4\npipeline.name: nightly\n")
    monkeypatch.setenv("HEADRACE_PIPELINE_NAME", "mine")

    result = headrace("config", "-D", "parallelism.default=8")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"parallelism.default: 8  (the command line; over {file})",
        f"pipeline.name: mine  ($HEADRACE_PIPELINE_NAME; over {file})",
    ]


def test_config_lists_the_defaults_when_asked(headrace):
    result = headrace("config", "--defaults")

    assert "headrace.pyflink-alias.enabled: true  (the default)" in result.stdout.splitlines()


def test_config_without_anything_set_says_so(headrace):
    result = headrace("config")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "no option is set" in result.stderr


@pytest.mark.parametrize("given", [["-D", "paralelism.default=2"], ["-Dparalelism.default=2"]])
def test_an_unknown_key_is_refused_with_the_nearest_one(headrace, given):
    result = headrace("config", *given)

    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: unknown configuration key 'paralelism.default'",
        "hint: did you mean 'parallelism.default'?",
    ]


def test_a_wrong_value_is_refused_with_what_was_expected(headrace):
    result = headrace("config", "-D", "headrace.epoch.target-duration=soon")

    assert result.exit_code == 2
    assert "headrace.epoch.target-duration: expected" in result.stderr
    assert "'soon' (set in the command line)" in result.stderr


@pytest.mark.parametrize("given", ["parallelism.default", "=2", " =2"])
def test_a_property_needs_a_key_and_a_value(headrace, given):
    result = headrace("config", "-D", given)

    assert result.exit_code == 2
    assert f"expected key=value; got {given!r}" in result.stderr


def test_a_value_may_hold_equals_signs_and_be_empty(headrace):
    result = headrace("config", "-D", "spark.driver.extraJavaOptions=-Da=b", "-D", "pipeline.name=")

    assert "spark.driver.extraJavaOptions: -Da=b  (the command line)" in result.stdout
    assert "pipeline.name:" in result.stdout


def test_a_former_key_works_with_a_word_about_its_successor(headrace):
    result = headrace("config", "-D", "state.backend=hashmap")

    assert result.exit_code == 0
    assert result.stderr.startswith("warning: 'state.backend' (set in the command line) is deprecated; use")


def test_a_key_without_effect_is_pointed_out_when_it_was_just_typed(headrace, tmp_path):
    write_file(tmp_path, "taskmanager.registration.timeout: 4 s\n")

    result = headrace("config", "-D", "pekko.throughput=20")

    assert "warning: pekko.throughput has no effect: headrace has no actor system" in result.stderr
    assert "headrace.yaml: taskmanager.registration.timeout (`headrace config` says why)" in result.stderr


def test_config_as_json_masks_secrets_too(headrace):
    result = headrace(
        "config", "--json", "-D", "parallelism.default=8", "-D", "headrace.rest.token=" + "x" * 16
    )

    found = {each["key"]: each for each in json.loads(result.stdout)}
    assert found["parallelism.default"] == {
        "key": "parallelism.default",
        "value": "8",
        "from": "the command line",
        "note": "",
    }
    assert found["headrace.rest.token"]["value"] == "***"


def test_a_secret_in_the_list_of_processes_is_warned_of(headrace: Invoke, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-that-nobody-knows")
    plain = headrace(
        "config", "-D", "headrace.rest.token=a-token-that-nobody-knows", "-D", "spark.a.password=b"
    )
    assert "can see headrace.rest.token in the list of processes" in plain.stderr
    assert "can see spark.a.password in the list" in plain.stderr
    assert "nobody-knows" not in plain.output
    reference = f"headrace.rest.token=${{file:{tmp_path / 'token'}}}"
    assert "processes" not in headrace("config", "-D", reference, "-D", "headrace.rest.token-file=a").stderr


def test_a_process_in_the_background_has_no_secret_on_its_command_line() -> None:
    line = [
        "run",
        "-Dx.token=abc",
        "-D",
        "y.token = d e ",
        "-D",
        "port=1",
        "-D",
        "z.token=${env:Z}",
        "job.py",
    ]
    given = {"x.token": "abc", "y.token": "d e", "port": "1", "z.token": "${env:Z}"}
    words, variables = without_secrets(line, given, lambda key: "token" in key)
    assert words == [
        *("run", "-Dx.token=${env:_HEADRACE_SECRET_0}", "-D", "y.token=${env:_HEADRACE_SECRET_1}"),
        *("-D", "port=1", "-D", "z.token=${env:Z}", "job.py"),
    ]
    assert variables == {"_HEADRACE_SECRET_0": "abc", "_HEADRACE_SECRET_1": "d e"}
