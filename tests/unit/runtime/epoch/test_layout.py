from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.graph.job_graph import DistributionPattern, JobEdge, JobGraph
from headrace.graph.partitioning import Broadcast, EdgePartitioner, Forward, KeyGroups, Rebalance, Rescale
from headrace.runtime.epoch.layout import Layout, consumers_of, producers_of
from headrace.runtime.epoch.messages import SubtaskId
from tests.unit.runtime.jobs import job_graph, make_env


def diamond() -> JobGraph:
    """A source whose records reach the last vertex over one exchange, and over two.

    level 0   source             #0
    level 1   middle             #0 #1 #2
    level 2   last               #0 #1
    """
    env = make_env(parallelism=2)
    source = env.from_collection([1, 2, 3])
    middle = source.rebalance().map(lambda n: -n).set_parallelism(3).name("middle")
    source.union(middle).rebalance().map(lambda n: n).set_parallelism(2).name("last").print()
    return job_graph(env)


def edge(partitioner: EdgePartitioner) -> JobEdge:
    return JobEdge(0, "a", 0, None, "b", 0, partitioner, DistributionPattern.ALL_TO_ALL, "set")


def test_every_subtask_has_a_partition_on_the_level_of_its_vertex() -> None:
    job = diamond()
    layout = Layout(job)
    assert [len(level) for level in layout.levels] == [1, 3, 2]
    assert layout.depth == 3
    names = [
        [job.vertex(subtask.vertex_id).name.split(" ")[0] for subtask in level] for level in layout.levels
    ]
    assert names == [["Source:"], ["middle"] * 3, ["last"] * 2]
    for level, subtasks in enumerate(layout.levels):
        for partition, subtask in enumerate(subtasks):
            assert layout.place(subtask) == (level, partition)


def test_both_sides_of_the_exchange_derive_the_same_layout() -> None:
    job = diamond()
    assert Layout(job).levels == Layout(job).levels


def test_a_buffer_for_the_next_level_goes_straight_there() -> None:
    layout = Layout(diamond())
    assert [layout.next_hop(1, partition, from_level=0) for partition in range(3)] == [0, 1, 2]


def test_a_buffer_for_a_deeper_level_is_handed_on_by_a_partition_in_between() -> None:
    layout = Layout(diamond())
    for partition in range(2):
        hop = layout.next_hop(2, partition, from_level=0)
        assert hop in range(len(layout.levels[1]))
        assert layout.next_hop(2, partition, from_level=1) == partition
    assert {layout.next_hop(2, partition, from_level=0) for partition in range(2)} == {0, 1}, "not all by one"
    # To the driver, whose level is beyond the last one.
    assert layout.next_hop(layout.depth, 7, from_level=0) in range(3)
    assert layout.next_hop(layout.depth, 7, from_level=1) in range(2)


def test_an_unknown_subtask_is_an_invariant_violation() -> None:
    with pytest.raises(KeyError):
        Layout(diamond()).place(SubtaskId("nobody", 0))


@pytest.mark.parametrize("partitioner", [Rebalance(), Broadcast(), KeyGroups(str)])
def test_all_to_all_reaches_every_consumer(partitioner: EdgePartitioner) -> None:
    assert list(consumers_of(edge(partitioner), 1, 3, 4)) == [0, 1, 2, 3]
    assert producers_of(edge(partitioner), 2, 3, 4) == [0, 1, 2]


def test_forward_reaches_the_subtask_of_the_same_number() -> None:
    assert list(consumers_of(edge(Forward()), 2, 3, 3)) == [2]
    assert producers_of(edge(Forward()), 2, 3, 3) == [2]


@pytest.mark.parametrize(
    ("producers", "consumers", "expected"),
    [
        (2, 4, [[0, 1], [2, 3]]),
        (4, 2, [[0], [0], [1], [1]]),
        (3, 3, [[0], [1], [2]]),
        (1, 3, [[0, 1, 2]]),
        (3, 1, [[0], [0], [0]]),
        (2, 5, [[0, 1, 2], [3, 4]]),
        (3, 4, [[0, 1], [2], [3]]),
    ],
)
def test_rescale_connects_neighbours(producers: int, consumers: int, expected: list[list[int]]) -> None:
    found = [list(consumers_of(edge(Rescale()), p, producers, consumers)) for p in range(producers)]
    assert found == expected


@given(st.integers(1, 40), st.integers(1, 40))
def test_rescale_reaches_every_consumer_evenly(producers: int, consumers: int) -> None:
    reached = [list(consumers_of(edge(Rescale()), p, producers, consumers)) for p in range(producers)]
    feeding = [producers_of(edge(Rescale()), c, producers, consumers) for c in range(consumers)]
    assert all(reached)
    assert all(feeding)
    assert {(p, c) for p, cs in enumerate(reached) for c in cs} == {
        (p, c) for c, ps in enumerate(feeding) for p in ps
    }
    larger = reached if consumers >= producers else feeding
    sizes = {len(each) for each in larger}
    assert max(sizes) - min(sizes) <= 1
    # Of many and few, each of the many has exactly one partner.
    assert all(len(each) == 1 for each in (feeding if consumers >= producers else reached))


@given(st.integers(1, 30), st.integers(1, 30))
def test_rescale_to_more_consumers_is_flinks_assignment(producers: int, consumers: int) -> None:
    """Flink: consumer i of N reads producer i * P / N, when there are more consumers than producers."""
    if consumers < producers:
        producers, consumers = consumers, producers
    for consumer in range(consumers):
        assert producers_of(edge(Rescale()), consumer, producers, consumers) == [
            consumer * producers // consumers
        ]


@given(st.integers(1, 30), st.integers(1, 30))
def test_rescale_to_fewer_consumers_is_flinks_assignment(producers: int, consumers: int) -> None:
    """Flink: consumer i of N reads the producers from i * P / N up to (i + 1) * P / N."""
    if consumers > producers:
        producers, consumers = consumers, producers
    for consumer in range(consumers):
        expected = range(consumer * producers // consumers, (consumer + 1) * producers // consumers)
        assert producers_of(edge(Rescale()), consumer, producers, consumers) == list(expected)
