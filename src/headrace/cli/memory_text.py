"""The account of `headrace info --memory`: what each process gets, and under which key it is set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.config.memory_account import driver_memory, executor_memory, memory_per_worker
from headrace.config.options import spark

if TYPE_CHECKING:
    from headrace.config.configuration import Configuration
    from headrace.config.memory_account import DriverMemory, ExecutorMemory

__all__ = ["memory_text"]

_MB = 1 << 20
_WIDTH = 42


def memory_text(configuration: Configuration) -> str:
    """Return how memory is divided, a line for each part.

    Raises:
        ConfigurationError: If the sizes contradict each other.
    """
    settings = configuration.spark_settings()
    driver, executor = driver_memory(configuration), executor_memory(configuration)
    lines = ["Driver", *(_driver_lines(driver) if driver else _plain_lines("driver", settings))]
    lines += ["", "Executor, with its Python workers"]
    lines += _executor_lines(executor) if executor else _plain_lines("executor", settings)
    limit = memory_per_worker(configuration)
    lines += ["", "Python worker", _line(1, "may allocate", "no limit" if limit is None else _size(limit))]
    if executor is not None and executor.state_per_worker is not None:
        lines.append(_line(1, "of which RocksDB, if used", _size(executor.state_per_worker)))
    if configuration.get(spark.MASTER).startswith("local"):
        lines += [
            "",
            "On a local Spark everything runs in the driver: the sizes of executors have no effect.",
        ]
    return "\n".join(lines)


def _driver_lines(memory: DriverMemory) -> Iterator[str]:
    yield _line(1, "jobmanager.memory.process.size", _size(memory.process))
    yield _line(2, "heap: spark.driver.memory", _size(memory.heap))
    yield _line(2, "off-heap: the program's Python process", _size(memory.off_heap))
    yield _line(2, "jvm-metaspace", _size(memory.metaspace))
    yield _line(2, "jvm-overhead", _size(memory.overhead))


def _executor_lines(memory: ExecutorMemory) -> Iterator[str]:
    yield _line(1, "taskmanager.memory.process.size", _size(memory.process))
    yield _line(2, "heap: spark.executor.memory", _size(memory.heap))
    yield _line(3, "framework.heap", _size(memory.framework_heap))
    yield _line(3, "task.heap", _size(memory.task_heap))
    yield _line(2, "spark.executor.memoryOverhead", _size(memory.process - memory.heap))
    yield _line(3, "managed: Python workers and RocksDB", _size(memory.managed))
    yield _line(3, "task.off-heap: Python workers", _size(memory.task_off_heap))
    yield _line(3, "network: exchange between tasks", _size(memory.network))
    yield _line(3, "framework.off-heap", _size(memory.framework_off_heap))
    yield _line(3, "jvm-metaspace", _size(memory.metaspace))
    yield _line(3, "jvm-overhead", _size(memory.overhead))


def _plain_lines(role: str, settings: dict[str, str]) -> Iterator[str]:
    for key, default in ((f"spark.{role}.memory", "1g"), (f"spark.{role}.memoryOverhead", "")):
        yield _line(
            1, key, settings.get(key, f"{default or 'a tenth of it, at least 384m'} (Spark's default)")
        )


def _line(depth: int, name: str, value: str) -> str:
    indented = f"{'  ' * depth}{name}"
    return f"{indented:<{_WIDTH}}  {value:>9}"


def _size(size: int) -> str:
    return f"{size / _MB:,.0f} MB"
