from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.epoch.pacing import EpochPacer, PacingSettings


def make(initial: int = 1000, max_records: int | None = None, max_bytes: int = 10**9) -> EpochPacer:
    return EpochPacer(PacingSettings(timedelta(seconds=2), initial, max_records, max_bytes))


def run(
    pacer: EpochPacer, records_per_s: float, backlog: int, bytes_per_record: int = 0, fixed_s: float = 0.0
) -> int:
    """Run an epoch on a machine of this speed and return how many records it read."""
    records = min(backlog, pacer.max_records)
    observe(pacer, records / records_per_s, records, records * bytes_per_record, fixed_s)
    return records


def observe(
    pacer: EpochPacer, work_s: float, most_records: int, most_bytes: int = 0, fixed_s: float = 0.0
) -> None:
    pacer.observe(
        duration_s=work_s + fixed_s, work_s=work_s, most_records=most_records, most_bytes=most_bytes
    )


def test_the_first_epoch_has_the_size_that_was_configured() -> None:
    assert make(initial=123).max_records == 123


def test_a_first_epoch_of_unknown_speed_is_small_and_one_of_known_speed_takes_the_target_duration() -> None:
    settings = PacingSettings(timedelta(seconds=2), None, None, 1000)
    assert EpochPacer(settings).max_records == 5_000
    assert EpochPacer(settings, expected_rate=70_000).max_records == 140_000


def test_configured_values_take_precedence_over_expected_ones() -> None:
    settings = PacingSettings(timedelta(seconds=2), 123, None, 1000)
    assert EpochPacer(settings, expected_rate=70_000).max_records == 123


def test_a_first_epoch_is_bounded_in_bytes_by_half_of_what_a_subtask_may_receive() -> None:
    assert make(max_bytes=1000).max_bytes == 500


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


def test_one_odd_epoch_is_made_up_for_by_the_next_ones() -> None:
    pacer = make(initial=100_000)
    run(pacer, records_per_s=50_000 / 100, backlog=10**9)  # a hundred times slower than it is
    assert pacer.max_records == 1_000
    for _ in range(3):
        run(pacer, records_per_s=50_000, backlog=10**9)
    assert pacer.max_records == 100_000


def test_there_is_a_limit_to_what_one_epoch_changes() -> None:
    pacer = make(initial=256_000)
    observe(pacer, 1e6, 256_000)
    assert pacer.max_records == 1000
    observe(pacer, 0.0, 1000)
    assert pacer.max_records == 16_000


def test_records_that_become_a_hundred_times_slower_make_one_long_epoch_and_no_second() -> None:
    pacer = make(initial=100_000)
    assert run(pacer, records_per_s=50_000, backlog=10**9) == 100_000
    durations = [run(pacer, records_per_s=500, backlog=10**9) / 500 for _ in range(4)]
    assert durations == [200.0, 2.0, 2.0, 2.0]


def test_without_a_backlog_an_epoch_in_time_says_nothing() -> None:
    pacer = make(initial=1000)
    observe(pacer, 0.001, 999)
    observe(pacer, 1.9, 10)
    assert pacer.max_records == 1000


def test_without_a_backlog_a_few_records_that_took_long_say_nothing() -> None:
    pacer = make(initial=5000)
    observe(pacer, 83.0, 1)
    assert pacer.max_records == 5000
    observe(pacer, 83.0, 1, most_bytes=10**10)  # but their size counts
    assert pacer.max_records == 1


def test_without_a_backlog_too_long_an_epoch_counts() -> None:
    # What arrives while it runs is the next epoch's: that must not be even longer.
    pacer = make(initial=1_000_000)
    observe(pacer, 20.0, 1000)
    assert pacer.max_records == 100


def test_an_epoch_without_records_says_nothing() -> None:
    pacer = make(initial=1000)
    observe(pacer, 100.0, 0)
    assert pacer.max_records == 1000


def test_fixed_costs_of_an_epoch_do_not_count_towards_its_budget() -> None:
    pacer = make(initial=10)
    for _ in range(20):
        run(pacer, records_per_s=50_000, backlog=10**9, fixed_s=0.5)
    assert pacer.max_records == 75_000  # 1.5 s of work


def test_epochs_do_not_shrink_to_nothing_when_starting_one_takes_longer_than_the_target() -> None:
    pacer = make(initial=100_000)
    for _ in range(20):
        run(pacer, records_per_s=50_000, backlog=10**9, fixed_s=3.0)
    assert pacer.max_records == 50_000  # 1 s of work: half of the target


class Publishing:
    """A job with a backlog whose output takes time to publish, so many epochs at a time."""

    def __init__(self, pacer: EpochPacer, covered: int) -> None:
        self.pacer = pacer
        self.covered = covered
        self.staged: dict[int, int] = {}
        self.epoch = 0

    def run(self, records_per_s: float, published_per_s: float) -> float:
        """Run an epoch, publish what is due, and return how long all of it took."""
        self.epoch += 1
        records = self.pacer.max_records
        self.pacer.read(self.epoch, records)
        self.staged[self.epoch] = records
        published_s = 0.0
        if len(self.staged) == self.covered:
            published_s = sum(self.staged.values()) / published_per_s
            self.pacer.published(self.staged, published_s)
            self.staged = {}
        observe(self.pacer, records / records_per_s, records)
        return records / records_per_s + published_s


def test_the_time_of_publishing_is_part_of_an_epoch() -> None:
    job = Publishing(make(initial=1000), covered=1)
    durations = [job.run(records_per_s=50_000, published_per_s=1_000) for _ in range(8)]
    assert durations[-3:] == pytest.approx([2.0] * 3, rel=0.01)


def test_a_sink_that_becomes_a_hundred_times_slower_makes_small_epochs_at_once() -> None:
    job = Publishing(make(initial=10_000), covered=1)
    for _ in range(5):
        job.run(records_per_s=50_000, published_per_s=50_000)
    durations = [job.run(records_per_s=50_000, published_per_s=500) for _ in range(4)]
    assert durations[0] > 90
    assert durations[1:] == pytest.approx([2.0] * 3, rel=0.05)


def test_publishing_many_epochs_at_once_is_spread_over_them() -> None:
    job = Publishing(make(initial=10_000), covered=5)
    for _ in range(20):
        job.run(records_per_s=10_000, published_per_s=10_000)
    sizes = set()
    durations = []
    for _ in range(20):
        sizes.add(job.pacer.max_records)
        durations.append(job.run(records_per_s=10_000, published_per_s=10_000))
    assert sum(durations) / len(durations) == pytest.approx(2.0, rel=0.01)
    assert max(sizes) <= min(sizes) * 1.01


def test_a_sink_that_becomes_faster_again_is_believed_step_by_step() -> None:
    job = Publishing(make(initial=1_000), covered=1)
    for _ in range(5):
        job.run(records_per_s=50_000, published_per_s=500)
    for _ in range(20):
        last = job.run(records_per_s=50_000, published_per_s=50_000)
    assert last == pytest.approx(2.0, rel=0.01)
    assert job.pacer.max_records == pytest.approx(50_000, rel=0.01)


def test_a_job_that_never_publishes_is_forgotten() -> None:
    pacer = make()
    for epoch in range(5_000):
        pacer.read(epoch, 10)
    assert len(pacer._publishing._unpublished) <= 1_000


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
        observe(pacer, duration_s, most_records, most_bytes)
        assert pacer.max_records >= 1
        assert bound is None or pacer.max_records <= bound


def probing(max_records: int | None = None, initial: int | None = None) -> EpochPacer:
    settings = PacingSettings(timedelta(seconds=2), initial, max_records, 10**9)
    return EpochPacer(settings, may_be_slow=True)


def sizes(pacer: EpochPacer, records_per_s: float, epochs: int) -> list[int]:
    return [run(pacer, records_per_s, backlog=10**9) for _ in range(epochs)]


def test_a_job_with_functions_begins_with_few_records_and_grows_fast() -> None:
    assert sizes(probing(), records_per_s=1e6, epochs=4) == [10, 320, 10_240, 163_840]


def test_functions_that_are_slow_never_get_much_more_than_they_can_do_in_time() -> None:
    assert sizes(probing(), records_per_s=300, epochs=3) == [10, 320, 600]
    assert sizes(probing(), records_per_s=100, epochs=3) == [10, 320, 40]
    assert sizes(probing(), records_per_s=50, epochs=3) == [10, 20, 20]
    assert sizes(probing(), records_per_s=5, epochs=4) == [10, 10, 2, 2]
    assert sizes(probing(), records_per_s=0.5, epochs=4) == [10, 10, 1, 1]


def test_epochs_with_few_slow_records_are_short_but_not_mostly_overhead() -> None:
    pacer = probing()
    for _ in range(6):
        run(pacer, records_per_s=20, backlog=10**9, fixed_s=0.01)
    assert pacer.max_records == 7  # 0.4 s of the target of 2 s
    for _ in range(6):
        run(pacer, records_per_s=20, backlog=10**9, fixed_s=0.1)
    assert pacer.max_records in (17, 18)  # 1 s, a tenth of it around the records
    for _ in range(6):
        run(pacer, records_per_s=20, backlog=10**9, fixed_s=0.5)
    assert pacer.max_records == 30  # the target


def test_time_that_a_first_epoch_takes_to_load_functions_does_not_make_the_next_ones_smaller() -> None:
    pacer = probing()
    observe(pacer, work_s=30, most_records=10)
    assert pacer.max_records == 10
    observe(pacer, work_s=0.001, most_records=10)
    assert pacer.max_records == 160


def test_a_probe_never_continues_with_epochs_that_do_not_grow() -> None:
    for records_per_s in range(1, 200):
        pacer = probing()
        for _ in range(6):
            run(pacer, records_per_s, backlog=10**9)
        assert not pacer.is_probing, records_per_s


def test_a_probe_ends_with_the_usual_size_or_when_functions_turn_out_slow() -> None:
    pacer = probing()
    seen = []
    for _ in range(3):
        seen.append(pacer.is_probing)
        run(pacer, records_per_s=1e6, backlog=10**9)
    assert seen == [True, True, False]
    pacer = probing()
    run(pacer, records_per_s=5, backlog=10**9)
    assert not pacer.is_probing


def test_a_probe_continues_where_one_of_two_splits_has_all_the_records() -> None:
    pacer = probing()
    for _ in range(4):
        records = pacer.max_records // 2
        observe(pacer, work_s=records / 1e6, most_records=records)
    assert pacer.max_records > 5_000


def test_what_others_wait_for_is_read_in_full_during_a_probe() -> None:
    pacer = probing()
    assert (pacer.max_records, pacer.max_early_records) == (10, 5_000)
    for _ in range(3):
        run(pacer, records_per_s=1e6, backlog=10**9)
    assert pacer.max_early_records == pacer.max_records


@pytest.mark.parametrize(("initial", "most", "first"), [(700, None, 700), (None, 40, 40), (None, 9_000, 10)])
def test_whoever_makes_epochs_small_has_no_probe(initial: int | None, most: int | None, first: int) -> None:
    pacer = probing(most, initial)
    assert (pacer.max_records, pacer.is_probing) == (first, first == 10)


@pytest.mark.parametrize("with_functions", [False, True], ids=["tables", "functions"])
def test_epochs_do_not_shrink_to_nothing_when_tasks_work_long_whatever_they_read(
    with_functions: bool,
) -> None:
    settings = PacingSettings(timedelta(seconds=5), None, None, 10**9)
    pacer = EpochPacer(settings, may_be_slow=with_functions)
    sizes = []
    for _ in range(60):
        sizes.append(min(pacer.max_records, 10**6))
        observe(pacer, work_s=6.0 + sizes[-1] * 0.001, most_records=sizes[-1], fixed_s=0.5)
    assert sum(sizes[20:]) / 40 > 1_000


def test_records_that_are_slow_by_themselves_still_make_small_epochs() -> None:
    settings = PacingSettings(timedelta(seconds=5), None, None, 10**9)
    pacer = EpochPacer(settings, may_be_slow=True)
    sizes = []
    for _ in range(30):
        sizes.append(pacer.max_records)
        observe(pacer, work_s=0.3 + sizes[-1] * 0.2, most_records=sizes[-1], fixed_s=0.1)
    assert set(sizes[5:]) <= set(range(2, 13)), sizes


@pytest.mark.parametrize("seed", range(5))
def test_epochs_on_a_machine_of_changing_speed_do_not_outgrow_their_target_by_much(seed: int) -> None:
    settings = PacingSettings(timedelta(seconds=5), None, None, 10**9)
    pacer = EpochPacer(settings, may_be_slow=True)
    chance = random.Random(seed)
    works = []
    for _ in range(100):
        works.append((0.3 + pacer.max_records * 0.2) * chance.uniform(0.6, 1.8))
        observe(pacer, work_s=works[-1], most_records=pacer.max_records, fixed_s=0.2)
    assert max(works[10:]) < 10
