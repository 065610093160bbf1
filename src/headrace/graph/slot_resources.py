"""What a slot of a sharing group needs: Flink's fine-grained resources, as they travel with the job."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SlotResources:
    """The resources of one slot, in cores and bytes."""

    cpu_cores: float
    heap_bytes: int
    #: Memory of Python workers and of state: managed and off-heap.
    other_bytes: int = 0
    #: Amounts of other resources, such as GPUs, by name.
    external: tuple[tuple[str, float], ...] = field(default=())

    def at_least(self, other: SlotResources) -> SlotResources:
        """Return what is enough for both."""
        amounts = dict(self.external)
        for name, amount in other.external:
            amounts[name] = max(amount, amounts.get(name, 0.0))
        return SlotResources(
            max(self.cpu_cores, other.cpu_cores),
            max(self.heap_bytes, other.heap_bytes),
            max(self.other_bytes, other.other_bytes),
            tuple(sorted(amounts.items())),
        )
