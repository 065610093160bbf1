"""`headrace verify` finds ten planted defects, each in its own program, and nothing in the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "verify" / "programs"

#: What is said about each program.
DEFECTS = {
    "random_discount": "a function is not deterministic",
    "office_hours": "a function reads the wall clock",
    "global_counter": "on which subtask gets them",
    "dict_in_field": "state outside of keyed state",
    "first_of_two": "depend on the order of records",
    "shuffled_running_total": "depend on the order of records",
    "appending_sink": "a sink is not idempotent",
    "without_uid": "HR101 stateful operator without uid",
    "forgetful_state": "depend on the order of records",
    "broken_restore": "state cannot be restored",
}
#: Found by the first few seeds.
QUICK = ("random_discount", "office_hours")

#: Examples, and what else the command is told. Updates of a result count by their last row.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "clickstream_sessions": (),
    "collect_results": (),
    "custom_source_sink": (),
    "enrich_join": ("--key", "0", "--only-last"),
    "fraud_rules_broadcast": (),
    "pyflink_unchanged": (),
    "running_totals": (),
    "sensor_alerts": (),
    "state_kinds": (),
    "upgrade_with_savepoint": (),
    "word_count": (),
    "time/early_results": (),
    "time/hourly_tips": (),
    "time/late_data": (),
    "time/order_joins": (),
    "time/overdue_boats": (),
    "time/quiet_day": (),
    "time/session_cache": (),
    "time/session_gaps": (),
}
#: Examples that cannot be verified, and why.
NOT_VERIFIED = {
    "kafka_windows": "needs a broker",
    "partitioners": "its output is the number of the subtask that got a record, which is what verify varies",
}


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["verify", *arguments])


def verify_planted(name: str, directory: Path, *options: str) -> Result:
    program = str(PROGRAMS / f"{name}.py")
    if name != "appending_sink":
        return verify(*options, program)
    written = str(directory / "written.txt")
    return verify(*options, "--output", written, program, written)


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_defect_is_found_and_printed_as_a_test(name: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = verify_planted(name, tmp_path, "--html", str(page), "--records", "6")
    assert result.exit_code == 1, result.output
    assert DEFECTS[name] in result.output
    assert "1 records" in result.output, "shrunk to the one record that it takes"
    assert DEFECTS[name] in page.read_text(encoding="utf-8")
    test = result.output.partition("a test to keep:")[2].strip()
    names: dict[str, object] = {}
    exec(compile(test, "kept", "exec"), names)
    kept = next(value for name, value in names.items() if name.startswith("test_seed_"))
    assert callable(kept)
    with pytest.raises(AssertionError, match="not in the plain run"):
        kept()


def test_a_sound_job_gives_the_same_output_in_every_run() -> None:
    result = verify("--runs", "8", str(ROOT / "examples" / "word_count.py"))
    assert result.exit_code == 0, result.output
    assert "no differences" in result.output


def test_a_job_that_fails_without_faults_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        "from headrace.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1, 0]).map(lambda n: 1 // n).print()\n"
        "env.execute()\n",
        encoding="utf-8",
    )
    result = verify(str(program))
    assert result.exit_code == 1
    assert "the job fails without any fault" in result.output
    assert "ZeroDivisionError" in result.output


def test_records_that_come_twice_are_tried_when_asked_for() -> None:
    result = verify("--duplicates", "--runs", "3", str(PROGRAMS / "distinct_orders.py"))
    assert result.exit_code == 0, result.output
    result = verify("--duplicates", "--runs", "3", "--records", "8", str(ROOT / "examples" / "word_count.py"))
    assert result.exit_code == 1, result.output
    assert "a record that comes twice counts twice" in result.output
    assert "records that come twice" in result.output


@pytest.mark.spark
@pytest.mark.slow(seconds=180)
def test_a_job_with_tables_gives_the_same_rows_however_it_is_cut_stopped_and_rescaled() -> None:
    result = verify("--runs", "6", "--budget", "150", str(PROGRAMS / "tables" / "totals.py"))
    assert result.exit_code == 0, result.output
    assert "it ran on Spark" in result.output
    assert "no differences" in result.output


@pytest.mark.spark
@pytest.mark.slow(seconds=120)
def test_a_function_of_a_table_that_is_not_deterministic_is_found() -> None:
    result = verify("--budget", "20", str(PROGRAMS / "tables" / "random_function.py"))
    assert result.exit_code == 1, result.output
    assert "a function is not deterministic" in result.output


def test_a_table_without_an_end_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        "from headrace.table import EnvironmentSettings, TableEnvironment\n"
        "t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())\n"
        "t_env.execute_sql(\"CREATE TABLE endless (n INT) WITH ('connector' = 'datagen')\")\n"
        "t_env.execute_sql('SELECT * FROM endless').print()\n",
        encoding="utf-8",
    )
    result = verify(str(program))
    assert result.exit_code != 0
    assert "has no end, so there is no output to compare" in result.output


@pytest.mark.slow(seconds=300)
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found_within_the_default_budget(name: str, tmp_path: Path) -> None:
    result = verify_planted(name, tmp_path)
    assert result.exit_code == 1, result.output
    assert DEFECTS[name] in result.output


@pytest.mark.slow(seconds=600)
@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_is_found_in_an_example(name: str) -> None:
    result = verify(*EXAMPLES[name], str(ROOT / "examples" / f"{name}.py"))
    assert result.exit_code == 0, result.output


def test_every_example_is_verified_or_named_with_a_reason() -> None:
    streams = [
        path.relative_to(ROOT / "examples").with_suffix("").as_posix()
        for folder in ("", "time")
        for path in (ROOT / "examples" / folder).glob("*.py")
    ]
    assert sorted(streams) == sorted({*EXAMPLES, *NOT_VERIFIED})
