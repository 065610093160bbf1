"""A program for `test_live`: live jobs on a Spark of their own, with the threads they need. Prints what came out."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from headrace.common import Configuration, JobClient, Types, WatermarkStrategy
from headrace.common.serialization import Encoder
from headrace.connectors.base import SplitEnumerator
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.connectors.file_system import FileSink, RollingPolicy
from headrace.datastream.state import ValueStateDescriptor

RECORDS = 3_000
KEYS = 7
LIVE = {"headrace.exchange.kind": "pipelined"}
OPTIONS = {
    "headrace.spark.master": "local[2]",
    "execution.checkpointing.interval": "200 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "restart-strategy.fixed-delay.attempts": "5",
    "headrace.epoch.target-duration": "200 ms",
}


class Count(KeyedProcessFunction):
    """Numbers the records of each key, and writes down which process has it."""

    def __init__(self, directory: str, name: str = "worker") -> None:
        self._directory = directory
        self._name = name

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        Path(self._directory, f"{self._name}-{os.getpid()}").touch()

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield f"{value % KEYS} {count}"


class Gated(DataGeneratorSource):
    """Gives half of its records until a file is there."""

    def create_enumerator(self, parallelism: int, **_: Any) -> SplitEnumerator:
        inner = super().create_enumerator(parallelism)
        plan = inner.plan

        def half(split: Any, position: int, max_records: int) -> Any:
            if position >= RECORDS // 4 and not Path(GATE).exists():
                return None
            if not Path(GATE).exists():
                max_records = min(max_records, RECORDS // 4 - position)
            return plan(split, position, max_records)

        inner.plan = half  # type: ignore[method-assign]
        return inner

    plans_anywhere = False


GATE = str(Path(sys.argv[1]) / "gate") if len(sys.argv) > 1 else ""


def start(directory: Path, name: str, options: dict[str, str]) -> JobClient:
    """Count numbers into files, on two subtasks."""
    env = environment(directory, options)
    count(env, directory, name, "worker")
    return env.execute_async(name)


def environment(directory: Path, options: dict[str, str]) -> StreamExecutionEnvironment:
    values = {**OPTIONS, **options, "execution.checkpointing.dir": str(directory / "checkpoints")}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(values))
    env.set_parallelism(2)
    return env


def count(env: StreamExecutionEnvironment, directory: Path, name: str, worker: str, suffix: str = "") -> None:
    source = Gated(lambda index: index, RECORDS)
    sink = FileSink.for_row_format(str(directory / name), Encoder.simple_string_encoder())
    sink = sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        .uid(f"numbers{suffix}")
        .key_by(lambda n: n % KEYS)
        .process(Count(str(directory), worker))
        .uid(f"count{suffix}")
        .sink_to(sink.build())
        .uid(f"files{suffix}")
    )


def lines(directory: Path) -> list[str]:
    """Return what was published; what is staged lies in a hidden directory."""
    parts = (path.relative_to(directory).parts for path in directory.rglob("*") if path.is_file())
    files = (directory.joinpath(*each) for each in parts if not any(name.startswith(".") for name in each))
    return sorted(line for path in files for line in path.read_text().splitlines())


def wait_for_output(directory: Path) -> None:
    while not directory.exists() or not lines(directory):
        time.sleep(0.05)


def with_a_kill(directory: Path) -> dict[str, Any]:
    """Kill a worker when something has been published, and see whether everything comes out once."""
    client = start(directory, "killed", LIVE)
    wait_for_output(directory / "killed")
    first = list(directory.glob("worker-*"))
    killed_at = time.time()
    os.kill(int(first[0].name.partition("-")[2]), signal.SIGKILL)
    while len(list(directory.glob("worker-*"))) < len(first) + 2:
        time.sleep(0.01)
    again_s = time.time() - killed_at
    Path(GATE).touch()
    client.get_job_execution_result().result(120)
    Path(GATE).unlink()
    return {"lines": lines(directory / "killed"), "open again after": round(again_s, 2)}


def with_regions(directory: Path) -> dict[str, Any]:
    """Kill a worker of one of two regions; the other one's workers stay as they are."""
    env = environment(directory, LIVE)
    for name in ("left", "right"):
        count(env, directory, name, f"{name} worker", suffix=f" {name}")
    client = env.execute_async("regions")
    for name in ("left", "right"):
        wait_for_output(directory / name)
    first = {name: workers(directory, name) for name in ("left", "right")}
    forked_from = {parent_of(pid_of(each)) for each in first["left"] + first["right"]}
    java = parent_of(min(forked_from))
    os.kill(pid_of(first["left"][0]), signal.SIGKILL)
    while len(workers(directory, "left")) < len(first["left"]) + 2:
        time.sleep(0.01)
    Path(GATE).touch()
    client.get_job_execution_result().result(120)
    Path(GATE).unlink()
    return {
        "left": lines(directory / "left"),
        "right": lines(directory / "right"),
        "right had workers": len(first["right"]),
        "right has had workers": len(workers(directory, "right")),
        "forked from the first": forked_from == {min(forked_by(java), key=start_of)},
    }


def pid_of(worker: str) -> int:
    return int(worker.rpartition("-")[2])


def parent_of(pid: int) -> int:
    return int(_stat(pid)[1])


def start_of(pid: int) -> int:
    """Return when a process was started, in ticks since the machine was."""
    return int(_stat(pid)[19])


def forked_by(java: int) -> list[int]:
    """Return the processes that Spark forks Python workers from. Java has other children, ended ones among them."""
    children = [
        int(each)
        for file in Path(f"/proc/{java}/task").glob("*/children")
        for each in file.read_text().split()
    ]
    return [child for child in children if "pyspark.worker" in Path(f"/proc/{child}/cmdline").read_text()]


def _stat(pid: int) -> list[str]:
    """Return the fields of a process's `stat` after its name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def workers(directory: Path, name: str) -> list[str]:
    return sorted(path.name for path in directory.glob(f"{name} worker-*"))


def with_savepoints(directory: Path) -> dict[str, Any]:
    """Go from live to epochs and back, with a savepoint between each."""
    options: dict[str, str] = {}
    for mode in (LIVE, {"headrace.exchange.kind": "blocking"}):
        client = start(directory, "moved", {**mode, **options})
        wait_for_output(directory / "moved")
        path = client.stop_with_savepoint(False, str(directory / "savepoints")).result(120)
        options = {"execution.state-recovery.path": path}
    Path(GATE).touch()
    start(directory, "moved", {**LIVE, **options}).get_job_execution_result().result(120)
    return {"lines": lines(directory / "moved")}


def main() -> None:
    directory = Path(sys.argv[1])
    outcomes = {
        # First: Spark gets the threads that the widest job needs.
        "regions": with_regions(directory),
        "killed": with_a_kill(directory),
        "moved": with_savepoints(directory),
    }
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
