"""Input that verify reorders: as late as watermarks allow, and never later."""

from __future__ import annotations

import random
from collections.abc import Callable

from headrace.common.time import Duration
from headrace.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from headrace.datastream import DataStream, MapFunction
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.verify.inputs import InputRecord, InputTime, can_reorder, read_inputs, reordered, time_of_input
from tests.unit.runtime.jobs import make_env

BOUND_MS = 50
BOUNDED = InputTime(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND_MS)))


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


CALLS: list[str] = []


class SecondPart(TimestampAssigner):
    def extract_timestamp(self, value: list[str], record_timestamp: int) -> int:
        return int(value[1])


class Parse(MapFunction):
    def map(self, value: str) -> list[str]:
        return value.split(",")


def parsed(line: str) -> list[str]:
    CALLS.append(line)
    return line.split(",")


def job_with(parse: Callable[[DataStream], DataStream]) -> JobGraph:
    env = make_env(1)
    lines = env.from_collection(["a,10", "", "b,30", "c,20"])
    strategy = BOUNDED.strategy
    assert strategy is not None
    parse(lines).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(SecondPart())).print()
    return build_job_graph(env._build_stream_graph(), job_id="1" * 32, name="parsed")


def test_times_are_found_behind_plain_functions_that_parse_and_filter() -> None:
    CALLS.clear()
    job = job_with(lambda lines: lines.filter(bool).map(parsed))
    assert can_reorder(job)
    time = time_of_input(job, job.vertices[0])
    (records,) = read_inputs(job, 10).values()
    assert [each for _, each in time.with_times(records)] == [10, 10, 30, 20]
    assert {tuple(each.index for each in reordered(records, time, seed)) for seed in range(20)} > {
        (0, 1, 2, 3)
    }


def test_times_behind_function_objects_are_not_known() -> None:
    assert not can_reorder(job_with(lambda lines: lines.filter(bool).map(Parse())))
