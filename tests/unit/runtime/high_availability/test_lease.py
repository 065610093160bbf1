"""Leadership, on a clock of the test's own: at most one leads, and whoever has lost it knows."""

from __future__ import annotations

import errno
import logging
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config.configuration import Configuration
from headrace.errors import ConfigurationError, LeadershipError
from headrace.runtime.high_availability.leadership import Leadership
from headrace.runtime.high_availability.lease import HighAvailabilitySettings, LeaderLease, LeaseKeeper


class Clock:
    """Seconds that the test lets pass."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def settings_at(path: Path, lease_ms: int = 10_000) -> HighAvailabilitySettings:
    return HighAvailabilitySettings(str(path), "cluster", lease_ms)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock):
    def lease(name: str = "", lease_ms: int = 10_000) -> LeaderLease:
        return LeaderLease(settings_at(tmp_path, lease_ms), name=name, clock=clock)

    return lease


# --- one leader -----------------------------------------------------------------------------------


def test_the_first_leads_and_the_second_does_not(make) -> None:
    first, second = make(), make()
    assert first.try_acquire()
    assert first.token == 1
    assert first.try_acquire(), "it leads already"
    assert not second.try_acquire()
    first.ensure_leader()


def test_who_does_not_lead_may_not_write(make) -> None:
    with pytest.raises(LeadershipError, match="has not acquired the lease"):
        make().ensure_leader()


def test_a_lease_that_is_renewed_does_not_end(make, clock: Clock) -> None:
    first, second = make(), make()
    first.try_acquire()
    for _ in range(20):
        clock.now += 3
        first.renew()
        assert not second.try_acquire()
    first.ensure_leader()


def test_a_leader_that_stands_still_for_a_lease_is_replaced(make, clock: Clock) -> None:
    first, second = make(), make()
    first.try_acquire()
    assert not second.try_acquire()
    clock.now += 9.9
    assert not second.try_acquire()
    clock.now += 0.2
    assert second.try_acquire()
    assert second.token == 2


def test_a_lease_ends_for_its_holder_before_it_ends_for_others(make, clock: Clock) -> None:
    first, second = make(), make()
    first.try_acquire()
    second.try_acquire()
    clock.now += 8.0
    with pytest.raises(LeadershipError, match="expired before it was renewed"):
        first.ensure_leader()
    assert not second.try_acquire()


def test_a_candidate_waits_a_whole_lease_from_when_it_first_looked(make, clock: Clock) -> None:
    first, second = make(), make()
    first.try_acquire()
    clock.now += 1_000
    assert not second.try_acquire(), "for all it knows the last renewal was a moment ago"
    clock.now += 10
    assert second.try_acquire()


def test_the_longer_lease_counts_when_the_two_differ(make, clock: Clock) -> None:
    patient, hasty = make(lease_ms=60_000), make(lease_ms=1_000)
    patient.try_acquire()
    hasty.try_acquire()
    clock.now += 30
    assert not hasty.try_acquire()
    patient.ensure_leader()


def test_what_is_lost_stays_lost(make, clock: Clock) -> None:
    first = make()
    first.try_acquire()
    clock.now += 9
    for _ in range(2):
        with pytest.raises(LeadershipError, match="no longer the leader of 'cluster'") as caught:
            first.renew()
        assert "lease-duration" in (caught.value.hint or "")
        clock.now -= 5
    assert not first.try_acquire(), "not even the former leader may skip the wait"


def test_a_higher_token_ends_leadership_within_the_lease(make, tmp_path: Path) -> None:
    first = make()
    first.try_acquire()
    (tmp_path / "cluster" / "leader" / f"token-{9:020d}").touch()
    with pytest.raises(LeadershipError, match="with token 9"):
        first.ensure_leader()


def test_an_emptied_directory_ends_leadership(make, tmp_path: Path) -> None:
    first = make()
    first.try_acquire()
    for path in (tmp_path / "cluster" / "leader").iterdir():
        path.unlink()
    with pytest.raises(LeadershipError, match="were deleted"):
        first.ensure_leader()


def test_a_released_lease_is_free_at_once_and_tokens_rise(make, tmp_path: Path) -> None:
    tokens = []
    for _ in range(4):
        lease = make()
        assert lease.try_acquire()
        lease.renew()
        tokens.append(lease.token)
        lease.release()
        lease.release()
        with pytest.raises(LeadershipError, match="has released the lease"):
            lease.ensure_leader()
    assert tokens == [1, 2, 3, 4]
    left = sorted(path.name for path in (tmp_path / "cluster" / "leader").iterdir())
    assert [name.split("-")[0] for name in left] == ["released", "renewal", "token"]


def test_a_renewal_that_takes_longer_than_the_lease_does_not_count(
    make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make()
    first.try_acquire()
    monkeypatch.setattr("os.fsync", lambda _: clock.sleep(20))
    with pytest.raises(LeadershipError, match="expired"):
        first.renew()


def test_a_token_left_by_one_that_others_overtook_gives_no_leadership(
    make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its look at the directory is old: leaders 1 and 2 have come meanwhile, and 1's files were cleared away."""
    slow = make()
    old = slow._highest_token()
    for _ in range(2):
        lease = make()
        lease.try_acquire()
        if lease.token == 1:
            lease.release()
    views = iter([old])
    look = slow._highest_token
    monkeypatch.setattr(slow, "_highest_token", lambda: next(views, None) or look())
    assert not slow.try_acquire()


# --- waiting --------------------------------------------------------------------------------------


def test_waiting_ends_when_the_leader_is_lost(make, clock: Clock) -> None:
    make().try_acquire()
    assert make().acquire(60, sleep=clock.sleep) == 2
    assert clock.now < 100 + 12


def test_a_timeout_while_waiting_for_the_lease_names_the_leader_and_the_remedy(make, clock: Clock) -> None:
    first, second = make(name="visits"), make()
    first.try_acquire()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        first.renew()

    with pytest.raises(LeadershipError, match=r"process \d+ on \S+ \('visits'\) leads 'cluster'") as caught:
        second.acquire(30, sleep=sleep)
    assert "high-availability.cluster-id" in (caught.value.hint or "")


def test_a_program_says_in_its_log_for_whom_it_waits_and_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    LeaderLease(settings_at(tmp_path), name="visits").try_acquire()
    monkeypatch.setattr(LeaderLease, "acquire", lambda lease, timeout_s: lease.ensure_leader())
    with caplog.at_level(logging.INFO), pytest.raises(LeadershipError):
        Leadership(settings_at(tmp_path), "visits")
    assert "('visits') leads 'cluster'" in caplog.text
    assert "waiting up to 25 s" in caplog.text


def test_one_of_many_concurrent_processes_leads(tmp_path: Path) -> None:
    leases = [LeaderLease(settings_at(tmp_path)) for _ in range(8)]
    start = threading.Barrier(len(leases))
    won = []

    def race(lease: LeaderLease) -> None:
        start.wait()
        if lease.try_acquire():
            won.append(lease)

    threads = [threading.Thread(target=race, args=(lease,)) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["try", "renew", "release"]), st.integers(0, 6)),
        max_size=50,
    )
)
def test_never_do_two_lead_whatever_they_do_and_whenever(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, int]]
) -> None:
    clock, place = Clock(), settings_at(tmp_path_factory.mktemp("ha"))
    leases = [LeaderLease(place, clock=clock) for _ in range(3)]
    tokens = [0]
    for who, what, wait in steps:
        clock.now += wait
        lease = leases[who]
        if what == "try":
            before = lease._token
            if lease.try_acquire() and before is None:
                assert lease.token > tokens[-1]
                tokens.append(lease.token)
        elif what == "release":
            lease.release()
        else:
            try:
                lease.renew()
            except LeadershipError:
                assert lease._token is None
        leading = []
        for each in leases:
            try:
                each.ensure_leader()
                leading.append(each)
            except LeadershipError:
                pass
        assert len(leading) <= 1


# --- in the background ----------------------------------------------------------------------------


def test_the_keeper_renews_until_it_is_stopped(tmp_path: Path) -> None:
    lease, rival = (LeaderLease(settings_at(tmp_path, lease_ms=100)) for _ in range(2))
    lease.try_acquire()
    renewed = threading.Semaphore(0)
    renew = lease.renew

    def counted() -> None:
        renew()
        renewed.release()

    lease.renew = counted  # type: ignore[method-assign]
    keeper = LeaseKeeper(lease, on_lost=pytest.fail)
    keeper.start()
    for _ in range(3):
        assert renewed.acquire(timeout=10)
    assert not rival.try_acquire()
    keeper.stop()
    lease.release()
    assert rival.try_acquire()


def test_the_keeper_says_once_when_leadership_is_lost(tmp_path: Path) -> None:
    lease = LeaderLease(settings_at(tmp_path, lease_ms=100))
    lease.try_acquire()
    lost: list[LeadershipError] = []
    told = threading.Event()
    keeper = LeaseKeeper(lease, on_lost=lambda error: (lost.append(error), told.set()))
    (tmp_path / "cluster" / "leader" / f"token-{9:020d}").touch()
    keeper.start()
    assert told.wait(10)
    keeper.stop()
    assert len(lost) == 1


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_renewal_that_storage_refuses_is_tried_again(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = LeaderLease(settings_at(tmp_path, lease_ms=10_000))
    lease.try_acquire()
    fsync, failures = os.fsync, [OSError(number, os.strerror(number))]
    monkeypatch.setattr(LeaderLease, "renewal_interval_s", 0.01)
    renewed = threading.Event()

    def fail_once(descriptor: int) -> None:
        if failures:
            raise failures.pop()
        fsync(descriptor)
        renewed.set()

    monkeypatch.setattr("os.fsync", fail_once)
    keeper = LeaseKeeper(lease, on_lost=pytest.fail)
    keeper.start()
    assert renewed.wait(10)
    keeper.stop()
    assert [name for name in os.listdir(tmp_path / "cluster" / "leader") if name.endswith(".part")] == []


def test_the_keeper_tries_again_when_storage_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = LeaderLease(settings_at(tmp_path, lease_ms=200))
    lease.try_acquire()
    tries: list[int] = []
    done = threading.Event()

    def shaky() -> None:
        tries.append(1)
        if len(tries) >= 3:
            done.set()
        raise OSError("the store is away")

    monkeypatch.setattr(lease, "renew", shaky)
    keeper = LeaseKeeper(lease, on_lost=pytest.fail)
    keeper.start()
    assert done.wait(10)
    keeper.stop()


# --- configuration --------------------------------------------------------------------------------


def test_without_configuration_a_job_ends_with_its_driver() -> None:
    assert HighAvailabilitySettings.from_configuration(Configuration()) is None


def test_the_options_are_read(tmp_path: Path) -> None:
    values = {
        "high-availability.type": "filesystem",
        "high-availability.storageDir": tmp_path.as_uri(),
        "high-availability.cluster-id": "/clicks",
        "headrace.high-availability.lease-duration": "3 s",
    }
    found = HighAvailabilitySettings.from_configuration(Configuration(values))
    assert found == HighAvailabilitySettings(str(tmp_path), "clicks", 3_000)
    assert found is not None
    assert found.leader_directory == f"{tmp_path}/clicks/leader"
    assert found.jobs_directory == f"{tmp_path}/clicks/jobs"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "high-availability.storageDir is not set"),
        (
            {"high-availability.storageDir": "s3://bucket/ha"},
            "expected a mounted directory; got s3://bucket/ha",
        ),
        ({"high-availability.storageDir": "/ha", "high-availability.cluster-id": "a/b"}, "expected one name"),
        ({"high-availability.storageDir": "/ha", "high-availability.cluster-id": "/"}, "expected one name"),
    ],
)
def test_impossible_settings_are_refused_with_a_hint(values: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        HighAvailabilitySettings.from_configuration(
            Configuration({"high-availability.type": "filesystem", **values})
        )


def test_other_services_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected one of NONE, filesystem; got 'zookeeper'"):
        Configuration({"high-availability.type": "zookeeper"})
