"""The operators of a vertex, wired: each one's output calls the next, or goes to the exchange."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from headrace.common.typed_values import conformer, namer
from headrace.elements import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    Batch,
    ColumnBatch,
    EndOfInput,
    Event,
    LatencyMarker,
    StreamStatus,
    TableRows,
    Watermark,
)
from headrace.errors import UserFunctionError
from headrace.graph.job_graph import JobVertex, OperatorNode
from headrace.metrics.reports import MetricName, MetricReport
from headrace.operators.base import Operator
from headrace.operators.context import OperatorContext
from headrace.operators.functions import with_own_function
from headrace.operators.io import SinkTask
from headrace.operators.sorted_input import build_for_batch
from headrace.runtime.exchange.result_partition import ResultPartition
from headrace.runtime.exchange.table_partition import TablePartition
from headrace.runtime.task.operator_metrics import operator_metrics

#: Where records leave the task.
Partition = ResultPartition | TablePartition


class ChainLink:
    """One operator in its chain, with its output and the watermark it has seen."""

    def __init__(self, node: OperatorNode, *, object_reuse: bool, is_batch: bool = False) -> None:
        self.node = node
        declaration = with_own_function(node.declaration)
        self.operator: Operator = build_for_batch(declaration) if is_batch else declaration.build()
        self._conform = conformer(node.output_type)
        self.output = ChainOutput(
            object_reuse=object_reuse,
            conformed=None if self._conform is None else self._conformed,
            named=namer(node.output_type),
            is_batch=is_batch,
        )
        self.operator.output = self.output
        self.context: OperatorContext | None = None
        self.watermark = MIN_WATERMARK
        #: Records the operator was given in this epoch.
        self.records_in = 0
        #: Takes latency markers that have come to this operator.
        self.on_marker: Callable[[LatencyMarker], None] = lambda marker: None

    def begin_epoch(self) -> None:
        """Reset the counters of the epoch."""
        self.records_in = self.output.emitted = 0

    def metrics(self) -> dict[MetricName, MetricReport]:
        """Return what is counted of every operator, under Flink's names."""
        return operator_metrics(self.records_in, self.output.emitted, self.watermark, self.output.watermark)

    def _conformed(self, batch: Batch) -> Batch:
        """Bring records of a declared type into the form of that type."""
        if self._conform is None or isinstance(batch, ColumnBatch | TableRows):
            return batch
        try:
            values = self._conform(batch.values)
        except (TypeError, ValueError) as error:
            declared = self.node.output_type
            assert self.context is not None
            assert declared is not None
            place = self.context.place
            raise UserFunctionError(
                str(error),
                job=place.job_name,
                operator=place.operator_name,
                subtask=place.subtask,
                attempt=self.context.attempt,
                hint=f"the operator declares {declared.summary()}: return values of this type, "
                "or declare another type",
            ) from None
        return batch if values is batch.values else Batch(values, batch.timestamps)

    def process_event(self, event: Event) -> None:
        """Take an event of the operator's input."""
        if isinstance(event, Watermark):
            self.watermark = event.timestamp
            self.operator.process_watermark(event.timestamp)
        elif isinstance(event, StreamStatus):
            self.operator.process_status(is_active=event.active)
        elif isinstance(event, LatencyMarker):
            self.on_marker(event)
            self.output.emit_event(event)
        else:
            self.output.emit_event(event)


class ChainOutput:
    """What an operator emits to: operators chained after it, and the partitions of its edges.

    Args:
        object_reuse: Whether several of them may get the same objects.
        conformed: Brings records into the form of their declared type, where they leave the program's functions: on
            their way to other tasks and into sinks. None if they have no type.
        named: Gives rows the names of their declared type, where they go to functions of the same chain.
        is_batch: Whether time stands still until its end, as in BATCH mode: other watermarks go nowhere.
    """

    def __init__(
        self,
        *,
        object_reuse: bool,
        conformed: Callable[[Batch], Batch] | None = None,
        named: Callable[[Sequence[Any]], None] | None = None,
        is_batch: bool = False,
    ) -> None:
        self._object_reuse = object_reuse
        self._is_batch = is_batch
        self._conformed = conformed
        self._named = named
        self._chained: list[ChainLink] = []
        #: Sinks among them that want records in the form of their type.
        self._chained_sinks: list[ChainLink] = []
        self._chained_sides: dict[str, list[ChainLink]] = {}
        self._partitions: list[Partition] = []
        self._side_partitions: dict[str, list[Partition]] = {}
        #: The last watermark that went out.
        self.watermark: int | None = None
        #: Records the operator emitted in this epoch.
        self.emitted = 0

    def add_chained(self, link: ChainLink, side_tag: str | None) -> None:
        """Call this operator with the main output, or with a side output."""
        target = self._chained if side_tag is None else self._chained_sides.setdefault(side_tag, [])
        target.append(link)
        if side_tag is None and isinstance(link.operator, SinkTask) and link.operator.wants_declared_form:
            self._chained_sinks.append(link)

    def set_partitions(self, partitions: list[tuple[str | None, Partition]]) -> None:
        """Send to these partitions from now on: every epoch has its own."""
        self._partitions = [partition for tag, partition in partitions if tag is None]
        self._side_partitions = {}
        for tag, partition in partitions:
            if tag is not None:
                self._side_partitions.setdefault(tag, []).append(partition)

    def emit(self, batch: Batch) -> None:
        if self._conformed is not None and (self._partitions or self._chained_sinks):
            batch = self._conformed(batch)
        elif self._named is not None and isinstance(batch, Batch):
            self._named(batch.values)
        self._hand_on(batch, self._partitions, self._chained)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self._hand_on(batch, self._side_partitions.get(tag_id, ()), self._chained_sides.get(tag_id, ()))

    def emit_event(self, event: Event) -> None:
        if isinstance(event, Watermark):
            if self._is_batch and event.timestamp != MAX_WATERMARK:
                return
            self.watermark = event.timestamp
        for partition in self._all_partitions():
            partition.emit_event(event)
        if isinstance(event, EndOfInput):
            return  # the task finishes chained operators itself, in order
        for link in [*self._chained, *(link for links in self._chained_sides.values() for link in links)]:
            link.process_event(event)

    def finish_epoch(self) -> None:
        """The barrier: send what waits."""
        for partition in self._all_partitions():
            partition.finish_epoch()

    @property
    def records_out(self) -> int:
        """Records sent to other tasks in this epoch."""
        return sum(partition.records_out for partition in self._all_partitions())

    @property
    def bytes_out(self) -> int:
        """Bytes sent to other tasks in this epoch."""
        return sum(partition.bytes_out for partition in self._all_partitions())

    def _all_partitions(self) -> list[Partition]:
        sides = [partition for partitions in self._side_partitions.values() for partition in partitions]
        return [*self._partitions, *sides]

    def _hand_on(self, batch: Batch, partitions: Sequence[Partition], links: Sequence[ChainLink]) -> None:
        self.emitted += len(batch)
        is_shared = len(partitions) + len(links) > 1 and not self._object_reuse
        for partition in partitions:
            partition.emit(batch)
        for link in links:
            link.records_in += len(batch)
            # A chained function may change a record in place while others still hold it.
            link.operator.process(_copy(batch) if is_shared else batch)


def _copy(batch: Batch) -> Batch:
    timestamps = None if batch.timestamps is None else batch.timestamps.copy()
    return Batch(pickle.loads(pickle.dumps(batch.values, protocol=5)), timestamps)


def build_chain(vertex: JobVertex, *, object_reuse: bool, is_batch: bool = False) -> list[ChainLink]:
    """Build and wire a vertex's operators, head first."""
    links = [ChainLink(node, object_reuse=object_reuse, is_batch=is_batch) for node in vertex.operators]
    for edge in vertex.chain_edges:
        links[edge.source].output.add_chained(links[edge.target], edge.side_tag)
    return links
