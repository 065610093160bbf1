"""Exchange: how records are packed when they cross from task to task."""

from __future__ import annotations

from enum import Enum

from headrace.config.option import option

BUFFER_RECORDS = (
    option("headrace.exchange.buffer-records", int)
    .default(1000)
    .describe("The most records one buffer carries across the shuffle.")
    .at_least(1)
)


class ExchangeKind(Enum):
    """How records get from one task to the next."""

    AUTO = "auto"
    PIPELINED = "pipelined"
    BLOCKING = "blocking"


KIND = (
    option("headrace.exchange.kind", ExchangeKind)
    .default(ExchangeKind.AUTO)
    .describe(
        "How records get from task to task. With `blocking` a job is a sequence of epochs, each a short Spark job. "
        "With `pipelined` it is live: one Spark job whose tasks last as long as a run and pass on records within "
        "milliseconds. `auto` is `pipelined` for jobs of streams whose input has no end, where Spark runs in this "
        "process, and `blocking` for all others; see docs/live.md."
    )
)
