"""Which edges of a table job have their rows packed (`PackedInput`).

They are those between two python stages, and from one to a sink, if workers can do all that lies between them. Where
nothing of an epoch goes through DataFrames, so are the edges between streams and tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from headrace.graph.job_graph import JobEdge, JobGraph
from headrace.graph.table_job import fragment_of, producer_of
from headrace.operators.table.base import InputSpec, TableOperator, quote
from headrace.operators.table.bridge import StreamToTable, TableToStream
from headrace.operators.table.declarations import (
    SinkMode,
    StatefulNode,
    TableScanDeclaration,
    TableSinkDeclaration,
    TableWatermarkDeclaration,
)
from headrace.operators.table.join import JoinOperator
from headrace.operators.table.packed_input import PackedInput
from headrace.operators.table.spark_types import as_spark_gives
from headrace.operators.table.steps import KIND, Fragment, Select, Step, Where, columns_read, read_steps
from headrace.runtime.task.table_task import has_kinds
from headrace.state.key_secret import KeySecret

#: Names of the zone in which local times are moments.
UTC_ZONES = ("UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "+00:00")
#: A column of a join's condition; texts and names in it are passed over.
_PLACE = re.compile(r"'[^']*'|`[^`]*`|\b([lr]\d+)\b")
_ZONE = "spark.sql.session.timeZone"


class Packing:
    """The packed edges of a job.

    Args:
        job: The job.
        operators: Its stateful nodes at work.
        secret: What goes into the keys of its rows.
        has_borders: Whether rows go in packets between streams and tables, too.
    """

    def __init__(
        self,
        job: JobGraph,
        operators: Mapping[str, TableOperator],
        secret: KeySecret,
        *,
        has_borders: bool = False,
    ) -> None:
        self._job = job
        self._operators = operators
        self._secret = secret
        self._is_utc = job.session_settings.get(_ZONE) in UTC_ZONES
        self._edges: dict[tuple[str, int], PackedInput] = {}
        for vertex_id in operators:
            inputs = job.inputs_of(vertex_id)
            for edge in inputs:
                if sum(each.target_input == edge.target_input for each in inputs) == 1:
                    specs = [spec for spec in operators[vertex_id].inputs if spec.source == edge.target_input]
                    self._add(edge, specs)
        for vertex in job.vertices:
            inputs, declaration = job.inputs_of(vertex.vertex_id), vertex.head.declaration
            if len(inputs) != 1:
                continue
            if isinstance(declaration, TableSinkDeclaration):
                self._add_sink(inputs[0], declaration)
            elif has_borders and isinstance(declaration, TableToStream):
                self._add(inputs[0], (), goes_by_keys=declaration.is_upsert)
            elif has_borders and isinstance(declaration, TableWatermarkDeclaration):
                self._add(inputs[0], ())

    def into(self, vertex_id: str, side: int) -> PackedInput | None:
        """Return how the rows of an input, or of a sink, are packed; None if they are not."""
        return self._edges.get((vertex_id, side))

    def out_of(self, vertex_id: str) -> tuple[PackedInput, ...]:
        """Return how a stateful node packs what comes out of it, for each of its readers; nothing if it does not."""
        if vertex_id not in self._operators:
            return ()
        edges = self._job.outputs_of(vertex_id)
        found = [self.into(edge.target_vertex, edge.target_input) for edge in edges]
        packed = tuple(each for each in found if each is not None)
        return packed if len(packed) == len(edges) else ()

    def has(self, edge: JobEdge) -> bool:
        """Whether the rows of an edge are packed, if they are in columns where it begins."""
        return self.into(edge.target_vertex, edge.target_input) is not None

    def _add_sink(self, edge: JobEdge, sink: TableSinkDeclaration) -> None:
        # Packets are not divided by what is in them.
        if not sink.not_null and not sink.shuffle_by:
            is_upsert = sink.mode is SinkMode.UPSERT
            self._add(edge, (), goes_by_keys=is_upsert, is_discarded=sink.sink.discards)

    def _add(
        self,
        edge: JobEdge,
        specs: Sequence[InputSpec],
        *,
        goes_by_keys: bool = False,
        is_discarded: bool = False,
    ) -> None:
        packed = self._packed(edge, specs)
        if packed is not None:
            packed = replace(packed, goes_by_keys=goes_by_keys, is_discarded=is_discarded)
            self._edges[edge.target_vertex, edge.target_input] = packed

    def _packed(self, edge: JobEdge, specs: Sequence[InputSpec]) -> PackedInput | None:
        vertex = self._job.vertex(edge.target_vertex)
        source = self._source(edge)
        if source is None:
            return None
        columns, fragment = source
        steps = tuple(read_steps(fragment.steps))
        names = columns_read(list(columns), steps)
        if has_kinds(self._job, edge):
            names.add(KIND)
            columns = {**columns, KIND: pa.int8()}
        packed = PackedInput(
            source=tuple((name, kind) for name, kind in columns.items() if name in names),
            steps=steps,
            schema=as_spark_gives(fragment.schema),
            specs=tuple(specs),
            is_utc=self._is_utc,
            parallelism=vertex.parallelism,
            max_parallelism=vertex.max_parallelism,
            secret=self._secret,
            target=edge.target_vertex,
        )
        return packed if packed.source and packed.is_understood else None

    def _source(self, edge: JobEdge) -> tuple[dict[str, pa.DataType], Fragment] | None:
        """Return the columns that an edge gets from python, and what is done to them on the way; None for others."""
        declaration, fragment = producer_of(self._job, edge).declaration, fragment_of(edge)
        if isinstance(declaration, TableScanDeclaration):
            columns = {column.name: column.arrow for column in as_spark_gives(declaration.schema)}
            first = declaration.fragment.steps if declaration.fragment is not None else ()
            return columns, Fragment((*first, *fragment.steps), fragment.schema)
        if isinstance(declaration, StatefulNode):
            columns = {column.name: column.arrow for column in as_spark_gives(declaration.output)}
            if is_checked(declaration, self._operators[edge.source_vertex]):
                return columns, fragment
            steps = _checked_pairs(declaration, list(columns))
            return columns, Fragment((*steps, *fragment.steps), fragment.schema)
        if isinstance(declaration, StreamToTable | TableWatermarkDeclaration):
            return {column.name: column.arrow for column in as_spark_gives(declaration.output)}, fragment
        return None


def _checked_pairs(join: StatefulNode, names: Sequence[str]) -> tuple[Step, ...]:
    """Return what checks the pairs of a join: its condition names columns by side and position."""
    declaration: Any = join
    left = len(declaration.left)
    placed = [f"l{at}" if at < left else f"r{at - left}" for at in range(len(names))]
    return (
        Select(tuple((quote(name), place) for name, place in zip(names, placed, strict=True))),
        Where(_PLACE.sub(lambda found: f"`{found[1]}`" if found[1] else found[0], declaration.condition)),
        Select(tuple((quote(place), name) for name, place in zip(names, placed, strict=True))),
    )


def is_checked(declaration: StatefulNode, operator: TableOperator) -> bool:
    """Whether all that an operator makes counts: nothing of a join's condition is left to check after it."""
    if getattr(declaration, "condition", None) is None:
        return True
    return isinstance(operator, JoinOperator) and operator.checks_condition
