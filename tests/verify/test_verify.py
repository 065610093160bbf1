"""`headrace verify` finds ten planted defects, each in its own program, and nothing in the examples."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.config import Configuration
from headrace.graph.job_graph import JobGraph
from headrace.testing.live_faults import LiveFault
from headrace.verify.inputs import read_inputs
from headrace.verify.program import with_job
from headrace.verify.runs import Subject, run_scenario
from headrace.verify.scenario import Event, Interruption, Scenario, draw

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

#: Examples without tables. Some give the command options in a comment.
EXAMPLES = (
    "clickstream_sessions",
    "collect_results",
    "custom_source_sink",
    "enrich_join",
    "fraud_rules_broadcast",
    "pyflink_unchanged",
    "running_totals",
    "sensor_alerts",
    "state_kinds",
    "partitioners",
    "upgrade_with_savepoint",
    "word_count",
    "time/early_results",
    "time/hourly_tips",
    "time/late_data",
    "time/order_joins",
    "time/overdue_boats",
    "time/quiet_day",
    "time/session_cache",
    "time/session_gaps",
    "tuning/expiring_state",
    "tuning/idle_partition",
    "tuning/memory",
    "tuning/parallelism",
    "tuning/skew",
    "tuning/slow_lookups",
    "tuning/slow_parsing",
    "tuning/state_backends",
    "tuning/state_shape",
    "tuning/uneven_files",
)
#: Examples that cannot be verified, and why.
NOT_VERIFIED = {
    "kafka_windows": "needs a broker",
}
#: Examples with tables, which run on Spark.
TABLES = ("sql/sensor_report", "sql/tea_house", "tuning/aggregations", "tuning/lookup_join")


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["verify", *arguments])


def verify_planted(name: str, directory: Path, *options: str) -> Result:
    program = str(PROGRAMS / f"{name}.py")
    if name != "appending_sink":
        return verify(*options, program)
    written = str(directory / "written.txt")
    return verify(*options, "--output", written, program, written)


@contextmanager
def silenced() -> Iterator[None]:
    """Keep what the engine logs about injected failures out of the output."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def kept_test_of(result: Result) -> Callable[[], None]:
    """Return the test that the command has printed."""
    names: dict[str, Any] = {}
    exec(compile(result.output.partition("a test to keep:")[2].strip(), "kept", "exec"), names)
    kept: Callable[[], None] = next(
        value for name, value in names.items() if name.startswith("test_") and "_seed_" in name
    )
    return kept


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_defect_is_found_and_printed_as_a_test(name: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = verify_planted(name, tmp_path, "--html", str(page), "--records", "6")
    assert result.exit_code == 1, result.output
    assert DEFECTS[name] in result.output
    assert ": 1 record\n" in result.output, "shrunk to the one record that it takes"
    assert DEFECTS[name].removeprefix("a ") in page.read_text(encoding="utf-8")
    with pytest.raises(AssertionError, match="not in the plain run"):
        kept_test_of(result)()


#: Live runs in which something fails, and which are stopped and rescaled.
LIVE = (
    Scenario(seed=1, is_live=True, max_records=10, live_faults=(LiveFault(100, "kill"),)),
    Scenario(
        seed=2, is_live=True, max_records=7, parallelism=3, events=(Event(2, Interruption.SAVEPOINT, 4),)
    ),
    Scenario(
        seed=3,
        is_live=True,
        max_records=9,
        live_faults=(LiveFault(60, "cut"), LiveFault(150, "frozen"), LiveFault(300, "kill")),
        events=(Event(1, Interruption.RESCALE, 1), Event(2, Interruption.DRIVER_LOST)),
    ),
)


@pytest.mark.parametrize("name", ["running_totals", "time/late_data"])
def test_live_runs_have_the_same_output_whatever_fails(name: str) -> None:
    def check(job: JobGraph, configuration: Configuration) -> None:
        subject = Subject(job, configuration, read_inputs(job, 100))
        plain = run_scenario(subject, Scenario())
        outcomes = [run_scenario(subject, each) for each in LIVE]
        assert [each.error for each in outcomes] == [None, None, None]
        assert [each.rows for each in outcomes] == [plain.rows] * 3
        assert [each.scenario.live_faults for each in outcomes] == [each.live_faults for each in LIVE]

    with silenced():
        with_job(str(ROOT / "examples" / f"{name}.py"), check)


def test_a_live_run_goes_the_same_way_every_time() -> None:
    def check(job: JobGraph, configuration: Configuration) -> None:
        subject = Subject(job, configuration, read_inputs(job, 40))
        for scenario in LIVE:
            first, again = run_scenario(subject, scenario), run_scenario(subject, scenario)
            assert first.rows == again.rows

    with silenced():
        with_job(str(PROGRAMS / "first_of_two.py"), check)


def test_a_live_run_whose_barriers_take_longer_than_their_interval_comes_to_its_end() -> None:
    faults = (LiveFault(2, "broken channel"), LiveFault(4, "frozen"))
    scenario = Scenario(seed=36, parallelism=4, max_records=25, is_live=True, live_faults=faults)

    def check(job: JobGraph, configuration: Configuration) -> None:
        subject = Subject(job, configuration, read_inputs(job, 200))
        outcome = run_scenario(subject, scenario)
        assert outcome.error is None
        assert outcome.rows == run_scenario(subject, Scenario()).rows

    with silenced():
        with_job(str(ROOT / "examples" / "custom_source_sink.py"), check)


def test_a_subtask_that_freezes_when_a_live_run_ends_is_not_waited_for_in_real_time() -> None:
    faults = tuple(LiveFault(step, kind) for step, kind in ((138, "stall"), (154, "frozen"), (280, "frozen")))
    scenario = Scenario(
        seed=98,
        max_records=1,
        buffer_records=2,
        events=(Event(3, Interruption.DRIVER_LOST),),
        is_live=True,
        live_faults=faults,
    )

    def check(job: JobGraph, configuration: Configuration) -> None:
        subject = Subject(job, configuration, read_inputs(job, 200))
        assert run_scenario(subject, scenario).error is None

    with silenced():
        with_job(str(ROOT / "examples" / "pyflink_unchanged.py"), check, alias=True)


def test_a_job_that_does_not_end_is_reported_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.verify.runs._MOST_S", 3.0)
    program = tmp_path / "job.py"
    program.write_text(
        "import threading, time\n"
        "from headrace.datastream import StreamExecutionEnvironment\n"
        "STARTED = time.time()\n"
        "def wait(value):\n"
        "    if time.time() > STARTED + 3_600:\n"
        "        threading.Event().wait(6)\n"
        "    return value\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).map(wait).print()\n"
        "env.execute()\n",
        encoding="utf-8",
    )
    result = verify("--seed", "2", "--runs", "1", str(program))
    assert result.exit_code == 1, result.output
    assert "found: the job does not end" in result.output
    assert "the run failed: the run does not end: it read no records for 3 s" in result.output


def test_one_of_the_first_seeds_is_live_and_one_of_them_has_faults() -> None:
    drawn = [
        draw(seed, 100, can_rescale=True, can_reorder=True, can_be_live=True, can_repeat=False)
        for seed in range(70)
    ]
    live = [each for each in drawn if each.is_live]
    assert live[:2] == drawn[9:11]
    assert not live[0].has_failures
    assert live[1].live_faults
    assert len(live) > 12
    assert not any(each.faults or each.fault_rate for each in live), "those are of tasks of epochs"


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
    assert "a duplicate record is counted twice" in result.output
    assert "some records arrive twice" in result.output


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
    if "a test to keep" in result.output:
        with pytest.raises(AssertionError, match=r"not in the plain run|the run failed"):
            kept_test_of(result)()


@pytest.mark.slow(seconds=600)
@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_is_found_in_an_example(name: str) -> None:
    result = verify(str(ROOT / "examples" / f"{name}.py"))
    assert result.exit_code == 0, result.output


@pytest.mark.spark
@pytest.mark.slow(seconds=180)
@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_found_in_an_example_with_tables(name: str) -> None:
    result = verify("--budget", "90", "--master", "local[2]", str(ROOT / "examples" / f"{name}.py"))
    assert result.exit_code == 0, result.output


def test_every_example_is_verified_or_named_with_a_reason() -> None:
    streams = [
        path.relative_to(ROOT / "examples").with_suffix("").as_posix()
        for folder in ("", "sql", "time", "tuning")
        for path in (ROOT / "examples" / folder).glob("*.py")
    ]
    assert sorted(streams) == sorted({*EXAMPLES, *TABLES, *NOT_VERIFIED})
