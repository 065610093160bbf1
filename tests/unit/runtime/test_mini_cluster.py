from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from headrace.common.configuration import Configuration as ProgramConfiguration
from headrace.common.job_status import JobStatus
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import MapFunction
from headrace.errors import JobExecutionError
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan
from headrace.runtime.run.state_registry import Compaction
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.settings import TaskSettings
from headrace.state.handles import StateFile
from headrace.testing.mini_cluster import (
    Fault,
    MiniCluster,
    MiniExecutor,
    MiniJob,
    TaskAttempt,
    random_faults,
)
from tests.unit.runtime.jobs import job_graph, make_env, run, start


def counting(env: StreamExecutionEnvironment) -> DataStream:
    pairs = env.from_collection("to be or not to be".split()).map(lambda word: (word, 1))
    return pairs.key_by(lambda pair: pair[0]).sum(1)


def test_programs_find_it_by_name() -> None:
    configuration = ProgramConfiguration()
    configuration.set_string("execution.target", "headrace.testing.mini_cluster:MiniExecutor")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    rows: Any = counting(env).execute_and_collect()
    with rows:
        assert sorted(rows) == [("be", 1), ("be", 2), ("not", 1), ("or", 1), ("to", 1), ("to", 2)]


def test_an_executor_keeps_the_jobs_it_was_given() -> None:
    env = make_env()
    counting(env).print()
    graph = job_graph(env)
    executor = MiniExecutor(workers=3, seed=7)
    job = executor.submit(graph, env._configuration.layered())
    assert executor.jobs == [job]
    result = job.wait()
    assert str(result.get_job_id()) == graph.job_id
    assert job.status() is JobStatus.FINISHED
    assert job.accumulators() == {}


def test_the_same_seed_goes_the_same_way() -> None:
    def trace(seed: int) -> tuple[list[Any], list[Any]]:
        finished = run(
            counting,
            parallelism=2,
            max_records=2,
            workers=3,
            seed=seed,
            faults=random_faults(seed, 0.2, [Fault.BEFORE, Fault.AFTER, Fault.WORKER_KILLED]),
        )
        return finished.output, [place for place, _ in finished.job.cluster.failures]

    assert trace(1) == trace(1)
    assert trace(1)[1] != trace(2)[1]


def test_subtasks_wander_from_worker_to_worker() -> None:
    class WhereAmI(MapFunction):
        def open(self, runtime_context: Any) -> None:
            self.mine = object()

        def map(self, value: Any) -> Any:
            return id(self)

    for workers, expected in [(1, 1), (4, 4)]:
        finished = run(
            lambda env: env.from_collection(range(40)).map(WhereAmI()), max_records=1, workers=workers, seed=5
        )
        assert len(set(finished.output)) == expected


@pytest.mark.parametrize("dumps", [None, cloudpickle.dumps], ids=["deep-copies", "pickled"])
def test_every_worker_has_its_own_copy_of_the_job(dumps: Any) -> None:
    class Remembers(MapFunction):
        def __init__(self) -> None:
            self.seen: list[int] = []

        def map(self, value: Any) -> Any:
            self.seen.append(value)
            return len(self.seen)

    function = Remembers()
    run(lambda env: env.from_collection(range(5)).map(function), max_records=1, workers=2, dumps=dumps)
    assert function.seen == []


def test_what_was_pickled_runs_too() -> None:
    factor = 3
    finished = run(
        lambda env: env.from_collection(range(4)).map(lambda n: n * factor),
        dumps=cloudpickle.dumps,
        workers=2,
    )
    assert finished.output == [0, 3, 6, 9]


def test_faults_strike_where_they_are_planned() -> None:
    faults = {TaskAttempt(2, 1, 0): Fault.BEFORE, TaskAttempt(2, 1, 0, attempt=1): Fault.AFTER}
    finished = run(counting, max_records=2, faults=faults)
    failures = finished.job.cluster.failures
    assert [place for place, _ in failures] == list(faults)
    assert [str(error).split(": ")[-1] for _, error in failures] == [
        "failed before the task began",
        "failed after the task ended",
    ]


def test_a_fault_that_lasts_longer_than_the_retries_fails_the_job() -> None:
    started = start(counting, faults=lambda place: Fault.BEFORE, options={"headrace.spark.task-retries": 1})
    with pytest.raises(JobExecutionError, match="failed before the task began"):
        started.job.wait()
    assert len(started.job.cluster.failures) == 2


def test_a_lost_host_starts_from_state_files_alone() -> None:
    # Every epoch one host is lost with its copies; with one worker, all local state goes each time.
    finished = run(
        counting,
        max_records=1,
        workers=1,
        faults=lambda place: Fault.HOST_LOST if place.level == 1 and place.epoch_attempt == 0 else None,
    )
    assert sorted(finished.output) == [("be", 1), ("be", 2), ("not", 1), ("or", 1), ("to", 1), ("to", 2)]
    assert [plan.attempt for plan in finished.job.cluster.plans] == [0, 1] * 6


def test_an_error_that_is_not_ours_comes_out_as_one_that_is(tmp_path: Path) -> None:
    """As on Spark, where all that reaches the driver is text."""
    cluster = make_cluster(tmp_path)
    subtask = SubtaskId("nobody", 0)
    plan = EpochPlan("job", 1, 0, str(tmp_path / "state"), {subtask: SubtaskPlan()})
    with pytest.raises(JobExecutionError, match="KeyError"):
        cluster.run(plan)
    cluster.close()


def test_merging_that_fails_is_the_futures_error(tmp_path: Path) -> None:
    cluster = make_cluster(tmp_path)
    missing = StateFile(str(tmp_path / "gone"), 0, 1, 1)
    future = cluster.compact([Compaction(SubtaskId("a", 0), "op", (missing,), str(tmp_path / "merged"))])
    assert "gone is missing" in str(future.exception(0))
    cluster.close()


def make_cluster(directory: Path) -> MiniCluster:
    env = make_env()
    counting(env).print()
    return MiniCluster(
        JobCode(job_graph(env), lineage="line", settings=TaskSettings(scratch_name="x")), directory
    )


def test_a_job_that_cannot_be_set_up_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    env = make_env()
    counting(env).print()
    graph = job_graph(env)
    with pytest.raises(TypeError):
        MiniJob(graph, not_a_setting=1)
    assert not any(tmp_path.iterdir())
