"""What functions of queries count goes into the reports of subtasks."""

from __future__ import annotations

from headrace.metrics.reports import CounterReport, GaugeReport, MetricName
from headrace.runtime.epoch.messages import CalledFunction, SubtaskId, SubtaskReport
from headrace.spark.python_calls import with_metrics

ONE, OTHER = SubtaskId("scan", 0), SubtaskId("scan", 1)
SEEN = MetricName("seen")


def test_tasks_of_one_subtask_add_up_and_a_task_that_was_run_again_counts_once():
    reports = [
        SubtaskReport(ONE, records_in=3, user_metrics={"op": {MetricName("late"): CounterReport(2)}}),
        SubtaskReport(OTHER),
    ]
    called = [
        CalledFunction(ONE, "op", ("f", 1, 0), {SEEN: CounterReport(5)}),
        CalledFunction(ONE, "op", ("f", 1, 2), {SEEN: CounterReport(7)}),
        CalledFunction(ONE, "op", ("f", 1, 2), {SEEN: CounterReport(7)}),
        CalledFunction(ONE, "behind", ("g", 1, 2), {SEEN: GaugeReport(1)}),
    ]
    one, other = with_metrics(reports, called)
    assert one.records_in == 3
    assert one.user_metrics == {
        "op": {MetricName("late"): CounterReport(2), SEEN: CounterReport(12)},
        "behind": {SEEN: GaugeReport(1)},
    }
    assert other == reports[1]
