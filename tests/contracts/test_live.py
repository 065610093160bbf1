"""Every source and sink in live jobs: a subtask is killed in the middle, and every record comes out once."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Row, WatermarkStrategy
from headrace.common.serialization import Encoder
from headrace.connectors.base import (
    Boundedness,
    Sink,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.file import FileSink, RollingPolicy
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcPartition, JdbcSink, JdbcSource
from headrace.connectors.jdbc._connections import dispose_engines
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.testing.mini_cluster import MiniJob
from tests.contracts.test_sinks import BULK, lines_below
from tests.contracts.test_sources import CASES, Case
from tests.unit.runtime.fakes import MarkedSink, marked
from tests.unit.runtime.paced import PacedEnumerator, paced

OPTIONS = {
    "headrace.exchange.kind": "pipelined",
    "execution.checkpointing.interval": "5 ms",
    "execution.checkpointing.unaligned.enabled": "true",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "restart-strategy.fixed-delay.attempts": "10",
}
#: The barrier after which a subtask is killed.
KILLED_AFTER = 3


@dataclass(frozen=True)
class Slowly(Source):
    """Reads another source, three records of each split from one barrier to the next."""

    inner: Source

    @property
    def boundedness(self) -> Boundedness:
        return self.inner.boundedness

    @property
    def concurrent_splits(self) -> int | None:  # type: ignore[override]
        return self.inner.concurrent_splits

    @property
    def plans_anywhere(self) -> bool:  # type: ignore[override]
        return self.inner.plans_anywhere

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return SlowEnumerator(self.inner.create_enumerator(parallelism))

    def create_reader(self) -> SourceReader:
        return self.inner.create_reader()


class SlowEnumerator(PacedEnumerator):
    def __init__(self, inner: SplitEnumerator) -> None:
        super().__init__(inner)
        self._read: set[tuple[str, int | None]] = set()

    def plan(self, split: SourceSplit, position: Any, max_records: int) -> Slice | None:
        now = (split.split_id, PacedEnumerator.epochs)
        if now in self._read:
            return None
        piece = self._inner.plan(split, position, min(max_records, 3))
        if piece is not None:
            self._read.add(now)
        return piece

    def next_discovery_delay(self) -> float | None:
        return self._inner.next_discovery_delay()

    def split_finished(self, split: SourceSplit) -> None:
        self._inner.split_finished(split)

    def checkpoint_completed(self, positions: Mapping[str, Any], finished: Collection[SourceSplit]) -> None:
        self._inner.checkpoint_completed(positions, finished)

    def close(self) -> None:
        self._inner.close()


@pytest.fixture(autouse=True)
def _no_pace() -> Iterator[None]:
    yield
    PacedEnumerator.epochs = None


def run_and_kill(
    source: Source, sink: Sink, place: tuple[int, int], published: Callable[[], Sequence[Any]], count: int
) -> MiniJob:
    """Copy a source to a sink, live; kill a subtask once, and stop what has no end."""
    done: set[str] = set()

    def program(env: StreamExecutionEnvironment) -> DataStream:
        slowly = env.from_source(Slowly(source), WatermarkStrategy.no_watermarks(), "source")
        return slowly.rebalance().map(lambda value: value)

    def watch(job: MiniJob) -> None:
        if "killed" not in done and (PacedEnumerator.epochs or 0) >= KILLED_AFTER:
            done.add("killed")
            job.live_cluster.kill(*place)
        has_end = source.boundedness is Boundedness.BOUNDED
        if not has_end and "stopped" not in done and len(published()) >= count:
            done.add("stopped")
            job.cancel()

    started = paced(program, watch, parallelism=2, options=OPTIONS, sink=sink)
    if source.boundedness is Boundedness.BOUNDED:
        started.job.wait()
    else:
        started.job.result_future().exception(60)
    return started.job


def in_marked(sink: MarkedSink) -> list[Any]:
    return [record for batch in marked[sink.name].values() for record in batch]


@pytest.mark.parametrize("place", [(0, 0), (1, 1)], ids=["source killed", "consumer killed"])
@pytest.mark.parametrize("name", CASES)
def test_every_record_of_a_source_comes_once(name: str, place: tuple[int, int], tmp_path: Path) -> None:
    case: Case = CASES[name]
    (tmp_path / "input").mkdir()
    sink = MarkedSink(str(tmp_path / "output"))
    source = case.make(tmp_path / "input")
    job = run_and_kill(source, sink, place, lambda: in_marked(sink), len(case.expected))
    assert Counter(map(repr, in_marked(sink))) == Counter(map(repr, case.expected))
    assert job.progress.restarts == (1 if len(job.epochs) > KILLED_AFTER else 0)


def test_every_row_of_a_database_comes_once(tmp_path: Path) -> None:
    rows = [Row(id=number, fruit=f"fruit {number}") for number in range(60)]
    with closing(sqlite3.connect(tmp_path / "db")) as database, database:
        database.execute("CREATE TABLE fruits (id INTEGER PRIMARY KEY, fruit TEXT)")
        database.executemany("INSERT INTO fruits VALUES (?, ?)", [(row.id, row.fruit) for row in rows])
    connection = JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path / 'db'}")
    source = JdbcSource(connection, "fruits", ["id", "fruit"], JdbcPartition("id", 3), fetch_size=4)
    sink = MarkedSink(str(tmp_path / "output"))
    job = run_and_kill(source, sink, (0, 0), lambda: in_marked(sink), len(rows))
    assert Counter(map(repr, in_marked(sink))) == Counter(map(repr, rows))
    assert job.progress.restarts == 1
    dispose_engines()


WORDS = [f"word {number}" for number in range(60)]


def words_to(sink: Sink, published: Callable[[], Sequence[Any]], record: Callable[[str], Any] = str) -> None:
    """Write words live, kill a writer, and compare what is there."""
    source = DataGeneratorSource(lambda index: record(f"word {index}"), len(WORDS))
    job = run_and_kill(source, sink, (1, 0), published, len(WORDS))
    assert Counter(map(repr, published())) == Counter(repr(record(word)) for word in WORDS)
    assert job.progress.restarts == 1


@pytest.mark.parametrize("policy", ["default", "checkpoint", "compaction"])
def test_files_have_every_record_once(policy: str, tmp_path: Path) -> None:
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    if policy == "checkpoint":
        builder = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    if policy == "compaction":
        builder = builder.with_compaction()
    words_to(builder.build(), lambda: lines_below(tmp_path))


@pytest.mark.parametrize("name", BULK)
def test_files_of_bulk_formats_have_every_record_once(name: str, tmp_path: Path) -> None:
    factory, read = BULK[name]

    def published() -> list[Any]:
        parts = [path for path in tmp_path.rglob("part-*") if ".staging" not in path.parts]
        return [record for path in parts for record in read(path)]

    sink = FileSink.for_bulk_format(tmp_path, factory).build()
    words_to(sink, published, lambda word: {"word": word})


def test_a_database_has_every_record_once(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute("CREATE TABLE words (word TEXT)")
        connection = JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path / 'db'}")
        sink = JdbcSink.exactly_once_sink("INSERT INTO words VALUES (?)", None, connection)
        words_to(sink, lambda: words_in(tmp_path / "db"))
    dispose_engines()


def words_in(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [word for (word,) in database.execute("SELECT word FROM words")]
