"""A job as rules see it: operators with the user's functions in them, and what the configuration says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headrace.checks.findings import CheckFinding
from headrace.common.typeinfo import TypeInformation
from headrace.config import Configuration
from headrace.config.options import checkpointing
from headrace.config.options.checkpointing import CheckpointingMode
from headrace.connectors.base import Boundedness
from headrace.graph.job_graph import JobGraph, JobVertex, OperatorNode
from headrace.operators.functions import layers
from headrace.operators.io import SourceDeclaration
from headrace.operators.table.declarations import OnlyInEpochs
from headrace.util.call_sites import ProgramLine

__all__ = ["ReviewedJob", "ReviewedOperator"]


@dataclass(frozen=True)
class ReviewedOperator:
    """One operator of a job."""

    node: OperatorNode
    #: Whether records can come forever.
    is_endless: bool
    #: The declared types of its inputs, first input first; None where none is declared.
    input_types: tuple[TypeInformation | None, ...]

    @property
    def declaration(self) -> Any:
        """The declaration of the operator."""
        return self.node.declaration

    @property
    def is_table(self) -> bool:
        """Whether it is a step of a query, which has no uid and no functions of this kind."""
        return isinstance(self.declaration, OnlyInEpochs)

    def functions(self) -> list[Any]:
        """Return the user's functions, those within others included; key selectors are not among them."""
        given = [
            getattr(self.declaration, name, None) for name in ("function", "trigger", "assigner", "evictor")
        ]
        computation = getattr(self.declaration, "computation", None)
        given += [getattr(computation, name, None) for name in ("incremental", "window_function")]
        given += [getattr(each, "function", None) for each in getattr(self.declaration, "user_functions", ())]
        return [layer for each in given if each is not None for layer in layers(each)]

    def key_selectors(self) -> list[tuple[int, Any]]:
        """Return the key selectors, each with the number of its input."""
        one = getattr(self.declaration, "key_selector", None)
        several = getattr(self.declaration, "key_selectors", ())
        selectors = several if one is None else (one,)
        return list(enumerate(selectors))

    def finding(self, code: str, message: str, place: ProgramLine | None = None) -> CheckFinding:
        """Make a finding about it."""
        return CheckFinding(code, self.node.name, message, place or self.node.defined_at)


class ReviewedJob:
    """A job with what rules ask about it.

    Args:
        job: The job.
        configuration: All layers, the program's own included.
    """

    def __init__(self, job: JobGraph, configuration: Configuration) -> None:
        self.job = job
        self.has_checkpoints = configuration.get(checkpointing.INTERVAL) is not None
        is_exact = configuration.get(checkpointing.MODE) is CheckpointingMode.EXACTLY_ONCE
        #: Whether the job promises that each record counts once.
        self.is_exactly_once = self.has_checkpoints and is_exact
        self._endless = _endless_vertices(job)
        #: Whether somebody may want to restore the job: one that reads bounded input without checkpoints starts afresh.
        self.is_restorable = not job.is_batch and (self.has_checkpoints or bool(self._endless))

    def operators(self) -> Iterator[ReviewedOperator]:
        """Yield all operators, sources first."""
        for vertex in self.job.vertices:
            for position, node in enumerate(vertex.operators):
                yield ReviewedOperator(
                    node, vertex.vertex_id in self._endless, self._input_types(vertex, position)
                )

    def _input_types(self, vertex: JobVertex, position: int) -> tuple[TypeInformation | None, ...]:
        if position:
            before = [
                edge.source
                for edge in vertex.chain_edges
                if edge.target == position and edge.side_tag is None
            ]
            return tuple(vertex.operators[each].output_type for each in before)
        types: dict[int, TypeInformation | None] = {}
        for edge in self.job.inputs_of(vertex.vertex_id):
            if edge.side_tag is None:
                source = self.job.vertex(edge.source_vertex).operators[edge.source_operator]
                types.setdefault(edge.target_input, source.output_type)
        return tuple(types.get(index) for index in range(max(types, default=-1) + 1))


def _endless_vertices(job: JobGraph) -> frozenset[str]:
    """Return the vertices that a source without an end leads to."""
    found: set[str] = set()
    for vertex in job.vertices:
        declaration = vertex.head.declaration
        if isinstance(declaration, SourceDeclaration):
            is_endless = declaration.source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
        else:
            is_endless = any(edge.source_vertex in found for edge in job.inputs_of(vertex.vertex_id))
        if is_endless:
            found.add(vertex.vertex_id)
    return frozenset(found)
