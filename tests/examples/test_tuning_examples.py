"""The programs of docs/tuning.md: each shows its problem, and the change helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.tuning import (
    aggregations,
    expiring_state,
    idle_partition,
    lookup_join,
    memory,
    parallelism,
    skew,
    slow_lookups,
    slow_parsing,
    state_backends,
    state_shape,
    uneven_files,
)
from headrace.common import Configuration, Duration, Time
from headrace.datastream import StreamExecutionEnvironment
from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.engines import MINI_EXECUTOR

MINI = {"execution.target": MINI_EXECUTOR}


def environment(parallelism: int, options: dict[str, str] | None = None) -> StreamExecutionEnvironment:
    configuration = Configuration.from_dict({**MINI, **(options or {})})
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def test_records_are_shared_by_all_subtasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallelism, "ROUNDS", 1)
    env = environment(1, {"headrace.epoch.initial-records": "200"})
    _, alone = parallelism.timed(parallelism.build(env, 200, 1))
    _, shared = parallelism.timed(parallelism.build(env, 200, 4))
    assert parallelism.busiest_share(alone) == 1.0
    assert parallelism.busiest_share(shared) == 0.25
    assert sorted(row[1:] for row in alone) == sorted(row[1:] for row in shared)


def test_a_bounded_cache_keeps_less_than_one_without_bounds() -> None:
    env = environment(1)
    assert memory.kept_bytes(memory.build(env, 200, None)) == 200 * memory.PROFILE
    assert memory.kept_bytes(memory.build(env, 200, 50)) == 50 * memory.PROFILE


def test_checkpoints_of_map_state_write_less_than_those_of_a_large_value() -> None:
    whole, rows = state_shape.written_bytes(MINI, 6_000, state_shape.BasketInOnePiece())
    by_item, same_rows = state_shape.written_bytes(MINI, 6_000, state_shape.BasketByItem())
    assert rows == same_rows
    assert 0 < by_item < whole / 2


def test_a_function_that_compiles_once_finds_the_same() -> None:
    env = environment(1)
    slow_s, every_time = slow_parsing.timed(slow_parsing.build(env, 50, slow_parsing.CompilesEveryTime()))
    _, once = slow_parsing.timed(slow_parsing.build(env, 50, slow_parsing.CompilesOnce()))
    assert every_time == once
    assert {found for _, found in once} == {2}
    assert slow_s > 0


def test_rebalance_spreads_what_one_file_has_most_of(tmp_path: Path) -> None:
    uneven_files.write_files(tmp_path, 4_000)
    env = environment(4)
    as_read = uneven_files.handled(uneven_files.build(env, tmp_path, rebalanced=False))
    spread = uneven_files.handled(uneven_files.build(env, tmp_path, rebalanced=True))
    assert uneven_files.busiest_share(as_read) >= 0.85
    assert uneven_files.busiest_share(spread) < 0.3
    assert sorted(line for _, line in as_read) == sorted(line for _, line in spread)


def test_a_hot_key_keeps_one_subtask_busy_and_parts_of_it_do_not() -> None:
    env = environment(4)
    before = skew.busiest_share(env, skew.skewed(env, 5_000))
    after = skew.busiest_share(env, skew.spread(env, 5_000))
    assert before > 0.9
    assert after < 0.65


def test_lookups_give_the_same_one_by_one_and_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_lookups, "ANSWER_S", 0.02)
    env = environment(1)
    slow_s, one_by_one = slow_lookups.timed(slow_lookups.one_by_one(env, 150))
    _, many = slow_lookups.timed(slow_lookups.many_at_a_time(env, 150))
    assert one_by_one == many == [(user, f"name {user}") for user in range(150)]
    assert slow_s >= 150 * 0.02, "lookups one by one wait for each other"


def test_visitors_are_forgotten_after_their_time_to_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiring_state, "RATE", 10_000)
    env = environment(1, {"headrace.epoch.max-records": "100"})
    kept = expiring_state.known_visitors(env, None, 3_000)
    assert kept >= 3_000
    left = expiring_state.known_visitors(env, Time.milliseconds(1), 3_000)
    assert left < kept / 2


def test_both_backends_count_the_same() -> None:
    _, rows = state_backends.run(MINI, "hashmap", 500)
    _, same_rows = state_backends.run(MINI, "rocksdb", 500)
    assert sorted(rows) == sorted(same_rows)
    assert len(rows) == 1_000


def test_windows_wait_for_a_silent_partition() -> None:
    windows = idle_partition.run(environment(1), None, lambda source: source.resume())
    assert [window[:2] for window in windows] == [(0, 11), *((at, 10) for at in range(10, 60, 10)), (60, 1)]


def test_windows_fire_while_an_idle_partition_is_silent() -> None:
    early = idle_partition.run_until_windows(environment(1), Duration.of_millis(50), 2)
    assert [window[:2] for window in early] == [(0, 11), (10, 10)]


@pytest.mark.spark
@pytest.mark.slow
def test_aggregations_give_the_same_table_in_all_variants(env: EnvironmentFactory) -> None:
    results = {name: aggregations.run(name, 4_000, 1_000) for name in aggregations.VARIANTS}
    counts = [results[name][2] for name in list(results)[:3]]
    assert counts[0] == counts[1] == counts[2]
    assert results["distinct visitors"][2] == results["distinct visitors, split"][2]
    assert results["every change"][1] > 10 * results["mini-batches, two phases"][1]


@pytest.mark.spark
@pytest.mark.slow
def test_lookup_joins_give_the_same_with_every_cache(env: EnvironmentFactory) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    expected = [(n, f"user {n * 7 % lookup_join.USERS}") for n in range(100)]
    for cache in lookup_join.CACHES:
        took_s, rows = lookup_join.run(t_env, cache, 100)
        assert sorted(rows) == expected, cache
        assert took_s > 0
