"""A job on Spark that gets another parallelism in its middle, several times: the result is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Encoder, Types
from headrace.connectors.file import BucketAssigner, FileSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import KeyedProcessFunction, RuntimeContext
from headrace.datastream.state import ListStateDescriptor, ValueStateDescriptor
from headrace.errors import JobDefinitionError
from headrace.spark.executor import SparkJob
from tests.conftest import EnvironmentFactory
from tests.spark.support import read
from tests.watching import watching

pytestmark = pytest.mark.spark

NUMBERS = 150
KEYS = 11


class Tally(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        self._seen.add(value)
        yield f"{ctx.get_current_key()} {count} {len(list(self._seen))}"


@pytest.mark.parametrize("backend", ["hashmap", pytest.param("rocksdb", marks=pytest.mark.slow)])
def test_rescaling_in_the_middle_changes_nothing(
    env: EnvironmentFactory, tmp_path: Path, backend: str
) -> None:
    environment = env(
        2,
        max_records=8,
        options={
            "state.backend.type": backend,
            "execution.checkpointing.interval": "50 ms",
            "execution.checkpointing.dir": tmp_path / "checkpoints",
            "headrace.state.compaction.max-changes": 4,
        },
    )
    numbers = read(environment, NumberSequenceSource(0, NUMBERS - 1))
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    numbers.key_by(lambda n: n % KEYS).process(Tally()).sink_to(
        sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    )
    jobs: list[SparkJob] = []
    used: list[int] = []
    steps = iter([4, 1, 3])
    done: list[Any] = []

    def rescale(_: Any, summary: Any) -> None:
        used.append(max(report.subtask.subtask for report in summary.reports) + 1)
        if len(used) % 3 == 0 and (parallelism := next(steps, None)):
            done.append(jobs[0].rescale(parallelism))

    with watching(on_job=jobs.append, on_epoch=rescale):
        client = environment.execute_async("rescaled")
        client.get_job_execution_result().result()
    for each in done:
        each.result(0)
    assert list(dict.fromkeys(used)) == [2, 4, 1, 3]
    found = [line for path in (tmp_path / "out").glob("part-*") for line in path.read_text().splitlines()]
    expected = [f"{n % KEYS} {n // KEYS + 1} {n // KEYS + 1}" for n in range(NUMBERS)]
    assert sorted(found) == sorted(expected)


def test_a_parallelism_that_cannot_be_is_refused_at_once(env: EnvironmentFactory) -> None:
    environment = env(2, max_records=5)
    read(environment, NumberSequenceSource(0, 50)).print()
    client = environment.execute_async("refused")
    with pytest.raises(JobDefinitionError, match="parallelism 0"):
        client.rescale(0)
    client.get_job_execution_result().result()
