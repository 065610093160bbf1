"""Execution: how a program is turned into tasks and run."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from headrace.config.option import option

__all__ = ["RuntimeExecutionMode"]

#: Most key groups a job can have; Flink's limit.
UPPER_BOUND_MAX_PARALLELISM = 1 << 15
#: Key groups of a job that does not say how many it wants; Flink's least number.
DEFAULT_MAX_PARALLELISM = 128


class RuntimeExecutionMode(Enum):
    """How a program is executed; `headrace.datastream` shows it to users."""

    #: Results appear and are refined as the input comes in; input may be endless.
    STREAMING = 0
    #: All input is there, and only final results are wanted.
    BATCH = 1
    #: BATCH if all sources are bounded, else STREAMING.
    AUTOMATIC = 2


RUNTIME_MODE = (
    option("execution.runtime-mode", RuntimeExecutionMode)
    .default(RuntimeExecutionMode.STREAMING)
    .describe(
        "Whether the program runs as a stream, or as a batch over bounded input. AUTOMATIC chooses BATCH if "
        "every source is bounded."
    )
)
TARGET = (
    option("execution.target", str)
    .default("spark")
    .describe(
        "What runs the job: `spark`, or `session` for the one at `rest.address`, as `headrace run -m` sets it. Flink's "
        "targets, such as `local` or `yarn-application`, are accepted, and `headrace.spark.master` chooses what they "
        "choose there. A class of your own is named as `package.module:Class`."
    )
)
PARALLELISM = (
    option("parallelism.default", int)
    .no_default("the number of cores")
    .describe("The parallelism of operators that do not set their own.")
    .at_least(1)
    .at_most(UPPER_BOUND_MAX_PARALLELISM)
)


def _is_unset_or_positive(value: int) -> str | None:
    return None if value == -1 or value >= 1 else "a number from 1, or -1 to leave it open"


MAX_PARALLELISM = (
    option("pipeline.max-parallelism", int)
    .default(-1)
    .describe(
        "The number of key groups keyed state is cut into, and so the highest parallelism a job can ever be "
        f"rescaled to. It is kept in savepoints. -1 leaves it open, which means {DEFAULT_MAX_PARALLELISM}."
    )
    .at_most(UPPER_BOUND_MAX_PARALLELISM)
    .checked_by(_is_unset_or_positive)
)
NAME = (
    option("pipeline.name", str).no_default().describe("The name of the job if `execute()` does not set one.")
)
OPERATOR_CHAINING = (
    option("pipeline.operator-chaining.enabled", bool)
    .default(True)
    .describe("Whether neighbouring operators run in one task, without an exchange between them.")
    .deprecates("pipeline.operator-chaining")
)
OBJECT_REUSE = (
    option("pipeline.object-reuse", bool)
    .default(False)
    .describe(
        "Set it to true only if functions neither keep nor change the records they receive: records are then passed "
        "without a copy."
    )
)
AUTO_WATERMARK_INTERVAL = (
    option("pipeline.auto-watermark-interval", timedelta)
    .default(timedelta(milliseconds=200))
    .describe(
        "How often watermark generators are asked for periodic watermarks. In epochs they are also asked at the end of "
        "every batch that a source reads. 0 turns this off: watermarks then come only from generators that emit on "
        "events, and in epochs at the end of batches."
    )
)
BUFFER_TIMEOUT = (
    option("execution.buffer-timeout.interval", timedelta)
    .default(timedelta(milliseconds=100))
    .describe(
        "How long a record of a live job may wait for others that fill its buffer; one that nothing follows does not "
        "wait. In epochs, records are passed on when a buffer is full or the epoch ends."
    )
    .deprecates("execution.buffer-timeout")
)
BUFFER_TIMEOUT_ENABLED = (
    option("execution.buffer-timeout.enabled", bool)
    .default(True)
    .describe(
        "Whether records of a live job are sent before their buffer is full, when others that follow keep the subtask "
        "busy for longer than `execution.buffer-timeout.interval`."
    )
)
GLOBAL_JOB_PARAMETERS = (
    option("pipeline.global-job-parameters", dict[str, str])
    .default({})
    .describe("Names and values that every function can read from its runtime context.")
)
AUTO_GENERATE_UIDS = (
    option("pipeline.auto-generate-uids", bool)
    .default(True)
    .describe(
        "Whether operators without a uid get one from their place in the graph. If false, a program with an "
        "operator without a uid is refused."
    )
)
TASK_CANCELLATION_INTERVAL = (
    option("task.cancellation.interval", timedelta)
    .default(timedelta(seconds=30))
    .describe(
        "How often headrace checks whether a cancelled task has ended: `spark.task.reaper.pollingInterval`."
    )
)
TASK_CANCELLATION_TIMEOUT = (
    option("task.cancellation.timeout", timedelta)
    .default(timedelta(minutes=3))
    .describe(
        "How long a task may take to end after it was cancelled; then its executor is ended "
        "(`spark.task.reaper.killTimeout`; a local Spark only logs it). 0 waits forever. It counts if this option or "
        "`task.cancellation.interval` is set: otherwise Spark waits."
    )
)
CLOSURE_CLEANER = (
    option("pipeline.closure-cleaner-level", str)
    .default("RECURSIVE")
    .describe("How Java closures are cleaned.")
    .one_of("NONE", "TOP_LEVEL", "RECURSIVE")
    .without_effect("functions are pickled by value")
)
GENERIC_TYPES = (
    option("pipeline.generic-types", bool)
    .default(True)
    .describe("Whether values of undeclared type may be pickled.")
)
FORCE_KRYO = (
    option("pipeline.force-kryo", bool)
    .default(False)
    .describe("Whether Java objects are serialized with Kryo.")
    .without_effect("values are serialized by their declared type, or pickled")
)
FORCE_AVRO = (
    option("pipeline.force-avro", bool)
    .default(False)
    .describe("Whether Java objects are serialized with Avro.")
    .without_effect("values are serialized by their declared type, or pickled")
)
ATTACHED = (
    option("execution.attached", bool)
    .default(True)
    .describe("Whether a program waits for the end of a job that it has submitted to a session.")
)
