"""Jobs that follow the clock are verified, too: it jumps where no records are under way. And nothing passes unseen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.config import Configuration
from headrace.graph.job_graph import JobGraph
from headrace.verify.clocks import FROZEN_MS
from headrace.verify.inputs import read_inputs
from headrace.verify.program import with_job
from headrace.verify.runs import Subject, run_scenario
from headrace.verify.scenario import Event, Interruption, Scenario

PROGRAMS = Path(__file__).parent / "programs"
START = (
    "from headrace.common.time import Time\n"
    "from headrace.datastream import StreamExecutionEnvironment\n"
    "from headrace.datastream.window import TumblingProcessingTimeWindows\n"
    "env = StreamExecutionEnvironment.get_execution_environment()\n"
)


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["verify", *arguments])


def outcomes_of(program: Path, *scenarios: Scenario) -> list[Any]:
    """Run a program's job with the times that the first run finds."""
    found: list[Any] = []

    def check(job: JobGraph, configuration: Configuration) -> None:
        subject = Subject(job, configuration, read_inputs(job, 100), clock_times=None)
        found.append(run_scenario(subject, Scenario()))
        subject = Subject(job, configuration, subject.inputs, clock_times=found[0].clock_times)
        found.extend(run_scenario(subject, each) for each in scenarios)

    with_job(str(program), check)
    return found


def test_a_window_in_processing_time_fires_with_the_same_rows_however_the_job_runs(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        START + "calls = env.from_collection([(f'k{n % 3}', 1) for n in range(30)])\n"
        "windows = calls.key_by(lambda c: c[0]).window(TumblingProcessingTimeWindows.of(Time.seconds(5)))\n"
        "windows.reduce(lambda a, b: (a[0], a[1] + b[1])).print()\n"
        "env.execute()\n",
        encoding="utf-8",
    )
    scenarios = [
        Scenario(max_records=4, parallelism=3),
        Scenario(max_records=5, events=(Event(2, Interruption.DRIVER_LOST, 1),)),
        Scenario(max_records=2, seed=3, fault_rate=0.2),
    ]
    plain, *others = outcomes_of(program, *scenarios)
    (rows,) = plain.rows.values()
    assert sorted(rows.elements()) == [("tuple", (f"k{n}", 5)) for n in range(3) for _ in "ab"]
    assert [(each.error, each.rows) for each in others] == [(None, plain.rows)] * 3


def test_a_timer_fires_at_the_same_time_in_every_run() -> None:
    scenarios = [
        Scenario(max_records=7, parallelism=1),
        Scenario(max_records=3, events=(Event(1, Interruption.SAVEPOINT, 4),)),
    ]
    plain, *others = outcomes_of(PROGRAMS / "reminders.py", *scenarios)
    (rows,) = plain.rows.values()
    counted = Counter((count, timestamp - FROZEN_MS) for _, (_, count, timestamp) in rows.elements())
    assert counted == {(6, 5_000): 5, (6, 10_002): 5}, "a burst, then the clock jumps to its timers; again"
    assert [each.rows for each in others] == [plain.rows] * 2


def test_a_defect_that_only_timers_show_is_found() -> None:
    result = verify("--records", "20", str(PROGRAMS / "reminders.py"), "field")
    assert result.exit_code == 1, result.output
    assert "state outside of" in result.output
    assert "jumped 2 times so that they fired" in result.output


def test_timers_that_keep_setting_timers_end_with_the_run(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        "from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment\n"
        "class Ticks(KeyedProcessFunction):\n"
        "    def process_element(self, value, ctx):\n"
        "        ctx.timer_service().register_processing_time_timer(value)\n"
        "        return ()\n"
        "    def on_timer(self, timestamp, ctx):\n"
        "        ctx.timer_service().register_processing_time_timer(timestamp + 1000)\n"
        "        yield timestamp\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        # One timer is a year away: the clock does not jump there, or the others would fire 30 million times.
        f"times = env.from_collection([{FROZEN_MS} + 1000, {FROZEN_MS} + 365 * 86_400_000])\n"
        "times.key_by(lambda t: t).process(Ticks()).print()\n"
        "env.execute()\n",
        encoding="utf-8",
    )
    [plain] = outcomes_of(program)
    assert plain.error is None
    (rows,) = plain.rows.values()
    assert 7 <= rows.total() < 100


def test_a_job_whose_sinks_get_no_rows_does_not_pass(tmp_path: Path) -> None:
    program, page = tmp_path / "job.py", tmp_path / "report.html"
    program.write_text(
        START + "env.from_collection([1, 2]).filter(lambda n: n > 5).print()\nenv.execute()\n",
        encoding="utf-8",
    )
    result = verify("--runs", "2", "--html", str(page), str(program))
    assert result.exit_code == 1, result.output
    assert "NOTHING WAS COMPARED" in result.output
    assert "no differences" not in result.output
    assert "nothing was compared" in page.read_text(encoding="utf-8")


def test_a_sink_without_rows_is_named_if_others_have_rows(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        START + "numbers = env.from_collection([1, 2])\n"
        "numbers.print()\n"
        "numbers.filter(lambda n: n > 5).print().name('Large')\n"
        "env.execute()\n",
        encoding="utf-8",
    )
    result = verify("--runs", "2", str(program))
    assert result.exit_code == 0, result.output
    assert "note: Sink: Large: no rows were compared" in result.output


def test_a_kept_test_runs_a_program_that_imports_pyflink_with_the_options_of_the_command(
    tmp_path: Path,
) -> None:
    (tmp_path / "beside.py").write_text("DISCOUNT = 2\n", encoding="utf-8")
    program = tmp_path / "job.py"
    program.write_text(
        "import random\n"
        "from beside import DISCOUNT\n"
        "from pyflink.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "assert env.get_parallelism() == 3\n"
        "env.from_collection([1, 2]).map(lambda n: n / DISCOUNT * random.random()).print()\n"
        "env.execute()\n",
        encoding="utf-8",
    )
    options = (
        "-p",
        "3",
        "-D",
        "headrace.epoch.max-bytes=1 mb",
        "-D",
        "spark.hadoop.fs.s3a.secret.key=hush",
        "--pyflink-alias",
    )
    result = verify("--runs", "1", *options, str(program))
    assert result.exit_code == 1, result.output
    kept = result.output.partition("a test to keep:")[2]
    assert "options={'headrace.epoch.max-bytes': '1 mb', 'parallelism.default': '3'}, alias=True" in kept
    names: dict[str, Any] = {}
    exec(compile(kept.strip(), "kept", "exec"), names)
    with pytest.raises(AssertionError, match="not in the plain run"):
        next(value for name, value in names.items() if name.endswith("_seed_0"))()
