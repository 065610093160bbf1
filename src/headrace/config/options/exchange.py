"""Exchange: how records are packed when they cross from task to task."""

from __future__ import annotations

from headrace.config.option import option

BUFFER_RECORDS = (
    option("headrace.exchange.buffer-records", int)
    .default(1000)
    .describe("The most records one buffer carries across the shuffle.")
    .at_least(1)
)
