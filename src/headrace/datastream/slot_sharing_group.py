"""Slot sharing groups: which operators may share a slot, and what a slot of theirs needs.

The amounts of a group become Spark's resource profiles where Spark allows it, and are refused elsewhere
(`spark/resource_profiles.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn, Self

from headrace.config.memory_size import MemorySize
from headrace.errors import JobDefinitionError, UnsupportedFeatureError
from headrace.graph.slot_resources import SlotResources

__all__ = ["MemorySize", "SlotSharingGroup"]


@dataclass(frozen=True)
class SlotSharingGroup:
    """A named group of operators that may share a slot. Make one with `builder`.

    Example:
        >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(2.0).set_task_heap_memory_mb(512).build()
        >>> group.get_name(), group.get_cpu_cores(), group.get_task_heap_memory()
        ('heavy', 2.0, MemorySize('512 mb'))
    """

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: dict[str, float] = field(default_factory=dict, hash=False)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Return a builder for a group with this name."""
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        """Return the name of the group."""
        return self.name

    def get_managed_memory(self) -> MemorySize | None:
        """Return the memory for state, or None if it is left open."""
        return self.managed_memory

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return the memory for objects, or None if it is left open."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return the memory outside the heap, or None if it is left open."""
        return self.task_off_heap_memory

    def get_cpu_cores(self) -> float | None:
        """Return the number of cores, or None if it is left open."""
        return self.cpu_cores

    def get_external_resources(self) -> dict[str, float]:
        """Return amounts of other resources, by name."""
        return dict(self.external_resources)

    def resources(self) -> SlotResources | None:
        """Return what a slot of the group needs; None if the group does not say."""
        if self.cpu_cores is None or self.task_heap_memory is None:
            return None
        others = (self.task_off_heap_memory, self.managed_memory)
        return SlotResources(
            self.cpu_cores,
            self.task_heap_memory.get_bytes(),
            sum(each.get_bytes() for each in others if each is not None),
            tuple(sorted(self.external_resources.items())),
        )

    def get_java_slot_sharing_group(self) -> NoReturn:
        """Not there: headrace has no Java objects behind its values.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError.not_yet("get_java_slot_sharing_group", "use the Python object itself")

    class Builder:
        """A group in the making.

        Args:
            name: The name of the group.
        """

        def __init__(self, name: str) -> None:
            self._name = name
            self._cpu_cores: float | None = None
            self._heap: MemorySize | None = None
            self._off_heap: MemorySize | None = None
            self._managed: MemorySize | None = None
            self._external: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> Self:
            """Ask for a number of cores; it may be a part of one.

            Raises:
                JobDefinitionError: If it is not positive.
            """
            if cpu_cores <= 0:
                raise JobDefinitionError(
                    f"slot sharing group {self._name!r}: expected more than 0 cores; got {cpu_cores}"
                )
            self._cpu_cores = float(cpu_cores)
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> Self:
            """Ask for memory for objects."""
            self._heap = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> Self:
            """Ask for memory for objects, in MiB."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> Self:
            """Ask for memory outside the heap."""
            self._off_heap = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> Self:
            """Ask for memory outside the heap, in MiB."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> Self:
            """Ask for memory for state."""
            self._managed = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> Self:
            """Ask for memory for state, in MiB."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> Self:
            """Ask for an amount of another resource, such as GPUs."""
            self._external[name] = float(value)
            return self

        def build(self) -> SlotSharingGroup:
            """Make the group.

            Raises:
                JobDefinitionError: If it asks for something, but not for both cores and heap memory.
            """
            asked = (self._cpu_cores, self._heap, self._off_heap, self._managed, self._external or None)
            if any(each is not None for each in asked) and (self._cpu_cores is None or self._heap is None):
                raise JobDefinitionError(
                    f"slot sharing group {self._name!r}: a group that asks for resources must ask for cores "
                    "and heap memory",
                    hint="call set_cpu_cores and set_task_heap_memory_mb",
                )
            return SlotSharingGroup(
                self._name, self._cpu_cores, self._heap, self._off_heap, self._managed, dict(self._external)
            )


def resources_of(groups: Iterable[SlotSharingGroup]) -> dict[str, SlotResources]:
    """Return what groups ask for, by name; those that ask for nothing are left out."""
    return {group.name: asked for group in groups if (asked := group.resources()) is not None}
