"""How jobs ended, on storage: found again, never mistaken, and not replaced by a leader that is no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.common.job_status import JobStatus
from headrace.config import Configuration
from headrace.errors import ConfigurationError, LeadershipError
from headrace.runtime.high_availability.job_results import FileJobResults, JobResult
from headrace.runtime.high_availability.leadership import Leadership, lasting_job_id
from headrace.runtime.high_availability.lease import HighAvailabilitySettings
from headrace.storage import local
from tests.unit.storage.remote import mount

JOB = "a" * 32
RESULT = JobResult(JOB, "clicks", "FAILED", 1_700_000_000_000, checkpoint="/c/chk-3-1", error="no room")


@pytest.fixture(params=["local", "remote", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "s3":
        return str(request.getfixturevalue("s3")) + "/results"
    return str(tmp_path / "results") if request.param == "local" else mount(monkeypatch)


def finished(job_id: str = JOB) -> JobResult:
    return JobResult(job_id, "clicks", "FINISHED", 1_700_000_000_000)


def test_a_result_is_dirty_until_the_job_is_cleaned_up(place: str) -> None:
    results = FileJobResults(place, leader=1)
    assert results.find(JOB) is None
    results.add_dirty(RESULT)
    found = results.find(JOB)
    assert found is not None
    assert (found.result.error, found.status, found.is_dirty) == ("no room", JobStatus.FAILED, True)
    assert [each.path for each in results.dirty()] == [found.path]
    results.mark_clean(JOB, JobStatus.FAILED)
    clean = results.find(JOB)
    assert clean is not None
    assert (clean.result, clean.is_dirty) == (found.result, False)
    assert results.dirty() == []
    results.remove(JOB)
    assert results.find(JOB) is None


def test_the_directory_of_results_survives_a_power_loss_whoever_created_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "results").mkdir(parents=True)
    synced: list[str] = []
    monkeypatch.setattr(local, "sync_file", synced.append)
    FileJobResults(str(tmp_path / "a" / "results")).add_dirty(RESULT)
    assert {str(tmp_path / "a" / "results"), str(tmp_path / "a"), str(tmp_path)} <= set(synced)


def test_with_delete_on_commit_a_clean_result_is_gone(place: str) -> None:
    results = FileJobResults(place, leader=1, delete_on_commit=True)
    results.add_dirty(RESULT)
    results.mark_clean(JOB, JobStatus.FAILED)
    assert results.find(JOB) is None


def test_the_first_result_of_a_job_is_kept(place: str) -> None:
    """A job that was stopped with a savepoint and fails after it: the next start still publishes what it covers."""
    results = FileJobResults(place, leader=1)
    results.add_dirty(finished())
    results.add_dirty(RESULT)
    results.mark_clean(JOB, JobStatus.FAILED)
    found = results.find(JOB)
    assert found is not None
    assert (found.status, found.is_dirty) == (JobStatus.FINISHED, True)


def test_a_result_of_a_leader_that_others_took_over_from_does_not_count(place: str) -> None:
    FileJobResults(place, leader=1).add_dirty(finished())  # late: the second one leads since
    assert FileJobResults(place, leader=3).find(JOB, since_leader=2) is None
    FileJobResults(place, leader=2).add_dirty(RESULT)
    FileJobResults(place, leader=1).add_dirty(finished())  # and again, which replaces nothing
    found = FileJobResults(place, leader=3).find(JOB, since_leader=2)
    assert found is not None
    assert (found.status, found.result.leader) == (JobStatus.FAILED, 2)


def test_nothing_is_written_by_who_does_not_lead(tmp_path: Path) -> None:
    def refuse() -> None:
        raise LeadershipError("another leads")

    FileJobResults(str(tmp_path), leader=1).add_dirty(RESULT)
    late = FileJobResults(str(tmp_path), leader=1, ensure_leader=refuse)
    before = [path.name for path in tmp_path.iterdir()]
    for write in (
        lambda: late.add_dirty(finished("b" * 32)),
        lambda: late.mark_clean(JOB, JobStatus.FAILED),
        lambda: late.remove(JOB),
    ):
        with pytest.raises(LeadershipError):
            write()
    assert [path.name for path in tmp_path.iterdir()] == before


# -- options -------------------------------------------------------------------------------------------


def available(tmp_path: Path, **options: str) -> Configuration:
    return Configuration(
        {
            "high-availability.type": "filesystem",
            "high-availability.storageDir": str(tmp_path / "ha"),
            "high-availability.cluster-id": "clicks",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            **options,
        }
    )


def test_results_are_kept_in_flinks_place(tmp_path: Path) -> None:
    settings = HighAvailabilitySettings.from_configuration(available(tmp_path))
    assert settings is not None
    assert settings.results_directory == str(tmp_path / "ha" / "job-result-store" / "clicks")
    elsewhere = available(tmp_path, **{"job-result-store.storage-path": "s3://bucket/results/"})
    settings = HighAvailabilitySettings.from_configuration(elsewhere)
    assert settings is not None
    assert settings.results_directory == "s3://bucket/results"


@pytest.mark.parametrize(
    ("option", "is_session", "is_kept"),
    [(None, False, True), (None, True, False), ("true", False, False), ("false", True, True)],
)
def test_results_of_programs_are_kept_and_those_of_sessions_deleted_unless_the_options_say_otherwise(
    tmp_path: Path, option: str | None, is_session: bool, is_kept: bool
) -> None:
    options = {} if option is None else {"job-result-store.delete-on-commit": option}
    leadership = Leadership.of(available(tmp_path, **options), "test")
    assert leadership is not None
    try:
        results = leadership.job_results(is_session=is_session)
        results.add_dirty(finished())
        results.mark_clean(JOB, JobStatus.FINISHED)
        assert (results.find(JOB) is not None) == is_kept
    finally:
        leadership.release()


@pytest.mark.parametrize("key", ["job-result-store.storage-path", "job-result-store.delete-on-commit"])
def test_options_of_the_store_are_refused_where_they_have_no_effect(key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{key} has no effect without high availability"):
        HighAvailabilitySettings.from_configuration(Configuration({key: "true"}))


def test_a_program_has_one_id_for_each_savepoint_it_is_started_from(tmp_path: Path) -> None:
    plain = lasting_job_id("clicks")
    assert plain == lasting_job_id("clicks")
    assert (
        len(
            {
                plain,
                lasting_job_id("visits"),
                lasting_job_id("clicks", "/s/1"),
                lasting_job_id("clicks", "/s/2"),
            }
        )
        == 4
    )
    assert lasting_job_id("clicks", "/s/1") == lasting_job_id("clicks", "file:///s/1/")
