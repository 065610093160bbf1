"""Why an epoch was slow: the largest part is found, and the sentence has its numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.monitoring.job_monitor import EpochView, Share
from headrace.runtime.monitoring.slow_epochs import LevelVertex, Usual, epoch_parts, explain_epoch, total_ms

LEVELS = [[LevelVertex("a", "Source: clicks", 2)], [LevelVertex("b", "Reduce -> Sink", 4)]]


def share(busy_ms: float, records: int = 100) -> Share:
    return Share(records, records, 0, 0, busy_ms, 0.0, 0.0)


def epoch(number: int = 1, records: int = 1000, **more: object) -> EpochView:
    """An epoch of a second: level 0 takes 200 ms, level 1 takes 700 ms, Spark has the rest."""
    #   0        200 250                     950 1000
    #   |level 0 |   |       level 1         |   |
    view = EpochView(
        number,
        started_ms=10_000,
        ended_ms=11_000,
        records=records,
        watermark=None,
        levels=((10_000, 10_200), (10_250, 10_950)),
        shares={
            **{SubtaskId("a", index): share(150) for index in range(2)},
            **{SubtaskId("b", index): share(650) for index in range(4)},
        },
    )
    return replace(view, **more)  # type: ignore[arg-type]


def kinds(view: EpochView) -> dict[tuple[str, int | None], float]:
    return {(part.kind, part.level): part.ms for part in epoch_parts(view)}


def test_the_parts_of_an_epoch_are_the_whole_of_it() -> None:
    view = epoch(planning_ms=30.0, publishing_ms=20.0, checkpoint_ms=40.0, late_publishing_ms=10.0)
    parts = epoch_parts(view)
    assert kinds(view) == {
        ("planning", None): 30.0,
        ("level", 0): 200.0,
        ("level", 1): 700.0,
        ("spark", None): 80.0,
        ("publishing", None): 30.0,
        ("checkpoint", None): 40.0,
    }
    assert sum(part.ms for part in parts) == total_ms(view) == 1080.0
    assert sum(part.share for part in parts) == pytest.approx(1.0)


def test_levels_that_overlap_are_not_counted_twice() -> None:
    view = epoch(levels=((10_000, 10_600), (10_500, 11_000)))
    assert kinds(view)["level", 0] == 600
    assert kinds(view)["level", 1] == 400


def test_clocks_that_are_wrong_give_no_negative_times() -> None:
    view = epoch(levels=((9_000, 9_100), (20_000, 20_100)))
    assert all(part.ms >= 0 for part in epoch_parts(view))


def test_an_even_level_is_named_with_its_share() -> None:
    text = explain_epoch(epoch(), LEVELS).text
    assert "Level 1 (Reduce -> Sink) took 70 % of the time (700 ms)." in text
    assert "Its 4 subtasks worked about equally long" in text


def test_skew_is_found_with_the_records_that_cause_it() -> None:
    shares = {SubtaskId("b", index): share(100, 100) for index in range(3)}
    shares[SubtaskId("b", 3)] = share(680, 700)
    text = explain_epoch(epoch(shares=shares), LEVELS).text
    assert "Subtask 3 worked 680 ms, 6.8 times the median of the others (100 ms)" in text
    assert "it got 70 % of the records, so keys are skewed." in text


def test_a_subtask_that_is_slow_without_more_records_is_reported_as_such() -> None:
    shares = {SubtaskId("b", index): share(100) for index in range(3)}
    shares[SubtaskId("b", 0)] = share(680)
    text = explain_epoch(epoch(shares=shares), LEVELS).text
    assert "though it got no more records than they" in text


def test_subtasks_that_take_turns_want_slots() -> None:
    shares = {SubtaskId("b", index): share(170) for index in range(4)}
    assert "More slots would let them run in parallel." in explain_epoch(epoch(shares=shares), LEVELS).text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"late_publishing_ms": 5_000.0}, "Publishing output took 83 % of the time (5.0 s)."),
        ({"checkpoint_ms": 5_000.0}, "A checkpoint took 83 % of the time (5.0 s)."),
        ({"planning_ms": 5_000.0}, "Planning took 83 % of the time (5.0 s)."),
        (
            {"levels": ((10_000, 10_050), (10_900, 10_950))},
            "Spark's scheduling and shuffling took 90 % of the time",
        ),
        ({"tries": 3}, "The whole epoch ran 3 times"),
        ({"retried_tasks": 1}, "Spark retried 1 task"),
    ],
)
def test_other_causes_are_shown(more: dict[str, object], said: str) -> None:
    assert said in explain_epoch(epoch(**more), LEVELS).text


def test_a_live_job_speaks_of_barriers_and_never_of_epochs() -> None:
    ways = [
        epoch(),
        epoch(levels=((10_000, 10_050), (10_900, 10_950))),
        epoch(late_publishing_ms=5_000.0),
        epoch(checkpoint_ms=5_000.0),
    ]
    texts = [explain_epoch(way, LEVELS, is_live=True).text for way in ways]
    assert "Level 1 (Reduce -> Sink) took 70 % of the time (700 ms). The barrier waits there" in texts[0]
    assert "Acknowledging the barrier took 90 % of the time" in texts[1]
    assert "The next barriers had to wait for the sink's committer." in texts[2]
    assert "The next barrier waited for a checkpoint to be written" in texts[3]
    assert not any("epoch" in text.lower() for text in texts)


def test_skew_is_found_in_a_live_job_too() -> None:
    shares = {SubtaskId("b", index): share(100, 100) for index in range(3)}
    shares[SubtaskId("b", 3)] = share(680, 700)
    text = explain_epoch(epoch(shares=shares), LEVELS, is_live=True).text
    assert "it got 70 % of the records, so keys are skewed." in text
    assert "The barrier waits there" not in text


def test_an_epoch_is_slow_against_the_others_of_its_job() -> None:
    others = [epoch(number) for number in range(10)]
    usual = Usual.of(others)
    slow = epoch(11, ended_ms=13_000, levels=((10_000, 10_200), (10_250, 12_950)))
    explained = explain_epoch(slow, LEVELS, usual)
    assert explained.is_slow
    assert explained.text.startswith("3.0 s is 3.0 times the usual 1.0 s, with no more records than usual.")
    more = explain_epoch(replace(slow, records=3000), LEVELS, usual)
    assert "it read 3.0 times the usual number of records." in more.text
    assert not explain_epoch(others[0], LEVELS, usual).is_slow


def test_few_epochs_say_nothing_of_what_is_usual() -> None:
    assert Usual.of([epoch()] * 4) is None
    assert not explain_epoch(epoch(ended_ms=99_000), LEVELS, None).is_slow


def test_a_long_name_is_cut() -> None:
    levels = [LEVELS[0], [LevelVertex("b", "x" * 10_000, 4)]]
    assert len(explain_epoch(epoch(), levels).text) < 400
