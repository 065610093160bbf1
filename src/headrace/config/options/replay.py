"""Replay: what is kept of a job's epochs so that `headrace replay` can run them again."""

from __future__ import annotations

from headrace.config.memory_size import MemorySize
from headrace.config.option import option

KEEP = (
    option("headrace.replay.keep", int)
    .default(0)
    .describe(
        "How many of a job's last epochs can be replayed with `headrace replay`. Their plans, clock readings and state "
        "files are kept, with the job's functions, until newer epochs replace them; they outlive the job. 0 records "
        "nothing. An epoch of a live job is what happens between two barriers; the order in which its subtasks got "
        "their input is kept as well. Jobs with both streams and tables are not recorded."
    )
)
DIRECTORY = (
    option("headrace.replay.dir", str)
    .no_default()
    .describe(
        "Where recorded epochs are kept, below it in a directory `replay` with one directory per job. If not set, "
        "`execution.checkpointing.dir`."
    )
)
INPUTS = (
    option("headrace.replay.inputs", bool)
    .default(False)
    .describe(
        "Whether the records that sources read are kept with each recorded epoch. Then it can be replayed where the "
        "sources cannot be reached, for example on a laptop. It writes all input of the job once more. For table jobs, "
        "the rows are kept that reach operators with state, which `headrace why` needs."
    )
)
LIVE_BYTES = (
    option("headrace.replay.live.max-size", MemorySize)
    .default(MemorySize.of_mebi_bytes(16))
    .describe(
        "How much a subtask of a live job keeps in memory from one barrier to the next if headrace.replay.keep is set: "
        "the order of its input, and, up to the same size again, the input itself, which is written if the subtask "
        "fails. An epoch that needs more cannot be replayed; take checkpoints more often, then."
    )
    .at_least(MemorySize(1))
)
