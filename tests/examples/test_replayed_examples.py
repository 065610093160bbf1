"""Epochs of the examples, replayed: the same output, state, watermarks and timers, bit for bit."""

from __future__ import annotations

import random
import runpy
import sys
from pathlib import Path
from unittest import mock

import pytest

from headrace.config import Configuration
from headrace.datastream.execution_context import ExecutionContext
from headrace.replay.recordings import JobRecording
from headrace.replay.run import replay_epoch
from headrace.testing.mini_cluster import MiniExecutor, random_faults

ROOT = Path(__file__).parents[2]
QUICK = ("state_kinds", "sensor_alerts", "time/overdue_boats")
SLOW = (
    *QUICK,
    *("collect_results", "custom_source_sink", "enrich_join", "fraud_rules_broadcast", "partitioners"),
    *("running_totals", "word_count", "time/early_results", "time/hourly_tips", "time/late_data"),
    *("time/order_joins", "time/quiet_day", "time/session_cache", "time/session_gaps"),
)


def recorded(
    name: str, directory: Path, *, max_records: int, seed: int, is_live: bool = False
) -> list[JobRecording]:
    """Run an example on the mini cluster, in epochs with some faults or live, and return the recordings of its jobs."""
    values = {
        "headrace.replay.keep": "100000",
        "headrace.replay.dir": str(directory),
        "headrace.replay.inputs": "true",
        "headrace.epoch.max-records": str(max_records),
        "parallelism.default": str(1 + seed % 3),
    }
    if is_live:
        values |= {"headrace.exchange.kind": "pipelined", "headrace.live.barrier-interval": "2 ms"}
    executor = MiniExecutor() if is_live else MiniExecutor(seed=seed, faults=random_faults(seed, 0.01))
    program = str(ROOT / "examples" / f"{name}.py")
    context = ExecutionContext(Configuration(values), executors={"spark": executor})
    with context.entered(in_all_threads=True), mock.patch.object(sys, "argv", [program]):
        runpy.run_path(program, run_name="__main__")
    return [JobRecording(str(path)) for path in sorted((directory / "replay").iterdir())]


def differences(recordings: list[JobRecording], number: int, seed: int) -> tuple[int, list[str]]:
    """Replay some epochs; return how many, and what differs."""
    epochs = [(recording, epoch) for recording in recordings for epoch in recording.epochs]
    chosen = random.Random(seed).sample(epochs, min(number, len(epochs)))
    found = []
    for recording, epoch in chosen:
        result = replay_epoch(recording, recording.epoch(epoch))
        assert result.error is None, result.error
        found += [f"epoch {epoch}: {each}" for each in result.differences]
    return len(chosen), found


@pytest.mark.parametrize("name", QUICK)
def test_epochs_of_an_example_are_replayed_bit_for_bit(name: str, tmp_path: Path) -> None:
    recordings = recorded(name, tmp_path, max_records=7, seed=4)
    count, found = differences(recordings, 12, seed=1)
    assert count >= 6
    assert found == []


@pytest.mark.parametrize("name", QUICK)
def test_a_live_run_of_an_example_is_replayed_bit_for_bit(name: str, tmp_path: Path) -> None:
    recordings = recorded(name, tmp_path, max_records=7, seed=4, is_live=True)
    count, found = differences(recordings, 12, seed=1)
    assert count >= 1
    assert found == []


@pytest.mark.slow(seconds=600)
@pytest.mark.timeout(1200)
def test_a_thousand_epochs_of_the_examples_are_replayed_bit_for_bit(tmp_path: Path) -> None:
    total, found = 0, []
    for seed in (1, 2):
        for name in SLOW:
            directory = tmp_path / f"{name.replace('/', '-')}-{seed}"
            recordings = recorded(name, directory, max_records=3 + seed, seed=seed)
            count, some = differences(recordings, 90, seed)
            total += count
            found += [f"{name}: {each}" for each in some]
    for name in SLOW:
        directory = tmp_path / f"{name.replace('/', '-')}-live"
        recordings = recorded(name, directory, max_records=4, seed=3, is_live=True)
        count, some = differences(recordings, 90, seed=3)
        assert count > 0
        total += count
        found += [f"{name}, live: {each}" for each in some]
    assert found == []
    assert total >= 1000
