from __future__ import annotations

import itertools

import pytest

from headrace.common.job_status import JobStatus
from headrace.errors import InvariantViolation
from headrace.graph.execution_graph import (
    ATTEMPTS_KEPT,
    EXECUTION_TRANSITIONS,
    JOB_TRANSITIONS,
    STORY_LENGTH,
    ExecutionGraph,
    ExecutionState,
    build_execution_graph,
)
from headrace.graph.partitioning import KeyGroups
from tests.unit.graph.programs import Program

E, J = ExecutionState, JobStatus
TO_RUNNING = (E.SCHEDULED, E.DEPLOYING, E.INITIALIZING, E.RUNNING)


def make_graph(parallelism: int = 2) -> tuple[ExecutionGraph, str]:
    """Make the graph of a job with one vertex."""
    program = Program(parallelism=parallelism)
    program.op(program.source(), "Map")
    graph = build_execution_graph(program.job_graph(), now_ms=0)
    return graph, graph.job_graph.vertices[0].vertex_id


def bring(graph: ExecutionGraph, vertex: str, subtask: int, *states: ExecutionState) -> None:
    for state in states:
        cause = ValueError("boom") if state is E.FAILED else None
        graph.transition(vertex, subtask, state, 1, cause)


PATHS = {
    E.CREATED: (),
    E.SCHEDULED: TO_RUNNING[:1],
    E.DEPLOYING: TO_RUNNING[:2],
    E.INITIALIZING: TO_RUNNING[:3],
    E.RUNNING: TO_RUNNING,
    E.FINISHED: (*TO_RUNNING, E.FINISHED),
    E.CANCELING: (*TO_RUNNING, E.CANCELING),
    E.CANCELED: (*TO_RUNNING, E.CANCELING, E.CANCELED),
    E.FAILED: (E.FAILED,),
}


def test_subtasks_cover_all_key_groups() -> None:
    program = Program(parallelism=3, max_parallelism=10)
    program.op(program.partition(program.source(), KeyGroups(len)), "Reduce")
    graph = build_execution_graph(program.job_graph(), now_ms=5)

    subtasks = graph.job_vertices[graph.job_graph.vertices[1].vertex_id].subtasks

    assert [list(each.key_groups) for each in subtasks] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert [each.name for each in subtasks] == ["Reduce (1/3)", "Reduce (2/3)", "Reduce (3/3)"]
    assert graph.status is J.CREATED
    assert graph.status_timestamps == {J.CREATED: 5}


def test_a_subtask_lives_and_keeps_its_times() -> None:
    graph, vertex = make_graph()
    for now, state in enumerate((*TO_RUNNING, E.FINISHED), 10):
        graph.transition(vertex, 1, state, now)

    attempt = graph.subtask(vertex, 1).current
    assert attempt.state is E.FINISHED
    assert attempt.timestamps == {
        E.CREATED: 0,
        E.SCHEDULED: 10,
        E.DEPLOYING: 11,
        E.INITIALIZING: 12,
        E.RUNNING: 13,
        E.FINISHED: 14,
    }
    assert graph.subtask(vertex, 0).current.state is E.CREATED


@pytest.mark.parametrize(("before", "after"), [*itertools.product(E, E)])
def test_every_transition_is_legal_or_refused_with_its_story(
    before: ExecutionState, after: ExecutionState
) -> None:
    graph, vertex = make_graph()
    bring(graph, vertex, 0, *PATHS[before])

    if after in EXECUTION_TRANSITIONS[before]:
        bring(graph, vertex, 0, after)
        assert graph.subtask(vertex, 0).current.state is after
    else:
        with pytest.raises(InvariantViolation, match=f"{before.name} -> {after.name}") as caught:
            bring(graph, vertex, 0, after)
        assert caught.value.story[0] == "0 CREATED"
        assert len(caught.value.story) == len(PATHS[before]) + 1
        assert graph.subtask(vertex, 0).current.state is before


def test_failed_can_be_reached_from_every_state_that_is_not_an_end() -> None:
    assert all(E.FAILED in after for after in EXECUTION_TRANSITIONS.values() if after)
    assert {state for state in E if state.is_terminal} == {E.FINISHED, E.CANCELED, E.FAILED}


def test_a_failure_has_a_cause_and_nothing_else_has() -> None:
    graph, vertex = make_graph()
    with pytest.raises(InvariantViolation, match="only FAILED, has a cause"):
        graph.transition(vertex, 0, E.FAILED, 1)
    with pytest.raises(InvariantViolation, match="only FAILED, has a cause"):
        graph.transition(vertex, 0, E.SCHEDULED, 1, ValueError("boom"))

    cause = ValueError("boom")
    graph.transition(vertex, 0, E.FAILED, 1, cause)

    assert graph.subtask(vertex, 0).current.failure_cause is cause
    assert graph.subtask(vertex, 0).current.story[-1] == "1 CREATED -> FAILED: ValueError('boom')"


def test_a_new_attempt_follows_one_that_has_ended() -> None:
    graph, vertex = make_graph()
    bring(graph, vertex, 0, *TO_RUNNING)
    with pytest.raises(InvariantViolation, match="attempt 0 is RUNNING"):
        graph.new_attempt(vertex, 0, 2)

    bring(graph, vertex, 0, E.FAILED)
    second = graph.new_attempt(vertex, 0, 3)

    assert (second.attempt, second.state, second.timestamps) == (1, E.CREATED, {E.CREATED: 3})
    assert [each.attempt for each in graph.subtask(vertex, 0).attempts] == [0, 1]


def test_only_so_many_attempts_are_kept() -> None:
    graph, vertex = make_graph()
    for now in range(ATTEMPTS_KEPT + 5):
        bring(graph, vertex, 0, E.FAILED)
        graph.new_attempt(vertex, 0, now)

    attempts = graph.subtask(vertex, 0).attempts
    assert len(attempts) == ATTEMPTS_KEPT + 1
    assert attempts[-1].attempt == ATTEMPTS_KEPT + 5


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((E.CREATED, E.CREATED), E.CREATED),
        ((E.SCHEDULED, E.DEPLOYING), E.CREATED),
        ((E.DEPLOYING, E.INITIALIZING), E.INITIALIZING),
        ((E.INITIALIZING, E.RUNNING), E.INITIALIZING),
        ((E.RUNNING, E.DEPLOYING), E.RUNNING),
        ((E.RUNNING, E.FINISHED), E.RUNNING),
        ((E.CREATED, E.FINISHED), E.RUNNING),
        ((E.FINISHED, E.FINISHED), E.FINISHED),
        ((E.CANCELED, E.RUNNING), E.CANCELED),
        ((E.CANCELED, E.CANCELING), E.CANCELING),
        ((E.FAILED, E.CANCELING), E.FAILED),
    ],
)
def test_the_state_of_a_vertex_is_summed_up_as_in_flink(
    states: tuple[ExecutionState, ...], expected: ExecutionState
) -> None:
    graph, vertex = make_graph(parallelism=len(states))
    for subtask, state in enumerate(states):
        bring(graph, vertex, subtask, *PATHS[state])

    assert graph.vertex_state(vertex) is expected
    counts = graph.state_counts()
    assert sum(counts.values()) == len(states)
    assert set(counts) == set(E)


JOB_PATHS: dict[JobStatus, tuple[JobStatus, ...]] = {
    J.CREATED: (),
    J.RUNNING: (J.RUNNING,),
    J.RESTARTING: (J.RUNNING, J.RESTARTING),
    J.FAILING: (J.RUNNING, J.FAILING),
    J.FAILED: (J.RUNNING, J.FAILING, J.FAILED),
    J.CANCELLING: (J.CANCELLING,),
    J.CANCELED: (J.CANCELLING, J.CANCELED),
    J.SUSPENDED: (J.SUSPENDED,),
    J.FINISHED: (J.RUNNING, J.FINISHED),
}


@pytest.mark.parametrize(("before", "after"), [*itertools.product(JOB_PATHS, J)])
def test_every_job_transition_is_legal_or_refused_with_its_story(before: JobStatus, after: JobStatus) -> None:
    graph, vertex = make_graph(parallelism=1)
    bring(graph, vertex, 0, *PATHS[E.FINISHED])
    for status in JOB_PATHS[before]:
        graph.set_job_status(status, 1)

    if after in JOB_TRANSITIONS[before]:
        graph.set_job_status(after, 2)
        assert graph.status is after
        assert graph.status_timestamps[after] == 2
    else:
        with pytest.raises(InvariantViolation, match=f"{before.name} -> {after.name}") as caught:
            graph.set_job_status(after, 2)
        assert caught.value.story[0] == "0 CREATED"


def test_the_job_tables_agree_with_the_status_itself() -> None:
    assert set(JOB_TRANSITIONS) == set(J)
    assert {status for status, after in JOB_TRANSITIONS.items() if not after} == {
        status for status in J if status.is_terminal_state()
    }


def test_a_job_is_not_finished_before_its_subtasks() -> None:
    graph, vertex = make_graph(parallelism=2)
    bring(graph, vertex, 0, *PATHS[E.FINISHED])
    graph.set_job_status(J.RUNNING, 1)
    with pytest.raises(InvariantViolation, match=r"Map \(2/2\) is not \(1 in all\)"):
        graph.set_job_status(J.FINISHED, 2)


def test_the_cause_of_a_failure_stays() -> None:
    graph, _ = make_graph()
    graph.set_job_status(J.RUNNING, 1)
    cause = ValueError("boom")
    graph.set_job_status(J.FAILING, 2, cause)
    graph.set_job_status(J.FAILED, 3)
    assert graph.failure_cause is cause
    assert graph.story == (
        "0 CREATED",
        "1 CREATED -> RUNNING",
        "2 RUNNING -> FAILING: ValueError('boom')",
        "3 FAILING -> FAILED",
    )


def test_the_story_of_a_job_that_restarts_forever_stays_short() -> None:
    graph, _ = make_graph()
    for now in range(100):
        graph.set_job_status(J.RUNNING, now)
        graph.set_job_status(J.RESTARTING, now)
    assert len(graph.story) == STORY_LENGTH
