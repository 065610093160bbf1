"""The program of `test_driver_kills`: counts by key into files and into PostgreSQL. Started with `headrace run`.

headrace run driver_program.py DIRECTORY

With the job parameter `rate`, that many numbers come in a second; without it, all at once.
What happens on the way is told by files in the directory: `epochs` has a line for each epoch. A file `hold` there stops
the job after as many epochs as it says, for as long as it exists. With one of these, the driver kills itself and its
Java, once:

    kill-before-commit      a checkpoint is complete, nothing of it is published
    kill-between-sinks      the files are published, the rows are not
    kill-after-commit       both are, and nobody has been told
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from headrace.common import Encoder, Types, WatermarkStrategy
from headrace.config import Configuration
from headrace.connectors.base import Source
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.file import BucketAssigner, FileSink, RollingPolicy
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from headrace.datastream.state import ValueStateDescriptor
from headrace.runtime.run.sink_coordinator import SinkCoordinator
from headrace.spark.executor import Listeners, SparkExecutor

NUMBERS = 120
KEYS = 9


class Tally(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield ctx.get_current_key(), value, count


def is_exact(rows: Iterable[tuple[int, ...]]) -> bool:
    """Whether every number is there once, and every key was counted one by one, in whatever order they came."""
    found = list(rows)
    counted = sorted((key, count) for key, _, count in found)
    return sorted((key, value) for key, value, _ in found) == sorted(
        (n % KEYS, n) for n in range(NUMBERS)
    ) and counted == sorted((n % KEYS, n // KEYS + 1) for n in range(NUMBERS))


def kill_if_asked(directory: Path, what: str) -> None:
    """Kill this process group: the driver and its Java."""
    try:
        (directory / what).rename(directory / f"{what}.done")
    except FileNotFoundError:
        return
    os.killpg(os.getpgrp(), signal.SIGKILL)


def is_held(directory: Path, epochs: int) -> bool:
    """Whether the job is to wait after this many epochs."""
    try:
        return epochs >= int((directory / "hold").read_text())
    except FileNotFoundError:
        return False


def hook_commits(directory: Path) -> None:
    commit, commit_one = SinkCoordinator.commit, SinkCoordinator._commit

    def deadly_commit(sinks: SinkCoordinator, checkpoint_id: int) -> Any:
        kill_if_asked(directory, "kill-before-commit")
        published = commit(sinks, checkpoint_id)
        kill_if_asked(directory, "kill-after-commit")
        return published

    def deadly_commit_one(sinks: SinkCoordinator, state: Any, up_to: int | None) -> Any:
        published = commit_one(sinks, state, up_to)
        kill_if_asked(directory, "kill-between-sinks")
        return published

    SinkCoordinator.commit = deadly_commit  # type: ignore[method-assign]
    SinkCoordinator._commit = deadly_commit_one  # type: ignore[method-assign]


def main(directory: Path) -> None:
    hook_commits(directory)
    epochs = 0

    def tell(_: Any, summary: Any) -> None:
        nonlocal epochs
        epochs += 1
        with open(directory / "epochs", "a") as stream:
            stream.write(f"{os.getpid()} {summary.epoch}\n")
        while is_held(directory, epochs):
            time.sleep(0.01)

    executor = ExecutionContext.current().executor_for(Configuration())
    assert isinstance(executor, SparkExecutor)
    executor.listeners.append(Listeners(epoch_completed=tell))
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    # A live job is to be under way, too, when a user looks for it.
    rate = env.get_config().get_global_job_parameters().get("rate")
    source: Source = (
        NumberSequenceSource(0, NUMBERS - 1)
        if rate is None
        else DataGeneratorSource(lambda index: index, NUMBERS, float(rate))
    )
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    rows = numbers.key_by(lambda n: n % KEYS).process(Tally()).uid("tally")
    files = FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder())
    files = files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    policy = RollingPolicy.default_rolling_policy(part_size=300)
    rows.sink_to(files.with_rolling_policy(policy).build()).uid("files")
    if "CHAOS_JDBC_URL" in os.environ:
        connection = JdbcConnectionOptions(
            os.environ["CHAOS_JDBC_URL"], os.environ["CHAOS_JDBC_USER"], os.environ["CHAOS_JDBC_PASSWORD"]
        )
        insert = f"INSERT INTO {os.environ['CHAOS_JDBC_TABLE']} VALUES (?, ?, ?)"
        rows.sink_to(JdbcSink.exactly_once_sink(insert, None, connection)).uid("rows")
    env.execute("tally")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
