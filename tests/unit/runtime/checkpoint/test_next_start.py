"""What the next start of a program does: after FINISHED, FAILED, CANCELED, a stop with savepoint, and a kill.

With and without high availability, in epochs and live, and whatever `externalized-checkpoint-retention` says. The table
is in docs/design/0021-next-start.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace.common.job_status import JobStatus
from headrace.config import Configuration
from headrace.config.options import checkpointing
from headrace.config.options.checkpointing import ExternalizedCheckpointRetention as Retention
from headrace.errors import DamagedStateError, JobCancelledError, JobSubmissionError
from headrace.runtime.checkpoint.storage import CheckpointDirectory
from headrace.runtime.high_availability.job_results import FileJobResults, StoredResult
from headrace.runtime.high_availability.leadership import lasting_job_id
from headrace.runtime.job.steps import JobSteps
from headrace.runtime.run.job_run import EpochSummary
from headrace.storage.files import list_directory
from headrace.storage.paths import join_path
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime import test_live
from tests.unit.runtime.fakes import MarkedSink
from tests.unit.runtime.jobs import job_graph, make_env, wait_for_checkpoints
from tests.unit.runtime.test_live import PacedEnumerator
from tests.unit.runtime.test_recovery import COUNTED, NUMBERS, counting, output_of

RETENTIONS = list(Retention)
OPTIONS = {
    "headrace.epoch.max-records": 5,
    "execution.checkpointing.interval": "1 ms",
    "execution.checkpointing.num-retained": 2,
    "restart-strategy.type": "none",
}


class Broken(Exception):
    """Fails a job in a test."""


class Program:
    """One program, started again and again, with or without high availability."""

    define: Callable[..., Any] = staticmethod(counting)
    #: How many records it reads, and what it writes.
    numbers: int = NUMBERS
    expected: Sequence[Any] = COUNTED
    #: Options of its mode.
    mode: Mapping[str, str] = {}

    def __init__(self, directory: Path, *, is_available: bool = True, deletes_results: bool = False) -> None:
        self.directory = directory
        self.is_available = is_available
        self.deletes_results = deletes_results
        self.starts = 0
        self.sink = MarkedSink(str(directory))

    def start(self, after_epoch: Callable[[int], None] = lambda _: None, **options: Any) -> MiniJob:
        """Start it as a new process would, with the next fencing token."""
        self.starts += 1
        env = make_env(2)
        self.define(env).sink_to(self.sink).uid("sink")
        values = {**OPTIONS, **self.mode, "execution.checkpointing.dir": self.directory / "state", **options}
        configuration = Configuration({key: str(value) for key, value in values.items() if value is not None})
        started: Future[MiniJob] = Future()

        def watch(summary: EpochSummary) -> None:
            wait_for_checkpoints(started.result(10))
            after_epoch(len(started.result(10).epochs))

        self.job_id = uuid4().hex
        if self.is_available:
            self.job_id = lasting_job_id("test", configuration.get(checkpointing.RECOVERY_PATH))
        self.job = MiniJob(
            replace(job_graph(env), job_id=self.job_id),
            configuration,
            on_epoch=watch,
            results=self.results if self.is_available else None,
            leader=self.starts if self.is_available else 0,
        )
        started.set_result(self.job)
        return self.job

    @property
    def results(self) -> FileJobResults:
        return FileJobResults(
            str(self.directory / "results"), leader=self.starts, delete_on_commit=self.deletes_results
        )

    def result(self) -> StoredResult | None:
        return self.results.find(self.job_id)

    def end(self, status: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        """Run it in the middle of its input to an end of this kind; FINISHED: to the end."""
        if status == "FINISHED":
            self.start(**options).wait()
        elif status == "FAILED":
            with pytest.raises(Broken):
                self.start(_at(5, _fail), **options).wait()
        elif status == "CANCELED":
            with pytest.raises(JobCancelledError):
                self.start(_at(6, self._cancel), **options).wait()
        else:
            with monkeypatch.context() as patch:
                # A process that is killed closes nothing.
                patch.setattr(JobSteps, "_close_run", lambda *_: None)
                patch.setattr(JobSteps, "_record_result", lambda *_: None)
                with pytest.raises(Broken):
                    self.start(_at(5, _fail), **options).wait()

    def _cancel(self) -> None:
        self.job.cancel()

    @property
    def job_directory(self) -> Path:
        return self.directory / "state" / self.job_id

    def checkpoints(self) -> list[str]:
        """Return those that are there, newest first."""
        return [
            path
            for _, path in CheckpointDirectory(str(self.directory / "state"), self.job_id).list_checkpoints()
        ]

    def is_exact(self) -> bool:
        return Counter(output_of(self.sink.name)) == Counter(self.expected)


class LiveProgram(Program):
    """The same, live: its sources wait for barriers, so that it is in the middle of its input when it ends."""

    define = staticmethod(test_live.counting)
    numbers = test_live.RECORDS
    expected = test_live.COUNTED
    mode = test_live.LIVE

    def start(self, after_epoch: Callable[[int], None] = lambda _: None, **options: Any) -> MiniJob:
        PacedEnumerator.epochs = 0

        def count(epoch: int) -> None:
            assert PacedEnumerator.epochs is not None
            PacedEnumerator.epochs += 1
            after_epoch(epoch)

        return super().start(count, **options)


def _at(epoch: int, action: Callable[[], object]) -> Callable[[int], None]:
    return lambda at: action() and None if at == epoch else None


def _fail() -> None:
    raise Broken("the disk is on fire")


@pytest.fixture(params=[Program, LiveProgram], ids=["epochs", "live"])
def program(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Program]:
    yield request.param(tmp_path)
    PacedEnumerator.epochs = None


def retained_as(retention: Retention) -> dict[str, Any]:
    return {"execution.checkpointing.externalized-checkpoint-retention": retention.name}


# -- with high availability ----------------------------------------------------------------------------


@pytest.mark.parametrize("retention", RETENTIONS)
def test_after_finished_it_is_not_run_again(
    program: Program, retention: Retention, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program.end("FINISHED", monkeypatch, **retained_as(retention))
    assert not program.job_directory.exists()
    for _ in range(2):  # however often a supervisor tries
        program.start().wait()
        assert program.job.status() is JobStatus.FINISHED
        assert program.job.progress.records == 0
    assert "job 'test' finished at" in caplog.text
    assert "it does not run again" in caplog.text
    assert program.is_exact()


@pytest.mark.parametrize("retention", RETENTIONS)
def test_after_failed_checkpoints_stay_and_it_continues_from_the_newest(
    program: Program, retention: Retention, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program.end("FAILED", monkeypatch, **retained_as(retention))
    newest = program.checkpoints()[0]
    result = program.result()
    assert result is not None
    assert (result.status, result.is_dirty) == (JobStatus.FAILED, False)
    assert (result.result.error, result.result.checkpoint) == ("Broken: the disk is on fire", newest)
    program.start().wait()
    assert program.job.master.restored_from == newest
    assert f"(Broken: the disk is on fire): it continues from checkpoint {newest}" in caplog.text
    assert program.job.progress.records < program.numbers
    assert program.is_exact()
    # And so it has finished, once and for all.
    assert not program.job_directory.exists()
    program.start().wait()
    assert program.job.progress.records == 0
    assert program.is_exact()


@pytest.mark.parametrize("retention", RETENTIONS)
def test_after_canceled_it_is_refused_with_what_to_do(
    program: Program, retention: Retention, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.end("CANCELED", monkeypatch, **retained_as(retention))
    left = program.checkpoints()
    assert bool(left) == (retention is Retention.RETAIN_ON_CANCELLATION)
    assert program.job_directory.exists() == bool(left)
    with pytest.raises(
        JobSubmissionError, match=r"job 'test' was canceled at .* is not restarted automatically"
    ) as caught:
        program.start()
    hint = caught.value.hint or ""
    assert program.checkpoints() == left
    if left:
        assert f"its last checkpoint is {left[0]}" in hint
        # The way that the message names.
        program.start(**{"execution.state-recovery.path": left[0]}).wait()
        assert program.job.progress.records < program.numbers
        assert program.is_exact()
        assert all(Path(path, "_metadata").exists() for path in left), (
            "a retained checkpoint stays its owner's"
        )
    # The other way: from the beginning, when somebody says so.
    program.job_id = lasting_job_id("test")
    result = program.result()
    assert result is not None
    assert f"delete {result.path}" in hint


def test_a_canceled_job_runs_again_from_the_beginning_when_its_result_is_deleted(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.end("CANCELED", monkeypatch)
    result = program.result()
    assert result is not None
    Path(result.path).unlink()
    program.start().wait()
    assert program.job.progress.records == program.numbers


@pytest.mark.parametrize("retention", RETENTIONS)
def test_after_a_kill_it_continues_from_the_newest_checkpoint(
    program: Program, retention: Retention, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.end("killed", monkeypatch, **retained_as(retention))
    assert program.result() is None
    newest = program.checkpoints()[0]
    program.start().wait()
    assert program.job.master.restored_from == newest
    assert program.is_exact()


def test_after_a_stop_with_savepoint_it_continues_only_from_the_savepoint(
    program: Program, tmp_path: Path
) -> None:
    asked: list[Future[str]] = []

    def stop() -> None:
        asked.append(program.job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False))

    program.start(_at(3, stop)).wait()
    savepoint = asked[0].result(10)
    result = program.result()
    assert result is not None
    assert (result.result.savepoint, result.is_dirty) == (savepoint, False)
    program.start().wait()
    assert program.job.progress.records == 0
    for _ in range(2):  # a supervisor has the same command line again
        program.start(**{"execution.state-recovery.path": savepoint}).wait()
        assert program.is_exact()
    assert program.job.progress.records == 0


def test_a_job_that_fails_again_and_again_loses_and_repeats_nothing(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"headrace.epoch.max-records": 1}
    for _ in range(3):
        program.end("FAILED", monkeypatch, **small)
        program.end("killed", monkeypatch, **small)
    program.start().wait()
    assert program.is_exact()


def test_a_result_is_deleted_when_the_job_is_cleaned_up_if_the_options_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path, deletes_results=True)
    program.end("FINISHED", monkeypatch)
    assert program.result() is None
    program.start().wait()
    assert program.job.progress.records == program.numbers


@pytest.mark.parametrize(
    "status", ["FAILED", *(pytest.param(status, marks=pytest.mark.slow) for status in ("FINISHED", "killed"))]
)
def test_on_an_object_store_it_is_the_same(
    tmp_path: Path, s3: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path)
    stored = {"execution.checkpointing.dir": s3, "headrace.epoch.max-records": 10}
    program.end(status, monkeypatch, **stored)
    for _ in range(2):
        program.start(**stored).wait()
        assert program.job.progress.records < program.numbers
        assert program.is_exact()
    assert program.job.progress.records == 0
    assert list_directory(join_path(s3, program.job_id)) == []


# -- without checkpoints to continue from --------------------------------------------------------------


def test_a_job_that_failed_before_its_first_checkpoint_starts_over_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = Program(tmp_path)  # in epochs: the source of the live one waits for the barriers of checkpoints
    rarely = {"execution.checkpointing.interval": "1 h"}
    with pytest.raises(Broken):
        program.start(_at(3, _fail), **rarely).wait()
    program.start(**rarely).wait()
    assert "it continues from its beginning" in caplog.text
    assert program.job.progress.records == program.numbers
    assert program.is_exact()


def test_a_failed_job_without_checkpointing_is_refused_because_its_output_is_out(program: Program) -> None:
    never = {"execution.checkpointing.interval": None}
    with pytest.raises(Broken):
        program.start(_at(3, _fail), **never).wait()
    for _ in range(2):
        with pytest.raises(JobSubmissionError, match="no checkpoint to continue from") as caught:
            program.start(**never)
    result = program.result()
    assert result is not None
    assert f"delete {result.path}" in (caught.value.hint or "")
    Path(result.path).unlink()
    program.start(**never).wait()
    assert program.job.progress.records == program.numbers


# -- a driver that is lost while it cleans up ----------------------------------------------------------


@pytest.mark.parametrize("status", ["FINISHED", "FAILED", "CANCELED"])
def test_a_driver_that_is_lost_when_its_result_is_written_down_is_followed_by_one_that_cleans_up(
    program: Program, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointDirectory, "discard", _only_before_the_end(CheckpointDirectory.discard))
        patch.setattr(JobSteps, "remove_files", lambda _: None)
        patch.setattr(FileJobResults, "mark_clean", lambda *_: None)
        program.end(status, monkeypatch)
    result = program.result()
    assert result is not None
    assert (result.status.name, result.is_dirty) == (status, True)
    assert program.checkpoints()
    if status == "CANCELED":
        with pytest.raises(JobSubmissionError, match="was canceled"):
            program.start()
    else:
        program.start().wait()
        assert program.is_exact()
    assert not program.job_directory.exists()
    result = program.result()
    assert result is not None
    assert (result.status.name, result.is_dirty) == (
        "CANCELED" if status == "CANCELED" else "FINISHED",
        False,
    )


def _only_before_the_end(discard: Callable[..., Any]) -> Callable[..., Any]:
    def discard_while_it_runs(directory: CheckpointDirectory, checkpoints: Any, files: Any) -> Any:
        ended = list(directory_of_results(directory).glob("*_DIRTY.json"))
        return () if ended else discard(directory, checkpoints, files)

    return discard_while_it_runs


def directory_of_results(directory: CheckpointDirectory) -> Path:
    return Path(directory.path).parents[1] / "results"


# -- damage --------------------------------------------------------------------------------------------


def flip(path: Path, at: int = 12) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_job_with_damaged_state_fails_at_once_and_is_never_started_from_zero(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One bit of a state file, then a supervisor: nothing is published twice."""
    program.end("killed", monkeypatch)
    home = CheckpointDirectory(str(tmp_path / "state"), program.job_id)
    named = {file.path for stored in home.valid() for file in stored.metadata.files()}
    for path in named:
        flip(Path(path))
    restarts = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 h",  # which nobody waits for
        "restart-strategy.fixed-delay.attempts": 100,
    }
    for _ in range(2):
        with pytest.raises(DamagedStateError, match="no checkpoint of job 'test' can be used") as caught:
            program.start(**restarts).wait()
        assert any(path in caught.value.message for path in named), "the file is named"
        assert any(path in caught.value.message for path in program.checkpoints()), "and the checkpoint"
        assert "headrace run -s" in (caught.value.hint or "")
        assert program.job.progress.restarts == 0
        assert Counter(output_of(program.sink.name)) <= Counter(program.expected), (
            "nothing is published twice"
        )
    # The way out that the message names.
    assert f"delete {program.job_directory}" in (caught.value.hint or "")


def test_a_job_does_not_go_back_forever_if_all_its_state_is_damaged(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reads is broken, not the files: every checkpoint is whole, and going back changes nothing."""

    def broken_memory() -> None:
        raise DamagedStateError("/state/1.change is damaged: the checksum does not match")

    with pytest.raises(DamagedStateError, match="checksum does not match"):
        program.start(lambda epoch: broken_memory() if epoch >= 4 else None).wait()
    assert program.job.progress.restarts <= 2
    program.start().wait()
    assert program.is_exact()


def test_checkpoints_of_former_leaders_do_not_make_a_job_start_from_zero(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.end("killed", monkeypatch)
    # The first driver was stopped before its checkpoints were there; the second one found none.
    for path in program.job_directory.glob("fence-*"):
        path.unlink()
    hidden = [path.rename(tmp_path / path.name) for path in program.job_directory.glob("chk-*")]
    second = CheckpointDirectory(str(tmp_path / "state"), program.job_id, leader=2)
    second.take_over()
    for path in hidden:
        path.rename(program.job_directory / path.name)
    program.starts = 2
    with pytest.raises(DamagedStateError, match="was written by a driver that no longer led") as caught:
        program.start()
    assert "from the beginning" in (caught.value.hint or "")
    assert len(program.checkpoints()) == len(hidden)


# -- without high availability -------------------------------------------------------------------------


@pytest.mark.parametrize("retention", RETENTIONS)
@pytest.mark.parametrize("status", ["FINISHED", "FAILED", "CANCELED", "killed"])
def test_without_high_availability_every_start_is_a_new_job(
    tmp_path: Path, status: str, retention: Retention, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path, is_available=False)
    program.end(status, monkeypatch, **retained_as(retention))
    kept = {
        "FINISHED": False,
        "CANCELED": retention is Retention.RETAIN_ON_CANCELLATION,
        "FAILED": retention is not Retention.NO_EXTERNALIZED_CHECKPOINTS,
        "killed": True,
    }[status]
    left = program.checkpoints()
    assert bool(left) == kept
    assert not (tmp_path / "results").exists()
    if left:  # whoever wants to continue says from where
        program.start(**{"execution.state-recovery.path": left[0]}).wait()
        assert program.job.progress.records < program.numbers
        assert program.is_exact()
    program.start().wait()
    assert program.job.progress.records == program.numbers
    assert program.job.master.restored_from is None
