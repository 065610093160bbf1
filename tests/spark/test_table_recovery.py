"""Table jobs and what makes them safe: checkpoints, savepoints, other parallelism, lost workers."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.connectors.collect import CollectSink, open_collector
from headrace.connectors.datagen.table import RangeTableSource
from headrace.graph.table_job import TableInput, TableNode
from headrace.operators.table.declarations import (
    AggSpec,
    GroupAggregateDeclaration,
    TableScanDeclaration,
    TableSinkDeclaration,
)
from headrace.operators.table.steps import Fragment, PythonCall, PythonCalls, Select, Where
from headrace.runtime.epoch.messages import SubtaskReport
from headrace.spark.task_messages import MessageParam
from headrace.state_processor import Savepoint
from tests.spark.table_jobs import bigint, collect, materialized, straight, string, submit

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_session")]

#: A text: without the secret that is kept with the state, no group would be found again.
KEY, COUNT, SUM = string("k"), bigint("n"), bigint("s")
NUMBER = bigint("id")


def counting(collect_id: str, count: int | None) -> list[TableNode]:
    return [
        TableNode(
            TableScanDeclaration(RangeTableSource(("id",), count), schema=(NUMBER,)), "numbers", uid="numbers"
        ),
        TableNode(
            GroupAggregateDeclaration(
                (KEY, COUNT, SUM),
                keys=("k",),
                calls=(AggSpec("COUNT", (), COUNT), AggSpec("SUM", ("id",), SUM)),
            ),
            "count",
            (
                TableInput(
                    0, Fragment((Select((("CONCAT('k', id % 5)", "k"), ("id", "id"))),), (KEY, NUMBER))
                ),
            ),
            uid="count",
        ),
        TableNode(
            TableSinkDeclaration(CollectSink(collect_id), schema=(KEY, COUNT, SUM)),
            "collect",
            (TableInput(1, straight((KEY, COUNT, SUM))),),
            uid="collect",
        ),
    ]


def expected(count: int) -> Counter:
    return Counter((f"k{k}", len(range(k, count, 5)), sum(range(k, count, 5))) for k in range(5))


def test_a_job_stopped_with_a_savepoint_continues_at_another_parallelism(tmp_path: Path):
    with open_collector("before") as rows:
        job = submit(counting("before", None), max_records=20)
        changes = [next(rows) for _ in range(30)]
        path = job.stop_with_savepoint(
            advance_to_end_of_event_time=False, savepoint_directory=str(tmp_path)
        ).result(120)
        job.result_future().result(60)
        rows.finish()
        changes += list(rows)
    savepoint = Savepoint.load(path)
    read = savepoint.operator("numbers").source_positions()[0].position
    assert materialized(changes) == expected(read)
    stored = savepoint.operator("count").to_arrow("groups")
    assert sorted(row["k0"] for row in stored.column("value").to_pylist()) == ["k0", "k1", "k2", "k3", "k4"]
    with open_collector("after") as rows:
        options = {"execution.state-recovery.path": path}
        job = submit(counting("after", read + 50), parallelism=3, options=options, max_records=20)
        job.result_future().add_done_callback(lambda future: rows.finish(future.exception()))
        changes += list(rows)
    assert materialized(changes) == expected(read + 50)


class DieOnce:
    """Ends its worker process the first time it meets a number."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __call__(self, number: int) -> int:
        if number == 33 and not self._mark.exists():
            self._mark.touch()
            os._exit(1)
        return number


def test_a_lost_worker_changes_nothing(tmp_path: Path):
    nodes = counting("lost", 60)
    fragment = Fragment(
        (
            PythonCalls((PythonCall(DieOnce(tmp_path / "died"), ("id",), bigint("same")),)),
            Select((("CONCAT('k', same % 5)", "k"), ("same", "id"))),
        ),
        (KEY, NUMBER),
    )
    nodes[1] = TableNode(nodes[1].declaration, "count", (TableInput(0, fragment),), uid="count")
    with open_collector("lost") as rows:
        job = submit(nodes, max_records=20)
        job.result_future().add_done_callback(lambda future: rows.finish(future.exception()))
        assert materialized(list(rows)) == expected(60)
    assert (tmp_path / "died").exists()


class Tampering:
    """Changes, in the driver, what tasks of the second epoch have told, the first time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, change: Callable[[list[bytes]], list[bytes]]) -> None:
        self.count = 0
        add = MessageParam.addInPlace

        def add_changed(param: MessageParam, old: list[bytes], new: list[bytes]) -> list[bytes]:
            is_report = any(isinstance(pickle.loads(pickle.loads(each)[1]), SubtaskReport) for each in new)
            self.count += is_report
            # Of each epoch both subtasks report.
            return add(param, old, change(new) if is_report and self.count == 3 else new)

        monkeypatch.setattr(MessageParam, "addInPlace", add_changed)


@pytest.mark.parametrize(
    ("change", "told"),
    # Four epochs of two reports; two more if one of them is run again.
    [(lambda new: [], 10), (lambda new: [*new, *new], 8)],
    ids=["dropped", "delivered twice"],
)
def test_a_report_that_does_not_arrive_as_it_was_sent_changes_no_state(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[list[bytes]], list[bytes]], told: int
):
    tampering = Tampering(monkeypatch, change)
    total = bigint("s")
    aggregate = GroupAggregateDeclaration((KEY, total), keys=("k",), calls=(AggSpec("SUM", ("v",), total),))
    ten = Fragment((Select((("'k'", "k"), ("10L", "v"))),), (KEY, bigint("v")))
    nodes = [
        TableNode(
            TableScanDeclaration(RangeTableSource(("id",), 4), schema=(NUMBER,)), "numbers", uid="numbers"
        ),
        TableNode(aggregate, "sum", (TableInput(0, ten),), uid="sum"),
    ]
    rows = collect(nodes, (KEY, total), parallelism=2, max_records=1)
    assert materialized(rows) == Counter({("k", 40): 1})
    assert tampering.count == told


def test_an_operator_without_consumers_runs_and_reports():
    """Spark would leave out all that is below a filter that is never true, and the operator would miss rows."""
    nodes = counting("unused", 40)[:2]
    never = Fragment((Where("false"),), (KEY, COUNT, SUM))
    assert collect(nodes, (KEY, COUNT, SUM), never, max_records=20) == []
