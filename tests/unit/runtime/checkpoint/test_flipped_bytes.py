"""Each byte of each file that a start of a job reads, flipped in turn: detected, named, and the older checkpoint used.

    <job>/chk-*/_metadata, shared/*         the checkpoint before is used; the message names the file
    <job>/fence-*, results, jobs, tokens    the start is refused, or goes the safe way; the message names the file
    <job>/epochs-*/*                        only the names are read: nothing changes

Files up to a few kilobytes have every byte flipped; of larger ones a sample is drawn from a seed, and all bytes by
`-m slow`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from headrace.errors import DamagedStateError, StateError
from headrace.runtime.checkpoint.metadata import FileRef, KeyedPart
from headrace.runtime.checkpoint.savepoints import write_savepoint
from headrace.runtime.checkpoint.storage import (
    CheckpointDirectory,
    StoredCheckpoint,
    load_checkpoint,
    read_files,
)
from headrace.runtime.epoch.log import EpochLog, EpochNumbers
from headrace.runtime.high_availability.job_results import FileJobResults, JobResult
from headrace.runtime.high_availability.job_store import JobStore, StoredJob
from headrace.runtime.high_availability.lease import HighAvailabilitySettings, LeaderLease, LeaseHolder
from headrace.state.changes import write_change, write_sections
from headrace.state.row_sets import RowSet
from tests.unit.runtime.checkpoint.snapshots import checkpoint
from tests.unit.runtime.checkpoint.test_next_start import Program
from tests.unit.runtime.fakes import marked
from tests.unit.runtime.test_recovery import COUNTED, NUMBERS, output_of

JOB = "a" * 32
#: Bytes of a file up to which each is flipped in the normal suite, and how many are drawn from a larger one.
SMALL, SAMPLE = 1500, 400
ALL = [False, pytest.param(True, marks=pytest.mark.slow)]


def places(size: int, *, all_of_them: bool) -> list[int]:
    """Return which bytes of a file to flip."""
    if all_of_them or size <= SMALL:
        return list(range(size))
    ends = [*range(64), *range(size - 64, size)]  # heads and footers
    return sorted({*ends, *random.Random(size).sample(range(size), SAMPLE)})


@contextmanager
def flipped(path: Path, at: int) -> Iterator[None]:
    """Flip a bit of a byte for a while."""
    data = path.read_bytes()
    path.write_bytes(data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
    try:
        yield
    finally:
        path.write_bytes(data)


def entries(count: int, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    sections = {}
    for group in range(3):
        keys = [group.to_bytes(2) + rng.randbytes(6) for _ in range(count)]
        sections[group] = (keys, [rng.randbytes(9) for _ in range(count - 1)] + [None])
    return {"count": sections}


def table_rows(seed: int) -> RowSet:
    rng = np.random.default_rng(seed)
    return RowSet(
        keys=rng.integers(0, 1 << 40, (20, 2)),
        owners=None,
        removed=rng.random(20) < 0.3,
        columns={},
        types={},
    )


def complete(home: CheckpointDirectory, number: int) -> StoredCheckpoint:
    """Write a checkpoint with entries and with a table, each in a file of its own."""
    shared = Path(home.shared_directory)
    shared.mkdir(parents=True, exist_ok=True)
    keyed, table = shared / f"{number}.change", shared / f"{number}-table.change"
    sizes = {
        str(keyed): write_change(str(keyed), entries(8, number)),
        str(table): write_sections(str(table), [(5, {"t": table_rows(number)})]),  # type: ignore[dict-item]
    }
    metadata = checkpoint(number)
    parts = tuple(
        KeyedPart(index, (FileRef(path, size, 0, 1),)) for index, (path, size) in enumerate(sizes.items())
    )
    operator = replace(metadata.operators[0], keyed=parts)
    return home.write(replace(metadata, operators=(operator,)))


@pytest.fixture
def home(tmp_path: Path) -> CheckpointDirectory:
    made = CheckpointDirectory(str(tmp_path / "state"), JOB, leader=3)
    made.take_over()
    return made


# -- checkpoints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("all_of_them", ALL)
def test_a_flipped_byte_of_a_checkpoint_is_found_and_the_one_before_is_used(
    home: CheckpointDirectory, all_of_them: bool
) -> None:
    older, newest = complete(home, 1), complete(home, 2)
    own = [newest.metadata_path, *(file.path for file in newest.metadata.files())]
    for path in map(Path, own):
        for at in places(path.stat().st_size, all_of_them=all_of_them):
            with flipped(path, at):
                recovery = home.latest_valid(thorough=True)
            assert recovery.checkpoint == older, f"byte {at} of {path.name}"
            [skipped] = recovery.skipped
            assert skipped.path == newest.path
            assert str(path) in skipped.reason, f"byte {at} of {path.name}: {skipped.reason}"
    assert home.latest_valid(thorough=True).checkpoint == newest


def test_a_flipped_byte_of_a_savepoint_is_found_and_named(home: CheckpointDirectory, tmp_path: Path) -> None:
    savepoint = write_savepoint(complete(home, 1).metadata, str(tmp_path / "savepoints"))
    for path in sorted(Path(savepoint.path).iterdir()):
        for at in places(path.stat().st_size, all_of_them=False):
            with flipped(path, at), pytest.raises(StateError, match=path.name) as caught:
                read_files(load_checkpoint(savepoint.path))
            assert not caught.value.retryable


def test_a_flipped_byte_of_a_fence_keeps_the_job_from_starting(home: CheckpointDirectory) -> None:
    complete(home, 1)
    CheckpointDirectory(str(Path(home.path).parent), JOB, leader=4).take_over()
    [path] = Path(home.path).glob("fence-*")
    for at in range(path.stat().st_size):
        with flipped(path, at), pytest.raises(DamagedStateError, match=path.name):
            CheckpointDirectory(str(Path(home.path).parent), JOB, leader=5).take_over()


# -- what drivers leave for each other -----------------------------------------------------------------


def test_a_flipped_byte_of_a_result_is_found_and_named(tmp_path: Path) -> None:
    results = FileJobResults(str(tmp_path), leader=3)
    results.add_dirty(JobResult(JOB, "clicks", "FAILED", 1_700_000_000_000, checkpoint="/c/chk-1", error="x"))
    [path] = tmp_path.iterdir()
    for at in range(path.stat().st_size):
        with flipped(path, at), pytest.raises(DamagedStateError, match=path.name) as caught:
            results.find(JOB)
        assert "delete the file" in (caught.value.hint or "").lower()


def test_a_flipped_byte_of_a_stored_job_is_found_and_named(tmp_path: Path) -> None:
    settings = HighAvailabilitySettings(str(tmp_path), "test", 60_000)
    lease = LeaderLease(settings)
    assert lease.try_acquire()
    store = JobStore(settings.jobs_directory, lease)
    store.put(StoredJob(JOB, "clicks", b"graph", {"a": "b"}, 1))
    [job] = Path(settings.jobs_directory, JOB).iterdir()
    for at in range(job.stat().st_size):
        with flipped(job, at), pytest.raises(DamagedStateError, match=str(job)):
            store.get(JOB)


def test_a_flipped_byte_of_a_lease_does_not_end_it_early(tmp_path: Path) -> None:
    now = [0.0]
    long, short = (HighAvailabilitySettings(str(tmp_path), "test", lease_ms) for lease_ms in (15_000, 10_000))
    leader = LeaderLease(long, name="first", clock=lambda: now[0])
    assert leader.try_acquire()
    leader.renew()
    names = sorted(Path(long.leader_directory).iterdir())
    assert len(names) == 2
    for path in names:
        for at in range(path.stat().st_size):
            with flipped(path, at):
                assert path.name.startswith("renewal") or LeaseHolder.decode(path.read_bytes()) is None
                candidate = LeaderLease(short, name="second", clock=lambda: now[0])
                started = now[0]
                assert not candidate.try_acquire()
                now[0] = started + 14.9  # longer than its own lease, and shorter than the leader's
                assert not candidate.try_acquire(), f"byte {at} of {path.name}"
                now[0] = started


def test_flipped_bytes_of_the_epoch_log_change_nothing(tmp_path: Path) -> None:
    """Of the log only the names are read: no epoch may have a number twice."""
    log = EpochLog(str(tmp_path), "first")
    log.complete(17, ())
    [path] = (tmp_path / "epochs-first").iterdir()
    for at in range(path.stat().st_size):
        with flipped(path, at):
            assert EpochNumbers(str(tmp_path)).highest == 17


# -- whole jobs ----------------------------------------------------------------------------------------


def newest_files(program: Program) -> list[Path]:
    """Return the files of the newest checkpoint that the one before does not name."""
    home = CheckpointDirectory(str(program.directory / "state"), program.job_id)
    newest, before = home.valid()[:2]
    named = {file.path for file in newest.metadata.files()} - {file.path for file in before.metadata.files()}
    return [Path(newest.metadata_path), *map(Path, sorted(named))]


@pytest.mark.parametrize(
    "flips", [12, pytest.param(400, marks=pytest.mark.slow)], ids=["some flips", "many flips"]
)
def test_a_job_whose_newest_checkpoint_has_a_flipped_byte_continues_from_the_one_before(
    tmp_path: Path, flips: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(15)
    for number in range(flips):
        program = Program(tmp_path / str(number))
        program.end("killed", monkeypatch, **{"headrace.state.compaction.max-changes": 100})
        path = rng.choice(newest_files(program))
        at = rng.randrange(path.stat().st_size)
        data = bytearray(path.read_bytes())
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        program.start().wait()
        # Nothing is lost; what was published after the older checkpoint comes again. And then it is over.
        assert set(output_of(program.sink.name)) == set(COUNTED), f"byte {at} of {path}"
        assert program.job.progress.restarts <= 1
        program.start().wait()
        assert program.job.progress.records == 0
        marked.clear()


def test_a_savepoint_with_a_flipped_byte_fails_the_job_at_once_and_at_every_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path)
    asked: list[Any] = []

    def stop(epoch: int) -> None:
        if epoch == 3:
            asked.append(program.job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False))

    program.start(stop).wait()
    savepoint = Path(asked[0].result(10))
    state = max(savepoint.glob("0*"), key=lambda path: path.stat().st_size)
    before = Counter(output_of(program.sink.name))
    options = {"execution.state-recovery.path": savepoint, "restart-strategy.type": "exponential-delay"}
    with flipped(state, 12):
        for _ in range(2):
            with pytest.raises(DamagedStateError, match=state.name) as caught:
                program.start(**options).wait()
            assert str(savepoint) in caught.value.message
            assert "another savepoint" in (caught.value.hint or "")
            assert Counter(output_of(program.sink.name)) == before
    program.start(**options).wait()
    assert program.is_exact()
    assert program.job.progress.records < NUMBERS
