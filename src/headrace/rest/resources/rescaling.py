"""Parallelism: what a job has, and how to change it from the next epoch on."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Annotated

import msgspec

from headrace.config.options import rest as options
from headrace.graph.rescaling import uniform_parallelism, with_parallelism
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Empty, Request
from headrace.rest.resources.savepoints import (
    OperationStatus,
    Triggered,
    operation_future,
    operation_status,
)
from headrace.rest.routing import Endpoint, QueryParameters
from headrace.runtime.job.dispatcher import LiveJob

_MOST = 2**15


Parallelism = Annotated[int, msgspec.Meta(ge=1, le=_MOST)]


class ParallelismBounds(msgspec.Struct, frozen=True, rename="camel"):
    lower_bound: Parallelism
    upper_bound: Parallelism


class VertexRequirements(msgspec.Struct, frozen=True):
    parallelism: ParallelismBounds


Requirements = dict[Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")], VertexRequirements]


def requirements(context: RestContext, request: Request) -> Requirements:
    vertices = context.live(request).master.job.vertices
    return {
        vertex.vertex_id: VertexRequirements(ParallelismBounds(1, vertex.parallelism)) for vertex in vertices
    }


def change_requirements(context: RestContext, request: Request) -> Empty:
    job = _steerable(context, request)
    body = request.read(Requirements)
    wanted = {vertex_id: each.parallelism.upper_bound for vertex_id, each in body.items()}
    if any(each.parallelism.lower_bound > each.parallelism.upper_bound for each in body.values()):
        raise RestError(400, "Bad request: a lower bound is greater than the upper bound")
    if not wanted:
        raise RestError(400, "Bad request: name at least one vertex and its bounds")
    job.master.rescale(wanted)  # a wrong one is refused at once
    return Empty()


def rescale(context: RestContext, request: Request) -> Triggered:
    job = _steerable(context, request)
    if "parallelism" not in request.query:
        raise RestError(400, "Bad request: the query must name the new parallelism")
    parallelism = request.number("parallelism", 1, least=1, most=_MOST)
    wanted = uniform_parallelism(job.master.job, parallelism)
    with_parallelism(job.master.job, wanted)

    def begin() -> Future[None]:
        return job.master.rescale(wanted)

    return Triggered(request_id=context.operations.start(("rescaling", job.job_id), begin))


def rescaling_status(context: RestContext, request: Request) -> OperationStatus:
    return operation_status(operation_future(context, ("rescaling", request.params["jobid"]), request))


def _steerable(context: RestContext, request: Request) -> LiveJob:
    if not context.configuration.get(options.RESCALE_ENABLED):
        raise RestError(403, f"Rescaling is disabled: {options.RESCALE_ENABLED.key} is false.")
    return context.live(request)


_PARALLELISM = QueryParameters(
    "parallelism",
    "The parallelism for every vertex that allows it.",
    {"type": "integer", "minimum": 1, "maximum": _MOST},
)

ENDPOINTS = (
    Endpoint(
        "GET",
        "/jobs/{jobid}/resource-requirements",
        "The parallelism of each vertex.",
        requirements,
        Requirements,
    ),
    Endpoint(
        "PUT",
        "/jobs/{jobid}/resource-requirements",
        "Change the parallelism of some vertices from the next epoch on.",
        change_requirements,
        Empty,
        body=Requirements,
    ),
    Endpoint(
        "PATCH",
        "/jobs/{jobid}/rescaling",
        "Change the parallelism of the whole job.",
        rescale,
        Triggered,
        query=(_PARALLELISM,),
        status=202,
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/rescaling/{triggerid}",
        "The status of a rescaling.",
        rescaling_status,
        OperationStatus,
    ),
)
