"""What the next driver finds: checkpoints that are damaged, jobs that are over, and a leader that is no more."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Encoder
from headrace.config import Configuration
from headrace.config.options import checkpointing
from headrace.connectors.file import BucketAssigner, FileSink, RollingPolicy
from headrace.errors import HeadraceError, LeadershipError, StateError
from headrace.runtime.checkpoint.storage import CheckpointDirectory
from headrace.runtime.high_availability.job_results import FileJobResults
from headrace.runtime.high_availability.leadership import lasting_job_id
from headrace.runtime.job.master import JobMaster
from headrace.runtime.run.job_run import EpochSummary
from headrace.runtime.run.sink_coordinator import SinkCoordinator
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.fakes import MarkedSink
from tests.unit.runtime.jobs import job_graph, make_env, wait_for_checkpoints
from tests.unit.runtime.test_recovery import COUNTED, RESTARTS, counting, output_of

JOB_ID = lasting_job_id("test")
OPTIONS = {
    "headrace.epoch.max-records": 5,
    "execution.checkpointing.interval": "1 ms",
    "execution.checkpointing.num-retained": 2,
    # Kept when the job fails, as they are when its driver is lost.
    "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
    "restart-strategy.type": "none",
}


class DriverLost(Exception):
    """Ends a job in a test; its files stay."""


class Driver:
    """A job under a lasting id, in one driver after the other."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.job_directory = directory / "state" / JOB_ID
        self.sink = MarkedSink(str(directory))
        self.results = FileJobResults(str(directory / "results"))

    def start(
        self,
        *,
        after_epoch: Callable[[int], None] = lambda _: None,
        sink: Any = None,
        waits: bool = True,
        **options: Any,
    ) -> MiniJob:
        """Start the job; it waits after each epoch until its checkpoint is written, if it is to."""
        env = make_env(2)
        counting(env).sink_to(sink or self.sink).uid("sink")
        values = {**OPTIONS, "execution.checkpointing.dir": self.directory / "state", **options}

        started: Future[MiniJob] = Future()

        def watch(summary: EpochSummary) -> None:
            job = started.result(10)
            if waits:
                wait_for_checkpoints(job)
            after_epoch(len(job.epochs))

        configuration = Configuration({key: str(value) for key, value in values.items()})
        job_id = lasting_job_id("test", configuration.get(checkpointing.RECOVERY_PATH))
        graph = replace(job_graph(env), job_id=job_id)
        self.job = MiniJob(graph, configuration, on_epoch=watch, results=self.results)
        started.set_result(self.job)
        return self.job

    def lose(self, at_epoch: int = 6, **options: Any) -> None:
        """Run some epochs, and lose the driver."""

        def lost(epoch: int) -> None:
            if epoch == at_epoch:
                raise DriverLost

        with pytest.raises(DriverLost):
            self.start(after_epoch=lost, **options).wait()

    def checkpoints(self) -> list[Path]:
        """Return those that are there, newest first."""
        found = CheckpointDirectory(str(self.directory / "state"), JOB_ID).list_checkpoints()
        return [Path(path) for _, path in found]

    def output(self) -> Counter[Any]:
        return Counter(output_of(self.sink.name))


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path)


# -- damage --------------------------------------------------------------------------------------------


def test_the_next_driver_continues_from_the_newest_checkpoint(driver: Driver) -> None:
    driver.lose()
    read_before = driver.job.progress.records
    driver.start().wait()
    assert driver.output() == Counter(COUNTED)
    assert read_before + driver.job.progress.records < 2 * len(COUNTED)
    assert not driver.job_directory.exists()


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_past_a_damaged_checkpoint_the_one_before_is_used_and_said_loudly(
    driver: Driver, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver.lose()
    newest, before = driver.checkpoints()[:2]
    data = (newest / "_metadata").read_bytes()
    (newest / "_metadata").write_bytes(data[:-9] if damage == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    with caplog.at_level(logging.ERROR):
        driver.start().wait()
    [left_out, goes_back] = [record.getMessage() for record in caplog.records]
    assert f"checkpoint {newest.name[4:]} is ignored by recovery" in left_out
    assert f"recovery goes back to checkpoint {before.name[4:]}" in goes_back
    assert str(newest) in goes_back
    # Nothing is lost; what was published after the older checkpoint comes again.
    assert driver.output() >= Counter(COUNTED)
    assert set(driver.output()) == set(COUNTED)


def test_a_state_file_that_turns_out_damaged_is_a_reason_to_go_back_further(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.lose(**{"headrace.state.compaction.max-changes": 100})
    home = CheckpointDirectory(str(driver.directory / "state"), JOB_ID)
    newest, before = home.valid()[:2]
    own = {file.path for file in newest.metadata.files()} - {file.path for file in before.metadata.files()}
    for path in map(Path, own):
        data = bytearray(path.read_bytes())
        data[12] ^= 1  # in a section; its size is what it was
        path.write_bytes(data)
    restarts = {**RESTARTS, "restart-strategy.fixed-delay.attempts": 3}
    with caplog.at_level(logging.ERROR):
        driver.start(**restarts).wait()
    assert f"recovery goes back to checkpoint {before.metadata.checkpoint_id}" in caplog.text
    assert "damaged" in caplog.text
    assert set(driver.output()) == set(COUNTED)
    assert driver.output() >= Counter(COUNTED)


def test_a_job_whose_checkpoints_are_all_damaged_does_not_start_over_by_itself(driver: Driver) -> None:
    driver.lose()
    for path in driver.checkpoints():
        (path / "_metadata").write_bytes(b"")
    with pytest.raises(StateError, match="no checkpoint of job 'test' can be used") as caught:
        driver.start()
    assert "savepoint" in (caught.value.hint or "")
    assert len(driver.checkpoints()) == 2, "nothing was deleted"


def test_an_incomplete_checkpoint_is_not_reported_as_damaged(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.lose()
    (driver.job_directory / "chk-1000").mkdir()
    (driver.job_directory / "chk-1000" / "_metadata.part").write_bytes(b"half")
    with caplog.at_level(logging.WARNING):
        driver.start().wait()
    assert "checkpoint 1000 was not completed" in caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]
    assert driver.output() == Counter(COUNTED)


# -- whose files ---------------------------------------------------------------------------------------


def test_the_savepoint_a_job_started_from_outlives_its_drivers(driver: Driver, tmp_path: Path) -> None:
    asked: list[Any] = []

    def stop(epoch: int) -> None:
        if epoch == 2:
            asked.append(driver.job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False))

    driver.start(after_epoch=stop).wait()
    savepoint = Path(asked[0].result(10))
    files = sorted(savepoint.iterdir())
    options = {
        "execution.state-recovery.path": savepoint,
        "headrace.state.compaction.max-changes": 2,
        "execution.checkpointing.num-retained": 1,
        "headrace.epoch.max-records": 2,
    }
    driver.lose(2, **options)
    driver.start(**options).wait()
    assert driver.output() == Counter(COUNTED)
    assert sorted(savepoint.iterdir()) == files


# -- stopping ------------------------------------------------------------------------------------------


def test_a_stop_with_drain_that_comes_with_the_last_epoch_ends_the_job(
    driver: Driver, tmp_path: Path
) -> None:
    asked: list[Any] = []

    def stop(epoch: int) -> None:
        if driver.job.progress.records == len(COUNTED) and not asked:
            asked.append(driver.job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=True))

    driver.start(after_epoch=stop).wait(20)
    assert (Path(asked[0].result(10)) / "_metadata").exists()
    assert driver.output() == Counter(COUNTED)


def test_a_savepoint_waits_for_the_checkpoint_that_is_being_written(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would say of sinks what the checkpoint's commit is about to change."""
    base = tmp_path / "out"
    builder = FileSink.for_row_format(str(base), Encoder.simple_string_encoder())
    builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    write, commit = CheckpointDirectory.write, SinkCoordinator.commit
    asked: list[Any] = []
    committed: list[int] = []

    def slow(directory: CheckpointDirectory, metadata: Any) -> Any:
        """Take until the savepoint is being written, too; which does not come."""
        wait_until(lambda: bool(asked))
        wait_until(lambda: len(driver.job.master.checkpoints._writing) > 1, 0.3)
        return write(directory, metadata)

    def commit_the_first(sinks: SinkCoordinator, checkpoint_id: int) -> None:
        if committed:
            raise DriverLost
        committed.append(checkpoint_id)
        commit(sinks, checkpoint_id)

    def stop(epoch: int) -> None:
        if epoch == 4:
            asked.append(driver.job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False))

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointDirectory, "write", slow)
        patch.setattr(SinkCoordinator, "commit", commit_the_first)
        with pytest.raises(DriverLost):
            driver.start(after_epoch=stop, sink=sink, waits=False).wait()
    # The job was stopped: the next driver only publishes what the savepoint covers.
    driver.start(sink=sink).wait()
    assert driver.job.progress.epochs == 0
    driver.start(sink=sink, **{"execution.state-recovery.path": asked[0].result(10)}).wait()
    lines = [line for path in base.glob("part-*") for line in path.read_text().splitlines()]
    assert Counter(lines) == Counter(map(str, COUNTED))


def wait_until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)


# -- leadership ----------------------------------------------------------------------------------------


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_master_that_no_longer_leads_changes_nothing(
    driver: Driver, restarts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: dict[str, bytes] = {}

    def ensure_leader() -> None:
        if left:
            raise LeadershipError("another leads")

    original = JobMaster.__init__

    def init(self: JobMaster, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs, ensure_leader=ensure_leader)

    monkeypatch.setattr(JobMaster, "__init__", init)

    def lose_lead(epoch: int) -> None:
        if epoch == 6:
            # What is being written was begun by a leader.
            wait_for_checkpoints(driver.job)
            left.update(files_below(driver.job_directory))
            raise DriverLost  # whatever it is that fails when another has taken over

    strategy = {**RESTARTS, "restart-strategy.fixed-delay.attempts": 3} if restarts else {}
    with pytest.raises((LeadershipError, DriverLost)):
        driver.start(after_epoch=lose_lead, **strategy).wait()
    published = driver.output()
    now = files_below(driver.job_directory)
    assert {path: now.get(path) for path in left} == left, "nothing was deleted or replaced"
    assert not [path for path in now if path not in left and "_metadata" in path]
    assert driver.output() == published

    left.clear()
    driver.start().wait()
    assert driver.output() == Counter(COUNTED)


def test_two_rescales_at_once_and_one_that_cannot_be_done(driver: Driver) -> None:
    asked: list[Any] = []

    def ask(epoch: int) -> None:
        if epoch == 2:
            vertices = [vertex.vertex_id for vertex in driver.job.master.job.vertices]
            asked.extend(driver.job.master.rescale(dict.fromkeys(vertices, count)) for count in (4, 3))

    driver.start(after_epoch=ask).wait()
    with pytest.raises(HeadraceError, match="another request to rescale"):
        asked[0].result(10)
    asked[1].result(10)
    assert {vertex.parallelism for vertex in driver.job.master.job.vertices} == {3}
    assert driver.output() == Counter(COUNTED)
