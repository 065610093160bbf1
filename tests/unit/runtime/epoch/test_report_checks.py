"""Reports of an epoch: complete, one per subtask, of attempts that fit together; else the epoch is run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.errors import TaskLostError
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskReport
from headrace.runtime.epoch.report_checks import check_consistent, one_per_subtask
from headrace.testing.mini_cluster import Fault, MiniCluster, TaskAttempt
from tests.unit.runtime.jobs import run

FIRST, SECOND = SubtaskId("sum", 0), SubtaskId("sum", 1)
JOB: Any = SimpleNamespace(vertex=lambda _: SimpleNamespace(name="Sum", parallelism=2))


def report(subtask: SubtaskId, attempt_id: str = "a", **more: Any) -> SubtaskReport:
    return SubtaskReport(subtask, attempt_id=attempt_id, **more)


def test_reports_come_in_the_order_of_the_subtasks() -> None:
    found = one_per_subtask(JOB, [FIRST, SECOND], [report(SECOND), report(FIRST)])
    assert [each.subtask for each in found] == [FIRST, SECOND]


def test_a_missing_report_names_its_subtask() -> None:
    with pytest.raises(TaskLostError, match="report of subtask 2 of 2 of 'Sum' did not arrive"):
        one_per_subtask(JOB, [FIRST, SECOND], [report(FIRST)])


def test_a_report_delivered_twice_counts_once() -> None:
    found = one_per_subtask(JOB, [FIRST], [report(FIRST), report(FIRST)])
    assert found == [report(FIRST)]


def test_reports_of_two_attempts_contradict_each_other() -> None:
    with pytest.raises(TaskLostError, match="computed twice: two attempts reported for subtask 1 of 2"):
        one_per_subtask(JOB, [FIRST], [report(FIRST, "a"), report(FIRST, "b")])


def test_an_unexpected_report_is_refused() -> None:
    with pytest.raises(TaskLostError, match="subtask 2 of 2 of 'Sum' sent a report, but does not take part"):
        one_per_subtask(JOB, [FIRST], [report(FIRST), report(SECOND)])


def test_everybody_must_have_read_the_attempt_that_reported() -> None:
    source = SubtaskId("source", 0)
    good = report(FIRST, consumed={source: "1"})
    check_consistent([report(source, "1"), good])
    with pytest.raises(TaskLostError, match="computed twice"):
        check_consistent([report(source, "0"), good])


# --- a whole job of streams -----------------------------------------------------------------------


def summing(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([("a", 10)] * 4).key_by(lambda pair: pair[0]).sum(1)


Change = Callable[[Sequence[SubtaskReport]], Sequence[SubtaskReport]]


def drop_leaf(reports: Sequence[SubtaskReport]) -> Sequence[SubtaskReport]:
    return [each for each in reports if not each.consumed]


def deliver_twice(reports: Sequence[SubtaskReport]) -> Sequence[SubtaskReport]:
    return [*reports, *reports]


def add_another_attempt(reports: Sequence[SubtaskReport]) -> Sequence[SubtaskReport]:
    return [*reports, replace(reports[-1], attempt_id="another")]


def add_those_of_an_earlier_epoch(reports: Sequence[SubtaskReport]) -> Sequence[SubtaskReport]:
    return [*(replace(each, attempt_id="earlier", epoch=(1, 0)) for each in reports), *reports]


def replace_leaf_by_that_of_an_earlier_epoch(reports: Sequence[SubtaskReport]) -> Sequence[SubtaskReport]:
    return [replace(each, epoch=(1, 0)) if each.consumed else each for each in reports]


@pytest.mark.parametrize(
    ("change", "runs"),
    [
        (drop_leaf, 2),
        (deliver_twice, 1),
        (add_another_attempt, 2),
        (add_those_of_an_earlier_epoch, 1),
        (replace_leaf_by_that_of_an_earlier_epoch, 2),
    ],
    ids=["dropped", "delivered twice", "of two attempts", "late", "late, and the other dropped"],
)
def test_a_stream_job_survives_lost_and_doubled_reports(
    monkeypatch: pytest.MonkeyPatch, change: Change, runs: int
) -> None:
    run_epoch, attempts = MiniCluster.run, []

    def run_and_change(self: MiniCluster, plan: EpochPlan) -> Sequence[SubtaskReport]:
        reports = run_epoch(self, plan)
        if plan.epoch != 2:
            return reports
        attempts.append(plan.attempt)
        return change(reports) if plan.attempt == 0 else reports

    monkeypatch.setattr(MiniCluster, "run", run_and_change)
    finished = run(summing, max_records=1)
    assert finished.output == [("a", 10), ("a", 20), ("a", 30), ("a", 40)]
    assert attempts == list(range(runs))


@pytest.mark.parametrize(
    ("fault", "tries"),
    [(Fault.REPORT_LOST, [0, 1]), (Fault.REPORT_LATE, [0, 1]), (Fault.REPORT_TWICE, [0])],
    ids=lambda each: each.value if isinstance(each, Fault) else "",
)
@pytest.mark.parametrize("level", [0, 1])
def test_the_mini_cluster_loses_reports_delivers_them_late_and_twice(
    fault: Fault, tries: list[int], level: int
) -> None:
    finished = run(summing, max_records=1, faults={TaskAttempt(2, level): fault})
    assert finished.output == [("a", 10), ("a", 20), ("a", 30), ("a", 40)]
    cluster = finished.job.cluster
    assert cluster.injected == [(TaskAttempt(2, level), fault)]
    assert [plan.attempt for plan in cluster.plans if plan.epoch == 2] == tries
