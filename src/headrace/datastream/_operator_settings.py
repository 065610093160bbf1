"""The settings of an operator, which streams and sinks share: its name, uid, parallelism and slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from headrace.datastream._checks import check_parallelism, check_text, check_uid_hash
from headrace.datastream.slot_sharing_group import SlotSharingGroup
from headrace.errors import JobDefinitionError
from headrace.graph.transformations import ChainingStrategy, PhysicalTransformation

if TYPE_CHECKING:
    from headrace.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["OperatorSettings"]


class OperatorSettings:
    """The calls that streams and sinks share: they change the operator that was added last."""

    _environment: StreamExecutionEnvironment

    def _operator(self, call: str) -> PhysicalTransformation:
        """Return the step to change, or say why there is none."""
        raise NotImplementedError

    def name(self, name: str) -> Self:
        """Name the operator, for plans, logs and metrics."""
        self._operator("name").name = check_text("name", "name", name)
        return self

    def uid(self, uid: str) -> Self:
        """Give the operator an id under which its state is found again, whatever else changes in the program.

        Args:
            uid: Unique in the job.
        """
        self._operator("uid").uid = check_text("uid", "uid", uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Give the operator its id directly, to find state that was kept under a generated one.

        Args:
            uid_hash: 32 hex digits, from logs or the REST API.
        """
        self._operator("set_uid_hash").uid_hash = check_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set how many subtasks the operator has.

        Raises:
            JobDefinitionError: If it is not positive, or the operator cannot run in parallel.
        """
        parallelism = check_parallelism("set_parallelism", parallelism)
        operator = self._operator("set_parallelism")
        if operator.is_non_parallel and parallelism != 1:
            raise JobDefinitionError(
                f"set_parallelism(): {operator.name!r} cannot run in parallel; expected 1, got {parallelism}",
                hint="set the parallelism of the operators after it",
            )
        operator.parallelism = parallelism
        return self

    def set_description(self, description: str) -> Self:
        """Describe the operator, for plans and the web UI; longer than its name."""
        self._operator("set_description").description = check_text(
            "set_description", "description", description
        )
        return self

    def disable_chaining(self) -> Self:
        """Run the operator in a task of its own."""
        self._operator("disable_chaining").chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Put the operator into a slot sharing group; operators in different groups never share a slot.

        Args:
            slot_sharing_group: The group or its name. Without this call, it is the group of the inputs.
        """
        operator = self._operator("slot_sharing_group")
        if isinstance(slot_sharing_group, SlotSharingGroup):
            self._environment.register_slot_sharing_group(slot_sharing_group)
            operator.slot_sharing_group = slot_sharing_group.get_name()
        else:
            operator.slot_sharing_group = check_text(
                "slot_sharing_group", "name of the group", slot_sharing_group
            )
        return self
