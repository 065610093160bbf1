"""A program for `test_local_cluster`: jobs on two executor processes, one of which is killed. Prints what came out.

It is a program of its own because a process has one Spark, and this one has another master.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

from headrace.common import Configuration, Types, WatermarkStrategy
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from headrace.datastream.state import ListStateDescriptor
from headrace.runtime.epoch.messages import SubtaskReport
from headrace.spark import epoch_runner, executor, runner
from headrace.spark.placement import Placement
from tests.spark.artifacts_program import name_artifacts, use_artifacts
from tests.watching import EXECUTOR, watching

KEYS = 7
NUMBERS = 72
#: One source subtask reads so many records in an epoch; there are four.
PER_EPOCH = 3


OPTIONS = {
    "headrace.spark.master": "local-cluster[2,1,1024]",
    # Jobs have four subtasks: two take turns on each executor.
    "taskmanager.numberOfTaskSlots": "2",
    "headrace.epoch.max-records": str(PER_EPOCH),
    "headrace.epoch.target-duration": "1 h",
    "headrace.state.compaction.max-changes": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Executors live for seconds, as drivers of tests do.
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
}


class Draw(KeyedProcessFunction):
    """Draws a number by chance for every record; emits it with how many there are and their sum."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._drawn = runtime_context.get_list_state(ListStateDescriptor("drawn", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        self._drawn.add(random.SystemRandom().randrange(1 << 30))
        drawn = list(self._drawn)
        yield ctx.get_current_key(), value, len(drawn), drawn[-1], sum(drawn)


class WaitForKill:
    """Holds a record until an executor was killed, after it has said which one it runs on."""

    def __init__(self, number: int, directory: str) -> None:
        self._number = number
        self._directory = directory

    def __call__(self, row: Any) -> Any:
        directory = Path(self._directory)
        if row[1] >= self._number and not (directory / "killed").exists():
            (directory / f"waiting-{executor_of(os.getpid())}").touch()
            while not (directory / "killed").exists():
                time.sleep(0.01)
        return row


def command_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return [""]  # it has ended


def is_executor(pid: int) -> bool:
    return "--app-id" in command_of(pid)


def executor_of(pid: int) -> int:
    """Return the Java process that a python worker belongs to: worker, daemon, executor."""
    while not is_executor(pid):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


class Log(logging.Handler):
    """Counts the epochs that are run again."""

    def __init__(self) -> None:
        super().__init__()
        self.retries = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.retries += "retrying epoch" in record.getMessage()


def run(name: str, directory: Path, *, with_kill: bool) -> dict[str, Any]:
    """Run a job; kill one of the executors in its middle, or none."""
    directory.mkdir()
    if not with_kill:
        (directory / "killed").touch()
    log = Log()
    logging.getLogger("headrace.runtime").addHandler(log)
    context = ExecutionContext(executors={"spark": EXECUTOR})
    env = StreamExecutionEnvironment(Configuration.from_dict(OPTIONS), context=context).set_parallelism(4)
    numbers = env.from_source(
        NumberSequenceSource(0, NUMBERS - 1), WatermarkStrategy.no_watermarks(), "Numbers"
    )
    drawn = numbers.key_by(lambda n: n % KEYS).process(Draw())
    # Chained after the state, in the third epoch: the sources' output is in use, and state is half written.
    stream = drawn.map(WaitForKill(2 * PER_EPOCH, str(directory)))
    reports: list[SubtaskReport] = []
    with (
        watching(on_epoch=lambda _, summary: reports.extend(summary.reports)),
        stream.execute_and_collect(name) as rows,
    ):
        if with_kill:
            kill_executor(directory)
        results = list(rows)
    workers: dict[int, set[int]] = defaultdict(set)
    for report in reports:
        if report.changes:
            workers[report.subtask.subtask].add(report.pid)
    return {
        "rows": results,
        "retries": log.retries,
        "epochs": rows._client._handle.progress.epochs,
        "workers by stateful subtask": {subtask: sorted(pids) for subtask, pids in workers.items()},
        "leftovers": [
            path.name for path in Path("/dev/shm").glob(f"headrace-{str(rows._client.get_job_id())[:8]}-*")
        ],
    }


def kill_executor(directory: Path) -> None:
    """Kill the executor of a task that waits, and let the tasks continue."""
    deadline = time.monotonic() + 200
    while not (waiting := list(directory.glob("waiting-*"))):
        assert time.monotonic() < deadline, "no task came to where it waits"
        time.sleep(0.01)
    pid = int(waiting[0].name.partition("-")[2])
    assert is_executor(pid)
    os.kill(pid, signal.SIGKILL)
    while is_executor(pid):
        time.sleep(0.01)
    (directory / "killed").touch()


class WatchedPlacement(Placement):
    """Takes this one host for several, and notes which host Spark prefers for each partition."""

    preferred: ClassVar[list[list[str]]] = []

    def learn(self, hosts: set[str]) -> None:
        super().learn(hosts | {"another one"})

    def place(self, level: int, shuffled: Any) -> Any:
        placed = super().place(level, shuffled)
        if placed is not shuffled and level == 1:  # that of the state
            self.preferred.append([self._preferred_host(placed, index) for index in range(4)])
        return placed

    def _preferred_host(self, placed: Any, partition: int) -> str:
        found = self._context._jsc.sc().getPreferredLocs(placed.rdd(), partition)
        return ",".join(found.apply(index).host() for index in range(found.size()))


def run_with_artifacts(folder: str) -> list[dict[str, Any]]:
    """Run a job that needs both executors for its two subtasks."""
    options = {**OPTIONS, "taskmanager.numberOfTaskSlots": "1"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
    name_artifacts(env, folder)
    return use_artifacts(env, folder)


def main(directory: Path) -> None:
    outcomes: dict[str, Any] = {
        "artifacts": run_with_artifacts(f"{directory}/files"),
        "undisturbed": run("undisturbed", directory / "undisturbed", with_kill=False),
        "executor killed": run("executor killed", directory / "executor-killed", with_kill=True),
    }
    epoch_runner.Placement = WatchedPlacement  # type: ignore[misc]
    # As if executors were on other hosts: what is left on them the driver cannot reach.
    executor.remove_scratch = runner.remove_run = lambda *_: None  # type: ignore[attr-defined]
    outcomes["placed"] = run("placed", directory / "placed", with_kill=False)
    outcomes["placed"]["preferred"] = list(WatchedPlacement.preferred)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
