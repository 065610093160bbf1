"""What executors take of memory: Java's heap, what is beside it, and their Python processes.

Spark's executors tell the driver with their heartbeats, and only the most they ever had. A local Spark is asked itself.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any

from pyspark import SparkContext

from headrace.metrics.executor_usage import ExecutorUsage

__all__ = ["children_memory", "local_usage", "reported_usage"]


def reported_usage(peaks: Any) -> ExecutorUsage:
    """Return the most that an executor had, of Spark's ``ExecutorMetrics``; nothing before its first heartbeat."""
    if peaks.isEmpty():
        return ExecutorUsage()
    value = peaks.get().getMetricValue
    return ExecutorUsage(
        heap_used=int(value("JVMHeapMemory")),
        non_heap_used=int(value("JVMOffHeapMemory")),
        # 0 where processes are not looked at.
        python_used=int(value("ProcessTreePythonRSSMemory")) or None,
        gc_count=int(value("MinorGCCount")) + int(value("MajorGCCount")),
    )


def local_usage(context: SparkContext) -> ExecutorUsage:
    """Return what the Java process of a local Spark and its workers have now."""
    assert context._jvm is not None
    factory = context._jvm.java.lang.management.ManagementFactory
    heap, beside = (
        factory.getMemoryMXBean().getHeapMemoryUsage(),
        factory.getMemoryMXBean().getNonHeapMemoryUsage(),
    )
    collectors = factory.getGarbageCollectorMXBeans()
    return ExecutorUsage(
        heap_used=int(heap.getUsed()),
        heap_committed=int(heap.getCommitted()),
        heap_max=int(heap.getMax()),
        non_heap_used=int(beside.getUsed()),
        python_used=children_memory(int(context._jvm.java.lang.ProcessHandle.current().pid())),
        gc_count=sum(int(each.getCollectionCount()) for each in collectors),
    )


def children_memory(parent: int) -> int | None:
    """Return the memory of all processes below one; what several share counts in parts. None where nobody says."""
    children: dict[int, list[int]] = defaultdict(list)
    try:
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and (stat := _text(f"/proc/{entry.name}/stat")):
                # The name of a program may have blanks and brackets.
                children[int(stat.rpartition(")")[2].split()[1])].append(int(entry.name))
    except OSError:
        return None
    below, waiting = [], [parent]
    while waiting:
        own = children[waiting.pop()]
        below += own
        waiting += own
    return sum(map(_memory, below))


def _memory(process: int) -> int:
    for line in (_text(f"/proc/{process}/smaps_rollup") or "").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    return 0


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # it has just ended
        return None
