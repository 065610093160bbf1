from __future__ import annotations

import pytest

from headrace.errors import InvalidTopologyError
from headrace.graph.chaining import chained_edges
from headrace.graph.operator_ids import hash_of_uid, murmur3_128, operator_ids
from headrace.graph.partitioning import KeyGroups
from tests.unit.graph.programs import Program


def ids_by_name(program: Program) -> dict[str, str]:
    graph = program.stream_graph()
    ids = operator_ids(graph, chained_edges(graph))
    return {node.name: ids[node.id] for node in graph.nodes}


def word_count(program: Program) -> None:
    """The job whose REST answers a real Flink gave: three chained, then two."""
    first = program.op(program.op(program.source(), "To stream"), "Map")
    program.sink(program.op(program.partition(first, KeyGroups(len)), "Reduce"))


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "00000000000000000000000000000000"),
        (b"The quick brown fox jumps over the lazy dog", "6c1b07bc7bbc4be347939ac4a93c437a"),
        (b"\0\0\0\0", "bc764cd8ddf7a0cff126f51c16239658"),
        (b"\0\0\0\0\0\0\0\0", "cbc357ccb763df2852fee8c4fc7d55f2"),
    ],
)
def test_murmur3(data: bytes, digest: str) -> None:
    assert murmur3_128(data).hex() == digest


def test_generated_ids_are_those_flink_generates() -> None:
    program = Program()
    word_count(program)
    ids = ids_by_name(program)
    assert ids["Source: s"] == "cbc357ccb763df2852fee8c4fc7d55f2"
    assert ids["Reduce"] == "c27dcf7b54ef6bfd6cff02ca8870b681"


def test_a_source_without_chained_consumers_has_flinks_other_well_known_id() -> None:
    program = Program(is_chaining_enabled=False)
    word_count(program)
    assert ids_by_name(program)["Source: s"] == "bc764cd8ddf7a0cff126f51c16239658"


def test_names_and_parallelism_do_not_change_ids() -> None:
    plain, renamed = Program(parallelism=2), Program(parallelism=7)
    word_count(plain)
    word_count(renamed)
    for step in renamed.operators:
        step.name = f"other {step.id}"  # type: ignore[attr-defined]
    assert list(ids_by_name(plain).values()) == list(ids_by_name(renamed).values())


def test_a_pipeline_added_later_moves_only_what_is_visited_after_its_source() -> None:
    # Sources are visited first, so the new one takes the second place, and the places after it move, as they
    # do in Flink. That is what uids are for.
    alone, with_another = Program(), Program()
    word_count(alone)
    word_count(with_another)
    with_another.sink(with_another.source("other"), "other out")

    before, after = ids_by_name(alone), ids_by_name(with_another)
    assert after["Source: s"] == before["Source: s"]
    assert after["Reduce"] != before["Reduce"]


def test_a_uid_fixes_the_id_whatever_else_changes() -> None:
    small, large = Program(), Program()
    small.op(small.source(), "Map", uid="sum")
    large.op(large.op(large.source(), "Filter"), "Map", uid="sum")
    large.sink(large.source("other"))
    assert ids_by_name(small)["Map"] == ids_by_name(large)["Map"] == hash_of_uid("sum")


def test_all_ids_of_a_job_differ() -> None:
    program = Program()
    source = program.source()
    for _ in range(50):
        program.sink(program.op(source))
        program.sink(program.partition(source, KeyGroups(len)))
    graph = program.stream_graph()
    ids = operator_ids(graph, chained_edges(graph))
    assert len(set(ids.values())) == len(graph.nodes)


def test_a_node_waits_until_all_its_inputs_have_ids() -> None:
    # The short way reaches the union first.
    #     a --------------------> union
    #     b -> slow -> slower ------^
    program = Program()
    first, second = program.source("a"), program.source("b")
    slow = program.op(program.op(second, "slow"), "slower")
    program.op(program.union(first, slow), "union reader")
    assert len(ids_by_name(program)["union reader"]) == 32


def test_a_uid_hash_is_taken_as_it_is() -> None:
    program = Program()
    program.op(program.source(), "Map", uid_hash="ABCDEF0123456789ABCDEF0123456789")
    assert ids_by_name(program)["Map"] == "abcdef0123456789abcdef0123456789"


@pytest.mark.parametrize("setting", ["uid", "uid_hash"])
def test_duplicate_uids_are_refused_with_both_operators(setting: str) -> None:
    program = Program()
    same = {setting: "0" * 32}
    program.op(program.op(program.source(), "First", **same), "Second", **same)
    with pytest.raises(InvalidTopologyError, match="'First' and 'Second'"):
        ids_by_name(program)
