"""FileSink: whatever is killed, and wherever, every line is in the finished files once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headrace.common.serialization import Encoder
from headrace.connectors import staged_files
from headrace.connectors.file import BucketAssigner, FileSink, RollingPolicy, _committer, _parts
from headrace.errors import ConnectorError
from tests.chaos.sink_faults import Crash, Fuse, crash_everywhere, new_committer, run_driver, write_epoch

pytestmark = pytest.mark.chaos


def sink_of(base: Path, policy: RollingPolicy) -> FileSink:
    builder = FileSink.for_row_format(str(base), Encoder.simple_string_encoder())
    plain = BucketAssigner.base_path_bucket_assigner()
    return builder.with_bucket_assigner(plain).with_rolling_policy(policy).build()


def lines(base: Path) -> list[str]:
    return [line for path in base.glob("part-*") for line in path.read_text().splitlines()]


# --- killed processes -----------------------------------------------------------------------------


def hook_system_calls(fuse: Fuse) -> None:
    for name in ("replace", "remove", "fsync", "makedirs", "rmdir"):
        fuse.wrap(os, name)
    for name in ("append", "open_output"):
        fuse.wrap(staged_files, name)


def kill_at_every_step(root: Path) -> int:
    """Three checkpoints; the process is killed in the commit of the second, and in the finish after it."""
    _parts.MERGE_FACTOR = 2
    _parts.mergeable.__defaults__ = (2,)
    policy = RollingPolicy.default_rolling_policy(part_size=40)

    def prepare(steps: int) -> dict[str, Any]:
        base = root / str(steps)
        sink = sink_of(base, policy)
        committer = new_committer(sink)
        first = [c for n in (1, 2, 3) for c in write_epoch(sink, n, [[f"a{n}"], [f"first {n}"]])]
        committer.snapshot()
        committer.commit(first)
        state = committer.snapshot()
        second = write_epoch(sink, 4, [["a4"], ["fills the file of this subtask"], ["x" * 50]])
        second += write_epoch(sink, 5, [["a5"], ["begins another"]])
        write_epoch(sink, 6, [["never committed"], ["nor this"]])
        return {"base": base, "sink": sink, "state": state, "second": second, "committer": committer}

    def commit(prepared: dict[str, Any]) -> None:
        prepared["committer"].commit(prepared["second"])
        prepared["committer"].finish()

    def recover(prepared: dict[str, Any]) -> None:
        committer = new_committer(prepared["sink"])
        committer.restore(prepared["state"])
        committer.commit(prepared["second"])
        committer.discard_after(5)
        # The job continues from there: a file that `finish` has published is not the one that grows.
        state = committer.snapshot()
        committer.commit(write_epoch(prepared["sink"], 6, [["after"], ["after, too"]]))
        assert state
        committer.finish()

    def check(prepared: dict[str, Any]) -> None:
        expected = ["a1", "a2", "a3", "a4", "a5", "first 1", "first 2", "first 3", "begins another", "x" * 50]
        expected += ["fills the file of this subtask", "after", "after, too"]
        assert Counter(lines(prepared["base"])) == Counter(expected)
        staged = [path for path in (prepared["base"] / ".staging").rglob("*") if path.is_file()]
        assert staged == [], staged

    return crash_everywhere(prepare, commit, recover, check, hook_system_calls)


def kill_an_overwrite_at_every_step(root: Path) -> int:
    """Files are replaced by new ones; the process is killed in between, and nothing is lost at any moment."""
    old, new = {"old 1", "old 2"}, {"new 1", "new 2", "new 3"}

    def prepare(steps: int) -> dict[str, Any]:
        base = root / str(steps)
        base.mkdir()
        for number, line in enumerate(sorted(old)):
            (base / f"part-old-{number}").write_text(f"{line}\n")
        builder = FileSink.for_row_format(str(base), Encoder.simple_string_encoder())
        sink = (
            builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .with_overwrite("")
            .build()
        )
        committer = new_committer(sink)
        committer.commit(write_epoch(sink, 1, [["new 1"]]))
        state = committer.snapshot()
        second = write_epoch(sink, 2, [["new 2"], ["new 3"]])
        return {"base": base, "sink": sink, "state": state, "second": second, "committer": committer}

    def commit(prepared: dict[str, Any]) -> None:
        prepared["committer"].commit(prepared["second"])
        prepared["committer"].finish()

    def recover(prepared: dict[str, Any]) -> None:
        there = set(lines(prepared["base"]))
        assert there >= old or there >= new, there
        committer = new_committer(prepared["sink"])
        committer.restore(prepared["state"])
        committer.commit(prepared["second"])
        committer.finish()

    def check(prepared: dict[str, Any]) -> None:
        assert Counter(lines(prepared["base"])) == Counter(new)

    return crash_everywhere(prepare, commit, recover, check, hook_system_calls)


def kill_a_restore_in_another_directory(root: Path) -> int:
    """A savepoint is restored with another directory; the process is killed in between, and restored again."""
    policy = RollingPolicy.default_rolling_policy(part_size=40)

    def prepare(steps: int) -> dict[str, Any]:
        before, after = root / str(steps) / "before", root / str(steps) / "after"
        old = sink_of(before, policy)
        committer = new_committer(old)
        committer.commit([c for n in (1, 2) for c in write_epoch(old, n, [[f"a{n}"], [f"b{n}"]])])
        state = committer.snapshot()
        pending = write_epoch(old, 3, [["a3"], ["fills the file of this subtask"], ["c3"]])
        return {
            "before": before,
            "after": after,
            "sink": sink_of(after, policy),
            "state": state,
            "pending": pending,
        }

    def restore(prepared: dict[str, Any]) -> None:
        committer = new_committer(prepared["sink"])
        committer.restore(prepared["state"])
        committer.commit(prepared["pending"])
        committer.discard_after(3)

    def recover(prepared: dict[str, Any]) -> None:
        restore(prepared)
        committer = new_committer(prepared["sink"])
        committer.commit(write_epoch(prepared["sink"], 4, [["after"]]))
        committer.finish()

    def check(prepared: dict[str, Any]) -> None:
        expected = ["a1", "a2", "a3", "b1", "b2", "fills the file of this subtask", "c3"]
        assert Counter(lines(prepared["before"])) == Counter(expected)
        assert lines(prepared["after"]) == ["after"]
        assert [path for path in (prepared["before"] / ".staging").rglob("*") if path.is_file()] == []

    return crash_everywhere(prepare, restore, recover, check, hook_system_calls)


@pytest.mark.parametrize(
    ("how", "least"),
    [
        ("kill_at_every_step", 20),
        ("kill_an_overwrite_at_every_step", 5),
        ("kill_a_restore_in_another_directory", 10),
    ],
)
def test_a_process_killed_before_any_system_call_of_a_commit_does_no_harm(tmp_path, how, least):
    # In a process of its own, without threads, which forks those that are killed.
    program = f"from {__name__} import *; print('steps', {how}(Path({str(tmp_path)!r})))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > least


# --- random faults --------------------------------------------------------------------------------


class Faults:
    """Makes steps of the driver and of its file operations fail, from a seed."""

    def __init__(self, rng: random.Random, rate: float) -> None:
        self.rng = rng
        self.rate = rate
        self.is_dead = False

    def burn(self, name: str) -> None:
        if self.is_dead:
            raise Crash(name)
        if self.rng.random() < self.rate:
            if self.rng.random() < 0.3:
                raise OSError(28, f"no space left (injected before {name})")
            self.is_dead = True
            raise Crash(name)

    def maybe_crash(self, name: str) -> None:
        try:
            self.burn(name)
        except OSError as error:
            raise ConnectorError(str(error)) from error

    def restart(self) -> None:
        self.is_dead = False


@pytest.fixture
def small_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parts.mergeable, "__defaults__", (3,))
    monkeypatch.setattr(_committer, "_SWEEP_COMMITS", 5)


POLICIES = [
    RollingPolicy.on_checkpoint_rolling_policy(),
    RollingPolicy.default_rolling_policy(part_size=200),
    RollingPolicy.default_rolling_policy(part_size=1500),
    RollingPolicy.default_rolling_policy(rollover_interval=3),
]


# A driver that is gone does not close its files.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("small_merges")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("damage_rate", [0.0, 0.3])
def test_random_faults_between_all_steps(tmp_path, seed, damage_rate):
    rng = random.Random(seed)
    faults = Faults(rng, rng.choice([0.005, 0.02, 0.05]))
    sink = sink_of(tmp_path, POLICIES[seed % len(POLICIES)])
    records = [f"record {number}" for number in range(rng.choice([50, 300]))]
    undo = [Fuse(faults.burn).wrap(os, name) for name in ("replace", "remove", "fsync", "makedirs")]
    undo.append(Fuse(faults.burn).wrap(staged_files, "append"))
    try:
        crashes = run_driver(sink, records, rng, faults.maybe_crash, faults.restart, damage_rate=damage_rate)
    finally:
        for each in undo:
            each()

    found = Counter(lines(tmp_path))
    if damage_rate:
        # What was published after the checkpoint that is gone comes again; nothing is lost.
        assert found >= Counter(records), f"after {crashes} crashes"
    else:
        assert found == Counter(records), f"after {crashes} crashes"
