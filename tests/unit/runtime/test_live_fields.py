"""Fields of functions in live jobs: they last, survive failures if they can be pickled, and pass between modes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import KeyedProcessFunction, RuntimeContext
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.fakes import MarkedSink
from tests.unit.runtime.jobs import run
from tests.unit.runtime.test_live import (
    COUNTED,
    LIVE,
    OFTEN,
    RESTARTS,
    PacedEnumerator,
    numbers,
    output_of,
    paced,
    stop_in_the_middle,
)

#: How often a function was at a record for the first time since it was opened.
opened: list[int] = []


class CountInFields(KeyedProcessFunction):
    """Counts in its own fields; one of them cannot be pickled."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def open(self, runtime_context: RuntimeContext) -> None:
        self.lock = threading.Lock()

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if not self.lock.locked():
            self.lock.acquire()
            opened.append(value)
        key = value % 7
        self.counts[key] = self.counts.get(key, 0) + 1
        yield key, self.counts[key]


def counting_in_fields(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).key_by(lambda n: n % 7).process(CountInFields()).uid("count")


@pytest.fixture(autouse=True)
def _nothing_seen() -> Iterator[None]:
    opened.clear()
    PacedEnumerator.epochs = None
    yield
    PacedEnumerator.epochs = None


@pytest.mark.parametrize("options", [OFTEN, {**OFTEN, "execution.checkpointing.unaligned.enabled": "true"}])
def test_fields_come_back_when_a_subtask_is_killed_and_others_are_as_open_leaves_them(
    options: dict[str, str], tmp_path: Path
) -> None:
    killed = threading.Event()

    def kill(job: MiniJob) -> None:
        if not killed.is_set() and job.progress.records > 100:
            killed.set()
            job.live_cluster.kill(1, 0)

    sink = MarkedSink(str(tmp_path))
    started = paced(
        counting_in_fields, kill, parallelism=2, options={**LIVE, **options, **RESTARTS}, sink=sink
    )
    started.job.wait()
    assert output_of(sink) == COUNTED
    assert started.job.progress.restarts == 1
    assert len(opened) == 4  # two subtasks, before and after


@pytest.mark.parametrize("modes", [("live", "epochs"), ("epochs", "live"), ("live", "live")], ids="-".join)
def test_fields_pass_from_one_mode_to_the_other_with_a_savepoint(
    modes: tuple[str, str], tmp_path: Path
) -> None:
    first, second = ({} if mode == "epochs" else LIVE for mode in modes)
    sink = MarkedSink(str(tmp_path))
    savepoint = stop_in_the_middle(counting_in_fields, tmp_path, first, sink)
    assert 0 < len(output_of(sink)) < len(COUNTED)
    options = {**OFTEN, **second, "execution.state-recovery.path": savepoint}
    run(counting_in_fields, parallelism=2, options=options, sink=sink)
    assert output_of(sink) == COUNTED
