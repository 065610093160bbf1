"""Logs: where a process and its Spark write them, and how much is kept."""

from __future__ import annotations

from headrace.config.memory_size import MemorySize
from headrace.config.option import option

DIRECTORY = (
    option("env.log.dir", str)
    .no_default("`~/.local/state/headrace/log`")
    .describe("Where logs go: every process that starts Spark gets a directory of its own there.")
)
KEPT = (
    option("env.log.max", int)
    .default(10)
    .describe("How many processes' logs are kept; older ones are deleted when the next process starts.")
    .at_least(1)
)
LEVEL = (
    option("env.log.level", str)
    .default("INFO")
    .describe("The lowest level that is logged, by headrace itself and with `logging` by functions.")
    .one_of("DEBUG", "INFO", "WARNING", "ERROR")
)
MAX_SIZE = (
    option("headrace.log.max-size", MemorySize)
    .default(MemorySize.parse("10 mb"))
    .describe(
        "The maximum size of a log file. When it is reached, a new file is started and one old file is kept."
    )
    .at_least(MemorySize.parse("64 kb"))
)
