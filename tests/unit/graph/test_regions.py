"""Failover regions: the connected parts of a job graph."""

from __future__ import annotations

from headrace.datastream import StreamExecutionEnvironment
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.graph.regions import failover_regions, part_of_job
from tests.unit.runtime.jobs import make_env


def graph_of(env: StreamExecutionEnvironment) -> JobGraph:
    return build_job_graph(env._build_stream_graph(), job_id="0" * 32, name="regions")


def test_streams_that_never_meet_are_regions_of_their_own() -> None:
    env = make_env(2)
    for _ in range(2):
        env.from_collection([1]).key_by(lambda n: n).map(lambda n: n).print()
    job = graph_of(env)
    regions = failover_regions(job)
    assert len(regions) == 2
    assert frozenset().union(*regions) == {vertex.vertex_id for vertex in job.vertices}
    assert not regions[0] & regions[1]


def test_streams_that_meet_are_one_region() -> None:
    env = make_env(2)
    first, second = (env.from_collection([1]).key_by(lambda n: n).map(lambda n: n) for _ in range(2))
    first.union(second).key_by(lambda n: n).map(lambda n: n).print()
    assert len(failover_regions(graph_of(env))) == 1


def test_a_part_of_a_job_has_the_edges_between_its_vertices() -> None:
    env = make_env(2)
    for _ in range(2):
        env.from_collection([1]).key_by(lambda n: n).map(lambda n: n).print()
    job = graph_of(env)
    parts = [part_of_job(job, region) for region in failover_regions(job)]
    assert [len(part.edges) for part in parts] == [1, 1]
    assert sorted(edge.edge_id for part in parts for edge in part.edges) == [
        edge.edge_id for edge in job.edges
    ]
    assert part_of_job(job, {vertex.vertex_id for vertex in job.vertices}) == job
