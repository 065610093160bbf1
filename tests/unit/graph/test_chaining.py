from __future__ import annotations

from typing import Any

import pytest

from headrace.graph.chaining import chained_edges, why_not_chained
from headrace.graph.partitioning import Broadcast, Forward, Global, KeyGroups, Rebalance, Rescale, Shuffle
from headrace.graph.transformations import ChainingStrategy
from tests.unit.graph.programs import Program

ALWAYS, HEAD, NEVER = ChainingStrategy.ALWAYS, ChainingStrategy.HEAD, ChainingStrategy.NEVER


def chain(program: Program, up: dict[str, Any], down: dict[str, Any]) -> str | None:
    """Build source -> Up -> Down and say what keeps Up and Down apart."""
    program.op(program.op(program.source(), "Up", **up), "Down", **down)
    graph = program.stream_graph()
    return why_not_chained(graph.edges[1], graph)


@pytest.mark.parametrize(
    ("up", "down", "reason"),
    [
        ({}, {}, None),
        ({"chaining": HEAD}, {}, None),
        ({}, {"chaining": HEAD}, "it starts a new chain"),
        ({"chaining": NEVER}, {}, "chaining is disabled for the operator before it"),
        ({}, {"chaining": NEVER}, "chaining is disabled for it"),
        ({}, {"slot_sharing_group": "other"}, "the slot sharing groups differ"),
        ({"slot_sharing_group": "other"}, {}, None),  # the group is inherited
        ({}, {"max_parallelism": 64}, None),
        ({}, {"parallelism": 3}, "the edge is REBALANCE"),
    ],
)
def test_chaining_rules(up: dict[str, Any], down: dict[str, Any], reason: str | None) -> None:
    assert chain(Program(), up, down) == reason


def test_different_max_parallelism_can_be_kept_apart() -> None:
    program = Program(chains_different_max_parallelism=False)
    assert chain(program, {}, {"max_parallelism": 64}) == "the max parallelisms differ"


def test_chaining_can_be_disabled_for_the_job() -> None:
    assert chain(Program(is_chaining_enabled=False), {}, {}) == "chaining is disabled for the job"


@pytest.mark.parametrize(
    "partitioner", [Rebalance(), Rescale(), Shuffle(), Broadcast(), Global(), KeyGroups(len)]
)
def test_only_forward_edges_are_chained(partitioner: Any) -> None:
    # Also at parallelism 1, where all of them would send everything to the one consumer.
    program = Program(parallelism=1)
    program.op(program.partition(program.source(), partitioner), "Map")
    assert chained_edges(program.stream_graph()) == frozenset()


def test_an_explicit_forward_is_chained() -> None:
    program = Program()
    program.op(program.partition(program.source(), Forward()), "Map")
    assert chained_edges(program.stream_graph()) == {0}


def test_an_operator_with_more_than_one_input_is_not_chained() -> None:
    program = Program()
    first, second = program.source("a"), program.source("b")
    program.op(program.union(first, second), "Union reader")
    program.co(first, second)
    program.op(program.union(first, first), "Self union reader")
    assert chained_edges(program.stream_graph()) == frozenset()


def test_side_outputs_are_chained_like_main_outputs() -> None:
    program = Program()
    parse = program.op(program.source(), "Parse")
    program.sink(program.side(parse, "bad"))
    assert chained_edges(program.stream_graph()) == {0, 1}
