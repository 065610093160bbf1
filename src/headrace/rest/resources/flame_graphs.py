"""Flame graphs: where the time of a vertex goes, in the shape that Flink's page draws."""

from __future__ import annotations

import msgspec

from headrace.config.options import flame_graphs as options
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Request
from headrace.rest.routing import Endpoint, QueryParameters
from headrace.runtime.monitoring.flame_graphs import FlameNode, SampleKind, flame_tree

#: What Flink puts in the place of a time when there is no graph.
_WAITING, _DISABLED, _ENDED = -1, -2, -3
_MOST_SUBTASKS = 1 << 15


class Node(msgspec.Struct, frozen=True):
    """A call, with how many samples were in it."""

    name: str
    value: int
    children: list[Node] = []


class FlameGraph(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """When it was recorded; -1: it is being recorded, -2: flame graphs are off, -3: the vertex has ended."""

    end_timestamp: int
    data: Node | None = None


def flame_graph(context: RestContext, request: Request) -> FlameGraph:
    job, vertex = context.vertex(request)
    kind = _kind(request)
    subtask = request.number("subtaskindex", -1, least=0, most=_MOST_SUBTASKS)
    if subtask >= vertex.parallelism:
        raise RestError(404, f"Subtask {subtask} not found: the vertex has {vertex.parallelism} subtasks.")
    if not context.configuration.get(options.ENABLED):
        return FlameGraph(end_timestamp=_DISABLED)
    if job.status.is_terminal_state():
        return FlameGraph(end_timestamp=_ENDED)
    recording = job.master.flame_graphs.ask(vertex.vertex_id, context.dispatcher.now_ms())
    if recording is None:
        return FlameGraph(end_timestamp=_WAITING)
    samples = recording.samples(kind, None if subtask < 0 else subtask)
    return FlameGraph(end_timestamp=recording.until_ms, data=_body(flame_tree(samples)))


def _kind(request: Request) -> SampleKind:
    text = request.query.get("type", SampleKind.FULL.value).lower()
    try:
        return SampleKind(text)
    except ValueError:
        known = ", ".join(kind.value for kind in SampleKind)
        raise RestError(400, f"Bad request: type must be one of {known}") from None


def _body(node: FlameNode) -> Node:
    return Node(node.name, node.value, [_body(child) for child in node.children])


_KINDS = [kind.value for kind in SampleKind]
_TYPE = QueryParameters(
    "type",
    "Which samples to use: all, or only those on or off the CPU.",
    {"type": "string", "enum": [*_KINDS, *(kind.upper() for kind in _KINDS)]},
)
_SUBTASK = QueryParameters(
    "subtaskindex", "Only this subtask.", {"type": "integer", "minimum": 0, "maximum": _MOST_SUBTASKS}
)

ENDPOINTS = (
    Endpoint(
        "GET",
        "/jobs/{jobid}/vertices/{vertexid}/flamegraph",
        "The flame graph of a vertex; the first request starts recording it.",
        flame_graph,
        FlameGraph,
        query=(_TYPE, _SUBTASK),
        is_archived=True,
    ),
)
