"""Epochs: how much input is processed as one Spark job."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.memory_size import MemorySize
from headrace.config.option import option

MAX_RECORDS = (
    option("headrace.epoch.max-records", int)
    .no_default("only bounded by the target duration")
    .describe("The maximum number of records a source subtask reads in an epoch.")
    .at_least(1)
)
TARGET_DURATION = (
    option("headrace.epoch.target-duration", timedelta)
    # With a million keys five seconds get twice the throughput of two: a key that comes again in the same epoch costs
    # no reading and writing of state.
    .default(timedelta(seconds=5))
    .describe(
        "How long an epoch should take while there is a backlog; the size of epochs is adjusted to it. Of jobs whose "
        "functions are so slow that fewer than 500 records fit, an epoch takes a fifth of it. Longer "
        "epochs cost less per record, shorter ones show results sooner, and checkpoints, which are taken at "
        "the end of an epoch, more often."
    )
    .at_least(timedelta(milliseconds=1))
)
INITIAL_RECORDS = (
    option("headrace.epoch.initial-records", int)
    .no_default(
        "10 in a job that calls Python functions, growing as fast as these allow; otherwise 5,000; of tables that "
        "Spark reads, what is expected to take the target duration"
    )
    .describe(
        "How many records one source subtask reads in the first epoch, before any speed is known. A large number "
        "spares a job with fast functions two or three short epochs at its start."
    )
    .at_least(1)
)
MAX_BYTES = (
    option("headrace.epoch.max-bytes", MemorySize)
    .default(MemorySize.of_mebi_bytes(256))
    .describe(
        "The maximum number of bytes a subtask sends or receives in an epoch; received records are held in "
        "memory until they are processed. Epochs are made smaller to stay below it; the first one with larger records "
        "than before may exceed it."
    )
    .at_least(MemorySize(1))
)
IDLE_POLL_INTERVAL = (
    option("headrace.epoch.idle-poll-interval", timedelta)
    .default(timedelta(milliseconds=10))
    .describe("How long to wait before polling sources again that had no new records.")
    .at_least(timedelta(milliseconds=1))
)
RETRIES = (
    option("headrace.epoch.retries", int)
    .default(3)
    .describe("How often a whole epoch is retried after an executor is lost, before the job fails over.")
    .at_least(0)
)
