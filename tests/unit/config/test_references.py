"""Values that stand for what an environment variable or a file holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config import Configuration
from headrace.config.options.rest import TOKEN
from headrace.config.references import escaped, resolve
from headrace.errors import ConfigurationError
from headrace.rest.program_runner import ProgramRunner

SECRET = "a-token-that-nobody-knows"


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{SECRET}\n")
    return path


def load(tmp_path: Path, line: dict[str, object] | None = None, **environ: str) -> Configuration:
    return Configuration.load(command_line=line, environ=environ, working_directory=tmp_path)


def test_a_secret_on_the_command_line_comes_from_a_file_or_a_variable(
    tmp_path: Path, secret_file: Path
) -> None:
    assert load(tmp_path, {TOKEN.key: f"${{file:{secret_file}}}"}).get(TOKEN) == SECRET
    assert load(tmp_path, {TOKEN.key: "${env:MINE}"}, MINE=SECRET).get(TOKEN) == SECRET


def test_a_secret_in_the_file_comes_from_a_file(tmp_path: Path, secret_file: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "headrace.yaml").write_text(
        f"headrace.rest.token: ${{file:{secret_file}}}\nspark.hadoop.fs.s3a.secret.key: ${{env:S3}}\n"
    )
    configuration = load(tmp_path, S3="abc")
    assert configuration.get(TOKEN) == SECRET
    assert configuration.spark_settings() == {"spark.hadoop.fs.s3a.secret.key": "abc"}


def test_a_variable_may_name_a_file(tmp_path: Path, secret_file: Path) -> None:
    assert load(tmp_path, HEADRACE_REST_TOKEN=f"${{file:{secret_file}}}").get(TOKEN) == SECRET


def test_what_a_reference_stands_for_is_not_shown(tmp_path: Path) -> None:
    configuration = load(tmp_path, {"spark.some.setting": "a ${env:MINE}"}, MINE=SECRET)
    assert configuration.spark_settings() == {"spark.some.setting": f"a {SECRET}"}
    assert SECRET not in configuration.explain() + repr(configuration)
    assert "spark.some.setting: a ${env:MINE}" in configuration.explain()


def test_a_missing_variable_or_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"headrace\.rest\.token: the environment variable 'MINE'"):
        load(tmp_path, {TOKEN.key: "${env:MINE}"})
    with pytest.raises(ConfigurationError, match=r"the file '/none' cannot be read: No such file"):
        load(tmp_path, {TOKEN.key: "${file:/none}"})


def test_only_the_end_of_the_last_line_is_left_out_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("first\n second \n")
    assert resolve(f"${{file:{path}}}", "key") == "first\n second "


@pytest.mark.parametrize("text", ["${env:A}", "$${env:A}", "x ${file:/a} $${env:B}", "$5 {env:A}", ""])
def test_text_that_looks_like_a_reference_can_be_written(text: str) -> None:
    assert resolve(escaped(text), "key", {}) == text


def test_configurations_that_are_handed_on_are_not_resolved_again() -> None:
    there = Configuration({"spark.some.setting": "${env:HOME}"})
    here = Configuration.handed_on(there.to_dict(), there.origins())
    assert here.spark_settings() == {"spark.some.setting": "${env:HOME}"}


def test_a_program_of_the_web_page_gets_a_token_as_it_is() -> None:
    runner = ProgramRunner(Configuration({TOKEN.key: "${env:NOT-A-REFERENCE}"}), lambda: "")
    assert runner._environment["HEADRACE_REST_TOKEN"] == "$${env:NOT-A-REFERENCE}"
