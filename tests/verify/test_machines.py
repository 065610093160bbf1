"""`headrace verify` finds what depends on the process and the machine, and what functions write by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli

PROGRAMS = Path(__file__).parent / "programs"
#: The seeds that try another process and another time zone, and no others.
SEEDS = ("--seed", "11", "--runs", "2")
#: The first seeds, with as much time for shrinking as that takes on a busy machine.
UNHURRIED = ("--runs", "2", "--budget", "600")
COUNTER = """
{comment}
from headrace.datastream import StreamExecutionEnvironment

seen = []

def number(value):
    seen.append(value)
    return len(seen), value

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(list(range(20))).map(number).print()
env.execute("numbered")
"""


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["verify", *arguments])


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("set_order", "a function is not the same in every process"),
        ("local_hour", "a function uses the time zone of the machine"),
    ],
)
def test_what_depends_on_the_process_or_the_machine_is_found(name: str, title: str) -> None:
    result = verify(*SEEDS, str(PROGRAMS / f"{name}.py"))
    assert result.exit_code == 1, result.output
    assert f"found: {title}" in result.output
    assert "Source: Collection Source: 1 record\n" in result.output

    names: dict[str, object] = {}
    exec(compile(result.output.partition("a test to keep:")[2].strip(), "kept", "exec"), names)
    (kept,) = (value for key, value in names.items() if key.startswith("test_") and "_seed_" in key)
    assert callable(kept)
    with pytest.raises(AssertionError, match="not in the plain run"):
        kept()


def test_a_global_variable_that_a_method_changes_is_found_with_the_records_that_it_takes() -> None:
    result = verify(*UNHURRIED, "--records", "24", str(PROGRAMS / "stamp_card.py"))
    assert result.exit_code == 1, result.output
    assert "on which subtask gets them" in result.output
    assert "Source: Collection Source: 4 records\n" in result.output, (
        "each run begins with the same variables"
    )
    assert "StampCard.process_element() changes the global variable STAMPS" in result.output


def test_a_run_begins_with_the_variables_of_the_program_also_for_methods_of_helpers() -> None:
    result = verify(*UNHURRIED, "--records", "12", str(PROGRAMS / "helper_with_global.py"))
    assert "on which subtask gets them" in result.output
    assert "Source: Collection Source: 2 records\n" in result.output
    assert "not in the plain run: (11, 2)" in result.output


def test_what_only_a_late_rate_brings_about_is_found_though_the_plain_run_has_no_rows() -> None:
    result = verify(*UNHURRIED, str(PROGRAMS / "rates.py"))
    assert result.exit_code == 1, result.output
    assert "found: results depend on the order of records of different inputs" in result.output
    assert "Source: Collection Source #3: 0 records\n" in result.output, (
        "one that does not matter is left out"
    )
    assert "not in the plain run: ('EUR', 10)" in result.output
    assert "NOTHING WAS COMPARED" not in result.output


def test_a_file_that_a_function_writes_twice_is_found_with_the_first_faults(tmp_path: Path) -> None:
    written = str(tmp_path / "alerts.txt")
    result = verify("--output", written, str(PROGRAMS / "alerts.py"), written)
    assert result.exit_code == 1, result.output
    assert "or a function writes by itself" in result.output
    assert "Source: Collection Source: 1 record\n" in result.output, "the fault comes in the first epoch"


def test_a_sink_that_overwrites_what_an_earlier_epoch_wrote_is_named(tmp_path: Path) -> None:
    written = str(tmp_path / "written")
    result = verify("--runs", "3", "--output", written, str(PROGRAMS / "overwriting_sink.py"), written)
    assert result.exit_code == 1, result.output
    assert "found: what a sink writes depends on epochs and subtasks" in result.output


def test_caches_of_pure_functions_and_rows_with_sets_are_not_reported() -> None:
    result = verify("--runs", "13", str(PROGRAMS / "sound.py"))
    assert "no differences: the output was the same in every run" in result.output
    assert result.exit_code == 0, result.output


def test_a_program_says_in_a_comment_which_rows_have_to_be_the_same(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(COUNTER.format(comment=""), encoding="utf-8")
    assert verify("--runs", "4", str(program)).exit_code == 1

    program.write_text(COUNTER.format(comment="# headrace: verify --ignore 0"), encoding="utf-8")
    result = verify("--runs", "4", str(program))
    assert result.exit_code == 0, result.output

    assert verify("--runs", "4", "--ignore", "1", str(program)).exit_code == 1, "the command line wins"


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# headrace: verify --output /", "--output cannot be given in the comment '# headrace: verify'"),
        ("# headrace: verify --kex 1", "in the comment '# headrace: verify': No such option"),
        ("# headrace: verify --only-last", "--only-last needs --key"),
    ],
)
def test_a_comment_that_cannot_be_followed_is_refused(comment: str, message: str, tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(COUNTER.format(comment=comment), encoding="utf-8")
    result = verify(str(program))
    assert result.exit_code == 2
    assert message in result.output
