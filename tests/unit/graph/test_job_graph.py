from __future__ import annotations

import pickle

import pytest

from headrace.graph.job_graph import ChainEdge, DistributionPattern, JobGraph
from headrace.graph.partitioning import Broadcast, KeyGroups, Rebalance, Rescale
from headrace.graph.transformations import ChainingStrategy
from tests.unit.graph.programs import JOB_ID, Program, ReadsTwo


def names(graph: JobGraph) -> list[str]:
    return [vertex.name for vertex in graph.vertices]


def shown_edges(graph: JobGraph) -> list[tuple[str, str, str]]:
    return [
        (graph.vertex(edge.source_vertex).name, edge.partitioner.name, graph.vertex(edge.target_vertex).name)
        for edge in graph.edges
    ]


def test_forward_edges_become_chains_and_the_rest_job_edges() -> None:
    program = Program(parallelism=3)
    mapped = program.op(program.source("lines"), "Map")
    program.sink(program.op(program.partition(mapped, KeyGroups(len)), "Reduce"), "out")

    graph = program.job_graph()

    assert (graph.job_id, graph.name, graph.is_batch) == (JOB_ID, "test", False)
    assert names(graph) == ["Source: lines -> Map", "Reduce -> Sink: out"]
    assert shown_edges(graph) == [("Source: lines -> Map", "HASH", "Reduce -> Sink: out")]
    first, second = graph.vertices
    assert [operator.name for operator in first.operators] == ["Source: lines", "Map"]
    assert first.chain_edges == (ChainEdge(0, 1),)
    assert (first.parallelism, first.max_parallelism, first.slot_sharing_group) == (3, 128, "default")
    assert (first.is_source, second.is_source) == (True, False)
    assert first.vertex_id == first.head.operator_id
    assert graph.edges[0].source_operator == 1
    assert graph.edges[0].pattern is DistributionPattern.ALL_TO_ALL


def test_a_chain_that_branches_is_a_tree_with_its_name_in_brackets() -> None:
    program = Program()
    source = program.source()
    parse = program.op(source, "Parse")
    program.sink(parse, "all")
    program.sink(program.op(program.side(parse, "bad"), "Count"), "bad")

    (vertex,) = program.job_graph().vertices

    assert vertex.name == "Source: s -> Parse -> (Sink: all, Count -> Sink: bad)"
    assert [each.name for each in vertex.operators] == [
        "Source: s",
        "Parse",
        "Sink: all",
        "Count",
        "Sink: bad",
    ]
    assert vertex.chain_edges == (
        ChainEdge(0, 1),
        ChainEdge(1, 2),
        ChainEdge(1, 3, "bad"),
        ChainEdge(3, 4),
    )


def test_a_forward_edge_that_is_not_chained_stays_pointwise() -> None:
    program = Program()
    program.op(program.source(), "Map", chaining=ChainingStrategy.NEVER)
    program.op(program.partition(program.source("t"), Rescale()), "Filter", parallelism=4)

    patterns = {edge.partitioner.name: edge.pattern for edge in program.job_graph().edges}

    assert patterns == {"FORWARD": DistributionPattern.POINTWISE, "RESCALE": DistributionPattern.POINTWISE}


def test_a_union_is_several_edges_into_one_input() -> None:
    program = Program()
    first, second = program.source("a"), program.source("b")
    program.sink(program.union(first, second, second))

    graph = program.job_graph()

    sink = graph.vertices[-1]
    assert [edge.target_input for edge in graph.inputs_of(sink.vertex_id)] == [0, 0, 0]
    assert [edge.edge_id for edge in graph.edges] == [0, 1, 2]


def test_only_heads_have_two_inputs() -> None:
    program = Program()
    left, right = program.source("l"), program.source("r")
    joined = program.co(left, program.partition(right, Broadcast()), "Join")
    program.sink(joined)

    graph = program.job_graph()

    assert names(graph) == ["Source: l", "Source: r", "Join -> Sink: out"]
    assert [(edge.target_input, edge.partitioner.name) for edge in graph.edges] == [
        (0, "FORWARD"),
        (1, "BROADCAST"),
    ]
    for vertex in graph.vertices:
        assert not any(isinstance(each.declaration, ReadsTwo) for each in vertex.operators[1:])


def test_edges_of_one_output_share_a_data_set() -> None:
    program = Program()
    parse = program.op(program.source(), "Parse")
    for _ in range(2):
        program.sink(program.partition(parse, Rebalance()))
    program.sink(program.partition(program.side(parse, "bad"), Rebalance()))

    first, second, side = program.job_graph().edges

    assert first.data_set_id == second.data_set_id
    assert side.data_set_id != first.data_set_id
    assert (side.side_tag, side.source_operator) == ("bad", 1)


def test_levels_are_longest_paths_and_sources_come_first() -> None:
    #   a -> x -> y -> join     level: a, b 0; x 1; y 2; join 3
    #   b -----------> ^
    program = Program(is_chaining_enabled=False)
    first = program.source("a")
    step = program.op(program.op(first, "x"), "y")
    second = program.source("b")
    program.co(step, second, "join")

    graph = program.job_graph()
    levels = graph.levels()

    assert [[vertex.name for vertex in level] for level in levels] == [
        ["Source: a", "Source: b"],
        ["x"],
        ["y"],
        ["join"],
    ]
    assert names(graph) == ["Source: a", "Source: b", "x", "y", "join"]
    level_of = {vertex.vertex_id: depth for depth, level in enumerate(levels) for vertex in level}
    assert all(level_of[edge.source_vertex] < level_of[edge.target_vertex] for edge in graph.edges)


def test_slots_are_the_highest_parallelism_of_each_group() -> None:
    program = Program(parallelism=2)
    source = program.source(parallelism=1)
    heavy = program.op(source, "Heavy", parallelism=5, slot_sharing_group="heavy")
    program.op(heavy, "Map", parallelism=3)
    program.op(source, "Light", slot_sharing_group="default")

    graph = program.job_graph()

    assert graph.slots_by_group() == {"default": 2, "heavy": 5}
    assert graph.slots_needed() == 7


def test_lookups() -> None:
    program = Program()
    program.op(program.partition(program.source(), Rebalance()), "Map")
    graph = program.job_graph()
    source, mapped = graph.vertices

    assert graph.vertex(mapped.vertex_id) is mapped
    assert graph.outputs_of(source.vertex_id) == graph.inputs_of(mapped.vertex_id) == graph.edges
    assert graph.inputs_of(source.vertex_id) == ()
    with pytest.raises(KeyError):
        graph.vertex("nobody")


def test_the_job_carries_its_execution_settings() -> None:
    program = Program(object_reuse=True, global_job_parameters={"day": "monday"})
    program.op(program.source())
    graph = program.job_graph()
    assert (graph.object_reuse, dict(graph.global_job_parameters)) == (True, {"day": "monday"})


def test_a_job_graph_pickles() -> None:
    program = Program()
    program.sink(program.op(program.partition(program.source(), KeyGroups(len)), "Reduce", uid="sum"))
    graph = program.job_graph()
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_the_head_decides_the_max_parallelism_of_a_chain() -> None:
    program = Program()
    program.op(program.source(max_parallelism=64), "Map", max_parallelism=32)
    (vertex,) = program.job_graph().vertices
    assert vertex.max_parallelism == 64


@pytest.mark.parametrize(
    ("of_job", "of_operator", "expected"), [(50, None, None), (50, 0, 0), (-1, None, -1)]
)
def test_a_vertex_has_the_buffer_timeout_of_what_it_sends(
    of_job: int, of_operator: int | None, expected: int | None
) -> None:
    program = Program(parallelism=2, buffer_timeout_ms=of_job)
    mapped = program.op(program.source(), "Map", buffer_timeout_ms=of_operator)
    program.sink(program.op(program.partition(mapped, KeyGroups(len)), "Reduce"), "out")
    first, last = program.job_graph().vertices
    assert (first.buffer_timeout_ms, last.buffer_timeout_ms) == (expected, None)
