"""What runs in Spark's python workers for a table job: stateful nodes, python sources and writers of sinks.

Rows go from stage to stage as Arrow batches; reports go to the driver beside them (`task_messages.py`). Behind a sink
there are no rows: there the report is what comes out.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.serializers import pack_long

from headrace.errors import FormatError, InvariantViolation
from headrace.graph.job_graph import JobVertex, OperatorNode
from headrace.operators.piece_reader import PieceReader
from headrace.operators.table.arrow_expression import NotComputedError
from headrace.operators.table.bridge import from_bytes, to_bytes
from headrace.operators.table.packed_input import (
    GroupMerge,
    PackedInput,
    Packet,
    merged_inputs,
    rows_for,
)
from headrace.operators.table.timed_way import TimedWay
from headrace.runtime.epoch.messages import (
    Crossing,
    EpochPlan,
    SubtaskId,
    SubtaskReport,
    rows_producer,
)
from headrace.runtime.epoch.recording import task_file
from headrace.runtime.epoch.spent import DECODE, ENCODE, EXCHANGE, SCAN, Stopwatch
from headrace.runtime.exchange.buffers import (
    TABLE_EDGE,
    Header,
    pack_table_rows,
    read_header,
    unpack_table_rows,
)
from headrace.runtime.task.attempt import new_attempt_id
from headrace.runtime.task.kept_tasks import KeptTasks
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.table_ends import ScanTask, write_rows
from headrace.runtime.task.table_task import TableTask, kept_table_tasks
from headrace.runtime.task.table_time import VertexTime
from headrace.runtime.task.table_trace import SINK, input_rows_file, recorded_rows
from headrace.spark.byte_shuffle import StageFunction
from headrace.spark.failures import carry
from headrace.spark.python_calls import CallSite, function_context, row_caller
from headrace.spark.table_frames import Sides, packet_rows, split_sides, unpacked
from headrace.spark.user_code import unpack_job

if TYPE_CHECKING:
    from pyspark import Broadcast

    from headrace.spark.task_messages import TaskMessages

Batches = Iterable[pa.RecordBatch]
#: Rows in a batch that goes back to Spark.
_OUT_ROWS = 1 << 16

_codes: dict[str, JobCode] = {}
_KEPT_JOBS = 4
#: Subtasks of scans, by job. Their readers have connections, which are expensive to open.
_scans: KeptTasks[tuple[str, SubtaskId], ScanTask] = KeptTasks()
_tasks = kept_table_tasks()


@dataclass(frozen=True)
class PieceRead:
    """What a task reports about a piece of a scan."""

    vertex_id: str
    piece: int
    rows: int
    #: The highest event time among them, in microseconds since 1970; None if there is none.
    highest: int | None
    #: What the task did, and how long it took.
    spent_ns: Mapping[str, int]
    #: The node that it made packets for; None for rows, which are anybody's. A scan may be read for several.
    reader: str | None = None


@dataclass(frozen=True)
class RowsTimed:
    """What a task reports about a stream's rows of which a table reads event time."""

    vertex_id: str
    partition: int
    #: The highest time among them; None if there is none.
    highest: int | None


@dataclass(frozen=True)
class RowsOfStream:
    """The rows that an operator of a stream hands to tables.

    Args:
        vertex_id: The vertex it is in.
        operator_id: The operator.
    """

    vertex_id: str
    operator_id: str

    def of(self, buffers: Iterable[bytes], read: set[Crossing]) -> Iterator[pa.RecordBatch]:
        """Find them in all that came out of streams; whose attempts they are of is noted."""
        for buffer in buffers:
            header = read_header(buffer)
            if header.edge_id != TABLE_EDGE:
                continue
            owner, rows = unpack_table_rows(buffer)
            if owner == self.operator_id:
                producer = SubtaskId(self.vertex_id, header.producer)
                read.add(Crossing(producer, f"{header.attempt:016x}", is_made=False))
                yield from_bytes(rows)


class TableFunctions:
    """The functions of one epoch's stages; small: the job's code comes once, as a broadcast."""

    def __init__(self, job_key: str, code: Broadcast[bytes], messages: TaskMessages, plan: EpochPlan) -> None:
        self._job_key = job_key
        self._code = code
        self._messages = messages
        self._plan = plan

    def told(self) -> list[Any]:
        """Return what tasks have told so far; in the driver."""
        return self._messages.told()

    def site(self, vertex: JobVertex, node: OperatorNode) -> CallSite:
        """Say where functions are that are called with the rows of an operator."""
        return CallSite(
            vertex.vertex_id,
            node.operator_id,
            vertex.name,
            vertex.parallelism,
            vertex.max_parallelism,
            self._messages,
        )

    def stateful(
        self,
        vertex_id: str,
        at: VertexTime,
        sides: Sides,
        merges: Mapping[int, GroupMerge],
        packed: Sequence[PackedInput] = (),
        site: CallSite | None = None,
    ) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a stateful node's stage, after an `exchange` of its inputs.

        Args:
            vertex_id: The node.
            at: The time.
            sides: Where the columns of its inputs are.
            merges: How groups of inputs that came in packets are combined.
            packed: How what comes out is packed for each of the nodes that read it; nothing: rows come out.
            site: Where functions are called on the way to these.
        """
        job_key, code, messages = self._job_key, self._code, self._messages
        plan = pickle.dumps(_part(self._plan, vertex_id), protocol=5)

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                watch = Stopwatch()
                with watch.on(EXCHANGE):
                    received = list(batches)
                with watch.on(DECODE):
                    subtask, inputs = split_sides(received, sides, merges)
                if subtask is None:
                    raise InvariantViolation("a subtask of a table job got no control row")
                output, report = _run_node(job_key, code, SubtaskId(vertex_id, subtask), plan, at, inputs)
                with watch.on(ENCODE):
                    rows = output.combine_chunks()
                    if not packed:
                        made = rows.to_batches(_OUT_ROWS)
                    elif len(packed) == 1:
                        made = list(_packed(packed[0], [rows], site))
                    else:
                        made = [
                            each
                            for reader, edge in enumerate(packed)
                            for each in _packed(edge, [rows], site, reader)
                        ]
                messages.tell(replace(report, spent_ns={**watch.spent_ns, **report.spent_ns}))
            yield from made

        return run

    def packets_of_node(
        self,
        vertex_id: str,
        at: VertexTime,
        merges: Mapping[int, GroupMerge],
        readers: Sequence[PackedInput],
        site: CallSite | None = None,
    ) -> StageFunction:
        """Return what a subtask of a stateful node does with packets of bytes.

        Args:
            vertex_id: The node.
            at: The time.
            merges: How groups of inputs are combined.
            readers: Who gets what comes out.
            site: Where functions are called on the way to them.
        """
        job_key, code, messages = self._job_key, self._code, self._messages
        plan = pickle.dumps(_part(self._plan, vertex_id), protocol=5)

        def run(subtask: int, packets: Iterable[bytes]) -> Iterator[Any]:
            with _carried():
                watch = Stopwatch()
                with watch.on(EXCHANGE):
                    received = list(packets)
                with watch.on(DECODE):
                    tables: dict[int, list[pa.Table]] = {}
                    for side, rows in rows_for(vertex_id, received):
                        tables.setdefault(side, []).append(rows)
                    inputs = merged_inputs(tables, merges)
                output, report = _run_node(job_key, code, SubtaskId(vertex_id, subtask), plan, at, inputs)
                with watch.on(ENCODE):
                    rows = output.combine_chunks()
                    made = [each for reader in readers for each in _routed(reader, [rows], site)]
                messages.tell(replace(report, spent_ns={**watch.spent_ns, **report.spent_ns}))
            yield from made

        return run

    def packets_of_pieces(
        self,
        vertex_id: str,
        pieces: Sequence[tuple[int, Any]],
        time: str | None,
        packed: PackedInput,
        site: CallSite | None = None,
    ) -> StageFunction:
        """Return what reads a piece per partition, and makes packets of bytes; see `reading_pieces`."""
        messages = self._messages

        def run(partition: int, nothing: Iterable[Any]) -> Iterator[Any]:
            with _carried():
                # A worker that has not read all of its input is not used again.
                assert not list(nothing)
                number, piece = pieces[partition]
                reader, watch = PieceReader(time), Stopwatch()
                yield from watch.over(ENCODE, _routed(packed, reader.read(piece), site))
                watch.add(ENCODE, -reader.spent_ns)
                watch.add(SCAN, reader.spent_ns)
                messages.tell(
                    PieceRead(vertex_id, number, reader.rows, reader.highest, watch.spent_ns, packed.target)
                )

        return run

    def packets_of_stream(
        self, producer: RowsOfStream, way: TimedWay | None, packed: PackedInput, site: CallSite | None = None
    ) -> StageFunction:
        """Return what makes packets of the rows that a stream hands to tables.

        Args:
            producer: Whose rows they are.
            way: Where they go first, if their time is read off them there.
            packed: How they are packed for the node that reads them.
            site: Where functions are called on the way.
        """
        messages = self._messages

        def run(partition: int, buffers: Iterable[bytes]) -> Iterator[Any]:
            with _carried():
                read: set[Crossing] = set()
                highest: list[int] = []
                tables: Iterator[pa.Table] = (
                    pa.Table.from_batches([rows]) for rows in producer.of(buffers, read)
                )
                if way is not None:
                    tables = way.rows(tables, highest, None if site is None else row_caller(site))
                yield from _routed(packed, tables, site)
                messages.tell(*read)
                if way is not None:
                    messages.tell(RowsTimed(way.vertex_id, partition, max(highest, default=None)))

        return run

    def handing_over_packets(self, vertex_id: str) -> StageFunction:
        """Return what makes of packets the buffers that the subtasks of a stream get."""
        handed = self._handed

        def run(partition: int, numbered: Iterable[bytes]) -> Iterator[bytes]:
            with _carried():
                # Numbers of partitions stand between the packets: no shuffle has taken them.
                packets = islice(numbered, 1, None, 2)
                batches = (batch for _, table in rows_for(vertex_id, packets) for batch in table.to_batches())
                yield from handed(vertex_id, partition, batches)

        return run

    def writing_packets(self, vertex_id: str, at: VertexTime) -> StageFunction:
        """Return what a sink does with packets of bytes: what comes out of a partition is the report of its subtask."""
        job_key, code = self._job_key, self._code
        plan = pickle.dumps(_part(self._plan, vertex_id), protocol=5)

        def run(partition: int, numbered: Iterable[bytes]) -> Iterator[bytes]:
            with _carried():
                known, subtask = _job_code(job_key, code), SubtaskId(vertex_id, partition)
                # Numbers of partitions stand between the packets: no shuffle has taken them.
                packets = islice(numbered, 1, None, 2)
                own = pickle.loads(plan)
                batches = (batch for _, table in rows_for(vertex_id, packets) for batch in table.to_batches())
                rows = _recorded(known, subtask, own, batches)
                report = write_rows(known.job, subtask, own, at, rows, _attempt())
            yield pickle.dumps(report, protocol=5)

        return run

    def writing(
        self, vertex_id: str, at: VertexTime, *, has_packets: bool
    ) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a sink's stage: what comes out of a partition is the report of its subtask."""
        job_key, code = self._job_key, self._code
        plan = pickle.dumps(_part(self._plan, vertex_id), protocol=5)

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                context = TaskContext.get()
                assert context is not None
                known = _job_code(job_key, code)
                subtask = SubtaskId(vertex_id, context.partitionId())
                own = pickle.loads(plan)
                rows = _recorded(known, subtask, own, unpacked(batches) if has_packets else batches)
                report = write_rows(known.job, subtask, own, at, rows, _attempt())
            packed = pa.array([pickle.dumps(report, protocol=5)], pa.binary())
            yield pa.RecordBatch.from_arrays([packed], names=["report"])

        return run

    def recording(self, vertex_id: str, side: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a stage that keeps the rows of a stateful node's input on their way."""
        job_key, code, plan = self._job_key, self._code, replace(self._plan, subtasks={})

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                context = TaskContext.get()
                assert context is not None
                recording = _job_code(job_key, code).settings.recording
                assert recording is not None
                name = input_rows_file(vertex_id, side, plan, context.partitionId(), _attempt())
                yield from recorded_rows(recording, plan, name, batches)

        return run

    def receiving(self, producer: RowsOfStream) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a stage that takes what came out of streams, and gives one operator's rows of it."""
        messages = self._messages

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                read: set[Crossing] = set()
                yield from producer.of(
                    (row for batch in batches for row in batch.column(0).to_pylist()), read
                )
                messages.tell(*read)

        return run

    def handing_over(self, vertex_id: str) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a stage that makes buffers of rows, for the subtasks of a stream."""
        handed = self._handed

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                context = TaskContext.get()
                assert context is not None
                for buffer in handed(vertex_id, context.partitionId(), batches):
                    yield pa.RecordBatch.from_arrays([pa.array([buffer], pa.binary())], names=["value"])

        return run

    @property
    def _handed(self) -> Callable[[str, int, Batches], Iterator[bytes]]:
        """What makes buffers for one of a stream's subtasks; it tells who has made them."""
        messages = self._messages

        def handed(vertex_id: str, partition: int, batches: Batches) -> Iterator[bytes]:
            attempt_id = new_attempt_id()
            full = (batch for batch in batches if batch.num_rows)
            for sequence, batch in enumerate(full):
                header = Header(0, partition, TABLE_EDGE, partition, int(attempt_id, 16), sequence)
                yield pack_table_rows(header, vertex_id, to_bytes(batch))
            messages.tell(Crossing(rows_producer(vertex_id, partition), attempt_id, is_made=True))

        return handed

    def reading(self, vertex_id: str, split: str | None) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a python source's stage; its input is a row with the number of the subtask.

        Args:
            vertex_id: The scan.
            split: The column in which rows say which of the subtask's slices they are of; None if it is not needed.
        """
        job_key, code, messages = self._job_key, self._code, self._messages
        plan = pickle.dumps(_part(self._plan, vertex_id), protocol=5)

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                known = _job_code(job_key, code)
                for batch in batches:
                    for number in batch.column(0).to_pylist():
                        subtask = SubtaskId(vertex_id, number)
                        with _scans.task((job_key, subtask), partial(ScanTask, known.job, subtask)) as task:
                            yield from task.run(pickle.loads(plan), split, _attempt())
                            messages.tell(task.report())

        return run

    def reading_pieces(
        self,
        vertex_id: str,
        pieces: Sequence[tuple[int, Any]],
        time: str | None,
        packed: tuple[PackedInput, CallSite] | None = None,
    ) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a stage that reads pieces into columns; its input says which of them.

        Args:
            vertex_id: The scan.
            pieces: The pieces (`FilePiece`), with their numbers.
            time: The column whose highest value is told; None if it is not needed.
            packed: How rows are packed for the next node, and where functions are called on the way; None: rows come
                out as they are.
        """
        messages = self._messages

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                for batch in batches:
                    for place in batch.column(0).to_pylist():
                        number, piece = pieces[place]
                        reader, watch = PieceReader(time), Stopwatch()
                        tables = reader.read(piece)
                        if packed is not None:
                            yield from watch.over(ENCODE, _packed(packed[0], tables, packed[1]))
                            watch.add(ENCODE, -reader.spent_ns)
                        else:
                            for table in tables:
                                yield from table.to_batches(_OUT_ROWS)
                        watch.add(SCAN, reader.spent_ns)
                        target = None if packed is None else packed[0].target
                        read = PieceRead(
                            vertex_id, number, reader.rows, reader.highest, watch.spent_ns, target
                        )
                        messages.tell(read)

        return run


def _run_node(
    job_key: str,
    code: Broadcast[bytes],
    place: SubtaskId,
    plan: bytes,
    at: VertexTime,
    inputs: Mapping[int, pa.Table],
) -> tuple[pa.Table, SubtaskReport]:
    """Run a subtask of a stateful node on its rows of an epoch."""
    known = _job_code(job_key, code)
    make = partial(TableTask, known.job, place, known.lineage, known.settings)
    with _tasks.task((job_key, place), make) as task:
        return task.run(pickle.loads(plan), at, inputs, _attempt(), function_context)


def _routed(packed: PackedInput, tables: Iterable[pa.Table], site: CallSite | None) -> Iterator[Any]:
    """Pack the rows of a task; yields the partition for each packet, and the packet."""
    for packet in _packets(packed, tables, site):
        yield pack_long(packet.subtask)
        yield packet.data


def _packed(
    packed: PackedInput, tables: Iterable[pa.Table], site: CallSite | None, reader: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Pack the rows of a task; ``reader``: for which of several nodes, if there are several."""
    for packet in _packets(packed, tables, site):
        yield packet_rows(packet, packed.parallelism, packed.max_parallelism, reader)


def _packets(packed: PackedInput, tables: Iterable[pa.Table], site: CallSite | None) -> Iterator[Packet]:
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    try:
        yield from packed.packets(tables, partition, None if site is None else row_caller(site))
    except NotComputedError as error:
        # As files that only Spark can read: the epoch runs again without us.
        raise FormatError(str(error)) from error


def _recorded(known: JobCode, subtask: SubtaskId, plan: EpochPlan, rows: Batches) -> Batches:
    """Keep the rows that a sink gets, if the job is recorded."""
    recording = known.settings.recording
    if recording is None:
        return rows
    return recorded_rows(recording, plan, task_file(SINK, subtask, plan, str(_attempt())), rows)


def _part(plan: EpochPlan, vertex_id: str) -> EpochPlan:
    """Return what subtasks of one vertex must know about a plan."""
    own = {subtask: part for subtask, part in plan.subtasks.items() if subtask.vertex_id == vertex_id}
    return replace(plan, subtasks=own)


def _job_code(job_key: str, code: Broadcast[bytes]) -> JobCode:
    known = _codes.get(job_key)
    if known is None:
        known = _codes[job_key] = unpack_job(code.value)
        while len(_codes) > _KEPT_JOBS:
            _codes.pop(next(iter(_codes)))
        _scans.close_if(lambda place, _: place[0] not in _codes)
    return known


@contextmanager
def _carried() -> Iterator[None]:
    """Have the driver hear what a worker failed with."""
    try:
        yield
    except (Exception, SystemExit) as error:  # whatever it was, the driver must be able to say it
        raise carry(error) from error


def _attempt() -> int:
    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0
