"""What is kept of a job that has ended: the answers to all that could be asked about it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Request, Response, json_response
from headrace.rest.resources.jobs import JobLines, job_line
from headrace.rest.resources.metrics import MetricBody
from headrace.rest.routing import Endpoint
from headrace.runtime.job.dispatcher import LiveJob
from headrace.runtime.job.history import OVERVIEW, EndedJob

#: An archive has the values of all metrics; the names alone are made from it.
_METRICS = "/metrics"
#: It has the values of accumulators, too, whoever may ask for them.
_JOB_ACCUMULATORS = "/jobs/{jobid}/accumulators"


def render_archive(endpoints: Sequence[Endpoint], job: LiveJob, context: RestContext) -> Mapping[str, str]:
    """Answer everything that can be asked about a job, by path."""
    line = job_line(job, context.dispatcher.now_ms())
    answers = {OVERVIEW: _text(JobLines(jobs=[line]))}
    for endpoint in endpoints:
        if endpoint.is_archived:
            for params in _parameters(endpoint, job):
                path = endpoint.path.format_map(params)
                try:
                    answers[path] = _text(
                        endpoint.handler(context, _request(endpoint, path, params, context))
                    )
                except RestError:
                    continue  # such as a checkpoint without statistics of a vertex
    return answers


def _request(endpoint: Endpoint, path: str, params: dict[str, str], context: RestContext) -> Request:
    request = Request("GET", path, params)
    if endpoint.path.endswith(_JOB_ACCUMULATORS):
        return Request("GET", path, params, {"includeSerializedValue": "true"})
    if endpoint.path.endswith(_METRICS):
        names = [metric.id for metric in endpoint.handler(context, request)]
        return Request("GET", path, params, {"get": ",".join(names)})
    return request


def _parameters(endpoint: Endpoint, job: LiveJob) -> Iterator[dict[str, str]]:
    """Yield the parameters of all paths of an endpoint that are about a job."""
    vertices = job.master.job.vertices if "{vertexid}" in endpoint.path else (None,)
    checkpoints = [0]
    if "{checkpointid}" in endpoint.path:
        checkpoints = [each.id for each in job.master.checkpoints.coordinator.statistics().history]
    for vertex, checkpoint_id in itertools.product(vertices, checkpoints):
        params = {"jobid": job.job_id, "checkpointid": str(checkpoint_id)}
        if vertex is not None:
            params["vertexid"] = vertex.vertex_id
        subtasks = vertex.parallelism if vertex is not None and "{subtaskindex}" in endpoint.path else 1
        for index in range(subtasks):
            yield {**params, "subtaskindex": str(index)}


def _text(answer: object) -> str:
    return msgspec.json.encode(answer).decode()


def archived_answer(ended: EndedJob, endpoint: Endpoint, request: Request) -> Response:
    """Answer about a job that has ended.

    Raises:
        RestError: If that is not kept.
    """
    text = ended.answers.get(request.path) or ended.answers.get(endpoint.path.format_map(request.params))
    if text is None:
        raise RestError(404, f"Job {ended.job_id} has ended; {request.path} is not archived.")
    if not endpoint.path.endswith(_METRICS):
        return Response(text.encode())
    metrics = msgspec.json.decode(text, type=list[MetricBody])
    wanted = request.names("get")
    if wanted is None:
        return json_response([MetricBody(metric.id) for metric in metrics])
    return json_response([metric for metric in metrics if metric.id in wanted])
