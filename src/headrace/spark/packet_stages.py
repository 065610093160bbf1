"""An epoch of tables whose rows go in packets all the way: python stages and Spark's shuffle, no DataFrames.

    scan --packets--> shuffle --> stateful node --packets--> shuffle --> ... --> sink
    stream --buffers, packets--> shuffle --> ...                            ... --packets, buffers--> stream

Nothing is left for Spark SQL to do then, and to analyse, plan and compile a query for it would take longer than most
epochs do.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.core.rdd import RDD
from pyspark.serializers import NoOpSerializer

from headrace.graph.job_graph import JobEdge, JobGraph, JobVertex, OperatorNode
from headrace.graph.table_job import TableForward, TableHash, is_table_vertex, producer_of
from headrace.operators.table.bridge import StreamToTable
from headrace.operators.table.declarations import (
    StatefulNode,
    TableScanDeclaration,
    TableSinkDeclaration,
    TableWatermarkDeclaration,
)
from headrace.operators.table.packed_input import PackedInput
from headrace.operators.table.timed_way import TimedWay
from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.runtime.task.packing import Packing
from headrace.runtime.task.table_time import VertexTime, subtask_plans
from headrace.spark.byte_shuffle import buffers_behind, keep, remove_shuffles, shuffled, stage_of
from headrace.spark.table_frames import empty_buffers
from headrace.spark.table_scans import TableScans
from headrace.spark.table_worker import RowsOfStream, TableFunctions

_KINDS = (TableScanDeclaration, StatefulNode, TableSinkDeclaration, TableWatermarkDeclaration)


class PacketStages:
    """The stages of one epoch.

    Args:
        context: Where they run.
        job: The job.
        plan: The epoch.
        packing: How rows are packed.
        functions: What stages do.
        scans: What is read.
    """

    def __init__(
        self,
        context: SparkContext,
        job: JobGraph,
        plan: EpochPlan,
        packing: Packing,
        functions: TableFunctions,
        scans: TableScans,
    ) -> None:
        self._context = context
        self._job = job
        self._plan = plan
        self._packing = packing
        self._functions = functions
        self._scans = scans
        #: What comes out of stateful nodes, as Java has it: partition numbers and packets in turn.
        self._packets: dict[str, Any] = {}
        #: What came out of streams, as Java has it, by the operator whose rows are in it.
        self._streams: dict[str, tuple[RowsOfStream, Any]] = {}
        self._shuffles: list[Any] = []
        self._kept: list[Any] = []

    def can_run(self) -> bool:
        """Whether all that the job does with tables can be done like this; scans are prepared then."""
        vertices = [vertex for vertex in self._job.vertices if is_table_vertex(vertex)]
        edges = [e for e in self._job.edges if isinstance(e.partitioner, TableForward | TableHash)]
        if not all(isinstance(vertex.head.declaration, _KINDS) for vertex in vertices):
            return False
        return all(map(self._packing.has, edges)) and all(map(self._prepare, vertices))

    def _prepare(self, vertex: JobVertex) -> bool:
        declaration = vertex.head.declaration
        if isinstance(declaration, TableWatermarkDeclaration):
            way = self._way(vertex)
            # What is read twice is computed twice, and functions are called once for each row.
            is_read_once = len(self._job.outputs_of(vertex.vertex_id)) == 1 or not way.way.calls_functions
            return is_read_once and self._scans.can_read_time(way)
        return (
            not isinstance(declaration, TableScanDeclaration)
            or self._has_ended(vertex)
            or self._scans.prepare_columns(vertex, declaration)
        )

    def take_from_stream(self, node: OperatorNode, vertex_id: str, out: Any) -> None:
        """Take what came out of a stream, an RDD of Java; None if it had ended before."""
        if out is not None:
            self._streams[node.operator_id] = (RowsOfStream(vertex_id, node.operator_id), out)

    def hand_to_stream(self, vertex: JobVertex) -> Any:
        """Return the rows that a stream gets as buffers, an RDD of Java with a partition for each subtask."""
        inputs = None if self._has_ended(vertex) else self._inputs(vertex)
        if inputs is None:
            return empty_buffers(self._context, vertex.parallelism)
        function = self._functions.handing_over_packets(vertex.vertex_id)
        received: RDD[Any] = RDD(inputs.coalesce(vertex.parallelism, False), self._context, NoOpSerializer())
        buffers = stage_of(received, function)._jrdd
        keep(self._context, buffers)
        self._kept.append(buffers)
        missing = vertex.parallelism - buffers.getNumPartitions()
        return buffers.union(empty_buffers(self._context, missing)) if missing else buffers

    def build(self, vertices: Sequence[JobVertex], times: Mapping[str, VertexTime]) -> list[RDD[Any]]:
        """Put all stages together; returns the last one of each sink."""
        last = []
        for vertex in vertices:
            declaration = vertex.head.declaration
            if self._has_ended(vertex):
                continue
            if isinstance(declaration, StatefulNode):
                self._add_node(vertex, times[vertex.vertex_id])
            elif isinstance(declaration, TableSinkDeclaration):
                last += self._sink(vertex, declaration, times[vertex.vertex_id])
        for each in last:
            each._jrdd  # noqa: B018 - built here, while the context asks for the right workers
        return last

    def run(self, last: Sequence[RDD[Any]]) -> list[SubtaskReport]:
        """Run what `build` has built; returns what writers report."""
        return [pickle.loads(report) for stage in last for report in stage.collect()]

    def close(self) -> None:
        """Remove what the epoch has left with Spark."""
        for rdd in self._kept:
            with suppress(Py4JError, OSError):
                rdd.unpersist(False)
        remove_shuffles(self._context, self._shuffles)

    def _has_ended(self, vertex: JobVertex) -> bool:
        return all(part.has_ended for part in subtask_plans(vertex, self._plan))

    def _add_node(self, vertex: JobVertex, at: VertexTime) -> None:
        inputs = self._inputs(vertex)
        if inputs is None:
            received: RDD[Any] = self._context.parallelize([], vertex.parallelism)
        else:
            shuffle = shuffled(self._context, inputs, vertex.parallelism)
            self._shuffles.append(shuffle)
            received = buffers_behind(self._context, shuffle)
        edges = self._job.inputs_of(vertex.vertex_id)
        merges = {side: merge for edge in edges for side, merge in self._packed(edge).merges.items()}
        readers = self._packing.out_of(vertex.vertex_id)
        site = self._functions.site(vertex, vertex.head)
        stage = stage_of(
            received, self._functions.packets_of_node(vertex.vertex_id, at, merges, readers, site)
        )
        packets = stage._jrdd
        if len(readers) > 1:
            keep(self._context, packets)
            self._kept.append(packets)
        self._packets[vertex.vertex_id] = packets

    def _inputs(self, vertex: JobVertex) -> Any:
        """Return all that comes to a vertex, as Java has it; None if nothing can."""
        united = None
        for edge in self._job.inputs_of(vertex.vertex_id):
            packets = self._packets_of(edge)
            if packets is not None:
                united = packets if united is None else united.union(packets)
        return united

    def _packets_of(self, edge: JobEdge) -> Any:
        producer = producer_of(self._job, edge)
        vertex = self._job.vertex(edge.source_vertex)
        if isinstance(producer.declaration, StreamToTable):
            return self._packets_of_stream(vertex, producer, None, edge)
        if isinstance(producer.declaration, TableWatermarkDeclaration):
            (before,) = self._job.inputs_of(vertex.vertex_id)
            stream = self._job.vertex(before.source_vertex)
            return self._packets_of_stream(stream, producer_of(self._job, before), vertex, edge)
        scan = self._scans.columns.get(vertex.vertex_id)
        if scan is None:
            return self._packets.get(vertex.vertex_id)
        packed = self._packed(edge)
        pieces = scan.pieces_for(packed)
        site = self._functions.site(vertex, vertex.head)
        function = self._functions.packets_of_pieces(vertex.vertex_id, pieces, scan.time, packed, site)
        return stage_of(self._context.parallelize([], len(pieces)), function)._jrdd

    def _packets_of_stream(
        self, stream: JobVertex, producer: OperatorNode, timed: JobVertex | None, edge: JobEdge
    ) -> Any:
        """Return the packets of what a stream hands over; of ``timed``, if their time is read off them there."""
        found = self._streams.get(producer.operator_id)
        if found is None:
            return None
        rows, out = found
        way = None if timed is None else self._way(timed)
        if timed is not None and way is not None:
            self._scans.read_time(timed, way, out.getNumPartitions())
        site = self._functions.site(stream, producer)
        function = self._functions.packets_of_stream(rows, way, self._packed(edge), site)
        return stage_of(RDD(out, self._context, NoOpSerializer()), function)._jrdd

    def _way(self, vertex: JobVertex) -> TimedWay:
        (edge,) = self._job.inputs_of(vertex.vertex_id)
        declaration = vertex.head.declaration
        assert isinstance(declaration, TableWatermarkDeclaration)
        return TimedWay(self._packed(edge), declaration, vertex.vertex_id)

    def _packed(self, edge: JobEdge) -> PackedInput:
        packed = self._packing.into(edge.target_vertex, edge.target_input)
        assert packed is not None
        return packed

    def _sink(self, vertex: JobVertex, declaration: TableSinkDeclaration, at: VertexTime) -> list[RDD[Any]]:
        inputs = self._inputs(vertex)
        if declaration.sink.discards:
            # The stage in front of it has released all rows.
            return [] if inputs is None else [RDD(inputs, self._context, NoOpSerializer())]
        if inputs is None:
            received: RDD[Any] = self._context.parallelize([], vertex.parallelism)
        else:
            received = RDD(inputs.coalesce(vertex.parallelism, False), self._context, NoOpSerializer())
        return [stage_of(received, self._functions.writing_packets(vertex.vertex_id, at))]
