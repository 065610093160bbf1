"""The worker's half of `FileSink`: one epoch's records of one subtask, in a staged file a bucket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from headrace.connectors import staged_files
from headrace.connectors.base import SinkWriter, WriterContext
from headrace.connectors.file._buckets import BucketAssigner
from headrace.connectors.file._formats import BulkRows, RowFormat, SegmentWriter
from headrace.connectors.file._parts import Segment
from headrace.connectors.file._policies import RollingPolicy
from headrace.connectors.staged_files import staging_name
from headrace.elements import Batch
from headrace.errors import ConnectorError, DiskFullError
from headrace.storage.locations import Location

STAGING = ".staging"
_TOKEN_DIGITS = 12


@dataclass
class _OpenSegment:
    name: str
    place: Location
    stream: Any
    writer: SegmentWriter
    opened_ms: int
    written_ms: int = 0


class FileWriter(SinkWriter):
    """Stages one epoch's records of one subtask."""

    def __init__(
        self,
        base: Location,
        format: RowFormat | BulkRows,
        bucket_assigner: BucketAssigner,
        rolling_policy: RollingPolicy,
        *,
        context: WriterContext,
        clock: Callable[[], float],
    ) -> None:
        self._base = base
        self._format = format
        self._buckets_of = bucket_assigner.buckets_of
        self._policy = rolling_policy
        self._context = context
        self._clock = clock
        self._open: dict[str, _OpenSegment] = {}
        #: Complete, in the order in which they were completed.
        self._segments: list[Segment] = []
        self._places: list[Location] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._write([value])

    def write_batch(self, batch: Batch) -> None:
        if batch.values:
            self._write(batch.values)

    def _write(self, values: Sequence[Any]) -> None:
        now = self._clock()
        for bucket, own in self._buckets_of(values, now).items():
            self._write_to(bucket.strip("/"), own, now)

    def _write_to(self, bucket: str, values: Sequence[Any], now: float) -> None:
        segment = self._open.get(bucket) or self._begin(bucket, int(now * 1000))
        with staged_files.blaming(segment.place, "write"):
            segment.writer.write(values)
        segment.written_ms = int(now * 1000)
        if self._policy.is_full(segment.writer.size):
            # An epoch may be large: it fills as many files as it takes.
            self._end(bucket)

    def _begin(self, bucket: str, now_ms: int) -> _OpenSegment:
        here = self._context
        # The token makes the name unique among attempts, and later that of the finished file among runs.
        token = uuid4().hex[:_TOKEN_DIGITS]
        name = f"{staging_name(here.job_id, here.sink_id)}/{here.epoch}-{here.subtask}-{token}"
        place = self._base.child(STAGING, name)
        self._places.append(place)
        stream = staged_files.open_output(place)
        with staged_files.blaming(place, "write"):
            segment = _OpenSegment(name, place, stream, self._format.begin(stream), now_ms)
        self._open[bucket] = segment
        return segment

    def _end(self, bucket: str) -> None:
        done = self._open[bucket]
        with staged_files.blaming(done.place, "write"):
            done.writer.finish()
        staged_files.finish_output(done.place, done.stream)
        del self._open[bucket]
        self._segments.append(
            Segment(
                path=done.name,
                bucket=bucket,
                subtask=self._context.subtask,
                epoch=self._context.epoch,
                size=done.writer.size,
                opened_ms=done.opened_ms,
                written_ms=done.written_ms,
            )
        )

    def prepare_commit(self) -> Sequence[Segment]:
        for bucket in list(self._open):
            self._end(bucket)
        return self._segments

    def abort(self) -> None:
        with suppress(ConnectorError, DiskFullError):  # the disk may be full
            self.close()
        for place in self._places:
            staged_files.delete(place)

    def close(self) -> None:
        while self._open:
            _, segment = self._open.popitem()
            segment.writer.discard()
            with staged_files.blaming(segment.place, "write"):
                segment.stream.close()
