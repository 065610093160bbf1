from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.pacing import EpochPacer, PacingSettings


def make(initial: int = 1000, max_records: int | None = None, max_bytes: int = 10**9) -> EpochPacer:
    return EpochPacer(PacingSettings(timedelta(seconds=2), initial, max_records, max_bytes))


def run(pacer: EpochPacer, records_per_s: float, backlog: int, bytes_per_record: int = 0) -> int:
    """Run an epoch on a machine of this speed and return how many records it read."""
    records = min(backlog, pacer.max_records)
    pacer.observe(
        duration_s=records / records_per_s, most_records=records, most_bytes=records * bytes_per_record
    )
    return records


def test_the_first_epoch_has_the_size_that_was_configured() -> None:
    assert make(initial=123).max_records == 123


def test_with_a_backlog_epochs_approach_their_target_duration() -> None:
    pacer = make(initial=10)
    for _ in range(20):
        run(pacer, records_per_s=50_000, backlog=10**9)
    assert pacer.max_records == 100_000


def test_a_machine_that_slows_down_gets_smaller_epochs() -> None:
    pacer = make(initial=100_000)
    for _ in range(20):
        run(pacer, records_per_s=1_000, backlog=10**9)
    assert pacer.max_records == 2_000


def test_one_odd_epoch_does_not_throw_the_pace_far_off() -> None:
    pacer = make(initial=1000)
    pacer.observe(duration_s=1000.0, most_records=1000, most_bytes=0)
    assert pacer.max_records == 250
    pacer.observe(duration_s=0.0, most_records=250, most_bytes=0)
    assert 250 < pacer.max_records <= 250 * 16


def test_without_a_backlog_nothing_is_learned() -> None:
    pacer = make(initial=1000)
    pacer.observe(duration_s=0.001, most_records=999, most_bytes=0)
    pacer.observe(duration_s=100.0, most_records=10, most_bytes=10**12)
    assert pacer.max_records == 1000


def test_a_fixed_bound_is_kept() -> None:
    pacer = make(initial=1000, max_records=50)
    for _ in range(10):
        assert run(pacer, records_per_s=10**9, backlog=10**9) == 50


def test_large_records_make_small_epochs() -> None:
    pacer = make(initial=1000, max_bytes=1_000_000)
    for _ in range(20):
        run(pacer, records_per_s=10**9, backlog=10**9, bytes_per_record=10_000)
    assert pacer.max_records == 100


@given(
    st.lists(
        st.tuples(st.floats(0, 1e6), st.integers(0, 10**9), st.integers(0, 10**12)),
        max_size=20,
    ),
    st.none() | st.integers(1, 100),
)
def test_an_epoch_always_reads_something(epochs: list[tuple[float, int, int]], bound: int | None) -> None:
    pacer = make(max_records=bound)
    for duration_s, most_records, most_bytes in epochs:
        pacer.observe(duration_s=duration_s, most_records=most_records, most_bytes=most_bytes)
        assert pacer.max_records >= 1
        assert bound is None or pacer.max_records <= bound
