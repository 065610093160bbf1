"""Where Spark's own user interface shows a job: the stage of each level, in the last epoch."""

from __future__ import annotations

from headrace.rest.context import RestContext
from headrace.rest.http import Body, Request
from headrace.rest.resources.epochs import levels_of
from headrace.rest.routing import Endpoint


class VertexStage(Body):
    id: str
    #: The page of the stage that ran the vertex last.
    url: str


class SparkPagesBody(Body):
    #: Null where Spark's user interface is off.
    url: str | None
    #: What to do about that.
    hint: str
    stages: list[VertexStage]


_HINT = "Spark's user interface is disabled; set spark.ui.enabled=true to enable it."


def spark_pages(context: RestContext, request: Request) -> SparkPagesBody:
    job = context.live(request)
    found = context.spark_pages.of_job(job.job_id, job.master.lineage)
    if found is None:
        return SparkPagesBody(url=None, hint=_HINT, stages=[])
    levels = levels_of(job)
    return SparkPagesBody(
        url=found.url,
        hint="",
        stages=[
            VertexStage(id=vertex.vertex_id, url=found.stages[levels[vertex.vertex_id]])
            for vertex in job.master.job.vertices
            if levels[vertex.vertex_id] < len(found.stages)
        ],
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/jobs/{jobid}/headrace/spark",
        "The address of Spark's user interface for the stages of a job. Not in Flink.",
        spark_pages,
        SparkPagesBody,
        is_slow=True,
    ),
)
