from __future__ import annotations

import pytest

from headrace.common.typeinfo import Types
from headrace.config.options.execution import RuntimeExecutionMode
from headrace.errors import InvalidTopologyError, InvariantViolation, TypeInferenceError
from headrace.graph.partitioning import Broadcast, Forward, KeyGroups, Rebalance, Shuffle
from headrace.graph.stream_graph import build_stream_graph, default_max_parallelism
from headrace.graph.transformations import OneInputTransformation
from tests.unit.graph.programs import Program, Reads, Rolling, edges_by_name


def test_operators_become_nodes_with_flinks_prefixes() -> None:
    program = Program()
    program.sink(program.op(program.source("lines"), "Map"), "out")

    graph = program.stream_graph()

    assert [(node.name, node.kind) for node in graph.nodes] == [
        ("Source: lines", "source"),
        ("Map", "operator"),
        ("Sink: out", "sink"),
    ]
    assert edges_by_name(graph) == [
        ("Source: lines", "FORWARD", "Map", 0, None),
        ("Map", "FORWARD", "Sink: out", 0, None),
    ]


def test_edges_between_different_parallelism_are_rebalanced() -> None:
    program = Program(parallelism=4)
    program.op(program.source(parallelism=1), "Map")

    assert edges_by_name(program.stream_graph()) == [("Source: s", "REBALANCE", "Map", 0, None)]


def test_explicit_forward_between_different_parallelism_is_refused_with_the_fix() -> None:
    program = Program(parallelism=4)
    program.op(program.partition(program.source(parallelism=1), Forward()), "Map")

    with pytest.raises(InvalidTopologyError, match=r"'Source: s' \(parallelism 1\) to 'Map'.*4") as caught:
        program.stream_graph()
    assert caught.value.hint is not None
    assert "rebalance()" in caught.value.hint


def test_of_two_partitionings_in_a_row_the_later_one_counts() -> None:
    program = Program()
    keyed = program.partition(program.source(), KeyGroups(len))
    program.op(program.partition(keyed, Shuffle()), "Map")

    assert edges_by_name(program.stream_graph()) == [("Source: s", "SHUFFLE", "Map", 0, None)]


def test_union_and_partitioning_end_on_the_edges() -> None:
    program = Program()
    first, second = program.source("a"), program.source("b")
    together = program.union(first, program.partition(second, Shuffle()))
    program.op(program.partition(together, KeyGroups(len)), "Reduce")

    assert edges_by_name(program.stream_graph()) == [
        ("Source: a", "HASH", "Reduce", 0, None),
        ("Source: b", "HASH", "Reduce", 0, None),
    ]


def test_a_union_keeps_the_partitioning_of_each_of_its_streams() -> None:
    program = Program()
    first, second = program.source("a"), program.source("b")
    program.op(program.union(program.partition(first, Broadcast()), second), "Map")

    assert [edge[1] for edge in edges_by_name(program.stream_graph())] == ["BROADCAST", "FORWARD"]


def test_a_union_of_a_stream_with_itself_has_two_edges() -> None:
    program = Program()
    source = program.source()
    program.op(program.union(source, source), "Map")

    graph = program.stream_graph()

    assert edges_by_name(graph) == [("Source: s", "FORWARD", "Map", 0, None)] * 2
    assert [edge.id for edge in graph.edges] == [0, 1]


def test_side_outputs_are_tagged_edges() -> None:
    program = Program()
    parse = program.op(program.source(), "Parse")
    program.sink(parse, "good")
    program.sink(program.partition(program.side(parse, "bad"), Rebalance()), "dead letters")

    assert edges_by_name(program.stream_graph())[1:] == [
        ("Parse", "FORWARD", "Sink: good", 0, None),
        ("Parse", "REBALANCE", "Sink: dead letters", 0, "bad"),
    ]


def test_two_inputs_are_distinguished() -> None:
    program = Program()
    left, right, more = program.source("l"), program.source("r"), program.source("m")
    program.co(left, program.union(right, more))

    assert [edge[3] for edge in edges_by_name(program.stream_graph())] == [0, 1, 1]


def test_a_program_without_operators_is_refused() -> None:
    with pytest.raises(InvalidTopologyError, match="no operators defined") as caught:
        build_stream_graph([], Program().settings)
    assert "add a sink" in (caught.value.hint or "")

    program = Program()
    program.operators.append(program.source())
    with pytest.raises(InvalidTopologyError, match="no operators defined"):
        program.stream_graph()


def test_operators_without_a_sink_are_part_of_the_job() -> None:
    program = Program()
    program.op(program.source(), "Map")
    assert [node.name for node in program.stream_graph().nodes] == ["Source: s", "Map"]


def test_only_what_operators_read_is_part_of_the_job() -> None:
    program = Program()
    program.source("unused")
    program.op(program.source("used"), "Map")
    assert [node.name for node in program.stream_graph().nodes] == ["Source: used", "Map"]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ((None, None), "default"),
        (("io", None), "default"),
        (("io", "io"), "io"),
    ],
)
def test_an_operator_inherits_the_group_its_inputs_agree_on(
    groups: tuple[str | None, str | None], expected: str
) -> None:
    program = Program()
    first = program.source("a", slot_sharing_group=groups[0])
    second = program.source("b", slot_sharing_group=groups[1])
    program.co(first, second)

    assert program.stream_graph().nodes[-1].slot_sharing_group == expected


def test_an_operators_own_group_counts() -> None:
    program = Program()
    program.op(program.source(slot_sharing_group="io"), "Map", slot_sharing_group="cpu")
    assert program.stream_graph().nodes[-1].slot_sharing_group == "cpu"


@pytest.mark.parametrize(
    ("mode", "bounded", "is_batch"),
    [
        (RuntimeExecutionMode.STREAMING, [True, True], False),
        (RuntimeExecutionMode.BATCH, [True, True], True),
        (RuntimeExecutionMode.AUTOMATIC, [True, True], True),
        (RuntimeExecutionMode.AUTOMATIC, [True, False], False),
    ],
)
def test_runtime_mode(mode: RuntimeExecutionMode, bounded: list[bool], is_batch: bool) -> None:
    program = Program(runtime_mode=mode)
    sources = [program.source(f"s{i}", is_bounded=each) for i, each in enumerate(bounded)]
    program.op(program.union(*sources), "Reduce", Rolling())

    graph = program.stream_graph()

    assert graph.is_batch is is_batch
    declaration: object = graph.nodes[-1].declaration
    assert declaration == Rolling(emits_final_only=is_batch)


def test_batch_mode_refuses_an_unbounded_source() -> None:
    program = Program(runtime_mode=RuntimeExecutionMode.BATCH)
    program.op(program.source("clicks", is_bounded=False))
    with pytest.raises(InvalidTopologyError, match="'clicks' is unbounded"):
        program.stream_graph()


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [(1, 128), (2, 128), (85, 128), (86, 256), (128, 256), (171, 256), (172, 512), (32768, 32768)],
)
def test_default_max_parallelism_follows_flinks_rule(parallelism: int, expected: int) -> None:
    assert default_max_parallelism(parallelism) == expected


def test_max_parallelism_comes_from_the_operator_then_the_job_then_the_rule() -> None:
    program = Program(max_parallelism=64)
    program.op(program.source(max_parallelism=32), "Map")
    assert [node.max_parallelism for node in program.stream_graph().nodes] == [32, 64]

    program = Program(parallelism=100)
    program.op(program.source(), "Map")
    assert [node.max_parallelism for node in program.stream_graph().nodes] == [256, 256]


def test_parallelism_above_max_parallelism_is_refused() -> None:
    program = Program()
    program.op(program.source(), "Map", parallelism=9, max_parallelism=8)
    with pytest.raises(
        InvalidTopologyError, match="'Map' has parallelism 9, more than its max parallelism 8"
    ):
        program.stream_graph()


def test_operators_need_a_uid_when_none_are_generated() -> None:
    program = Program(generates_uids=False)
    program.op(program.source(uid="in"), "Map")
    with pytest.raises(InvalidTopologyError, match="'Map' has no uid"):
        program.stream_graph()

    program = Program(generates_uids=False)
    program.op(program.source(uid="in"), "Map", uid_hash="0" * 32)
    program.stream_graph()


def test_types_must_be_declared_when_generic_types_are_disabled() -> None:
    program = Program(allows_untyped=False)
    program.sink(program.op(program.source(output_type=Types.INT()), "Map"))
    with pytest.raises(TypeInferenceError, match="'Map' declares no type"):
        program.stream_graph()


def test_buffer_timeout_of_the_operator_counts_also_when_it_is_zero() -> None:
    program = Program(buffer_timeout_ms=50)
    program.op(program.source(), "Map", buffer_timeout_ms=0)
    assert [node.buffer_timeout_ms for node in program.stream_graph().nodes] == [50, 0]


def test_a_step_that_reads_a_later_one_is_our_bug() -> None:
    program = Program()
    source = program.source()
    loop = OneInputTransformation(id=99, name="loop", declaration=Reads(), input=source)
    loop.input = loop
    with pytest.raises(InvariantViolation, match="defined later"):
        build_stream_graph([loop], program.settings)


def test_a_long_chain_does_not_need_a_deep_stack() -> None:
    program = Program()
    step = program.op(program.source())
    for _ in range(3000):
        step = program.op(step)
    assert len(program.job_graph().vertices[0].operators) == 3002
