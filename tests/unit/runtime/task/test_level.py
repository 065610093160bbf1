"""One partition of one level: what a Spark task runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.base import Slice, SourceSplit
from headrace.datastream.functions import MapFunction
from headrace.elements import Batch, EndOfInput
from headrace.errors import StateError, UserFunctionError
from headrace.graph.job_graph import JobGraph
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.runtime.exchange.buffers import REPORT_EDGE, decode, payload_of, read_header
from headrace.runtime.task.level import JobCode, LevelRunner, read_report
from headrace.runtime.task.settings import TaskSettings
from headrace.state.handles import StateChain
from tests.unit.runtime.jobs import job_graph, make_env


class Worker:
    """A worker's runner, and the plans of epochs whose only source is a collection."""

    def __init__(self, job: JobGraph, directory: Path) -> None:
        self.job = job
        self.layout = Layout(job)
        self.directory = directory
        settings = TaskSettings(scratch_name="scratch", scratch_parent=str(directory))
        self.runner = LevelRunner(JobCode(job, lineage="line", settings=settings))

    def plan(
        self, epoch: int, start: int, end: int, *, is_last: bool = False, more: dict[str, Any] | None = None
    ) -> EpochPlan:
        """Read a part of the collection; ``more`` is what else to say to the subtasks of a vertex."""
        piece = Slice(SourceSplit("collection"), start, end)
        subtasks = {}
        for level in self.layout.levels:
            for subtask in level:
                is_source = self.job.vertex(subtask.vertex_id).is_source
                subtasks[subtask] = SubtaskPlan(
                    slices=(piece,) if is_source else (),
                    open_splits=frozenset({"collection"}) if is_source else frozenset(),
                    may_get_more_splits=not is_last,
                    **(more or {}).get(subtask.vertex_id, {}),
                )
        return EpochPlan("job", epoch, 0, str(self.directory / "state"), subtasks)

    def run(
        self, plan: EpochPlan, level: int, partition: int, incoming: Any = (), attempt: int = 0
    ) -> list[tuple[int, bytes]]:
        return list(self.runner.run(plan, level, partition, incoming, attempt))


def report_of(output: list[tuple[int, bytes]]) -> SubtaskReport:
    _, buffer = output[-1]
    assert read_header(buffer).edge_id == REPORT_EDGE
    return read_report(buffer)


def elements(output: list[tuple[int, bytes]]) -> list[tuple[int, Any]]:
    """(target partition, element) of everything but reports."""
    return [
        (target, element)
        for target, buffer in output
        if read_header(buffer).edge_id != REPORT_EDGE
        for element in decode(payload_of(buffer))
    ]


def diamond() -> JobGraph:
    """source -> middle (2) -> last (1), and source -> last past the middle."""
    env = make_env(parallelism=1)
    source = env.from_collection([1, 2, 3, 4])
    middle = source.rebalance().map(lambda n: -n).set_parallelism(2)
    source.union(middle).rebalance().map(lambda n: n).set_parallelism(1).print()
    return job_graph(env)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(diamond(), tmp_path)
    yield worker
    worker.runner.close()


def test_a_source_partition_sends_its_records_and_a_report(worker: Worker) -> None:
    output = worker.run(worker.plan(1, 0, 2), 0, 0)
    sent = elements(output)
    # Over the first edge to both partitions of the middle; over the second, for the level after that.
    assert sorted(value for _, batch in sent for value in batch.values) == [1, 1, 2, 2]
    report = report_of(output)
    assert (report.records_in, report.records_out, report.has_ended) == (2, 4, False)
    assert report.progress["collection"].position == 2


def test_buffers_for_a_deeper_level_are_handed_on_untouched(worker: Worker) -> None:
    plan = worker.plan(1, 0, 4)
    first = worker.run(plan, 0, 0)
    passing = [buffer for _, buffer in first if read_header(buffer).level == 2]
    assert passing
    for partition in range(2):
        incoming = [buffer for target, buffer in first if target == partition]
        handed_on = [buffer for _, buffer in worker.run(plan, 1, partition, incoming)]
        assert all(buffer in handed_on for buffer in incoming if read_header(buffer).level != 1)
        assert all(read_header(buffer).level > 1 for buffer in handed_on)


def test_reports_of_all_levels_arrive_at_the_driver(worker: Worker) -> None:
    plan = worker.plan(1, 0, 4, is_last=True)
    incoming: dict[int, list[bytes]] = {0: []}
    for level, subtasks in enumerate(worker.layout.levels):
        outgoing: dict[int, list[bytes]] = {}
        for partition in range(len(subtasks)):
            for target, buffer in worker.run(plan, level, partition, incoming.get(partition, [])):
                outgoing.setdefault(target, []).append(buffer)
        incoming = outgoing
    reports = [read_report(buffer) for buffers in incoming.values() for buffer in buffers]
    assert {report.subtask for report in reports} == set(plan.subtasks)
    assert all(report.has_ended for report in reports)
    last = next(report for report in reports if report.subtask == worker.layout.levels[2][0])
    assert last.records_in == 8
    assert set(last.consumed) == {*worker.layout.levels[0], *worker.layout.levels[1]}
    by_attempt = {report.subtask: report.attempt_id for report in reports}
    assert all(by_attempt[producer] == attempt for producer, attempt in last.consumed.items())


def test_the_end_of_input_goes_to_every_consumer(worker: Worker) -> None:
    output = worker.run(worker.plan(1, 0, 4, is_last=True), 0, 0)
    assert sum(isinstance(element, EndOfInput) for _, element in elements(output)) == 3


def test_a_subtask_that_ended_earlier_says_nothing_more(worker: Worker) -> None:
    source = worker.layout.levels[0][0]
    plan = worker.plan(2, 4, 4, more={source.vertex_id: {"has_ended": True}})
    output = worker.run(plan, 0, 0)
    assert elements(output) == []
    assert report_of(output).has_ended


def test_every_attempt_has_a_name_of_its_own(worker: Worker) -> None:
    plan = worker.plan(1, 0, 2)
    names = {report_of(worker.run(plan, 0, 0, attempt=attempt)).attempt_id for attempt in range(3)}
    assert len(names) == 3


# --- user functions in a worker -------------------------------------------------------------------

calls: list[str] = []


class Traced(MapFunction):
    """Numbers the records it sees in a field, from 1 in every epoch."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.seen: list[Any] = []

    def open(self, runtime_context: Any) -> None:
        calls.append(f"open {self.name}")

    def map(self, value: Any) -> Any:
        if value == "bad":
            raise ValueError(value)
        self.count += 1
        self.seen.append(value)
        return (*value, self.count, len(self.seen)) if isinstance(value, tuple) else (value, self.count)

    def close(self) -> None:
        calls.append(f"close {self.name}")
        if self.name == "fails":
            raise OSError("cannot close")


@pytest.fixture
def mapping(tmp_path: Path) -> Iterator[Any]:
    """Return a function that makes a worker for: collection -> map -> map -> ... -> print, in one chain."""
    workers: list[Worker] = []
    calls.clear()

    def make(records: list[Any], *functions: MapFunction) -> Worker:
        env = make_env()
        stream = env.from_collection(records)
        for function in functions:
            stream = stream.map(function)
        stream.rebalance().map(str).set_parallelism(2).print()
        workers.append(Worker(job_graph(env), tmp_path / str(len(workers))))
        return workers[-1]

    yield make
    for worker in workers:
        worker.runner.close()


def values(output: list[tuple[int, bytes]]) -> list[Any]:
    return sorted(
        value for _, element in elements(output) if isinstance(element, Batch) for value in element.values
    )


def test_a_kept_task_is_opened_once(mapping: Any) -> None:
    worker = mapping(["a", "b"], Traced("f"))
    for epoch, start in [(1, 0), (2, 1)]:
        worker.run(worker.plan(epoch, start, start + 1), 0, 0)
    assert calls == ["open f"]
    worker.runner.close()
    assert calls == ["open f", "close f"]


def test_a_task_whose_input_has_ended_is_closed_and_stays_closed(mapping: Any) -> None:
    worker = mapping(["a", "b"], Traced("f"))
    worker.run(worker.plan(1, 0, 1), 0, 0)
    assert report_of(worker.run(worker.plan(2, 1, 2, is_last=True), 0, 0)).has_ended
    assert calls == ["open f", "close f"]
    source = worker.layout.levels[0][0]
    worker.run(worker.plan(3, 2, 2, more={source.vertex_id: {"has_ended": True}}), 0, 0)
    assert calls == ["open f", "close f"]


def test_a_failed_task_is_closed_and_a_new_one_is_opened(mapping: Any) -> None:
    worker = mapping(["a", "bad"], Traced("f"))
    with pytest.raises(UserFunctionError, match="bad"):
        worker.run(worker.plan(1, 0, 2), 0, 0)
    assert calls == ["open f", "close f"]
    worker.run(worker.plan(1, 0, 1), 0, 0, attempt=1)
    assert calls == ["open f", "close f", "open f"]


def test_an_error_while_closing_does_not_hide_why_the_task_failed(mapping: Any) -> None:
    worker = mapping(["bad"], Traced("fails"), Traced("g"))
    with pytest.raises(UserFunctionError, match="bad"):
        worker.run(worker.plan(1, 0, 1), 0, 0)
    assert calls == ["open fails", "open g", "close g", "close fails"]


def test_one_function_in_two_operators_is_two_functions(mapping: Any) -> None:
    """As in Flink, where each operator has its own pickled copy."""
    function = Traced("f")
    worker = mapping(["a", "b"], function, function)
    assert values(worker.run(worker.plan(1, 0, 2), 0, 0)) == [("a", 1, 1, 1), ("b", 2, 2, 2)]


def test_two_subtasks_in_one_worker_do_not_share_a_function(tmp_path: Path) -> None:
    calls.clear()
    env = make_env(parallelism=2)
    env.from_collection(["a", "b"]).rebalance().map(Traced("f")).rebalance().map(str).print()
    worker = Worker(job_graph(env), tmp_path)
    plan = worker.plan(1, 0, 2)
    first = worker.run(plan, 0, 0)
    for partition in range(2):
        incoming = [buffer for target, buffer in first if target == partition]
        [(_, count)] = values(worker.run(plan, 1, partition, incoming))
        assert count == 1
    worker.runner.close()
    assert calls == ["open f", "open f", "close f", "close f"]


def test_fields_continue_from_what_the_plan_says_and_nothing_else(mapping: Any) -> None:
    worker = mapping([("a",), ("b",), ("c",)], Traced("f"))
    first = worker.run(worker.plan(1, 0, 2), 0, 0)
    assert values(first) == [("a", 1, 1), ("b", 2, 2)]
    [source] = worker.layout.levels[0]
    told = {source.vertex_id: {"operator_state": report_of(first).operator_state}}
    assert values(worker.run(worker.plan(2, 2, 3, more=told), 0, 0)) == [("c", 3, 3)]
    assert values(worker.run(worker.plan(2, 2, 3), 0, 0)) == [("c", 1, 1)]  # an epoch that did not count
    assert report_of(first).warnings == ()


# --- state in a worker ----------------------------------------------------------------------------


def test_a_worker_with_an_older_plan_than_the_copy_is_refused(tmp_path: Path) -> None:
    env = make_env()
    env.from_collection([1, 1, 1]).key_by(lambda n: n).reduce(lambda a, b: a + b).print()
    worker = Worker(job_graph(env), tmp_path)
    [keyed] = worker.layout.levels[1]
    first = worker.plan(1, 0, 1)
    report = run_both(worker, first)
    [(operator_id, file)] = report.changes.items()
    chain = StateChain("line", (file,))
    second = worker.plan(2, 1, 2, more={keyed.vertex_id: {"keyed": {operator_id: chain}}})
    run_both(worker, second)
    with pytest.raises(StateError, match="later attempt"):
        run_both(worker, first)
    worker.runner.close()


def run_both(worker: Worker, plan: EpochPlan) -> SubtaskReport:
    first = worker.run(plan, 0, 0)
    return report_of(worker.run(plan, 1, 0, [buffer for _, buffer in first]))


def test_an_unexpected_buffer_is_an_invariant_violation(worker: Worker) -> None:
    with pytest.raises(KeyError):
        worker.run(EpochPlan("job", 1, 0, "x", {SubtaskId("nobody", 0): SubtaskPlan()}), 0, 0)
