"""Live jobs that are recorded while subtasks, connections and regions fail: every epoch of theirs is replayed exactly.

Barriers overtake records, subtasks are slow, and runs start with another parallelism or in the other mode, all of it
drawn from a seed. Storage does not fail: a recording that could not be written is not complete.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.config.configuration import Configuration
from headrace.datastream.execution_context import ExecutionContext
from headrace.replay.recordings import JobRecording
from headrace.replay.run import replay_epoch
from headrace.runtime.epoch.recording import RecordingSettings, has_outcome
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.script import ScriptStep, read_script
from headrace.spark.user_code import pack_job
from tests.chaos.live_faults import UnalignedChaoticJob

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: Programs and seeds whose barriers overtake records.
RUNS = [("tumbling", 24), pytest.param("counting", 7, marks=pytest.mark.slow), ("list state", 5)]
EPOCHS = 25


class RecordedJob(UnalignedChaoticJob):
    """Keeps all its epochs."""

    def __init__(self, name: str, seed: int, directory: Path) -> None:
        super().__init__(name, seed, directory)
        self.faults.budget = 0
        self.options |= {"headrace.replay.keep": 100_000, "headrace.replay.dir": directory / "recorded"}

    def _make_cluster(self, code: JobCode, hosts: str) -> Any:
        directory = str(self.directory / "recorded" / "replay")
        recording = RecordingSettings(directory, keeps_inputs=True, live_bytes=1 << 24)
        code = replace(code, settings=replace(code.settings, recording=recording))
        cluster = super()._make_cluster(code, hosts)
        cluster.packed_job = lambda: pack_job(code)
        return cluster


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(("name", "seed"), RUNS)
def test_every_epoch_of_a_live_job_is_replayed_whatever_fails(name: str, seed: int, tmp_path: Path) -> None:
    with ExecutionContext(Configuration()).entered(in_all_threads=True):
        RecordedJob(name, seed, tmp_path).run()
    (directory,) = [path.parent for path in (tmp_path / "recorded" / "replay").rglob("job-*")][:1]
    recording = JobRecording(str(directory))
    ended = [number for number in recording.epochs if has_outcome(recording.directory, number)]
    steps: Counter[ScriptStep] = Counter()
    found = []
    for number in ended[:: max(1, len(ended) // EPOCHS)]:
        epoch = recording.epoch(number)
        if not epoch.reports:
            continue
        for report in epoch.reports.values():
            if report.trace is not None and report.trace.script is not None:
                steps.update(step for step, _ in read_script(report.trace.script).steps)
        result = replay_epoch(recording, epoch)
        assert result.error is None, (number, result.error)
        found += [f"epoch {number}: {each}" for each in result.differences]
    assert found == []
    # That it was worth its while.
    assert steps.total() > 20
