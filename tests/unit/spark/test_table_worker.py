"""What workers of table jobs keep from epoch to epoch."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.connectors.base import Slice
from headrace.connectors.collection import CollectionSource
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan
from headrace.spark import table_worker
from headrace.table import EnvironmentSettings, TableEnvironment

SUBTASK = SubtaskId("scan", 0)


class CountedReader:
    """A reader that tells how it is treated."""

    def __init__(self, reader: Any, log: list[str]) -> None:
        self._reader = reader
        self._log = log
        log.append("made")

    def open(self, context: Any) -> None:
        self._reader.open(context)

    def read(self, piece: Slice) -> Iterator[Any]:
        return self._reader.read(piece)

    def progress(self) -> Any:
        return self._reader.progress()

    def close(self) -> None:
        self._log.append("closed")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    log: list[str] = []
    make = CollectionSource.create_reader
    monkeypatch.setattr(CollectionSource, "create_reader", lambda self: CountedReader(make(self), log))
    monkeypatch.setattr(table_worker, "_readers", {})
    return log


def read(values: list[Any], start: int, end: int) -> list[Any]:
    """Read a part of a source as the scan of a table does in an epoch."""
    source = CollectionSource(values)
    [split] = source.create_enumerator(1).discover()
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql("CREATE TABLE t (n BIGINT) WITH ('connector' = 'datagen')")
    graph = t_env._jobs.job_graph(t_env._jobs.plan_query(t_env.from_path("t")._plan), "t")
    scan = graph.vertices[0]
    object.__setattr__(scan.head.declaration, "source", source)
    code = SimpleNamespace(job=SimpleNamespace(vertex=lambda _: scan, name="t"))
    plan = EpochPlan("job", 1, 0, "", {SUBTASK: SubtaskPlan((Slice(split, start, end),))})
    reader = table_worker._ScanReader("job", code, SUBTASK, plan)  # type: ignore[arg-type]
    return [value for batch in reader.run(None) for value in batch.column(0).to_pylist()]


def test_a_reader_is_kept_for_the_next_epoch(log: list[str]) -> None:
    values = [(1,), (2,), (3,)]
    assert read(values, 0, 2) == [1, 2]
    assert read(values, 2, 3) == [3]
    assert log == ["made"]


def test_a_reader_that_has_failed_is_closed(log: list[str]) -> None:
    with pytest.raises(Exception, match="no number"):
        read([("no number",)], 0, 1)
    assert read([(1,)], 0, 1) == [1]
    assert log == ["made", "closed", "made"]
