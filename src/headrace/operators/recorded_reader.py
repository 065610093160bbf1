"""Readers of recorded epochs: one keeps what it reads, the other gives it again (`runtime/epoch/recording.py`)."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

from headrace.connectors.base import Slice, Source
from headrace.elements import Batch, Event
from headrace.operators.base import Output
from headrace.operators.context import OperatorContext
from headrace.operators.slice_reader import SliceReader


class RecordingReader(SliceReader):
    """Keeps what it reads, as it was before any function saw it.

    Args:
        kept: Takes batches, records of side outputs and progress, pickled, in their order.
        source: What is read.
        context: The operator's.
        output: Takes records of side outputs.
    """

    def __init__(
        self, kept: list[bytes], source: Source, context: OperatorContext, output: Output | None = None
    ) -> None:
        self._kept = kept
        super().__init__(source, context, _SideOutputs(kept, output))

    def read(self, piece: Slice) -> Iterator[Batch]:
        for batch in super().read(piece):
            self._kept.append(pickle.dumps(batch, protocol=5))
            yield batch
        split_id = piece.split.split_id
        self._kept.append(pickle.dumps((split_id, self.progress[split_id]), protocol=5))


class _SideOutputs(Output):
    """Keeps records of side outputs on their way."""

    def __init__(self, kept: list[bytes], output: Output | None) -> None:
        self._kept = kept
        self._output = output

    def emit(self, batch: Batch) -> None:
        raise AssertionError("a reader emits to side outputs only")

    def emit_event(self, event: Event) -> None:
        raise AssertionError("a reader emits to side outputs only")

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self._kept.append(pickle.dumps((tag_id, batch), protocol=5))
        if self._output is not None:
            self._output.emit_side(tag_id, batch)


class RecordedReader(SliceReader):
    """Gives what another reader has read; the source is not touched.

    Args:
        kept: What `RecordingReader` kept.
        source: What was read.
        context: The operator's.
        output: Takes records of side outputs.
    """

    def __init__(
        self,
        kept: Sequence[bytes],
        source: Source,
        context: OperatorContext,
        output: Output | None = None,
    ) -> None:
        self._kept = iter([pickle.loads(each) for each in kept])
        self._output = output
        self.progress = {}
        self.records = 0
        self._max_records = None

    def read(self, piece: Slice) -> Iterator[Batch]:
        for each in self._kept:
            if isinstance(each, Batch):
                self.records += len(each)
                yield each
                continue
            name, content = each
            if not isinstance(content, Batch):
                self.progress[name] = content
                return
            if self._output is not None:
                self._output.emit_side(name, content)

    def close(self) -> None:
        """Do nothing: a recording holds no resources."""
