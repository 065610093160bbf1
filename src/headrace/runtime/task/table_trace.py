"""The trace of tables: what is recorded of the epochs of table jobs, so that their stateful nodes can be replayed.

    stage-...   what a stateful node received: its rows after Spark's part, the time, the clock
    sink-...    the rows that a sink got
    rows-...    the rows of an input of a stateful node before Spark has summed them up, if inputs are kept

What Spark computes between them is not replayed.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, TaskTrace
from headrace.runtime.epoch.recording import RecordingSettings, epoch_directory, task_file
from headrace.runtime.task.sink_digest import digest_of
from headrace.runtime.task.table_time import VertexTime
from headrace.storage.files import write_new_file
from headrace.storage.paths import join_path

STAGE, SINK, ROWS = "stage", "sink", "rows"


@dataclass(frozen=True)
class RecordedStage:
    """What a subtask of a stateful node received in an epoch."""

    at: VertexTime
    #: What the clock showed.
    started_ms: int
    #: Its rows by side, in Arrow's stream format.
    inputs: Mapping[int, bytes]


def record_stage(
    settings: RecordingSettings, plan: EpochPlan, subtask: SubtaskId, attempt_id: str, stage: RecordedStage
) -> None:
    """Write down what a subtask received."""
    _write(settings, plan, task_file(STAGE, subtask, plan, attempt_id), pickle.dumps(stage, protocol=5))


def recorded_rows(
    settings: RecordingSettings,
    plan: EpochPlan,
    name: str,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Hand rows on, and write them down when all have come."""
    kept = []
    for batch in batches:
        kept.append(batch)
        yield batch
    if any(batch.num_rows for batch in kept):
        _write(settings, plan, name, to_stream(pa.Table.from_batches(kept)))


def input_rows_file(vertex_id: str, side: int, plan: EpochPlan, partition: int, attempt: int) -> str:
    """Name the file with the rows of an input that one of Spark's tasks has made."""
    return f"{ROWS}-{vertex_id}-{side}-{plan.attempt}-{partition}-{attempt}"


def trace_of_rows(operator_id: str, rows: pa.Table) -> TaskTrace:
    """Return what the report says about the rows that came out of a stateful node."""
    return TaskTrace(b"", {operator_id: digest_of(to_stream(rows), None)})


def to_stream(rows: pa.Table) -> bytes:
    """Return rows in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def from_stream(content: bytes) -> pa.Table:
    """Return the rows of `to_stream`."""
    return pa.ipc.open_stream(content).read_all()


def _write(settings: RecordingSettings, plan: EpochPlan, name: str, content: bytes) -> None:
    write_new_file(join_path(epoch_directory(settings.directory, plan.epoch), name), content)
