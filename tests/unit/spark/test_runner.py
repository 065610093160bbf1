from __future__ import annotations

import threading
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError

from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.settings import TaskSettings
from headrace.spark.runner import SparkRunner
from tests.unit.runtime.jobs import job_graph, make_env


class Context(MagicMock):
    """A Spark whose jobs run until their group is cancelled."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.began, self.is_cancelled = threading.Event(), threading.Event()
        self.master = "local[2]"
        self.groups: list[str] = []
        self.setJobGroup = lambda group, *_, **__: self.groups.append(group)
        self.cancelJobGroup = self._cancel
        self.parallelize.return_value.map.return_value.collect = self._run

    def _get_child_mock(self, **settings: Any) -> MagicMock:
        return MagicMock(**settings)

    def _cancel(self, group: str) -> None:
        if group in self.groups:
            self.is_cancelled.set()

    def _run(self) -> list[int]:
        self.began.set()
        assert self.is_cancelled.wait(30)
        raise Py4JError("cancelled")


@pytest.fixture
def code() -> JobCode:
    env: StreamExecutionEnvironment = make_env()
    numbers: DataStream = env.from_collection([1])
    numbers.print()
    return JobCode(job_graph(env), lineage="line", settings=TaskSettings(scratch_name="runner"))


def test_a_run_that_ends_does_not_wait_for_compactions(code: JobCode) -> None:
    context = Context()
    runner = SparkRunner(cast("Any", context), code)
    future = runner.compact([MagicMock()])
    assert context.began.wait(30)
    runner.close()
    assert context.is_cancelled.is_set()
    assert future.exception(0) is not None


def test_cancelling_an_epoch_leaves_compactions_alone(code: JobCode) -> None:
    context = Context()
    runner = SparkRunner(cast("Any", context), code)
    runner.compact([MagicMock()])
    assert context.began.wait(30)
    runner.cancel()
    assert not context.is_cancelled.is_set()
    runner.close()
