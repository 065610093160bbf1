"""A job with another parallelism."""

from __future__ import annotations

from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.graph.rescaling import uniform_parallelism, with_parallelism
from tests.unit.runtime.jobs import make_env


def job() -> JobGraph:
    env = make_env(2)
    mapped = env.from_collection([1, 2, 3]).key_by(lambda number: number).map(str).name("many")
    mapped.print().set_parallelism(1).name("one")
    return build_job_graph(env._build_stream_graph(), job_id="1" * 32, name="job")


def parallelism_by_name(job: JobGraph) -> dict[str, int]:
    return {vertex.name: vertex.parallelism for vertex in job.vertices}


def test_operators_planned_with_one_subtask_keep_it_when_rescaled_from_one() -> None:
    planned = job()
    assert [name for name, number in parallelism_by_name(planned).items() if number == 1][-1].endswith("one")
    alone = with_parallelism(planned, uniform_parallelism(planned, 1))
    assert set(parallelism_by_name(alone).values()) == {1}
    grown = with_parallelism(alone, uniform_parallelism(alone, 3))
    again = with_parallelism(planned, uniform_parallelism(planned, 3))
    assert parallelism_by_name(grown) == parallelism_by_name(again)
    assert parallelism_by_name(grown)["many"] == 3


def test_a_parallelism_set_by_name_may_still_grow() -> None:
    planned = job()
    [one] = [vertex for vertex in planned.vertices if vertex.name.endswith("one")]
    grown = with_parallelism(with_parallelism(planned, uniform_parallelism(planned, 1)), {one.vertex_id: 2})
    assert grown.vertex(one.vertex_id).parallelism == 2
