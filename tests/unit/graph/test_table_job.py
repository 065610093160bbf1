from __future__ import annotations

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from headrace.connectors.base import Sink, Source
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.print import PrintSink
from headrace.connectors.values import ValuesSource
from headrace.errors import InvalidTopologyError
from headrace.graph.table_job import (
    TableInput,
    TableNode,
    build_table_job,
    expected_rate,
    fragment_of,
    is_table_vertex,
    may_be_slow,
)
from headrace.operators.table.declarations import (
    AggSpec,
    GroupAggregateDeclaration,
    TableScanDeclaration,
    TableSinkDeclaration,
)
from headrace.operators.table.steps import Fragment, PythonCall, PythonCalls, StepColumn, Where

USER = StepColumn("user", "STRING", pa.string())
COUNT = StepColumn("n", "BIGINT", pa.int64())


def nodes(uid: str | None = None, keys: tuple[str, ...] = ("user",)) -> list[TableNode]:
    source = DataGeneratorSource(str, 10)
    return [
        TableNode(TableScanDeclaration(source, schema=(USER,)), "scan"),
        TableNode(
            GroupAggregateDeclaration((USER, COUNT), keys=keys, calls=(AggSpec("COUNT", (), COUNT),)),
            "count",
            (TableInput(0, Fragment((Where("user <> ''"),), (USER,))),),
            uid=uid,
        ),
        TableNode(
            TableSinkDeclaration(BlackholeSink(), schema=(USER, COUNT)),
            "sink",
            (TableInput(1, Fragment((), (USER, COUNT))),),
        ),
    ]


def build(table_nodes: list[TableNode]):
    return build_table_job(table_nodes, job_id="0" * 32, name="job", parallelism=2)


def test_nodes_become_vertices_and_fragments_lie_on_the_edges():
    job = build(nodes())
    assert [(vertex.name, vertex.parallelism) for vertex in job.vertices] == [
        ("scan", 2),
        ("count", 2),
        ("sink", 2),
    ]
    assert [edge.partitioner.name for edge in job.edges] == ["HASH", "FORWARD"]
    assert fragment_of(job.edges[0]).steps == (Where("user <> ''"),)
    assert all(map(is_table_vertex, job.vertices))
    assert len(job.levels()) == 3


def test_a_job_crosses_to_workers():
    job = build(nodes())
    assert pickle.loads(pickle.dumps(job)) == job


def test_ids_are_the_same_on_every_start_and_follow_the_uid():
    ids = [vertex.vertex_id for vertex in build(nodes()).vertices]
    assert ids == [vertex.vertex_id for vertex in build(nodes()).vertices]
    assert len(set(ids)) == 3
    assert build(nodes(uid="count")).vertices[1].vertex_id != ids[1]


def test_without_keys_one_subtask_is_enough():
    assert build(nodes(keys=())).vertices[1].parallelism == 1


def test_two_nodes_may_not_share_a_uid():
    with pytest.raises(InvalidTopologyError, match="'count' is set on two nodes"):
        build([*nodes(uid="count"), nodes(uid="count")[1]])


def test_a_node_reads_only_what_stands_before_it():
    first, second, _ = nodes()
    with pytest.raises(InvalidTopologyError, match="comes after it"):
        build([TableNode(second.declaration, "count", (TableInput(1, Fragment((), (USER,))),)), first])


def test_a_speed_is_expected_where_spark_reads_and_less_of_it_where_rows_go_through_python():
    def with_ends(source: Source, sink: Sink) -> list[TableNode]:
        scan, count, end = nodes()
        return [
            replace(scan, declaration=TableScanDeclaration(source, schema=(USER,))),
            count,
            replace(end, declaration=TableSinkDeclaration(sink, schema=(USER, COUNT))),
        ]

    values = ValuesSource((("a",),))
    assert expected_rate(build(nodes())) is None
    discarded = expected_rate(build(with_ends(values, BlackholeSink())))
    printed = expected_rate(build(with_ends(values, PrintSink())))
    assert discarded is not None
    assert printed is not None
    assert 0 < printed < discarded


def test_only_functions_of_the_user_may_be_slow():
    scan, count, end = nodes()
    calls = PythonCalls((PythonCall(len, ("user",), COUNT),))
    before = replace(count, inputs=(TableInput(0, Fragment((calls,), (USER,))),))
    in_scan = replace(scan.declaration, fragment=Fragment((calls,), (USER,)))
    assert not may_be_slow(build([scan, count, end]))
    assert may_be_slow(build([scan, before, end]))
    assert may_be_slow(build([replace(scan, declaration=in_scan), count, end]))
    assert not may_be_slow(replace(build([scan, before, end]), is_batch=True))
