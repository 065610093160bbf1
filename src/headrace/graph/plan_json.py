"""Plans for people and tools: JSON in the shapes Flink's own tools read, and a drawing in text."""

from __future__ import annotations

import html
from typing import Any

from headrace.graph.job_graph import JobEdge, JobGraph, JobVertex
from headrace.graph.stream_graph import NodeKind, StreamGraph

_PACTS: dict[NodeKind, str] = {"source": "Data Source", "operator": "Operator", "sink": "Data Sink"}


def stream_plan(graph: StreamGraph) -> dict[str, Any]:
    """Return what ``get_execution_plan`` shows, in the shape of Flink's plan visualizer."""
    nodes = []
    for node in graph.nodes:
        shown: dict[str, Any] = {
            "id": node.id,
            "type": node.name,
            "pact": _PACTS[node.kind],
            "contents": node.description,
            "parallelism": node.parallelism,
        }
        predecessors = [
            {"id": edge.source, "ship_strategy": edge.partitioner.name, "side": "second"}
            for edge in graph.in_edges(node.id)
        ]
        if predecessors:
            shown["predecessors"] = predecessors
        nodes.append(shown)
    return {"nodes": nodes}


def job_plan(graph: JobGraph) -> dict[str, Any]:
    """Return the body of REST ``/jobs/:jobid/plan``; as in Flink's, sinks come first."""
    return {
        "plan": {
            "jid": graph.job_id,
            "name": graph.name,
            "type": "BATCH" if graph.is_batch else "STREAMING",
            "nodes": [_plan_node(vertex, graph) for vertex in reversed(graph.vertices)],
        }
    }


def _plan_node(vertex: JobVertex, graph: JobGraph) -> dict[str, Any]:
    node: dict[str, Any] = {
        "id": vertex.vertex_id,
        "operator": "",
        "parallelism": vertex.parallelism,
        "operator_strategy": "",
        "description": _chain_description(vertex),
        "optimizer_properties": {},
    }
    inputs = [
        {
            "id": edge.source_vertex,
            "num": number,
            "exchange": "blocking" if graph.is_batch else "pipelined_bounded",
            "ship_strategy": edge.partitioner.name,
        }
        for number, edge in enumerate(graph.inputs_of(vertex.vertex_id))
    ]
    if inputs:
        node["inputs"] = inputs
    return node


def _chain_description(vertex: JobVertex) -> str:
    """Describe a chain as a tree, a line per operator, in the HTML of Flink's web UI."""
    return "".join(f"{html.escape(line, quote=False)}<br/>" for line in _chain_lines(vertex))


def _chain_lines(vertex: JobVertex) -> list[str]:
    """Draw the operators of a vertex, the head first: ``+-`` is the last branch, ``:-`` is one before it."""
    below: dict[int, list[int]] = {}
    for edge in vertex.chain_edges:
        below.setdefault(edge.source, []).append(edge.target)
    lines = []
    pending = [(0, "", "")]
    while pending:
        index, lead, indent = pending.pop()
        lines.append(lead + vertex.operators[index].description)
        children = below.get(index, [])
        branches = [(child, indent + ":- ", indent + ":  ") for child in children[:-1]]
        branches += [(child, indent + "+- ", indent + "   ") for child in children[-1:]]
        pending += reversed(branches)
    return lines


def describe(graph: JobGraph) -> str:
    """Draw the job for a terminal: levels, vertices with their operators, edges, slots.

    job 'word count' (STREAMING), 2 vertices on 2 levels, needs 4 slots

    level 0
      [1] Source: lines -> FlatMap   parallelism 4, max 128
            Source: lines
            +- FlatMap
    level 1
      [2] Reduce -> Sink: Print to Std. Out   parallelism 4, max 128
            Reduce
            +- Sink: Print to Std. Out
          <- HASH from [1]
    """
    levels = graph.levels()
    numbers = {vertex.vertex_id: number for number, vertex in enumerate(graph.vertices, 1)}
    mode = "BATCH" if graph.is_batch else "STREAMING"
    lines = [
        f"job {graph.name!r} ({mode}), {_count(len(graph.vertices), 'vertex', 'vertices')} on "
        f"{_count(len(levels), 'level')}, needs {_count(graph.slots_needed(), 'slot')}"
    ]
    groups = graph.slots_by_group()
    if len(groups) > 1:
        lines.append("slots by group: " + ", ".join(f"{name} {slots}" for name, slots in groups.items()))
    for level, vertices in enumerate(levels):
        lines += ["", f"level {level}"]
        for vertex in vertices:
            group = f", group {vertex.slot_sharing_group}" if len(groups) > 1 else ""
            lines.append(
                f"  [{numbers[vertex.vertex_id]}] {vertex.name}   "
                f"parallelism {vertex.parallelism}, max {vertex.max_parallelism}{group}"
            )
            if len(vertex.operators) > 1:
                lines += [f"        {line}" for line in _chain_lines(vertex)]
            lines += [
                f"      <- {_describe_edge(edge, graph, numbers)}"
                for edge in graph.inputs_of(vertex.vertex_id)
            ]
    return "\n".join(lines)


def _describe_edge(edge: JobEdge, graph: JobGraph, numbers: dict[str, int]) -> str:
    source = graph.vertex(edge.source_vertex)
    text = f"{edge.partitioner.name} from [{numbers[edge.source_vertex]}]"
    if len(source.operators) > 1:
        text += f" {source.operators[edge.source_operator].name}"
    if edge.side_tag is not None:
        text += f", side output {edge.side_tag!r}"
    return text + (", second input" if edge.target_input else "")


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
