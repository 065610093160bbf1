"""Slot sharing groups with resources as Spark's resource profiles: stage-level scheduling.

A level of a job is a Spark stage. If a group of the level asks for resources, the stage gets a profile:

| cluster | cores | memory |
|---|---|---|
| with dynamic allocation | tasks and new executors | new executors |
| without | tasks, which take more cores of the executors there are | refused: the executors are there already |
| a local master | refused | refused |

These are the rules of Spark 4.3 (`ResourceProfileManager.isSupported`). What Spark would refuse, or take and not do, is
refused here, before the job starts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.resource import (
    ExecutorResourceRequests,
    ResourceProfile,
    ResourceProfileBuilder,
    TaskResourceRequests,
)

from headrace.errors import ConfigurationError
from headrace.graph.job_graph import JobGraph
from headrace.graph.slot_resources import SlotResources
from headrace.spark.masters import is_local

_MIB = 1 << 20
#: Spark gives no executor less for what is outside of its heap.
_LEAST_OVERHEAD_MIB = 384


@dataclass(frozen=True)
class StageProfile:
    """What the tasks of a stage, and the executors that run them, have."""

    task_cpus: int
    #: None: tasks run on the executors that are there.
    executor_cores: int | None = None
    executor_memory_mib: int | None = None
    executor_overhead_mib: int | None = None

    def build(self) -> ResourceProfile:
        """Make Spark's own object of it."""
        builder = ResourceProfileBuilder().require(TaskResourceRequests().cpus(self.task_cpus))
        if self.executor_cores is not None:
            executors = ExecutorResourceRequests().cores(self.executor_cores)
            executors.memory(f"{self.executor_memory_mib}m").memoryOverhead(f"{self.executor_overhead_mib}m")
            builder.require(executors)
        return builder.build


def stage_profiles(job: JobGraph, master: str, settings: Mapping[str, str]) -> list[StageProfile | None]:
    """Return the profile of each level of a job; None for those that ask for nothing.

    Args:
        job: The job.
        master: Spark's.
        settings: Of Spark.

    Raises:
        ConfigurationError: If Spark cannot do what a group asks for here.
    """
    if not job.slot_resources:
        return [None] * len(job.levels())
    return [_of_level(level, job, master, settings) for level in job.levels()]


def _of_level(
    level: Sequence[Any], job: JobGraph, master: str, settings: Mapping[str, str]
) -> StageProfile | None:
    groups = sorted({vertex.slot_sharing_group for vertex in level} & set(job.slot_resources))
    if not groups:
        return None
    name = groups[0]
    # As Spark does when two profiles meet in a stage: what is enough for all.
    needed = reduce(SlotResources.at_least, (job.slot_resources[group] for group in groups))
    if needed.external:
        raise ConfigurationError(
            f"slot sharing group {name!r} asks for {needed.external[0][0]}: groups cannot have external resources",
            hint="request them for all tasks: spark.executor.resource.NAME.amount and spark.task.resource.NAME.amount",
        )
    if is_local(master):
        raise ConfigurationError(
            f"slot sharing group {name!r} asks for cores and memory; a local Spark cannot give them to a part of a job",
            hint="leave the amounts out of the group here, or run the job on a cluster (--master)",
        )
    task_cpus = max(1, math.ceil(needed.cpu_cores))
    if settings.get("spark.dynamicAllocation.enabled", "false").strip().lower() == "true":
        return _with_executors(needed, task_cpus, settings)
    if needed.heap_bytes or needed.other_bytes:
        cores = int(settings.get("spark.executor.cores", "1") or 1)
        _check_memory(name, needed, max(1, cores // task_cpus), settings)
    return StageProfile(task_cpus)


def _with_executors(needed: SlotResources, task_cpus: int, settings: Mapping[str, str]) -> StageProfile:
    slots = max(1, int(settings.get("spark.executor.cores", "0") or 0) // task_cpus)
    overhead = math.ceil(needed.other_bytes * slots / _MIB)
    return StageProfile(
        task_cpus,
        executor_cores=slots * task_cpus,
        executor_memory_mib=math.ceil(needed.heap_bytes * slots / _MIB),
        executor_overhead_mib=max(_LEAST_OVERHEAD_MIB, overhead),
    )


def _check_memory(name: str, needed: SlotResources, slots: int, settings: Mapping[str, str]) -> None:
    """Refuse more memory than the executors have: there will be no others."""
    heap = _mib(settings.get("spark.executor.memory", "1g"))
    overhead = _mib(settings.get("spark.executor.memoryOverhead", f"{max(_LEAST_OVERHEAD_MIB, heap // 10)}m"))
    for what, has, wants in (
        ("heap", heap, math.ceil(needed.heap_bytes * slots / _MIB)),
        ("managed and off-heap memory", overhead, math.ceil(needed.other_bytes * slots / _MIB)),
    ):
        if wants > has:
            raise ConfigurationError(
                f"slot sharing group {name!r} needs {wants} MB of {what} for {slots} slots of an executor, which has "
                f"{has} MB; executors for the group can only be started with dynamic allocation",
                hint="set spark.dynamicAllocation.enabled: true, give all executors more memory "
                "(taskmanager.memory.process.size), or ask for less",
            )


_UNITS = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024, "b": 1 / _MIB}


def _mib(text: str) -> int:
    """Return what Spark understands as a size, in MiB; a number alone means MiB."""
    text = text.strip().lower().removesuffix("b") if not text.strip().isdigit() else text.strip()
    unit = text[-1:]
    return int(float(text[:-1]) * _UNITS[unit]) if unit in _UNITS else int(float(text))
