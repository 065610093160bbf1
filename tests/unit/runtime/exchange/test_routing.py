from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import Batch
from headrace.errors import InvariantViolation, JobExecutionError, KeyTypeError, UserFunctionError
from headrace.graph.partitioning import (
    Custom,
    EdgePartitioner,
    Forward,
    Global,
    KeyGroups,
    Rebalance,
    Rescale,
    Shuffle,
)
from headrace.runtime.exchange.buffers import decode
from headrace.runtime.exchange.channel import Channel
from headrace.runtime.exchange.routing import build_router
from headrace.state.key_groups import key_group_of, key_group_range
from headrace.state.keys import hash_key


def route(
    partitioner: EdgePartitioner,
    *batches: Batch,
    channels: int = 3,
    max_parallelism: int = 128,
    seed: tuple[int, int] = (0, 0),
) -> list[list[Any]]:
    """Return what each channel got: values, or pairs with the timestamp where there is one."""
    outgoing = [Channel() for _ in range(channels)]
    router = build_router(partitioner, outgoing, max_parallelism=max_parallelism, seed=seed)
    for batch in batches:
        router.route(batch)
    received: list[list[Any]] = []
    for channel in outgoing:
        received.append([])
        for element in decode(channel.take_payload()):
            assert isinstance(element, Batch)
            if element.timestamps is None:
                received[-1] += element.values
            else:
                received[-1] += zip(element.values, element.timestamps, strict=True)
    return received


def identity(value: Any) -> Any:
    return value


def test_forward_and_global_send_everything_one_way() -> None:
    assert route(Forward(), Batch([1, 2]), channels=1) == [[1, 2]]
    assert route(Global(), Batch([1, 2], [5, None])) == [[(1, 5), (2, None)], [], []]


@pytest.mark.parametrize("partitioner", [Rebalance(), Rescale()])
def test_round_robin_gives_each_channel_one_record_in_turn(partitioner: EdgePartitioner) -> None:
    received = route(partitioner, Batch([1, 2, 3, 4]), Batch([5, 6, 7]))
    assert received == [[1, 4, 7], [2, 5], [3, 6]]


def test_round_robin_starts_elsewhere_for_every_producer_and_epoch() -> None:
    firsts = [
        next(
            index for index, got in enumerate(route(Rebalance(), Batch(["x"]), seed=(producer, epoch))) if got
        )
        for producer, epoch in [(0, 1), (1, 1), (2, 1), (0, 2)]
    ]
    assert firsts == [1, 2, 0, 2]


@given(
    sizes=st.lists(st.integers(0, 7), max_size=6),
    channels=st.integers(1, 5),
    seed=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    timed=st.booleans(),
)
def test_round_robin_is_even_and_keeps_order_however_batches_are_cut(
    sizes: list[int], channels: int, seed: tuple[int, int], timed: bool
) -> None:
    total = sum(sizes)
    batches, start = [], 0
    for size in sizes:
        values = list(range(start, start + size))
        batches.append(Batch(values, [value * 10 for value in values] if timed else None))
        start += size
    received = route(Rebalance(), *batches, channels=channels, seed=seed)
    first = sum(seed) % channels
    whole = [(value, value * 10) if timed else value for value in range(total)]
    assert received == [whole[(index - first) % channels :: channels] for index in range(channels)]


def test_shuffle_spreads_and_is_the_same_when_it_runs_again() -> None:
    values = list(range(3000))
    first = route(Shuffle(), Batch(values), seed=(1, 7))
    assert route(Shuffle(), Batch(values), seed=(1, 7)) == first
    assert route(Shuffle(), Batch(values), seed=(1, 8)) != first
    assert sorted(value for got in first for value in got) == values
    assert all(800 < len(got) < 1200 for got in first)


def test_shuffle_keeps_timestamps_with_their_records() -> None:
    received = route(Shuffle(), Batch(list(range(50)), [n * 2 for n in range(50)]))
    assert sorted(pair for got in received for pair in got) == [(n, n * 2) for n in range(50)]


@given(
    keys=st.lists(
        st.one_of(st.text(max_size=3), st.integers(), st.tuples(st.integers(), st.text(max_size=1)))
    ),
    channels=st.integers(1, 5),
    max_parallelism=st.sampled_from([5, 128, 1000]),
    timed=st.booleans(),
)
def test_a_key_goes_to_the_subtask_that_owns_its_key_group(
    keys: list[Any], channels: int, max_parallelism: int, timed: bool
) -> None:
    timestamps: list[int | None] | None = [len(keys) - n for n in range(len(keys))] if timed else None
    received = route(
        KeyGroups(identity), Batch(keys, timestamps), channels=channels, max_parallelism=max_parallelism
    )
    for subtask, got in enumerate(received):
        groups = key_group_range(subtask, max_parallelism, channels)
        for item in got:
            key = item[0] if timed else item
            assert key_group_of(hash_key(key), max_parallelism) in groups
    assert sum(map(len, received)) == len(keys)


def test_records_of_one_key_stay_in_order() -> None:
    batch = Batch([(f"k{n % 7}", n) for n in range(100)])
    for got in route(KeyGroups(lambda pair: pair[0]), batch):
        numbers = Counter[str]()
        for key, number in got:
            assert number >= numbers[key]
            numbers[key] = number


def test_a_key_that_cannot_be_is_refused() -> None:
    with pytest.raises(KeyTypeError, match="list is not hashable"):
        route(KeyGroups(identity), Batch(["a", [1]]))
    with pytest.raises(KeyTypeError, match="NaN"):
        route(KeyGroups(identity), Batch([math.nan]))


def test_an_error_of_the_key_selector_names_the_record() -> None:
    with pytest.raises(UserFunctionError, match="KeyError") as caught:
        route(KeyGroups(lambda value: value["id"]), Batch([{"id": 1}, {"name": 2}, {"id": 3}]))
    assert caught.value.record == "{'name': 2}"
    assert caught.value.operator == "key_by"


def test_a_custom_partitioner_names_the_channel() -> None:
    def parity(key: int, partitions: int) -> int:
        return key % 2 * (partitions - 1)

    received = route(Custom(parity, lambda value: value["n"]), Batch([{"n": 1}, {"n": 2}], [10, 20]))
    assert received == [[({"n": 2}, 20)], [], [({"n": 1}, 10)]]


@pytest.mark.parametrize("returned", [-1, 3, "0", None, 1.5])
def test_a_custom_partitioner_out_of_range_is_an_error(returned: Any) -> None:
    with pytest.raises(JobExecutionError, match=r"partition_custom.*0 to 2") as caught:
        route(Custom(lambda key, partitions: returned, identity), Batch(["a"]))
    assert repr(returned) in caught.value.message
    assert "'a'" in caught.value.message


@pytest.mark.parametrize(
    "partitioner",
    [
        Custom(lambda key, partitions: 1 // key, identity),
        Custom(lambda key, partitions: 0, lambda value: 1 // value),
    ],
    ids=["partitioner", "key-selector"],
)
def test_an_error_of_a_custom_partitioner_names_the_record(partitioner: EdgePartitioner) -> None:
    with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
        route(partitioner, Batch([1, 0]))
    assert (caught.value.record, caught.value.operator) == ("0", "partition_custom")


def test_an_unknown_partitioner_is_an_invariant_violation() -> None:
    class Unknown(EdgePartitioner):
        name = "UNKNOWN"

    with pytest.raises(InvariantViolation, match="UNKNOWN"):
        route(Unknown(), Batch([1]))
