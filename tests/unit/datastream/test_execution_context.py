"""Environments in one process: what they start from, and that they see nothing of each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.common import Configuration as ProgramConfiguration
from headrace.config import Configuration
from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import ConfigurationError
from headrace.graph.job_graph import JobGraph
from headrace.testing.mini_cluster import MiniExecutor
from tests.unit.datastream.fakes import FakeJob

BOTH = ("first", "second")


class Executor:
    """Remembers what was submitted to it."""

    def __init__(self) -> None:
        self.jobs: list[FakeJob] = []

    def submit(self, job_graph: JobGraph, configuration: Configuration) -> FakeJob:
        self.jobs.append(FakeJob(job_graph, configuration))
        return self.jobs[-1]

    @property
    def names(self) -> list[str]:
        return [job.job_graph.name for job in self.jobs]


def start_job(name: str, env: StreamExecutionEnvironment | None = None) -> StreamExecutionEnvironment:
    """Do what a program does."""
    env = env or StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1, 2]).print()
    env.execute_async(name)
    return env


def in_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(30)


def started(env: StreamExecutionEnvironment) -> list[str]:
    return [job.name for job in env._started_jobs.jobs()]


def test_environments_with_contexts_of_their_own_share_nothing() -> None:
    executors = {name: Executor() for name in BOTH}
    environments = {
        name: StreamExecutionEnvironment(
            context=ExecutionContext(
                Configuration({"parallelism.default": parallelism}), {"spark": executors[name]}
            )
        )
        for parallelism, name in enumerate(BOTH, start=3)
    }
    for name, env in environments.items():
        start_job(name, env)

    assert [env.get_parallelism() for env in environments.values()] == [3, 4]
    assert {name: executor.names for name, executor in executors.items()} == {name: [name] for name in BOTH}
    assert {name: started(env) for name, env in environments.items()} == {name: [name] for name in BOTH}


def test_programs_that_run_side_by_side_in_threads_see_their_own_context_only() -> None:
    executors = {name: Executor() for name in BOTH}
    together = threading.Barrier(len(BOTH), timeout=30)

    def run(name: str, parallelism: int) -> list[int]:
        seen = []
        context = ExecutionContext(
            Configuration({"parallelism.default": parallelism}), {"spark": executors[name]}
        )
        with context.entered():
            for number in range(20):
                together.wait()
                seen.append(start_job(f"{name}-{number}").get_parallelism())
        return seen

    with ThreadPoolExecutor(len(BOTH)) as pool:
        runs = [pool.submit(run, name, parallelism) for parallelism, name in enumerate(BOTH, start=3)]
        assert [set(each.result(60)) for each in runs] == [{3}, {4}]
    for name, executor in executors.items():
        assert executor.names == [f"{name}-{number}" for number in range(20)]


def test_jobs_of_two_environments_run_side_by_side_and_keep_their_results() -> None:
    together = threading.Barrier(2, timeout=30)

    def run(numbers: list[int]) -> tuple[list[int], MiniExecutor]:
        executor = MiniExecutor()
        context = ExecutionContext(Configuration({"parallelism.default": 2}), {"spark": executor})
        env = StreamExecutionEnvironment(context=context)
        together.wait()
        with env.from_collection(numbers).map(lambda n: n * n).execute_and_collect("squares") as rows:
            return sorted(rows), executor

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(run, ([1, 2, 3], [4, 5, 6]))
    assert (first[0], second[0]) == ([1, 4, 9], [16, 25, 36])
    assert (len(first[1].jobs), len(second[1].jobs)) == (1, 1)


def test_an_environment_keeps_its_context_when_the_program_has_left_it() -> None:
    executor = Executor()
    with ExecutionContext(Configuration(), {"spark": executor}).entered():
        env = StreamExecutionEnvironment.get_execution_environment()
    start_job("later", env)
    assert executor.names == ["later"]


def test_the_outer_context_is_restored_after_an_inner_one() -> None:
    executors = {name: Executor() for name in BOTH}
    with ExecutionContext(Configuration(), {"spark": executors["first"]}).entered():
        with ExecutionContext(Configuration(), {"spark": executors["second"]}).entered():
            start_job("inner")
        start_job("outer")
    assert (executors["first"].names, executors["second"].names) == (["outer"], ["inner"])


def test_threads_of_the_one_program_of_a_process_have_its_context() -> None:
    executor = Executor()
    context = ExecutionContext(Configuration({"parallelism.default": 5}), {"spark": executor})
    with context.entered(in_all_threads=True):
        assert in_thread(lambda: start_job("of a thread").get_parallelism()) == 5
        other = Executor()
        with ExecutionContext(Configuration(), {"spark": other}).entered():
            start_job("of a test")
        in_thread(lambda: start_job("of another thread"))
    assert (executor.names, other.names) == (["of a thread", "of another thread"], ["of a test"])
    assert in_thread(ExecutionContext.current) is not context


def test_a_context_that_others_entered_is_not_seen_in_another_thread() -> None:
    with ExecutionContext(Configuration({"parallelism.default": 5})).entered():
        assert in_thread(ExecutionContext.current) is not ExecutionContext.current()


def test_listing_the_jobs_of_a_context_does_not_show_those_of_another() -> None:
    seen: list[str] = []
    watched = ExecutionContext(
        Configuration(), {"spark": Executor()}, on_submission=lambda _, job, __: seen.append(job.name)
    )
    start_job("watched", StreamExecutionEnvironment(context=watched))
    other = ExecutionContext(Configuration(), {"spark": Executor()})
    start_job("other", StreamExecutionEnvironment(context=other))
    assert seen == ["watched"]


def test_a_job_that_is_refused_before_its_submission_does_not_run() -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no")

    executor = Executor()
    context = ExecutionContext(Configuration(), {"spark": executor}, on_submission=refuse)
    with pytest.raises(PermissionError):
        start_job("refused", StreamExecutionEnvironment(context=context))
    assert executor.jobs == []


def test_an_environment_has_one_executor_of_each_name() -> None:
    context = ExecutionContext(Configuration())
    target = Configuration({"execution.target": "headrace.testing.mini_cluster:MiniExecutor"})
    assert context.executor_for(target) is context.executor_for(target)
    assert context.executor_for(target) is not ExecutionContext(Configuration()).executor_for(target)


def test_flinks_targets_lead_to_the_contexts_spark() -> None:
    executor = Executor()
    context = ExecutionContext(Configuration(), {"spark": executor})
    env = StreamExecutionEnvironment(
        ProgramConfiguration.from_dict({"execution.target": "yarn-session"}), context=context
    )
    start_job("on yarn", env)
    assert executor.names == ["on yarn"]


def test_an_unknown_target_is_an_error_of_the_configuration() -> None:
    env = StreamExecutionEnvironment(
        ProgramConfiguration.from_dict({"execution.target": "mars"}), context=ExecutionContext()
    )
    with pytest.raises(ConfigurationError, match="unknown executor 'mars'"):
        start_job("nowhere", env)


def test_an_executor_with_a_maker_is_made_with_the_first_job_and_once() -> None:
    made: list[Executor] = []

    def make() -> Executor:
        made.append(Executor())
        return made[-1]

    context = ExecutionContext(Configuration(), makers={"spark": make})
    assert made == []
    for name in ("first", "second"):
        start_job(name, StreamExecutionEnvironment(context=context))
    assert [len(executor.jobs) for executor in made] == [2]
