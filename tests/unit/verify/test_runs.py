"""How long a run may take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.config import Configuration
from headrace.graph.job_graph import build_job_graph
from headrace.verify.inputs import read_inputs
from headrace.verify.runs import RunTimeoutError, Subject, _Run
from headrace.verify.scenario import Scenario
from tests.unit.runtime.jobs import make_env


class SlowJob:
    """Is not over when the time is, so many times; each time it has read some more records, or none."""

    def __init__(self, run: _Run, timeouts: int, records: int) -> None:
        self._run, self._timeouts, self._records = run, timeouts, records
        self.is_cancelled = False

    def result_future(self) -> SlowJob:
        return self

    def result(self, timeout: float) -> None:
        if self._timeouts:
            self._timeouts -= 1
            self._run._records += self._records
            raise TimeoutError

    def cancel(self) -> None:
        self.is_cancelled = True


def waiting_run(directory: Path, timeouts: int, records: int) -> tuple[_Run, SlowJob]:
    env = make_env(1)
    env.from_collection([1]).print()
    job = build_job_graph(env._build_stream_graph(), job_id="1" * 32, name="slow")
    run = _Run(Subject(job, Configuration({}), read_inputs(job, 1)), Scenario(), str(directory))
    slow: Any = SlowJob(run, timeouts, records)
    run._job = slow
    return run, slow


def test_a_run_on_a_slow_machine_may_take_as_long_as_it_reads_records(tmp_path: Path) -> None:
    run, job = waiting_run(tmp_path, timeouts=5, records=1)
    run._wait()
    assert not job.is_cancelled


def test_a_run_that_reads_nothing_more_is_cancelled(tmp_path: Path) -> None:
    run, job = waiting_run(tmp_path, timeouts=2, records=0)
    with pytest.raises(RunTimeoutError, match="the run does not end: it read no records for 30 s"):
        run._wait()
    assert job.is_cancelled
