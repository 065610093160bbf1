"""`cache()`: computed by the first job, read by later ones, computed again once it is gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Configuration
from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.connectors.cached import find_cached_files
from headrace.datastream import OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from headrace.datastream.cached_data_stream import CachedDataStream, cached_results
from headrace.errors import JobDefinitionError, JobExecutionError
from tests.engines import MINI_EXECUTOR


def environment(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", MINI_EXECUTOR)
    for key, value in settings.items():
        configuration.set_string(key.replace("__", "-").replace("_", "."), value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.set_parallelism(2).set_runtime_mode(RuntimeExecutionMode.BATCH)


@pytest.fixture
def env() -> Iterator[StreamExecutionEnvironment]:
    env = environment()
    yield env
    env.close()


class Counted:
    """A function that leaves a line in a file for every record it sees."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __call__(self, value: int) -> int:
        with open(self._path, "a") as file:
            file.write(f"{value}\n")
        return value * value


def collect(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as rows:
        return sorted(rows)


def calls(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_later_job_reads_what_the_first_one_has_computed(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    squares = env.from_collection(range(20)).rebalance().map(Counted(log)).cache()
    assert isinstance(squares, CachedDataStream)

    assert collect(squares) == [n * n for n in range(20)]
    assert calls(log) == 20
    assert collect(squares.map(lambda n: -n)) == sorted(-n * n for n in range(20))
    assert calls(log) == 20, "the second job computed the squares again"


def test_an_invalidated_result_is_computed_again(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    squares = env.from_collection(range(5)).map(Counted(log)).cache()
    collect(squares)
    squares.invalidate()
    assert collect(squares) == [0, 1, 4, 9, 16]
    assert calls(log) == 10


def test_a_result_of_which_a_file_is_lost_is_computed_again(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    env = environment(execution_checkpointing_dir=str(tmp_path / "shared"))
    squares = env.from_collection(range(5)).map(Counted(log)).cache()
    collect(squares)
    (directory,) = (tmp_path / "shared").glob("cache-*")
    found = find_cached_files(str(directory))
    assert found is not None
    os.remove(directory / found[0].name)
    assert collect(squares) == [0, 1, 4, 9, 16]
    assert calls(log) == 10
    env.close()
    assert not list((tmp_path / "shared").glob("cache-*")), "close() leaves results behind"


def test_timestamps_are_kept(env: StreamExecutionEnvironment) -> None:
    from headrace.common import Time
    from headrace.datastream.window import TumblingEventTimeWindows

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    timed = env.from_collection(range(0, 40, 10)).assign_timestamps_and_watermarks(strategy).cache()
    collect(timed)
    windows = timed.window_all(TumblingEventTimeWindows.of(Time.milliseconds(20))).reduce(lambda a, b: a + b)
    assert collect(windows) == [10, 50]


def test_a_side_output_can_be_cached(env: StreamExecutionEnvironment) -> None:
    from headrace.common import Types
    from headrace.datastream import ProcessFunction

    odd = OutputTag("odd", Types.INT())

    class Split(ProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            yield (odd, value) if value % 2 else value

    kept = env.from_collection(range(6)).process(Split()).get_side_output(odd).cache()
    assert collect(kept) == [1, 3, 5]
    assert collect(kept.map(lambda n: n + 1)) == [2, 4, 6]


def test_nothing_of_a_job_that_failed_is_read(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    log = tmp_path / "calls"

    def fail_first(value: int) -> int:
        if not (tmp_path / "repaired").exists():
            raise ValueError("not yet")
        return value

    numbers = env.from_collection(range(3)).map(Counted(log)).cache()
    with pytest.raises(JobExecutionError):
        collect(numbers.map(fail_first))
    (tmp_path / "repaired").touch()
    before = calls(log)
    assert collect(numbers.map(fail_first)) == [0, 1, 4]
    assert calls(log) == before + 3


def test_keeping_is_refused_in_streaming_mode_and_reading_is_not(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection(range(3)).map(lambda n: n).cache()
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    with pytest.raises(JobDefinitionError, match="only be kept in BATCH mode"):
        collect(numbers)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    collect(numbers)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    assert collect(numbers) == [0, 1, 2]


def test_a_partitioning_cannot_be_cached(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection(range(3))
    for other in (stream.rebalance(), stream.key_by(lambda n: n), stream.union(stream)):
        with pytest.raises(JobDefinitionError, match="only the result of an operator"):
            other.cache()


def test_a_cluster_needs_a_directory_that_all_reach() -> None:
    env = environment(headrace_spark_master="spark://host:7077", parallelism_default="2")
    numbers = env.from_collection([1]).map(lambda n: n).cache()
    numbers.print()
    with pytest.raises(JobDefinitionError, match=r"execution\.checkpointing\.dir"):
        env.get_execution_plan()
    env.close()


def test_settings_are_those_of_the_operator_before(env: StreamExecutionEnvironment) -> None:
    kept = env.from_collection([1]).map(lambda n: n).cache().name("Squares").set_parallelism(1)
    assert kept.get_name() == "Squares"


def test_a_closed_environment_has_no_results() -> None:
    env = environment()
    before = set(cached_results())
    env.from_collection([1]).map(lambda n: n).cache()
    assert set(cached_results()) > before
    env.close()
    assert set(cached_results()) == before


def test_a_plan_that_is_looked_at_meanwhile_does_not_disturb_the_job_that_computes(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    numbers = env.from_collection(range(50)).map(Counted(log)).cache()
    numbers.print()
    client = env.execute_async()
    numbers.map(lambda n: n + 1).print()
    env.get_execution_plan()
    client.get_job_execution_result().result()
    assert len(collect(numbers)) == 50
    assert calls(log) == 50
