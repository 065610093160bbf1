"""How much memory each part of Spark's processes gets, from Flink's memory keys.

    process.size                                                   what the cluster manager gives the container
    ├── jvm-overhead, jvm-metaspace                                 ┐
    └── flink.size                                                  │ spark.executor.memoryOverhead
        ├── network, framework.off-heap, task.off-heap, managed     ┘
        └── framework.heap, task.heap                                 spark.executor.memory

One of three is given: the process, the total without Java's own needs (flink.size), or the heap of tasks and the
managed memory. The rest follows as in Flink: a fraction within limits, or what the other parts leave. Python workers
live in managed and off-heap memory; each slot has an equal share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final, Protocol, TypeVar

from headrace.config.memory_size import MemorySize
from headrace.config.option import ConfigOption
from headrace.config.options import memory as keys
from headrace.config.options import scheduler, spark
from headrace.errors import ConfigurationError

__all__ = [
    "DriverMemory",
    "ExecutorMemory",
    "driver_memory",
    "executor_memory",
    "memory_per_worker",
    "memory_settings",
]

T = TypeVar("T")
_MB: Final = 1 << 20
#: What a Python worker has allocated before it runs the first function, with room for a batch of records.
LEAST_PER_WORKER: Final = 256 * _MB


class Values(Protocol):
    """What a `Configuration` has for this: values of options."""

    def get(self, option: ConfigOption[T]) -> T: ...

    def contains(self, option: ConfigOption[Any]) -> bool: ...

    def to_dict(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class _Share:
    """A part that is a fraction of a whole, within limits."""

    name: str
    fraction: float
    least: int
    most: int | None

    def of(self, whole: int) -> int:
        return self._within(int(whole * self.fraction))

    def beside(self, rest: int) -> int:
        """Return the part of a whole of which the rest is known."""
        return self._within(int(rest * self.fraction / (1 - self.fraction)))

    def check(self, size: int) -> int:
        """Return a size that was left over, if it is within the limits."""
        if size < self.least or (self.most is not None and size > self.most):
            limits = f"at least {_text(self.least)}" + (
                "" if self.most is None else f", at most {_text(self.most)}"
            )
            raise ConfigurationError(
                f"the configured sizes leave {_text(size)} for {self.name}, which must be {limits}",
                hint=f"change one of the sizes, or {self.name}.min and {self.name}.max",
            )
        return size

    def _within(self, size: int) -> int:
        size = max(size, self.least)
        return size if self.most is None else min(size, self.most)


@dataclass(frozen=True)
class DriverMemory:
    """The parts of the driver, in bytes."""

    heap: int
    off_heap: int
    metaspace: int
    overhead: int

    @property
    def process(self) -> int:
        return sum(getattr(self, each.name) for each in fields(self))

    @property
    def spark_settings(self) -> dict[str, str]:
        """The sizes that Spark is started with."""
        return _spark_sizes("driver", self.heap, self.process)


@dataclass(frozen=True)
class ExecutorMemory:
    """The parts of an executor with its Python workers, in bytes."""

    framework_heap: int
    task_heap: int
    framework_off_heap: int
    task_off_heap: int
    managed: int
    network: int
    metaspace: int
    overhead: int
    #: How many workers share what is outside of the heap; None if unknown.
    slots: int | None
    #: The part of managed memory that is RocksDB's, if state is there.
    state_part: float

    @property
    def heap(self) -> int:
        """The maximum size of Java's heap."""
        return self.framework_heap + self.task_heap

    @property
    def process(self) -> int:
        return (
            self.heap
            + self.framework_off_heap
            + self.task_off_heap
            + self.managed
            + self.network
            + self.metaspace
            + self.overhead
        )

    @property
    def python(self) -> int:
        """What all Python workers have together."""
        return self.managed + self.task_off_heap

    @property
    def per_worker(self) -> int | None:
        """What one Python worker has, if the number of slots is known."""
        return None if self.slots is None else self.python // self.slots

    @property
    def state_per_worker(self) -> int | None:
        """What RocksDB has in one worker, if the number of slots is known."""
        return None if self.slots is None else int(self.managed * self.state_part) // self.slots

    @property
    def spark_settings(self) -> dict[str, str]:
        """The sizes that Spark is started with."""
        return _spark_sizes("executor", self.heap, self.process)


def driver_memory(configuration: Values) -> DriverMemory | None:
    """Return the parts of the driver; None if no size was given.

    Raises:
        ConfigurationError: If the sizes contradict each other.
    """
    heap, flink = _given(configuration, keys.DRIVER_HEAP), _given(configuration, keys.DRIVER_FLINK)
    process = _given(configuration, keys.DRIVER_PROCESS)
    if heap is None and flink is None and process is None:
        return None
    off_heap = configuration.get(keys.DRIVER_OFF_HEAP).get_bytes()
    metaspace = configuration.get(keys.DRIVER_METASPACE).get_bytes()
    share = _Share(
        "jobmanager.memory.jvm-overhead",
        configuration.get(keys.DRIVER_OVERHEAD_FRACTION),
        configuration.get(keys.DRIVER_OVERHEAD_MIN).get_bytes(),
        configuration.get(keys.DRIVER_OVERHEAD_MAX).get_bytes(),
    )
    if flink is None and heap is not None:
        flink = heap + off_heap
    flink, overhead = _process_parts(flink, process, metaspace, share, keys.DRIVER_PROCESS)
    total = keys.DRIVER_FLINK if process is None else keys.DRIVER_PROCESS
    if heap is not None and not configuration.contains(keys.DRIVER_OFF_HEAP):
        return DriverMemory(heap, _rest(flink, heap, total), metaspace, overhead)
    left = _rest(flink, off_heap, total)
    if heap is not None and heap != left:
        raise ConfigurationError(
            f"{keys.DRIVER_HEAP.key} is {_text(heap)}, but the other sizes leave {_text(left)} for it",
            hint="leave one of the sizes out",
        )
    return DriverMemory(left, off_heap, metaspace, overhead)


def executor_memory(configuration: Values) -> ExecutorMemory | None:
    """Return the parts of an executor; None if no size was given.

    Raises:
        ConfigurationError: If the sizes contradict each other.
    """
    get = configuration.get
    task_heap, managed = _given(configuration, keys.TASK_HEAP), _given(configuration, keys.MANAGED)
    flink, process = _given(configuration, keys.EXECUTOR_FLINK), _given(configuration, keys.EXECUTOR_PROCESS)
    if flink is None and process is None and (task_heap is None or managed is None):
        return None
    fixed = [get(each).get_bytes() for each in _FIXED]
    metaspace = get(keys.EXECUTOR_METASPACE).get_bytes()
    network = _network_share(configuration)
    overhead_share = _Share(
        "taskmanager.memory.jvm-overhead",
        get(keys.EXECUTOR_OVERHEAD_FRACTION),
        get(keys.EXECUTOR_OVERHEAD_MIN).get_bytes(),
        get(keys.EXECUTOR_OVERHEAD_MAX).get_bytes(),
    )
    if flink is None and task_heap is not None and managed is not None:
        rest = sum(fixed) + task_heap + managed
        exchanged = network.beside(rest)
        flink, overhead = _process_parts(
            rest + exchanged, process, metaspace, overhead_share, keys.EXECUTOR_PROCESS
        )
    else:
        flink, overhead = _process_parts(flink, process, metaspace, overhead_share, keys.EXECUTOR_PROCESS)
        total = keys.EXECUTOR_FLINK if process is None else keys.EXECUTOR_PROCESS
        if managed is None:
            managed = int(flink * get(keys.MANAGED_FRACTION))
        if task_heap is None:
            exchanged = network.of(flink)
            task_heap = _rest(flink, sum(fixed) + managed + exchanged, total)
        else:
            exchanged = network.check(_rest(flink, sum(fixed) + managed + task_heap, total))
    weights = get(keys.CONSUMER_WEIGHTS)
    return ExecutorMemory(
        framework_heap=fixed[0],
        task_heap=task_heap,
        framework_off_heap=fixed[1],
        task_off_heap=fixed[2],
        managed=managed,
        network=exchanged,
        metaspace=metaspace,
        overhead=overhead,
        slots=get(scheduler.TASK_SLOTS) or _executor_cores(configuration),
        state_part=_state_part(weights),
    )


def memory_per_worker(configuration: Values) -> int | None:
    """Return how many bytes a Python worker may allocate; None if there is no limit.

    Raises:
        ConfigurationError: If it is too little for a worker to start.
    """
    limit = configuration.get(keys.PYTHON_LIMIT)
    if limit is not None:
        size, key = limit.get_bytes(), keys.PYTHON_LIMIT.key
    else:
        account = executor_memory(configuration)
        # On a local Spark there is no container that could be too small.
        if account is None or account.per_worker is None or _is_local(configuration):
            return None
        size, key = account.per_worker, keys.MANAGED.key
    if size < LEAST_PER_WORKER:
        raise ConfigurationError(
            f"{_text(size)} is not enough for a Python worker: it takes {_text(LEAST_PER_WORKER)} to start",
            hint=f"raise {key}, or lower {scheduler.TASK_SLOTS.key}",
        )
    return size


def _is_local(configuration: Values) -> bool:
    return configuration.get(spark.MASTER).startswith("local")


def memory_settings(configuration: Values) -> Iterator[tuple[str, str]]:
    """Yield the settings of Spark that memory keys stand for.

    Raises:
        ConfigurationError: If the sizes contradict each other.
    """
    for account in (driver_memory(configuration), executor_memory(configuration)):
        if account is not None:
            yield from account.spark_settings.items()


_FIXED: Final = (keys.FRAMEWORK_HEAP, keys.FRAMEWORK_OFF_HEAP, keys.TASK_OFF_HEAP)


def _network_share(configuration: Values) -> _Share:
    most = configuration.get(keys.NETWORK_MAX)
    return _Share(
        "taskmanager.memory.network",
        configuration.get(keys.NETWORK_FRACTION),
        configuration.get(keys.NETWORK_MIN).get_bytes(),
        None if most.strip().lower() == "infinite" else MemorySize.parse(most).get_bytes(),
    )


def _process_parts(
    flink: int | None,
    process: int | None,
    metaspace: int,
    overhead: _Share,
    total: ConfigOption[MemorySize | None],
) -> tuple[int, int]:
    """Return the total without Java's own needs, and Java's overhead."""
    if flink is None:
        assert process is not None
        size = overhead.of(process)
        if process <= size + metaspace:
            raise ConfigurationError(
                f"{total.key} is {_text(process)}, which is not enough: Java's metaspace takes {_text(metaspace)} and "
                f"its overhead {_text(size)}",
                hint=f"raise {total.key}",
            )
        return process - size - metaspace, size
    if process is None:
        return flink, overhead.beside(flink + metaspace)
    return flink, overhead.check(process - flink - metaspace)


def _rest(whole: int, parts: int, key: ConfigOption[MemorySize | None]) -> int:
    if parts >= whole:
        raise ConfigurationError(
            f"the parts of the memory of a process come to {_text(parts)}, but {key.key} leaves {_text(whole)} for "
            "all of them",
            hint=f"raise {key.key}, or lower the sizes and fractions of its parts",
        )
    return whole - parts


def _given(configuration: Values, key: ConfigOption[MemorySize | None]) -> int | None:
    size = configuration.get(key)
    return None if size is None else size.get_bytes()


def _executor_cores(configuration: Values) -> int | None:
    cores = configuration.to_dict().get("spark.executor.cores", "")
    return int(cores) if cores.isdigit() and int(cores) > 0 else None


def _state_part(weights: dict[str, str]) -> float:
    try:
        state, python = (int(weights.get(name, "0")) for name in ("STATE_BACKEND", "PYTHON"))
    except ValueError:
        raise ConfigurationError(
            f"{keys.CONSUMER_WEIGHTS.key}: expected whole numbers; got {weights}"
        ) from None
    if min(state, python) < 0:
        raise ConfigurationError(f"{keys.CONSUMER_WEIGHTS.key}: a weight must not be negative; got {weights}")
    return state / (state + python) if state else 0.0


def _spark_sizes(role: str, heap: int, process: int) -> dict[str, str]:
    # Spark takes whole mebibytes; rounding down keeps the container within its size.
    return {
        f"spark.{role}.memory": f"{heap // _MB}m",
        f"spark.{role}.memoryOverhead": f"{process // _MB - heap // _MB}m",
    }


def _text(size: int) -> str:
    return f"{size / _MB:.0f} MB"
