"""Task managers: Spark's executors, in the form that Flink's clients expect."""

from __future__ import annotations

import os

from headrace.rest.context import Executor, RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import CamelBody, Request
from headrace.rest.routing import Endpoint
from headrace.rest.slots import ExecutorSlots, slots_by_executor

_MB = 1024 * 1024


class Resource(CamelBody):
    cpu_cores: float
    task_heap_memory: int
    task_off_heap_memory: int
    managed_memory: int
    network_memory: int
    extended_resources: dict[str, float]


class Hardware(CamelBody):
    cpu_cores: int
    physical_memory: int
    free_memory: int
    managed_memory: int


class MemoryConfiguration(CamelBody):
    framework_heap: int
    task_heap: int
    framework_off_heap: int
    task_off_heap: int
    network_memory: int
    managed_memory: int
    jvm_metaspace: int
    jvm_overhead: int
    total_flink_memory: int
    total_process_memory: int


class TaskManager(CamelBody):
    id: str
    path: str
    data_port: int
    jmx_port: int
    time_since_last_heartbeat: int
    slots_number: int
    free_slots: int
    assigned_tasks: int
    total_resource: Resource
    free_resource: Resource
    hardware: Hardware
    memory_configuration: MemoryConfiguration


class TaskManagers(CamelBody):
    taskmanagers: list[TaskManager]


class AllocatedSlot(CamelBody):
    job_id: str
    resource: Resource
    assigned_tasks: int


class GarbageCollector(CamelBody):
    name: str
    count: int
    time: int


class TaskManagerMetrics(CamelBody):
    heap_used: int
    heap_committed: int
    heap_max: int
    non_heap_used: int
    non_heap_committed: int
    non_heap_max: int
    direct_count: int
    direct_used: int
    direct_max: int
    mapped_count: int
    mapped_used: int
    mapped_max: int
    netty_shuffle_memory_segments_available: int
    netty_shuffle_memory_segments_used: int
    netty_shuffle_memory_segments_total: int
    netty_shuffle_memory_available: int
    netty_shuffle_memory_used: int
    netty_shuffle_memory_total: int
    garbage_collectors: list[GarbageCollector]


class TaskManagerDetails(TaskManager):
    allocated_slots: list[AllocatedSlot]
    metrics: TaskManagerMetrics


def _cores(executor: Executor) -> int:
    return executor.slots if executor.cores is None else executor.cores


def _resource(slots: ExecutorSlots, count: int) -> Resource:
    """Return the part of an executor that some of its slots have."""
    part = count / slots.total if slots.total else 0.0
    return Resource(
        cpu_cores=_cores(slots.executor) * part,
        task_heap_memory=int(slots.executor.max_memory * part / _MB),
        task_off_heap_memory=0,
        managed_memory=int((slots.executor.managed_memory or 0) * part / _MB),
        network_memory=0,
        extended_resources={},
    )


def _fields(slots: ExecutorSlots) -> dict[str, object]:
    executor = slots.executor
    return {
        "id": executor.executor_id,
        "path": f"spark://{executor.host}:{executor.port}/{executor.executor_id}",
        "data_port": executor.port,
        "jmx_port": -1,
        "time_since_last_heartbeat": 0,
        "slots_number": slots.total,
        "free_slots": slots.free,
        "assigned_tasks": executor.active_tasks,
        "total_resource": _resource(slots, slots.total),
        "free_resource": _resource(slots, slots.free),
        "hardware": Hardware(
            cpu_cores=_cores(executor),
            physical_memory=_physical_memory(),
            free_memory=max(0, executor.max_memory - executor.used_memory),
            managed_memory=executor.managed_memory or 0,
        ),
        "memory_configuration": MemoryConfiguration(
            framework_heap=0,
            task_heap=executor.max_memory,
            framework_off_heap=0,
            task_off_heap=0,
            network_memory=0,
            managed_memory=executor.managed_memory or 0,
            jvm_metaspace=0,
            jvm_overhead=0,
            total_flink_memory=executor.max_memory,
            total_process_memory=executor.max_memory,
        ),
    }


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def task_managers(context: RestContext, request: Request) -> TaskManagers:
    return TaskManagers(
        taskmanagers=[
            TaskManager(**_fields(slots))  # type: ignore[arg-type]  # checked by msgspec's tests
            for slots in slots_by_executor(context)
        ]
    )


def task_manager(context: RestContext, request: Request) -> TaskManagerDetails:
    executor = find_executor(context, request)
    slots = next((each for each in slots_by_executor(context) if each.executor == executor), None)
    slots = slots or ExecutorSlots(executor, [])  # it has just gone
    slot, usage = _resource(slots, 1), executor.usage
    return TaskManagerDetails(
        **_fields(slots),  # type: ignore[arg-type]  # as above
        allocated_slots=[
            AllocatedSlot(job_id=job_id, resource=slot, assigned_tasks=1) for job_id in slots.jobs
        ],
        metrics=TaskManagerMetrics(
            heap_used=_known(usage.heap_used, executor.used_memory),
            heap_committed=_known(usage.heap_committed, executor.max_memory),
            heap_max=_known(usage.heap_max, executor.max_memory),
            non_heap_used=usage.non_heap_used or 0,
            non_heap_committed=0,
            non_heap_max=-1,
            direct_count=0,
            direct_used=0,
            direct_max=0,
            mapped_count=0,
            mapped_used=0,
            mapped_max=0,
            netty_shuffle_memory_segments_available=0,
            netty_shuffle_memory_segments_used=0,
            netty_shuffle_memory_segments_total=0,
            netty_shuffle_memory_available=0,
            netty_shuffle_memory_used=0,
            netty_shuffle_memory_total=0,
            garbage_collectors=[GarbageCollector(name="All", count=usage.gc_count or 0, time=executor.gc_ms)],
        ),
    )


def _known(found: int | None, otherwise: int) -> int:
    return otherwise if found is None else found


def find_executor(context: RestContext, request: Request) -> Executor:
    """Find the executor that a request is about.

    Raises:
        RestError: If there is none.
    """
    for executor in context.cluster.executors():
        if executor.executor_id == request.params["taskmanagerid"]:
            return executor
    raise RestError(404, f"Could not find TaskExecutor {request.params['taskmanagerid']}.")


ENDPOINTS = (
    Endpoint(
        "GET", "/taskmanagers", "All task managers, which are Spark's executors.", task_managers, TaskManagers
    ),
    Endpoint("GET", "/taskmanagers/{taskmanagerid}", "One task manager.", task_manager, TaskManagerDetails),
)
