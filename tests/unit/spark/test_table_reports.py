"""Reports of table subtasks: none is made up, none counts twice, none of an earlier attempt is taken."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.errors import TaskLostError
from headrace.graph.job_graph import JobGraph
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.runtime.task.table_time import VertexTime
from headrace.spark.table_epochs import TableEpoch
from headrace.spark.task_messages import MessageParam, TaskMessages
from headrace.table import EnvironmentSettings, TableEnvironment


class Accumulated:
    """An accumulator of Spark, without Spark."""

    def __init__(self) -> None:
        self.value: list[bytes] = []

    def add(self, messages: list[bytes]) -> None:
        self.value = MessageParam().addInPlace(self.value, messages)


def job_graph() -> JobGraph:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("parallelism.default", "2")
    t_env.execute_sql("CREATE TABLE t (k INT, n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '4')")
    query = t_env.sql_query("SELECT k, SUM(n) AS s FROM t GROUP BY k")
    return t_env._jobs.job_graph(t_env._jobs.plan_query(query._plan), "t")


class Epoch:
    """An epoch of which Spark has run everything."""

    def __init__(self) -> None:
        self.job = job_graph()
        self.accumulator: Any = Accumulated()
        self.scan = self.job.vertices[0]
        self.aggregate = next(v for v in self.job.vertices if "Aggregate" in v.name)
        self.begin()

    def begin(self) -> None:
        subtasks = {
            SubtaskId(vertex.vertex_id, index): SubtaskPlan()
            for vertex in self.job.vertices
            for index in range(vertex.parallelism)
        }
        self.messages = TaskMessages(self.accumulator)
        session: Any = SimpleNamespace(context=None, spark=None, row_keys=None, reads_columns=False)
        nothing: Any = None
        plan = EpochPlan("job", 1, 0, "", subtasks)
        self._epoch = TableEpoch(session, self.job, plan, {}, nothing, nothing, self.messages, packing=None)
        time = VertexTime(before=0, after=0, is_final=False)
        self._epoch._times = {vertex.vertex_id: time for vertex in self.job.vertices}

    def report(self, index: int, attempt_id: str = "a") -> SubtaskReport:
        return SubtaskReport(SubtaskId(self.aggregate.vertex_id, index), attempt_id=attempt_id)

    def told(self) -> list[SubtaskReport]:
        return [each for each in self._epoch.reports() if each.subtask.vertex_id == self.aggregate.vertex_id]


def test_every_subtask_of_a_stateful_node_reports():
    epoch = Epoch()
    epoch.messages.tell(epoch.report(1), epoch.report(0))
    assert [(each.subtask.subtask, each.attempt_id) for each in epoch.told()] == [(0, "a"), (1, "a")]


def test_a_report_that_did_not_arrive_fails_the_epoch():
    epoch = Epoch()
    epoch.messages.tell(epoch.report(0))
    with pytest.raises(TaskLostError, match=r"report of subtask 2 of 2 of '.*Aggregate.*' did not arrive"):
        epoch.told()


def test_an_epoch_without_any_report_fails():
    with pytest.raises(TaskLostError, match="did not arrive"):
        Epoch().told()


def test_a_report_that_was_delivered_twice_counts_once():
    epoch = Epoch()
    for _ in range(2):
        epoch.messages.tell(epoch.report(0), epoch.report(1))
    assert [each.attempt_id for each in epoch.told()] == ["a", "a"]


def test_a_subtask_that_was_computed_twice_fails_the_epoch():
    epoch = Epoch()
    epoch.messages.tell(epoch.report(0), epoch.report(1), epoch.report(1, "b"))
    with pytest.raises(TaskLostError, match="computed twice"):
        epoch.told()


def test_late_reports_of_an_attempt_that_was_given_up_are_not_taken():
    epoch = Epoch()
    given_up = epoch.messages
    epoch.begin()
    epoch.messages.tell(epoch.report(0, "b"), epoch.report(1, "b"))
    given_up.tell(epoch.report(1, "a"))
    assert [each.attempt_id for each in epoch.told()] == ["b", "b"]


def test_a_late_report_does_not_stand_in_for_a_missing_one():
    epoch = Epoch()
    given_up = epoch.messages
    epoch.begin()
    epoch.messages.tell(epoch.report(0, "b"))
    given_up.tell(epoch.report(1, "a"))
    with pytest.raises(TaskLostError, match="did not arrive"):
        epoch.told()


def test_messages_travel_with_the_functions_that_tell_them():
    messages = TaskMessages(Accumulated())  # type: ignore[arg-type]
    in_worker: TaskMessages = pickle.loads(pickle.dumps(messages))
    in_worker.tell("something")
    messages._accumulator.add(in_worker._accumulator.value)
    assert messages.told() == ["something"]
