"""LiveSettings: the settings of live subtasks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LiveSettings:
    """Settings of live subtasks."""

    #: Where the driver listens, and what it wants to hear.
    address: tuple[str, int]
    secret: bytes
    #: How long a record may wait for others that fill its buffer; 0 for not at all.
    buffer_timeout_ms: int = 100
    #: Bytes that wait in a subtask before its input is read on.
    mailbox_bytes: int = 1 << 20
    #: From one sign of life to the next.
    heartbeat_ms: int = 1_000
    #: From one latency marker to the next; 0 for none.
    latency_interval_ms: int = 0
    #: Whether a channel waits for the barriers of the others.
    is_exactly_once: bool = True
    #: From one periodic watermark to the next; 0 for none.
    watermark_interval_ms: int = 200
    #: How soon a source that had nothing is asked again.
    idle_poll_s: float = 0.002
    #: The most records that a source reads at a time, if that is limited.
    max_records: int | None = None
