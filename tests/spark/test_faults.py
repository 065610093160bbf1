"""Workers that die, functions that fail: results stay exactly right, and what cannot be helped is told well."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Encoder, JobStatus, Types
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.file import BucketAssigner, FileSink
from headrace.datastream import (
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
)
from headrace.datastream.state import ListStateDescriptor, ValueStateDescriptor
from headrace.errors import TaskLostError, UserFunctionError
from headrace.testing.sources import EndEpoch, Fail, Kill, ScriptedFailure, ScriptedSource, Stop
from tests.conftest import EnvironmentFactory
from tests.spark.support import RECORDER, by_key, kill_workers, read, run, wait_until

pytestmark = pytest.mark.spark

WORDS = [f"w{n % 4}" for n in range(40)]
COUNTS = {f"w{n}": [(f"w{n}", count) for count in range(1, 11)] for n in range(4)}


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield value, count


class Times:
    """Says yes a number of times, over all processes: it counts in a file."""

    def __init__(self, path: Path, times: int = 1) -> None:
        self._path = path
        self._times = times

    def once_more(self) -> bool:
        with self._path.open("ab") as file:
            # Where the byte was written, not how long the file is by now: two processes get two numbers.
            file.write(b".")
            file.flush()
            return file.tell() <= self._times

    @property
    def used(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0


def kill_this_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def lines_sink(directory: Path) -> FileSink:
    return (
        FileSink.for_row_format(directory, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )


def lines_of(directory: Path) -> list[str]:
    """Return what a reader of the directory sees; names with a dot before them are not for readers."""
    files = [
        path
        for path in directory.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(directory).parts)
    ]
    return [line for path in files for line in path.read_text().splitlines()]


# -- workers that die ----------------------------------------------------------------------------------


def test_a_reader_killed_in_the_middle_of_an_epoch_is_read_again_once(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    script = [*WORDS[:10], EndEpoch(), *WORDS[10:15], Kill(), *WORDS[15:30], EndEpoch(), Kill(), *WORDS[30:]]
    environment = env(2)
    outcome = run(
        read(environment, ScriptedSource(script, directory=tmp_path))
        .key_by(lambda word: word)
        .process(Count())
    )
    assert by_key(outcome.rows) == COUNTS
    assert outcome.retried_tasks >= 2


def test_files_hold_every_record_once_when_readers_are_killed(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    script = [*WORDS[:5], Kill(), *WORDS[5:20], EndEpoch(), *WORDS[20:30], Kill(times=2), *WORDS[30:]]
    environment = env(2)
    counts = (
        read(environment, ScriptedSource(script, directory=tmp_path / "attempts"))
        .key_by(lambda word: word)
        .process(Count())
    )
    counts.map(lambda row: f"{row[0]} {row[1]}").sink_to(lines_sink(tmp_path / "out"))
    environment.execute()
    assert sorted(lines_of(tmp_path / "out")) == sorted(
        f"{word} {count}" for rows in COUNTS.values() for word, count in rows
    )


class KillAt(MapFunction):
    """Kills its worker when it meets a record, a number of times."""

    def __init__(self, record: Any, path: Path, times: int = 1) -> None:
        self._record = record
        self._times = Times(path, times)

    def map(self, value: Any) -> Any:
        if value == self._record and self._times.once_more():
            kill_this_worker()
        return value


def test_a_worker_killed_after_it_changed_state_leaves_no_trace(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    environment = env(2, max_records=12)
    counts = environment.from_collection(WORDS).key_by(lambda word: word).process(Count())
    # In the chain of the count, and with small batches: when it dies, state and sinks hold a part of the epoch.
    survivors = counts.map(KillAt(("w1", 5), tmp_path / "kills"))
    survivors.map(lambda row: f"{row[0]} {row[1]}").sink_to(lines_sink(tmp_path / "out"))
    outcome = run(survivors)
    assert by_key(outcome.rows) == COUNTS
    assert len(lines_of(tmp_path / "out")) == len(set(lines_of(tmp_path / "out"))) == len(WORDS)
    assert outcome.retried_tasks >= 1


def test_an_epoch_is_run_again_when_its_task_was_tried_too_often(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    # Four attempts are all a task gets, so the fifth is in a second try at the whole epoch.
    environment = env(2, max_records=15)
    counts = environment.from_collection(WORDS).key_by(lambda word: word).process(Count())
    survivors = counts.map(KillAt(("w2", 6), tmp_path / "kills", times=5)).disable_chaining()
    survivors.map(lambda row: f"{row[0]} {row[1]}").sink_to(lines_sink(tmp_path / "out"))
    outcome = run(survivors)
    assert by_key(outcome.rows) == COUNTS
    assert len(lines_of(tmp_path / "out")) == len(set(lines_of(tmp_path / "out"))) == len(WORDS)


def test_a_worker_that_always_dies_fails_the_job(env: EnvironmentFactory, tmp_path: Path) -> None:
    environment = env(2, options={"headrace.epoch.retries": 1})
    kills = Times(tmp_path / "kills", 1000)
    environment.from_collection(WORDS).map(KillAt("w3", tmp_path / "kills", times=1000)).sink_to(
        BlackholeSink()
    )
    client = environment.execute_async()
    with pytest.raises(TaskLostError) as raised:
        client.get_job_execution_result().result(100)
    assert client.get_job_status().result() is JobStatus.FAILED
    assert kills.used == 8
    assert "worker" in str(raised.value)
    assert not re.search(r"org\.apache|java\.|py4j|Exception", str(raised.value))


@pytest.mark.parametrize("with_daemon", [False, True], ids=["workers", "the daemon, too"])
def test_workers_killed_between_epochs_are_not_missed(
    env: EnvironmentFactory, tmp_path: Path, with_daemon: bool
) -> None:
    environment = env(2, max_records=10)
    source = ScriptedSource([*WORDS[:20], Stop(), *WORDS[20:]], directory=tmp_path)
    with read(environment, source).key_by(lambda word: word).process(Count()).execute_and_collect() as stream:
        rows = [next(stream) for _ in range(20)]
        wait_until(lambda: len(RECORDER.of(stream._client)) >= 2)
        assert kill_workers(stream._client, with_daemon=with_daemon) >= 1
        source.resume()
        rows += stream
    assert by_key(rows) == COUNTS


#: Kills the Java process below it in the middle of a job, and tells how the job ended.
_LOSES_SPARK = """
import os, signal, time
from pyspark import SparkContext
from headrace.common import Configuration, WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.function_source import PythonSource
from headrace.datastream import StreamExecutionEnvironment

def count(start):
    while True:
        yield start
        start += 1

options = {"headrace.spark.master": "local[2]", "headrace.epoch.max-records": "10"}
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
numbers = env.from_source(
    PythonSource({"all": count}, bounded=False), WatermarkStrategy.no_watermarks(), "Numbers"
)
numbers.key_by(lambda n: n % 5).reduce(lambda a, b: a + b).sink_to(BlackholeSink())
client = env.execute_async()
while client._handle.progress.epochs < 2:
    time.sleep(0.01)
os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
error = client.get_job_execution_result().exception(60)
print(client.get_job_status().result().name, type(error).__name__, error)
"""


def test_a_job_ends_with_sparks_java_process(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LOSES_SPARK],
        capture_output=True,
        text=True,
        timeout=110,
        cwd=tmp_path,
        check=False,
    )
    assert ended.stdout.startswith("FAILED JobExecutionError Spark's Java process has ended")
    assert "hint:" in ended.stdout


# -- functions that fail -------------------------------------------------------------------------------


class FailAt(MapFunction):
    """Raises when it meets a record, a number of times."""

    def __init__(self, record: Any, path: Path, times: int) -> None:
        self._record = record
        self._times = Times(path, times)
        self.calls = 0

    def map(self, value: Any) -> Any:
        self.calls += 1
        if value == self._record and self._times.once_more():
            raise ValueError(f"cannot bear {value}")
        return value, self.calls


def test_a_function_that_fails_twice_is_tried_again(env: EnvironmentFactory, tmp_path: Path) -> None:
    environment = env(2, max_records=20)
    failing = (
        environment.from_collection(WORDS).map(FailAt("w3", tmp_path / "failures", 2)).set_parallelism(1)
    )
    outcome = run(failing.map(lambda row: row[0]).key_by(lambda word: word).process(Count()))
    assert by_key(outcome.rows) == COUNTS
    assert max(report.spark_attempt for report in outcome.reports) == 2


def test_an_attempt_starts_with_the_function_as_it_was_opened(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    outcome = run(env(1).from_collection(WORDS).map(FailAt("w3", tmp_path / "failures", 2)))
    # What the failed attempts had counted is not carried into the one that counts.
    assert [calls for _, calls in outcome.rows] == list(range(1, len(WORDS) + 1))


def test_a_source_that_fails_twice_is_read_again(env: EnvironmentFactory, tmp_path: Path) -> None:
    script = [*WORDS[:10], Fail("not now", times=2), *WORDS[10:]]
    outcome = run(
        read(env(2), ScriptedSource(script, directory=tmp_path)).key_by(lambda word: word).process(Count())
    )
    assert by_key(outcome.rows) == COUNTS


def test_a_source_that_always_fails_fails_the_job_with_its_own_error(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    source = ScriptedSource([1, 2, Fail("no such queue", times=1000)], directory=tmp_path)
    with pytest.raises(ScriptedFailure, match="no such queue"):
        run(read(env(2), source))


def parse(word: str) -> int:
    return 0 if word == "w0" else int(word[1:] + ("?" if word == "w2" else ""))


def test_a_function_that_always_fails_is_named_with_record_and_traceback(env: EnvironmentFactory) -> None:
    environment = env(2)
    words = environment.from_collection(WORDS)
    words.key_by(lambda word: word).map(parse).name("Parse").sink_to(BlackholeSink())
    client = environment.execute_async("numbers of words")
    with pytest.raises(UserFunctionError) as raised:
        client.get_job_execution_result().result(60)
    error = raised.value
    assert client.get_job_status().result() is JobStatus.FAILED
    assert (error.job, error.operator, error.record) == ("numbers of words", "Parse", "'w2'")
    assert error.subtask in {0, 1}
    assert error.attempt == 3  # the last of four
    assert error.message == "ValueError: invalid literal for int() with base 10: '2?'"
    # The user's own frames, from the line that failed, and none of ours or of Spark's.
    assert "in parse" in error.user_traceback
    assert 'int(word[1:] + ("?"' in error.user_traceback
    assert not re.search(r"headrace[/.](operators|runtime|spark)|pyspark|py4j|java", str(error))


def test_output_of_completed_epochs_stays_when_a_later_one_fails(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    environment = env(1, max_records=10)
    stream = environment.from_collection(list(range(35))).map(lambda n: str(100 // (25 - n) and n))
    stream.sink_to(lines_sink(tmp_path / "out"))
    with pytest.raises(UserFunctionError, match="ZeroDivisionError"):
        environment.execute()
    assert sorted(lines_of(tmp_path / "out"), key=int) == [str(n) for n in range(20)]


# -- functions that are not deterministic --------------------------------------------------------------


class DrawAndSum(KeyedProcessFunction):
    """Draws a number for every record, and emits it with the sum of all that were drawn for the key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._drawn = runtime_context.get_list_state(ListStateDescriptor("drawn", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Any:
        self._drawn.add(random.SystemRandom().randrange(1 << 30))
        drawn = list(self._drawn)
        yield value, drawn[-1], sum(drawn)


@pytest.mark.parametrize("times", [1, 5], ids=["the task runs again", "the epoch runs again"])
def test_what_was_drawn_by_chance_agrees_with_the_state(
    env: EnvironmentFactory, tmp_path: Path, times: int
) -> None:
    environment = env(2, max_records=10)
    drawn = environment.from_collection(WORDS).key_by(lambda word: word).process(DrawAndSum())
    kill = Times(tmp_path / "kills", times)

    def watch(row: Any) -> Any:
        if row[0] == "w1" and kill.once_more():
            kill_this_worker()
        return row

    # After an exchange: a second try at the task reads what was drawn, one at the epoch draws again.
    outcome = run(drawn.rebalance().map(watch).set_parallelism(1))
    assert kill.used > times
    assert Counter(row[0] for row in outcome.rows) == Counter(WORDS)
    for rows in by_key(outcome.rows).values():
        total = 0
        for _, number, sum_so_far in sorted(rows, key=lambda row: row[2]):
            total += number
            assert sum_so_far == total


class Hoard(MapFunction):
    """Keeps too much in memory."""

    def map(self, value: int) -> int:
        return len(bytearray(value << 20))


def test_a_function_beyond_the_memory_of_its_worker_fails_with_what_to_do(env: EnvironmentFactory) -> None:
    environment = env(options={"headrace.python.memory-per-worker": "600m"})
    environment.from_collection([1, 900]).map(Hoard()).name("hoard").sink_to(BlackholeSink())
    with pytest.raises(UserFunctionError, match="MemoryError") as caught:
        environment.execute("too much")
    assert caught.value.operator == "hoard"
    assert "this Python worker may allocate 600 MB: raise headrace.python.memory-per-worker" in str(
        caught.value
    )
