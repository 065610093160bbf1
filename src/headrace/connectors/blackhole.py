"""A sink that discards everything: for measuring the rest of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import UPSERT
from headrace.connectors.base import Sink, SinkWriter, WriterContext
from headrace.connectors.tables import SinkAbility, TableRequest
from headrace.elements import Batch


@dataclass(frozen=True)
class BlackholeSink(Sink):
    """Accepts every record and discards it, to measure a job without its output."""

    discards: ClassVar[bool] = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Discard()


class BlackholeFactory:
    """'connector' = 'blackhole'. Rows as they were before an update are not even made."""

    def ability(self, table: CatalogTable) -> SinkAbility:
        return SinkAbility(UPSERT)

    def sink(self, request: TableRequest) -> Sink:
        return BlackholeSink()


class _Discard(SinkWriter):
    def write(self, value: Any, timestamp: int | None) -> None:
        """Discard the record without writing it."""

    def write_batch(self, batch: Batch) -> None:
        """Discard the records without writing them."""

    def prepare_commit(self) -> Sequence[Any]:
        return ()
