from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import JOB
from tests.unit.datastream.fakes import TARGET


def test_info_draws_the_plan(headrace, program):
    result = headrace("info", "-p", "3", program(JOB))

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("job 'word count' (STREAMING), 2 vertices on 2 levels, needs 3 slots")
    assert "words -> Sink: Print to Std. Out   parallelism 3, max 128" in result.stdout


def test_info_gives_the_json_of_the_plan_visualizer(headrace, program):
    result = headrace("info", "-D", "parallelism.default=3", "--json", program(JOB))

    nodes = json.loads(result.stdout)["nodes"]
    assert [node["type"] for node in nodes] == [
        "Source: Collection Source",
        "words",
        "Sink: Print to Std. Out",
    ]
    assert [node["parallelism"] for node in nodes] == [1, 3, 3]


def test_what_the_program_prints_does_not_mix_with_the_plan(headrace, program):
    path = program("import sys\nprint('arguments', sys.argv[1:])\n" + JOB)

    result = headrace("info", "--json", path, "a")

    assert json.loads(result.stdout)
    assert result.stderr == "arguments ['a']\n"


def test_nothing_runs_whatever_the_program_sets_and_catches(headrace, program, jobs):
    text = JOB.replace(
        "env.execute",
        f"env._configuration.set_string('execution.target', {TARGET!r})\ntry:\n  env.execute",
    )
    path = program(text + "except Exception: pass\nprint('went on')\n")

    result = headrace("info", path)

    assert result.exit_code == 0, result.stderr
    assert jobs == []
    assert "went on" not in result.stderr


def test_collecting_shows_the_plan_too(headrace, program):
    path = program(JOB.replace(".print()", ".execute_and_collect('collected')"))

    assert headrace("info", path).stdout.startswith("job 'collected'")


def test_jobs_run_again_after_info(headrace, program, jobs):
    headrace("info", program(JOB))

    result = headrace("run", "-D", f"execution.target={TARGET}", program(JOB))

    assert result.exit_code == 0
    assert len(jobs) == 1


def test_a_program_without_a_job_has_no_plan(headrace, program):
    result = headrace("info", program("print('hello')"))

    assert (result.exit_code, result.stdout) == (2, "")
    assert "ended without calling execute(): there is no job to show" in result.stderr


def test_a_program_that_exits_early_has_no_plan(headrace, program):
    result = headrace("info", program("import sys; sys.exit(3)"))

    assert result.exit_code == 2
    assert "ended with exit code 3 before it called execute()" in result.stderr


def test_errors_of_the_program_are_shown_as_by_run(headrace, program):
    wrong = headrace("info", program(JOB.replace("lambda line: line.split()", "3")))
    failing = headrace("info", program("1 / 0"))

    assert (wrong.exit_code, failing.exit_code) == (2, 1)
    assert "error: flat_map(): expected" in wrong.stderr
    assert "ZeroDivisionError" in failing.stderr
    assert "headrace/cli" not in failing.stderr


def test_info_stands_in_for_pyflink(headrace, program):
    path = program(JOB.replace("from headrace", "from pyflink"))

    assert headrace("info", path).exit_code == 0
    assert headrace("info", "--no-pyflink-alias", path).exit_code == 1


QUERY = """
from headrace.table import EnvironmentSettings, TableEnvironment

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("CREATE TABLE clicks (page STRING) WITH ('connector' = 'datagen')")
t_env.execute_sql("SELECT page, COUNT(*) FROM clicks GROUP BY page").print()
"""


def test_info_draws_the_plan_of_a_query(headrace, program):
    result = headrace("info", "-p", "2", program(QUERY))

    assert result.exit_code == 0, result.stderr
    assert "job 'collect' (STREAMING), 3 vertices on 3 levels" in result.stdout
    assert "[2] GroupAggregate[2]   parallelism 2, max 128" in result.stdout


def test_the_plan_of_a_query_is_not_one_of_the_plan_visualizer(headrace, program):
    result = headrace("info", "--json", program(QUERY))

    assert result.exit_code != 0
    assert "use EXPLAIN JSON_EXECUTION_PLAN" in result.stderr


def test_info_shows_how_memory_is_divided(headrace):
    sizes = ("-D", "taskmanager.memory.process.size=4g", "-D", "taskmanager.numberOfTaskSlots=2")
    result = headrace("info", "--memory", "--master", "yarn", *sizes)
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "heap: spark.executor.memory 1,587 MB" in lines
    assert "spark.executor.memoryOverhead 2,509 MB" in lines
    assert "may allocate 686 MB" in lines
    assert "spark.driver.memory 1g (Spark's default)" in lines


def test_info_refuses_shares_in_which_no_worker_can_start(headrace):
    sizes = ("-D", "taskmanager.memory.process.size=1728m", "-D", "taskmanager.numberOfTaskSlots=4")
    result = headrace("info", "--memory", "--master", "yarn", *sizes)
    assert result.exit_code == 2
    assert "128 MB is not enough for a Python worker" in result.stderr


@pytest.mark.parametrize("process", ["taskmanager", "jobmanager"])
def test_info_names_the_size_that_leaves_nothing(headrace, process):
    result = headrace("info", "--memory", "-D", f"{process}.memory.process.size=200m")
    assert result.exit_code == 2
    assert f"{process}.memory.process.size is 200 MB, which is not enough" in result.stderr
    assert f"raise {process}.memory.process.size" in result.stderr
