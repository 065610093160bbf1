"""The example of an upgrade, on the mini cluster; that it runs on Spark is tested with the other examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples import upgrade_with_savepoint as example
from headrace.config import Configuration
from headrace.datastream.execution_context import ExecutionContext
from headrace.testing.mini_cluster import MiniExecutor

READINGS = 3_000


@pytest.fixture(autouse=True)
def _on_the_mini_cluster() -> Iterator[None]:
    with ExecutionContext(Configuration(), {"spark": MiniExecutor()}).entered():
        yield


def test_totals_continue_where_the_first_version_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(example, "LIMIT", 0)
    savepoint = example.run_first_version(str(tmp_path), READINGS)
    before = example.totals_in(savepoint)
    rows = example.run_second_version(savepoint, READINGS)
    after = {station: max(total for name, total, _ in rows if name == station) for station in before}
    assert 0 < sum(before.values()) < sum(after.values())
    assert after == {
        station: sum(n % 41 for n in range(READINGS) if n % 3 == index)
        for index, station in enumerate(example.STATIONS)
    }
    assert max(peak for _, _, peak in rows) == 40
