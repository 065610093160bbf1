"""Which edges of a table job have their rows packed (`PackedInput`).

They are those between two python stages, and from one to a sink, if workers can do all that lies between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from headrace.graph.job_graph import JobEdge, JobGraph, JobVertex
from headrace.graph.table_job import fragment_of
from headrace.operators.table.base import InputSpec, TableOperator
from headrace.operators.table.declarations import (
    SinkMode,
    StatefulNode,
    TableScanDeclaration,
    TableSinkDeclaration,
)
from headrace.operators.table.factory import as_spark_gives
from headrace.operators.table.join import JoinOperator
from headrace.operators.table.packed_input import PackedInput
from headrace.operators.table.steps import KIND, Fragment, columns_read
from headrace.runtime.task.table_task import has_kinds
from headrace.state.key_secret import KeySecret

_UTC = ("UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "+00:00")
_ZONE = "spark.sql.session.timeZone"


class Packing:
    """The packed edges of a job.

    Args:
        job: The job.
        operators: Its stateful nodes at work.
        secret: What goes into the keys of its rows.
    """

    def __init__(self, job: JobGraph, operators: Mapping[str, TableOperator], secret: KeySecret) -> None:
        self._job = job
        self._operators = operators
        self._secret = secret
        self._is_utc = job.session_settings.get(_ZONE) in _UTC
        self._edges: dict[tuple[str, int], PackedInput] = {}
        for vertex_id in operators:
            inputs = job.inputs_of(vertex_id)
            for edge in inputs:
                if sum(each.target_input == edge.target_input for each in inputs) == 1:
                    specs = [spec for spec in operators[vertex_id].inputs if spec.source == edge.target_input]
                    self._add(edge, specs)
        for vertex in job.vertices:
            inputs, sink = job.inputs_of(vertex.vertex_id), vertex.head.declaration
            if isinstance(sink, TableSinkDeclaration) and len(inputs) == 1:
                # Packets are not divided by what is in them.
                if not sink.not_null and not sink.shuffle_by:
                    self._add(inputs[0], (), goes_by_keys=sink.mode is SinkMode.UPSERT)

    def into(self, vertex_id: str, side: int) -> PackedInput | None:
        """Return how the rows of an input, or of a sink, are packed; None if they are not."""
        return self._edges.get((vertex_id, side))

    def out_of(self, vertex_id: str) -> PackedInput | None:
        """Return how a stateful node packs what comes out of it; None if it does not."""
        edges = self._job.outputs_of(vertex_id)
        if len(edges) != 1 or vertex_id not in self._operators:
            return None
        return self.into(edges[0].target_vertex, edges[0].target_input)

    def _add(self, edge: JobEdge, specs: Sequence[InputSpec], *, goes_by_keys: bool = False) -> None:
        packed = self._packed(edge, specs)
        if packed is not None:
            packed = replace(packed, goes_by_keys=goes_by_keys)
            self._edges[edge.target_vertex, edge.target_input] = packed

    def _packed(self, edge: JobEdge, specs: Sequence[InputSpec]) -> PackedInput | None:
        vertex = self._job.vertex(edge.target_vertex)
        source = self._source(self._job.vertex(edge.source_vertex), edge)
        if source is None:
            return None
        columns, fragment = source
        names = columns_read(list(columns), fragment.steps)
        if has_kinds(self._job, edge):
            names.add(KIND)
            columns = {**columns, KIND: pa.int8()}
        packed = PackedInput(
            source=tuple((name, kind) for name, kind in columns.items() if name in names),
            steps=fragment.steps,
            schema=as_spark_gives(fragment.schema),
            specs=tuple(specs),
            is_utc=self._is_utc,
            parallelism=vertex.parallelism,
            max_parallelism=vertex.max_parallelism,
            secret=self._secret,
        )
        return packed if packed.source and packed.is_understood else None

    def _source(self, vertex: JobVertex, edge: JobEdge) -> tuple[dict[str, pa.DataType], Fragment] | None:
        """Return the columns that a vertex makes in python, and what is done to them on the way; None for others."""
        declaration, fragment = vertex.head.declaration, fragment_of(edge)
        if isinstance(declaration, TableScanDeclaration):
            columns = {column.name: column.arrow for column in as_spark_gives(declaration.schema)}
            first = declaration.fragment.steps if declaration.fragment is not None else ()
            return columns, Fragment((*first, *fragment.steps), fragment.schema)
        if isinstance(declaration, StatefulNode) and len(self._job.outputs_of(vertex.vertex_id)) == 1:
            if not is_checked(declaration, self._operators[vertex.vertex_id]):
                return None
            return {column.name: column.arrow for column in as_spark_gives(declaration.output)}, fragment
        return None


def is_checked(declaration: StatefulNode, operator: TableOperator) -> bool:
    """Whether all that an operator makes counts: nothing of a join's condition is left to check behind it."""
    if getattr(declaration, "condition", None) is None:
        return True
    return isinstance(operator, JoinOperator) and operator.checks_condition
