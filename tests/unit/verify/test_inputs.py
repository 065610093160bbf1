"""Input that verify reorders: as late as watermarks allow, and never later."""

from __future__ import annotations

import random

from headrace.common.time import Duration
from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.verify.inputs import InputRecord, reordered

BOUND_MS = 50
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND_MS))


def late_ones(records: list[InputRecord]) -> set[int]:
    """Return the records that come behind the watermark of their split."""
    highest: dict[str, int] = {}
    late = set()
    for record in records:
        time = record.timestamp or 0
        if time < highest.get(record.split, time) - BOUND_MS:
            late.add(record.index)
        highest[record.split] = max(highest.get(record.split, time), time)
    return late


def some_records(seed: int) -> list[InputRecord]:
    chance = random.Random(seed)
    return [
        InputRecord(index, chance.choice("ab"), index, 10 * index + chance.randint(-80, 80))
        for index in range(60)
    ]


def test_records_come_late_within_the_bound_and_none_beyond_it() -> None:
    moved = 0
    for seed in range(100):
        records = some_records(seed)
        changed = reordered(records, BOUNDED, seed)
        assert sorted(changed, key=lambda each: each.index) == records
        assert late_ones(changed) == late_ones(records)
        moved += changed != records
    assert moved == 100


def test_a_record_in_order_may_come_behind_several_others() -> None:
    records = [InputRecord(index, "a", index, 10 * index) for index in range(30)]
    delays = [
        place - record.index
        for seed in range(20)
        for place, record in enumerate(reordered(records, BOUNDED, seed))
    ]
    assert 3 <= max(delays) <= BOUND_MS // 10


def test_records_of_the_same_time_stay_in_their_order() -> None:
    records = [InputRecord(index, "a", index, 5) for index in range(9)]
    assert reordered(records, BOUNDED, 1) == records
