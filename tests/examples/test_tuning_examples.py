"""The programs of docs/tuning.md: each shows its problem, and the change helps."""

from __future__ import annotations

import pytest

from examples.tuning import skew, slow_lookups
from headrace.common import Configuration
from headrace.datastream import StreamExecutionEnvironment
from tests.engines import MINI_EXECUTOR


def environment(parallelism: int) -> StreamExecutionEnvironment:
    configuration = Configuration.from_dict({"execution.target": MINI_EXECUTOR})
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


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
