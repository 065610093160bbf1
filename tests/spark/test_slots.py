"""Slots on real executor processes: jobs wait while they register, are refused in numbers, and follow them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from headrace.common import Configuration
from headrace.datastream import StreamExecutionEnvironment
from headrace.errors import NoResourceAvailableError
from tests.spark.support import run_and_collect

pytestmark = pytest.mark.spark

_PROGRAM = Path(__file__).with_name("slots_program.py")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run the program, with a home of Spark that executors may leave their directories in."""
    directory = tmp_path_factory.mktemp("slots")
    home = directory / "spark-home"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    ended = subprocess.run(
        [sys.executable, str(_PROGRAM)],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "SPARK_HOME": str(home), "PYTHONWARNINGS": "ignore"},
        cwd=directory,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_job_waits_while_executors_register(outcomes: Any) -> None:
    assert outcomes["waited"] == 500


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_job_that_needs_more_slots_than_there_are_is_refused_in_numbers(outcomes: Any) -> None:
    assert outcomes["refused"].startswith(
        "job 'slots' needs 8 slots, but has 2: 2 executors with 2 slots, 0 of them taken by other jobs; waited for 2"
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_declared_slots_are_taken_in_turns(outcomes: Any) -> None:
    assert outcomes["declared"] == 500


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_adaptive_job_follows_executors_that_go_and_come_back_and_counts_every_record_once(
    outcomes: Any,
) -> None:
    adaptive = outcomes["adaptive"]
    assert adaptive["widths"] == [2, 1, 2]
    assert (adaptive["rescales"], adaptive["restarts"], adaptive["held"]) == (2, 0, 0)
    assert adaptive["seen"] == adaptive["records"] > 0


def environment(**options: str) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))


def test_on_a_local_spark_any_parallelism_runs() -> None:
    env = environment().set_parallelism(9)
    assert sorted(run_and_collect(env.from_collection(list(range(20))).rebalance().map(lambda n: n))) == list(
        range(20)
    )


def test_declared_slots_are_a_limit_on_a_local_spark_too() -> None:
    env = environment(**{"taskmanager.numberOfTaskSlots": "3", "slot.request.timeout": "0 ms"})
    env.set_parallelism(4)
    with pytest.raises(
        NoResourceAvailableError,
        match="needs 4 slots, but has 3: 1 executor with 3 slots, 0 of them",
    ):
        run_and_collect(env.from_collection([1]).rebalance().map(lambda n: n))
