"""TablePartition: what one subtask hands to a table. Rows leave the levels like reports, behind the last one."""

from __future__ import annotations

from headrace.elements import Batch, Event, TableRows
from headrace.runtime.exchange.buffers import TABLE_EDGE, Header, pack_table_rows
from headrace.runtime.exchange.result_partition import SendBuffer


class TablePartition:
    """Sends rows after the last level; the table's part of the epoch reads them there.

    Args:
        operator_id: Whose rows they are.
        producer: The subtask.
        attempt: Which try at it.
        level: The number of levels.
        send: Takes (level, partition, buffer).
    """

    def __init__(
        self, operator_id: str, *, producer: int, attempt: int, level: int, send: SendBuffer
    ) -> None:
        self._operator_id = operator_id
        self._producer, self._attempt, self._level = producer, attempt, level
        self._send = send
        self._sequence = 0
        self.records_out = 0
        self.bytes_out = 0

    def emit(self, batch: Batch) -> None:
        assert isinstance(batch, TableRows)
        header = Header(
            self._level, self._producer, TABLE_EDGE, self._producer, self._attempt, self._sequence
        )
        buffer = pack_table_rows(header, self._operator_id, batch.payload)
        self._sequence += 1
        self.records_out += len(batch)
        self.bytes_out += len(buffer)
        self._send(self._level, self._producer, buffer)

    def emit_event(self, event: Event) -> None:
        """Time goes with the report."""

    def finish_epoch(self) -> None:
        """Do nothing: rows are sent as they come."""
