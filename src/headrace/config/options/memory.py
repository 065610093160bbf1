"""Memory: Flink's memory model, from which the sizes of Spark's processes follow."""

from __future__ import annotations

from headrace.config.memory_size import MemorySize
from headrace.config.option import ConfigOption, option

__all__: list[str] = []

_MB = 1 << 20
_RATIO = "a number from 0 to less than 1"


def _size(key: str, default_mb: int, text: str) -> ConfigOption[MemorySize]:
    return option(key, MemorySize).default(MemorySize(default_mb * _MB)).describe(text)


def _asked(key: str, note: str, text: str) -> ConfigOption[MemorySize | None]:
    return option(key, MemorySize).no_default(note).describe(text)


def _fraction(key: str, default: float, text: str) -> ConfigOption[float]:
    return (
        option(key, float)
        .default(default)
        .describe(text)
        .checked_by(lambda value: None if 0 <= value < 1 else _RATIO)
    )


def _limit(text: str) -> str | None:
    if text.strip().lower() == "infinite":
        return None
    try:
        MemorySize.parse(text)
    except ValueError:
        return "a size, or infinite"
    return None


# -- executors -----------------------------------------------------------------------------------------------

EXECUTOR_PROCESS = _asked(
    "taskmanager.memory.process.size",
    "Spark's own sizes",
    "How much memory an executor with its Python workers may take in all. It becomes `spark.executor.memory` and "
    "`spark.executor.memoryOverhead`; `headrace info --memory` shows how.",
)
EXECUTOR_FLINK = _asked(
    "taskmanager.memory.flink.size",
    "follows from the size of the process",
    "The same without Java's metaspace and overhead.",
)
TASK_HEAP = _asked(
    "taskmanager.memory.task.heap.size",
    "what the other parts leave",
    "The part of an executor's Java heap for tasks. Together with `taskmanager.memory.managed.size` it takes the place "
    "of a total size.",
)
TASK_OFF_HEAP = _size(
    "taskmanager.memory.task.off-heap.size",
    0,
    "Memory outside of Java's heap for functions in Python workers.",
)
FRAMEWORK_HEAP = _size(
    "taskmanager.memory.framework.heap.size", 128, "The part of the heap that Spark needs."
)
FRAMEWORK_OFF_HEAP = _size(
    "taskmanager.memory.framework.off-heap.size", 128, "The memory outside of the heap that Spark needs."
)
MANAGED = _asked(
    "taskmanager.memory.managed.size",
    "`taskmanager.memory.managed.fraction` of the total",
    "The memory of an executor's Python workers: their functions, and RocksDB.",
)
MANAGED_FRACTION = _fraction(
    "taskmanager.memory.managed.fraction", 0.4, "Which part of the total is for Python workers."
)
CONSUMER_WEIGHTS = (
    option("taskmanager.memory.managed.consumer-weights", dict[str, str])
    .default({"OPERATOR": "70", "STATE_BACKEND": "70", "PYTHON": "30"})
    .describe(
        "How a worker's share of managed memory is divided between RocksDB (`STATE_BACKEND`) and functions (`PYTHON`). "
        "`OPERATOR` has no effect: only Spark has sorting operators."
    )
)
NETWORK_FRACTION = _fraction(
    "taskmanager.memory.network.fraction",
    0.1,
    "Which part of the total is for Spark's exchange between tasks.",
)
NETWORK_MIN = _size("taskmanager.memory.network.min", 64, "The least memory for the exchange between tasks.")
NETWORK_MAX = (
    option("taskmanager.memory.network.max", str)
    .default("infinite")
    .describe("The most memory for the exchange between tasks.")
    .checked_by(_limit)
)
EXECUTOR_METASPACE = _size(
    "taskmanager.memory.jvm-metaspace.size", 256, "The memory for Java's classes in an executor."
)
EXECUTOR_OVERHEAD_FRACTION = _fraction(
    "taskmanager.memory.jvm-overhead.fraction",
    0.1,
    "The fraction of the process memory for threads, compiled code and other overhead.",
)
EXECUTOR_OVERHEAD_MIN = _size("taskmanager.memory.jvm-overhead.min", 192, "Its minimum.")
EXECUTOR_OVERHEAD_MAX = _size("taskmanager.memory.jvm-overhead.max", 1024, "Its maximum.")
PYTHON_LIMIT = _asked(
    "headrace.python.memory-per-worker",
    "with `taskmanager.memory.*`: a worker's share of what is outside of Java's heap; otherwise no limit",
    "How much memory a Python worker may allocate. A function that needs more fails with an error that says so, and "
    "its executor is not killed.",
)

# -- the driver ----------------------------------------------------------------------------------------------

DRIVER_PROCESS = _asked(
    "jobmanager.memory.process.size",
    "Spark's own sizes",
    "How much memory the driver may take in all. It becomes `spark.driver.memory` and `spark.driver.memoryOverhead`.",
)
DRIVER_FLINK = _asked(
    "jobmanager.memory.flink.size",
    "follows from the size of the process",
    "The same without Java's metaspace and overhead.",
)
DRIVER_HEAP = _asked(
    "jobmanager.memory.heap.size", "what the other parts leave", "The Java heap of the driver."
)
DRIVER_OFF_HEAP = _size(
    "jobmanager.memory.off-heap.size",
    128,
    "Memory of the driver outside of Java's heap: the Python process with your program.",
)
DRIVER_METASPACE = _size(
    "jobmanager.memory.jvm-metaspace.size", 256, "The memory for Java's classes in the driver."
)
DRIVER_OVERHEAD_FRACTION = _fraction(
    "jobmanager.memory.jvm-overhead.fraction",
    0.1,
    "The fraction of the process memory for threads, compiled code and other overhead.",
)
DRIVER_OVERHEAD_MIN = _size("jobmanager.memory.jvm-overhead.min", 192, "Its minimum.")
DRIVER_OVERHEAD_MAX = _size("jobmanager.memory.jvm-overhead.max", 1024, "Its maximum.")
