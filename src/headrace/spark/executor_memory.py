"""The memory that executors use: Java's heap, memory outside of it, and their Python processes.

Spark's executors tell the driver with their heartbeats, and only the most they ever had. A local Spark is asked itself.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import replace
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


def local_usage(context: SparkContext, peaks: ExecutorUsage) -> ExecutorUsage:
    """Return what the Java process of a local Spark and its workers have now, and of the rest the most so far."""
    assert context._jvm is not None
    runtime = context._jvm.java.lang.Runtime.getRuntime()
    committed = int(runtime.totalMemory())
    return replace(
        peaks,
        heap_used=committed - int(runtime.freeMemory()),
        heap_committed=committed,
        heap_max=int(runtime.maxMemory()),
        metaspace_used=_metaspace(context._jvm),
        python_used=children_memory(os.getpid()),
    )


def _metaspace(jvm: Any) -> int | None:
    """Return what classes take; None if this Java has no such pool."""
    for pool in jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans():
        if pool.getName() == "Metaspace":
            return int(pool.getUsage().getUsed())
    return None


def children_memory(parent: int) -> int | None:
    """Return the memory of the Python processes below one; what several share counts in parts. None if unknown."""
    children: dict[int, list[int]] = defaultdict(list)
    pythons = set()
    try:
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and (stat := _text(f"/proc/{entry.name}/stat")):
                # The name of a program may have blanks and brackets.
                name, _, rest = stat.partition("(")[2].rpartition(")")
                children[int(rest.split()[1])].append(int(entry.name))
                if name.startswith("python"):
                    pythons.add(int(entry.name))
    except OSError:
        return None
    below, waiting = [], [parent]
    while waiting:
        own = children[waiting.pop()]
        below += own
        waiting += own
    return sum(_memory(process) for process in below if process in pythons)


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
