from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import JOB
from tests.unit.datastream.fakes import TARGET

BROKEN = """
from headrace.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(["a"]).key_by(lambda word: hash(word)).reduce(max).name("largest").print()
env.execute("words")
"""
EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_job_without_findings_passes(headrace, program):
    result = headrace("check", program(JOB))

    assert (result.exit_code, result.stdout) == (0, "no findings in job 'word count'\n"), result.stderr


def test_findings_are_printed_with_their_place_and_fail_the_command(headrace, program):
    path = program(BROKEN)

    result = headrace("check", path)

    assert result.exit_code == 1
    first, message, fix, count = result.stdout.splitlines()
    assert first == f"{path}:4: HR201 key made of hash() or id() [largest]"
    assert message == "    the key selector calls hash()"
    assert fix.startswith("    fix: return the value itself")
    assert count == "1 finding in job 'words'"


def test_findings_are_printed_as_json(headrace, program):
    (finding,) = json.loads(headrace("check", "--json", program(BROKEN)).stdout)

    assert (finding["code"], finding["operator"], finding["line"]) == ("HR201", "largest", 4)


def test_a_rule_is_left_out_on_request(headrace, program):
    assert headrace("check", "--ignore", "HR201", program(BROKEN)).exit_code == 0
    assert headrace("check", "-D", "headrace.check.ignore=HR201", program(BROKEN)).exit_code == 0
    assert "unknown code 'HR999'" in headrace("check", "--ignore", "HR999", program(BROKEN)).stderr


def test_findings_are_warnings_of_a_run_unless_they_are_switched_off(headrace, program):
    path = program(BROKEN)
    run = ("run", "-D", f"execution.target={TARGET}")
    warned = headrace(*run, path)
    assert warned.exit_code == 0, warned.stderr
    assert (
        f"warning: {path}:4: HR201 key made of hash() or id() [largest]: the key selector calls hash()"
        in warned.stderr
    )
    for silent in ("headrace.check.on-run=false", "headrace.check.ignore=HR201"):
        assert "HR201" not in headrace(*run, "-D", silent, path).stderr


@pytest.mark.parametrize(
    "path",
    sorted(path for folder in ("", "sql", "time", "tuning") for path in (EXAMPLES / folder).glob("*.py")),
    ids=lambda path: path.stem,
)
def test_the_examples_have_no_findings(headrace, path):
    result = headrace("check", str(path))

    assert result.exit_code == 0, result.stdout + result.stderr
