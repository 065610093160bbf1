"""Power is lost before every step of what writes files: what it had promised until then is there afterwards.

The jobs of `test_driver_faults` lose power as well; here is what they do not have: leases, stored jobs, buckets,
readers that take files away, sinks that overwrite. What a power loss may leave is in `disk`.
"""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.common import Encoder
from headrace.common.job_status import JobStatus
from headrace.connectors import write_ahead
from headrace.connectors.base import Committable, CommitterContext
from headrace.connectors.file import BucketAssigner, FileSink, RollingPolicy
from headrace.connectors.write_ahead import Publisher, StagedRecords, WriteAheadSink
from headrace.errors import CheckpointError
from headrace.runtime.checkpoint.next_start import JobEnding
from headrace.runtime.checkpoint.savepoints import write_savepoint
from headrace.runtime.checkpoint.settings import CheckpointSettings
from headrace.runtime.checkpoint.storage import (
    CheckpointDirectory,
    check_files,
    load_checkpoint,
    secure,
)
from headrace.runtime.epoch.log import EpochNumbers
from headrace.runtime.high_availability.job_results import FileJobResults, JobResult
from headrace.runtime.high_availability.job_store import JobStore, StoredJob
from headrace.runtime.high_availability.lease import HighAvailabilitySettings, LeaderLease
from headrace.storage import local
from headrace.storage.files import publish_file
from tests.chaos.disk import Disk
from tests.chaos.faults import Crash, Faults, injected
from tests.chaos.sink_faults import new_committer, write_epoch
from tests.unit.runtime.checkpoint.snapshots import checkpoint
from tests.unit.runtime.checkpoint.test_next_start import Program
from tests.unit.runtime.checkpoint.test_storage import state_file

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


class PowerLossAt(Faults):
    """Power is lost before the n-th step."""

    def __init__(self, steps: int) -> None:
        super().__init__(random.Random(steps), 0)
        self.is_armed = True
        self._left = steps

    def step(self, what: str, *, can_be_short: bool = False) -> bool:
        if self.is_armed:
            self._left -= 1
            if self._left <= 0:
                self.die(what, power=True)
        return False


_SEEDS_AT_THE_END = 10


class Promises(list[Any]):
    """What was promised so far."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Do something that is not a step of ours."""
        self._faults.is_armed = False
        yield
        self._faults.is_armed = True


def lose_power_everywhere(
    directory: Path,
    work: Callable[[Path, Promises], None],
    check: Callable[[Path, Promises], None],
    seeds: int = 3,
    next_start: Callable[[Path, Promises], None] | None = None,
) -> int:
    """Lose power before the first, second, ... step of some work, and after it; return how many steps it has.

    Args:
        directory: Where to work.
        work: Notes what it has promised as soon as it has.
        check: Sees whether the promises are kept.
        seeds: How many of the things that each power loss may leave are tried.
        next_start: If given, only the process is lost, and another one begins before power is lost.
    """
    for steps in count(1):
        is_done, tried = False, 0
        # After the last step everything has been promised: then many seeds are tried.
        while tried < (max(seeds, _SEEDS_AT_THE_END) if is_done else seeds):
            seed, tried = tried, tried + 1
            root = directory / f"{steps}-{seed}"
            root.mkdir()
            disk, faults = Disk(root), PowerLossAt(steps)
            promises = Promises(faults)
            with injected(faults, disk):
                try:
                    work(root, promises)
                    is_done = True
                except Crash:
                    pass
                faults.is_armed = faults.is_dead = False
                if next_start is not None:
                    next_start(root, promises)
                disk.lose_power(random.Random(f"{steps}/{seed}"))
                check(root, promises)
        if is_done:
            return steps
    raise AssertionError("it ends")


# --- leaders and their jobs ---------------------------------------------------------------------------


def place(root: Path) -> HighAvailabilitySettings:
    return HighAvailabilitySettings(str(root / "storage"), "cluster", 60_000)


def leading(root: Path) -> tuple[JobStore, LeaderLease]:
    lease = LeaderLease(place(root))
    assert lease.try_acquire()
    return JobStore(place(root).jobs_directory, lease), lease


def test_fencing_tokens_rise_over_power_losses(tmp_path: Path) -> None:
    def lead(root: Path, tokens: Promises) -> None:
        for _ in range(2):
            lease = LeaderLease(place(root))
            assert lease.try_acquire()
            tokens.append(lease.token)
            lease.renew()
            lease.release()

    def check(root: Path, tokens: Promises) -> None:
        assert LeaderLease(place(root))._highest_token() >= max(tokens, default=0)

    assert lose_power_everywhere(tmp_path, lead, check, seeds=2) > 20


def test_jobs_are_stored_until_they_are_removed(tmp_path: Path) -> None:
    job = StoredJob("a" * 32, "visits", b"graph", {}, 1_000)

    def keep(root: Path, done: Promises) -> None:
        store, _ = leading(root)
        store.put(job)
        done.append("put")
        store.put(msgspec.structs.replace(job, job_id="b" * 32))
        done.append("other put")
        store.remove(job.job_id)
        done.append("removed")

    def check(root: Path, done: Promises) -> None:
        found = JobStore(place(root).jobs_directory, LeaderLease(place(root))).get(job.job_id)
        if done == ["put"]:
            assert found == job
        if "removed" in done:
            assert found is None

    assert lose_power_everywhere(tmp_path, keep, check) > 20


def test_how_a_job_ended_is_not_forgotten(tmp_path: Path) -> None:
    result = JobResult("a" * 32, "visits", "FINISHED", 1_000)

    def end(root: Path, done: Promises) -> None:
        results = FileJobResults(str(root / "results"), leader=1)
        results.add_dirty(result)
        done.append("dirty")
        results.mark_clean(result.job_id, JobStatus.FINISHED)
        done.append("clean")

    def check(root: Path, done: Promises) -> None:
        found = FileJobResults(str(root / "results"), leader=2).find(result.job_id)
        assert found is not None or not done
        assert found is None or (
            found.status is JobStatus.FINISHED and ("clean" not in done or not found.is_dirty)
        )

    assert lose_power_everywhere(tmp_path, end, check) > 8


def test_no_number_of_an_epoch_is_used_again(tmp_path: Path) -> None:
    def run(root: Path, used: Promises) -> None:
        numbers = EpochNumbers(str(root / "job"))
        for epoch in (1, 2, 64, 65, 129):
            numbers.use(epoch)
            used.append(epoch)

    def check(root: Path, used: Promises) -> None:
        assert EpochNumbers(str(root / "job")).highest >= max(used, default=0)

    assert lose_power_everywhere(tmp_path, run, check) > 15


# --- checkpoints --------------------------------------------------------------------------------------


def test_a_file_that_could_not_be_synced_is_named_by_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel drops what it could not write, and reports success when it is asked again."""
    home = CheckpointDirectory(str(tmp_path), "a" * 32)
    state = state_file(home, "1.change")
    fsync, failed = os.fsync, []

    def fail_once(descriptor: int) -> None:
        if not failed and os.readlink(f"/proc/self/fd/{descriptor}") == state:
            failed.append(descriptor)
            raise OSError(errno.EIO, "the disk fails")
        fsync(descriptor)

    monkeypatch.setattr(local.os, "fsync", fail_once)
    with pytest.raises(CheckpointError, match="the disk fails"):
        home.write(checkpoint(1, state))
    with pytest.raises(CheckpointError, match="an earlier checkpoint could not sync it"):
        home.write(checkpoint(2, state))


class BrokenSync:
    """Fails to sync a file whose name ends like this, once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ending: str = ".change") -> None:
        self._ending = ending
        self.failed: str | None = None
        self.is_armed = False
        self.synced: list[str] = []
        self._fsync = os.fsync
        monkeypatch.setattr(local.os, "fsync", self)

    def __call__(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        self.synced.append(path)
        if self.is_armed and path.endswith(self._ending):
            self.is_armed, self.failed = False, path
            raise OSError(errno.EIO, "the disk fails")
        self._fsync(descriptor)


def test_a_job_writes_its_state_again_when_a_file_could_not_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many failed checkpoints it tolerates: none would be complete with that file."""
    program, disk = Program(tmp_path), BrokenSync(monkeypatch)

    def arm(epoch: int) -> None:
        disk.is_armed |= epoch == 3

    options = {
        "execution.checkpointing.tolerable-failed-checkpoints": 1000,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "0 ms",
    }
    program.start(arm, **options).wait()
    assert disk.failed is not None
    assert program.is_exact()
    assert program.job.progress.restarts == 1
    assert program.job.master.checkpoints.coordinator.statistics().counts.failed <= 3


def test_a_job_ends_with_the_savepoint_it_was_stopped_with_when_that_cannot_be_written_down_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not continue after the savepoint: who starts another job from there would have rows twice."""
    program, disk = Program(tmp_path), BrokenSync(monkeypatch, "/results")
    asked: list[Any] = []

    def stop(epoch: int) -> None:
        if epoch == 3:
            disk.is_armed = True
            asked.append(program.job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False))

    restarts = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0 ms"}
    program.start(stop, **restarts).wait()
    savepoint = asked[0].result(10)
    result = program.result()
    assert disk.failed is not None
    assert result is not None
    assert result.result.savepoint == savepoint
    assert not program.is_exact()
    program.start(**{"execution.state-recovery.path": savepoint}).wait()
    assert program.is_exact()


def test_files_of_the_checkpoint_that_a_job_is_restored_from_are_not_synced_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If that failed, no checkpoint could name them, now or after any restart."""
    program = Program(tmp_path)
    program.end("killed", monkeypatch, **{"headrace.state.compaction.max-changes": 100})
    newest = CheckpointDirectory(str(tmp_path / "state"), program.job_id).latest_valid().checkpoint
    assert newest is not None
    disk = BrokenSync(monkeypatch)
    program.start(**{"headrace.state.compaction.max-changes": 100}).wait()
    assert program.is_exact()
    assert {file.path for file in newest.metadata.files()}.isdisjoint(disk.synced)


def home_of(root: Path) -> CheckpointDirectory:
    return CheckpointDirectory(str(root / "checkpoints"), "a" * 32)


def newest(root: Path) -> int:
    found = home_of(root).latest_valid().checkpoint
    return 0 if found is None else found.metadata.checkpoint_id


def test_completed_checkpoints_stay_and_those_that_were_withdrawn_do_not_come_back(tmp_path: Path) -> None:
    def work(root: Path, done: Promises) -> None:
        home = home_of(root)
        home.ensure_writable()
        for number in (1, 2):
            stored = home.write(checkpoint(number, state_file(home, f"{number}.change")))
            done.append(number)
        # The job continues from the first, and whatever the second has staged is swept.
        done.append(0)
        home.withdraw([stored])
        done.append(1)

    def check(root: Path, done: Promises) -> None:
        assert newest(root) >= max(done, default=0) if 0 not in done else newest(root) in (1, 2)
        assert done[-2:] != [0, 1] or newest(root) == 1

    assert lose_power_everywhere(tmp_path, work, check, seeds=5) > 40


def test_a_checkpoint_that_the_next_driver_starts_from_stays(tmp_path: Path) -> None:
    """Its own driver was lost when the checkpoint had its name, and the name was not synced."""

    def work(root: Path, done: Promises) -> None:
        home = home_of(root)
        home.ensure_writable()
        home.write(checkpoint(1, state_file(home, "1.change")))

    def next_start(root: Path, done: Promises) -> None:
        home = home_of(root)
        home.ensure_writable()
        found = home.latest_valid().checkpoint
        if found is not None:
            secure(found)
            done.append(found.metadata.checkpoint_id)

    def check(root: Path, done: Promises) -> None:
        assert newest(root) >= max(done, default=0)

    assert lose_power_everywhere(tmp_path, work, check, seeds=5, next_start=next_start) > 20


def test_how_a_job_ended_stays_once_the_next_start_has_seen_it(tmp_path: Path) -> None:
    result = JobResult("a" * 32, "visits", "FINISHED", 1_000)

    def ending(root: Path, leader: int) -> JobEnding:
        results = FileJobResults(str(root / "results"), leader=leader)
        return JobEnding("visits", home_of(root), CheckpointSettings(), results, lambda: 0)

    def work(root: Path, done: Promises) -> None:
        FileJobResults(str(root / "results"), leader=1).add_dirty(result)

    def next_start(root: Path, done: Promises) -> None:
        done.append(ending(root, 2).find())

    def check(root: Path, done: Promises) -> None:
        assert done[0] is None or ending(root, 3).find() == done[0]

    assert lose_power_everywhere(tmp_path, work, check, seeds=8, next_start=next_start) > 5


def test_a_savepoint_stays_in_a_new_directory(tmp_path: Path) -> None:
    def work(root: Path, done: Promises) -> None:
        home = home_of(root)
        home.ensure_writable()
        metadata = checkpoint(1, state_file(home, "1.change"))
        done.append(write_savepoint(metadata, str(root / "new" / "savepoints")).path)

    def check(root: Path, done: Promises) -> None:
        for path in done:
            check_files(load_checkpoint(path))

    assert lose_power_everywhere(tmp_path, work, check, seeds=5) > 20


def test_published_files_survive_a_power_loss(tmp_path: Path) -> None:
    def publish(root: Path, done: Promises) -> None:
        for name in ("a", "deep/er/b", "deep/er/c"):
            publish_file(str(root / name), name.encode())
            done.append(name)

    def check(root: Path, done: Promises) -> None:
        assert all((root / name).read_bytes() == name.encode() for name in done)

    assert lose_power_everywhere(tmp_path, publish, check, seeds=8) > 15


# --- sinks --------------------------------------------------------------------------------------------


def lines(base: Path) -> list[str]:
    paths = [path for path in base.rglob("part-*") if ".staging" not in path.parts]
    return [line for path in paths for line in path.read_text().splitlines()]


def sink_of(root: Path, policy: RollingPolicy) -> FileSink.RowFormatBuilder:
    builder = FileSink.for_row_format(str(root / "tables" / "out"), Encoder.simple_string_encoder())
    letters = BucketAssigner.element_bucket_assigner(lambda value: f"letter={value[0]}")
    return builder.with_rolling_policy(policy).with_bucket_assigner(letters)


EPOCHS = [[["a1", "a2"], ["b1"]], [["a3"], []], [["b2"], ["a4", "c1"]], [[], ["c2"]]]
EVERYTHING = sorted(value for epoch in EPOCHS for share in epoch for value in share)


@pytest.mark.parametrize(
    ("policy", "is_read"),
    [
        (RollingPolicy.on_checkpoint_rolling_policy(), False),
        (RollingPolicy.default_rolling_policy(part_size=8), True),
    ],
    ids=["a file a checkpoint", "files of several epochs, which are taken away"],
)
def test_committed_files_are_neither_lost_nor_doubled(
    tmp_path: Path, policy: RollingPolicy, is_read: bool
) -> None:
    """Readers may take away what they find after each commit; after the power loss it must not be there again."""

    def make(root: Path) -> FileSink:
        return sink_of(root, policy).with_partition_commit(0, "_SUCCESS").build()

    def take(root: Path, taken: list[str]) -> None:
        for path in (root / "tables" / "out").glob("letter=*/part-*"):
            taken += path.read_text().splitlines()
            local.os.remove(str(path))
            local.sync_directory(str(path.parent))

    def work(root: Path, done: Promises) -> None:
        sink = make(root)
        committer = new_committer(sink)
        # The checkpoint itself is safe; what matters here is what it names.
        checkpoint: dict[str, Any] = {"next": 0, "state": None, "staged": [], "taken": [], "over": False}
        for number, shares in enumerate(EPOCHS, 1):
            staged = write_epoch(sink, number, shares)
            state = committer.snapshot()
            checkpoint = {**checkpoint, "next": number, "state": state, "staged": staged}
            done.append(checkpoint)
            committer.commit(staged)
            taken = list(checkpoint["taken"])
            if is_read:
                with done.undisturbed():
                    take(root, taken)
            checkpoint = {**checkpoint, "taken": taken}
            done.append(checkpoint)
        committer.finish()
        done.append({**checkpoint, "over": True})

    def check(root: Path, done: Promises) -> None:
        recover(make(root), root, done)
        taken = done[-1]["taken"] if done else []
        assert Counter([*taken, *lines(root)]) == Counter(EVERYTHING)

    assert lose_power_everywhere(tmp_path, work, check, seeds=1) > 60


def test_files_that_another_job_has_staged_are_neither_lost_nor_doubled(tmp_path: Path) -> None:
    """A savepoint has open files; the job that is restored from it adds to them, and loses power."""

    def make(root: Path) -> FileSink:
        return sink_of(root, RollingPolicy.default_rolling_policy(part_size=8)).build()

    def stop_with_savepoint(root: Path) -> dict[str, Any]:
        committer = new_committer(make(root), job_id="former")
        committer.commit(write_epoch(make(root), 1, EPOCHS[0], job_id="former"))
        staged = write_epoch(make(root), 2, EPOCHS[1], job_id="former")
        return {"next": 2, "state": committer.snapshot(), "staged": staged, "taken": [], "over": False}

    def work(root: Path, done: Promises) -> None:
        with done.undisturbed():
            done.append(stop_with_savepoint(root))
        committer = new_committer(make(root))
        committer.restore(done[0]["state"])
        committer.commit(done[0]["staged"])
        committer.discard_after(2)
        for number, shares in enumerate(EPOCHS[2:], 3):
            staged = write_epoch(make(root), number, shares)
            done.append({**done[0], "next": number, "state": committer.snapshot(), "staged": staged})
            committer.commit(staged)
        committer.finish()
        done.append({**done[-1], "over": True})

    def check(root: Path, done: Promises) -> None:
        recover(make(root), root, done)
        assert Counter(lines(root)) == Counter(EVERYTHING)

    assert lose_power_everywhere(tmp_path, work, check, seeds=4) > 40


def recover(sink: FileSink, root: Path, done: Promises) -> None:
    """Continue from the last checkpoint, to the end."""
    committer = new_committer(sink)
    begin = 0
    if done:
        if done[-1]["over"]:
            return
        begin = done[-1]["next"]
        committer.restore(done[-1]["state"])
        committer.commit(done[-1]["staged"])
    committer.discard_after(begin)
    for number, shares in enumerate(EPOCHS[begin:], begin + 1):
        committer.commit(write_epoch(sink, number, shares))
    committer.finish()


@pytest.mark.parametrize("is_marked", [True, False], ids=["with a success file", "without"])
def test_a_sink_that_overwrites_leaves_nothing_old_behind(tmp_path: Path, is_marked: bool) -> None:
    def make(root: Path) -> FileSink:
        builder = sink_of(root, RollingPolicy.on_checkpoint_rolling_policy())
        if is_marked:
            builder = builder.with_partition_commit(None, "_DONE")
        return builder.with_overwrite().build()

    def work(root: Path, done: Promises) -> None:
        with done.undisturbed():
            for letter in "ab":
                publish_file(str(root / "tables" / "out" / f"letter={letter}" / "part-old"), b"old\n")
        sink = make(root)
        committer = new_committer(sink)
        staged = write_epoch(sink, 1, [["a1"], ["b1", "c1"]])
        committer.commit(staged)
        state = committer.snapshot()
        done.append(("staged", state))
        committer.finish()
        done.append(("finished", state))

    def check(root: Path, done: Promises) -> None:
        if not done:
            assert set(lines(root)) == {"old"}
            return
        if done[-1][0] == "staged":
            committer = new_committer(make(root))
            committer.restore(done[-1][1])
            committer.finish()
        assert sorted(lines(root)) == ["a1", "b1", "c1"]
        marked = {path.parent.name for path in root.rglob("_DONE")}
        assert marked == ({"letter=a", "letter=b", "letter=c"} if is_marked else set())

    assert lose_power_everywhere(tmp_path, work, check, seeds=1) > 40


class Marked(Publisher):
    """Notes what it publishes."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def publish(self, records: StagedRecords) -> None:
        self.rows += list(records)


class MarkedSink(WriteAheadSink):
    def __init__(self) -> None:
        self.publisher = Marked()

    def create_publisher(self, context: CommitterContext) -> Publisher:
        return self.publisher


def test_records_that_wait_for_their_checkpoint_are_there_to_be_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_ahead, "_INLINE_BYTES", 0)  # everything goes to files

    def work(root: Path, done: Promises) -> None:
        sink = MarkedSink()
        committer = new_committer(sink, str(root / "job" / "sinks"))
        staged: Sequence[Committable] = write_epoch(sink, 1, [["a"], ["b"]], str(root / "job" / "sinks"))
        committer.snapshot()
        done.append(staged)

    def check(root: Path, done: Promises) -> None:
        for staged in done:
            sink = MarkedSink()
            new_committer(sink, str(root / "job" / "sinks")).commit(staged)
            assert sorted(sink.publisher.rows) == ["a", "b"]

    assert lose_power_everywhere(tmp_path, work, check, seeds=8) > 8
