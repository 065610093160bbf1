"""Jobs kept for the next leader; nobody else can write them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from headrace.errors import ConfigurationError, DamagedStateError, LeadershipError
from headrace.runtime.high_availability.job_store import JobStore, StoredJob
from headrace.runtime.high_availability.lease import HighAvailabilitySettings, LeaderLease

JOB = StoredJob("a" * 32, "visits", b"\x00graph", {"parallelism.default": "2"}, 1_000)


@pytest.fixture
def place(tmp_path: Path) -> HighAvailabilitySettings:
    return HighAvailabilitySettings(str(tmp_path), "cluster", 60_000)


def leading(place: HighAvailabilitySettings) -> tuple[JobStore, LeaderLease]:
    lease = LeaderLease(place)
    assert lease.try_acquire()
    return JobStore(place.jobs_directory, lease), lease


def overtaken(place: HighAvailabilitySettings) -> tuple[JobStore, JobStore]:
    """A former leader's store, and that of who leads now."""
    former, lease = leading(place)
    (Path(place.leader_directory) / f"released-{lease.token:020d}").touch()
    return former, leading(place)[0]


def test_a_job_is_found_by_the_next_leader(place: HighAvailabilitySettings) -> None:
    store, lease = leading(place)
    store.put(JOB)
    lease.release()
    store, _ = leading(place)
    assert store.jobs() == [JOB]
    assert store.get(JOB.job_id) == JOB


def test_a_job_that_was_never_stored_is_not_found(place: HighAvailabilitySettings) -> None:
    store, _ = leading(place)
    store.put(JOB)
    assert store.get("b" * 32) is None


def test_jobs_come_in_the_order_they_were_submitted(place: HighAvailabilitySettings) -> None:
    store, _ = leading(place)
    for job_id, submitted_ms in (("c", 2), ("b", 3), ("a", 3)):
        store.put(StoredJob(job_id, "", b"", {}, submitted_ms))
    assert [job.job_id for job in store.jobs()] == ["c", "a", "b"]


def test_two_live_jobs_with_one_id_are_refused(place: HighAvailabilitySettings) -> None:
    store, _ = leading(place)
    store.put(JOB)
    with pytest.raises(ConfigurationError, match="already exists") as caught:
        store.put(JOB)
    assert "another id" in (caught.value.hint or "")
    store.remove(JOB.job_id)
    store.put(JOB)


def test_a_job_that_ended_is_forgotten(place: HighAvailabilitySettings) -> None:
    store, _ = leading(place)
    store.put(JOB)
    store.remove(JOB.job_id)
    store.remove(JOB.job_id)
    assert store.jobs() == []


def test_a_former_leader_can_write_nothing(place: HighAvailabilitySettings) -> None:
    former, now = overtaken(place)
    now.put(JOB)
    for write in (
        lambda: former.put(JOB),
        lambda: former.remove(JOB.job_id),
    ):
        with pytest.raises(LeadershipError):
            write()
    assert now.jobs() == [JOB]


def test_a_damaged_job_is_named_and_does_not_keep_the_others_from_being_recovered(
    place: HighAvailabilitySettings, caplog: pytest.LogCaptureFixture
) -> None:
    store, _ = leading(place)
    store.put(JOB)
    other = msgspec.structs.replace(JOB, job_id="b" * 32)
    store.put(other)
    path = Path(place.jobs_directory) / JOB.job_id / "job"
    path.write_bytes(path.read_bytes()[:-3] + b"xxx")
    assert store.jobs() == [other]
    assert f"{path} is damaged" in caplog.text
    with pytest.raises(DamagedStateError, match="job is damaged"):
        store.get(JOB.job_id)
