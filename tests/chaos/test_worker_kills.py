"""Workers killed at places drawn from a seed: whatever the seed, results are exactly right."""

from __future__ import annotations

import os
import random
import signal
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Encoder, Types
from headrace.connectors.file import BucketAssigner, FileSink
from headrace.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from headrace.datastream.state import MapStateDescriptor, ValueStateDescriptor
from tests.conftest import EnvironmentFactory
from tests.spark.support import by_key, run

pytestmark = [pytest.mark.spark, pytest.mark.chaos]

RECORDS = 120
KEYS = 9
EPOCHS = 15
KILLS = 5


class Deadly(MapFunction):
    """Kills its worker at some records, at each of them once."""

    def __init__(self, records: set[int], directory: Path) -> None:
        self._records = records
        self._directory = directory

    def map(self, value: Any) -> Any:
        record = value if isinstance(value, int) else value[1]
        if record in self._records:
            try:
                (self._directory / str(record)).touch(exist_ok=False)
            except FileExistsError:
                return value
            os.kill(os.getpid(), signal.SIGKILL)
        return value


class Tally(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        self._seen.put(value, count)
        yield ctx.get_current_key(), value, count, len(list(self._seen.keys()))


@pytest.mark.parametrize(
    ("seed", "backend"),
    [
        (1, "hashmap"),
        (2, "rocksdb"),
        *(
            pytest.param(seed, backend, marks=pytest.mark.slow)
            for seed, backend in zip(range(3, 23), cycle(["hashmap", "rocksdb"]), strict=False)
        ),
    ],
)
def test_results_are_exactly_right_wherever_workers_die(
    env: EnvironmentFactory, tmp_path: Path, seed: int, backend: str
) -> None:
    chance = random.Random(seed)
    victims = chance.sample(range(RECORDS), KILLS)
    stages: list[set[int]] = [set(), set(), set()]
    for record in victims:
        chance.choice(stages).add(record)
    kills = tmp_path / "kills"
    directories = [kills / str(stage) for stage in range(3)]
    for directory in directories:
        directory.mkdir(parents=True)
    before, beside, after = (
        Deadly(records, directory) for records, directory in zip(stages, directories, strict=True)
    )
    environment = env(
        2,
        max_records=RECORDS // EPOCHS,
        options={
            "state.backend.type": backend,
            "headrace.state.compaction.max-changes": 3,
            "headrace.exchange.buffer-records": 3,
        },
    )
    numbers = environment.from_collection(list(range(RECORDS))).map(before).set_parallelism(1)
    tallied = numbers.key_by(lambda n: n % KEYS).process(Tally()).map(beside)
    # Another parallelism, hence another task, after an exchange that keeps the order of each key.
    results = tallied.key_by(lambda row: row[0]).map(after).set_parallelism(3)
    results.map(repr).sink_to(
        FileSink.for_row_format(tmp_path / "out", Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    outcome = run(results)
    expected = {
        key: [(key, value, place + 1, place + 1) for place, value in enumerate(range(key, RECORDS, KEYS))]
        for key in range(KEYS)
    }
    assert by_key(outcome.rows) == expected
    published = [line for path in (tmp_path / "out").glob("part-*") for line in path.read_text().splitlines()]
    assert sorted(published) == sorted(repr(row) for rows in expected.values() for row in rows)
    assert sum(len(list(directory.iterdir())) for directory in directories) == KILLS
