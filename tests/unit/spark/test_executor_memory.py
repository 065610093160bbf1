"""What executors take of memory, as Spark reports it and as the system knows it."""

from __future__ import annotations

import os
import subprocess
import sys

from headrace.metrics.executor_usage import ExecutorUsage
from headrace.spark.executor_memory import children_memory, reported_usage

_MB = 1 << 20
#: Takes memory, has a child that takes some, too, says so, and waits for its end.
_PARENT = """
import subprocess, sys
taken = bytearray(b"x" * (32 << 20))
child = subprocess.Popen(
    [sys.executable, "-c", "taken = bytearray(b'x' * (48 << 20)); print('here', flush=True); input()"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
)
child.stdout.readline()
print("here", flush=True)
input()
child.communicate("\\n")
"""


class Reported:
    """Spark's option of `ExecutorMetrics`."""

    def __init__(self, values: dict[str, int] | None) -> None:
        self._values = values

    def isEmpty(self) -> bool:
        return self._values is None

    def get(self) -> Reported:
        return self

    def getMetricValue(self, name: str) -> int:
        assert self._values is not None
        return self._values.get(name, 0)


def test_the_memory_of_children_and_theirs_is_added_up() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "here\n"
        own, both = children_memory(parent.pid), children_memory(os.getpid())
        parent.communicate("\n")
    assert own is not None
    assert both is not None
    assert own > 48 * _MB
    assert both - own > 32 * _MB


def test_an_executor_says_the_most_that_it_had() -> None:
    values = {
        "JVMHeapMemory": 100,
        "JVMOffHeapMemory": 20,
        "ProcessTreePythonRSSMemory": 300,
        "MinorGCCount": 4,
        "MajorGCCount": 1,
    }
    assert reported_usage(Reported(values)) == ExecutorUsage(
        heap_used=100, non_heap_used=20, python_used=300, gc_count=5
    )


def test_without_process_metrics_the_memory_of_python_is_not_reported() -> None:
    assert reported_usage(Reported({"JVMHeapMemory": 100})).python_used is None


def test_an_executor_without_a_heartbeat_says_nothing() -> None:
    assert reported_usage(Reported(None)) == ExecutorUsage()
