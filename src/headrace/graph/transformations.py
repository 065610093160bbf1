"""The lazy program: one node per call of the API, each pointing at its inputs.

    source -- map -- key_by -- reduce -- sink        what the user wrote
    Source    One     Partition  One      Sink       transformations; Partition, Union, Cache, SideOutput are virtual

A stream's fluent face changes names and parallelism after the node was made, so these are mutable. The graphs
made of them are not. Nothing here is validated: the API does that with the user's words at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from headrace.common.typeinfo import TypeInformation
from headrace.graph.partitioning import EdgePartitioner
from headrace.operators.base import OperatorDeclaration
from headrace.util.call_sites import ProgramLine, call_site


class ChainingStrategy(Enum):
    """Whether an operator may share a task with its neighbours."""

    #: With both.
    ALWAYS = "always"
    #: Only with what follows: it starts a chain.
    HEAD = "head"
    #: With none.
    NEVER = "never"


@dataclass(eq=False, kw_only=True)
class Transformation:
    """A step of the program."""

    #: Unique in the environment and greater than the ids of its inputs.
    id: int
    #: Declared type of the output; None when the program does not say.
    output_type: TypeInformation | None = None

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """The steps this one reads."""
        return ()


@dataclass(eq=False, kw_only=True)
class PhysicalTransformation(Transformation):
    """A step that becomes an operator."""

    name: str
    declaration: OperatorDeclaration
    #: None takes the job's.
    parallelism: int | None = None
    max_parallelism: int | None = None
    #: Whether it must stay at parallelism 1.
    is_non_parallel: bool = False
    uid: str | None = None
    uid_hash: str | None = None
    #: None takes the group of the inputs.
    slot_sharing_group: str | None = None
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    buffer_timeout_ms: int | None = None
    #: None takes the name.
    description: str | None = None
    #: The line of the program that added the step.
    defined_at: ProgramLine | None = field(default_factory=call_site)


@dataclass(eq=False, kw_only=True)
class SourceTransformation(PhysicalTransformation):
    is_bounded: bool


@dataclass(eq=False, kw_only=True)
class OneInputTransformation(PhysicalTransformation):
    input: Transformation = field(repr=False)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return (self.input,)


@dataclass(eq=False, kw_only=True)
class TwoInputTransformation(PhysicalTransformation):
    first: Transformation = field(repr=False)
    second: Transformation = field(repr=False)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return (self.first, self.second)


@dataclass(eq=False, kw_only=True)
class MultipleInputTransformation(PhysicalTransformation):
    """An operator with as many inputs as it likes; nodes of tables are."""

    sides: tuple[Transformation, ...] = field(repr=False)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return self.sides


@dataclass(eq=False, kw_only=True)
class SinkTransformation(PhysicalTransformation):
    input: Transformation = field(repr=False)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return (self.input,)


@dataclass(eq=False, kw_only=True)
class UnionTransformation(Transformation):
    """All records of all streams; the same stream twice gives its records twice."""

    streams: tuple[Transformation, ...] = field(repr=False)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return self.streams


@dataclass(eq=False, kw_only=True)
class PartitionTransformation(Transformation):
    """The same records, sent on another way. Of two in a row the later one counts."""

    input: Transformation = field(repr=False)
    partitioner: EdgePartitioner

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return (self.input,)


@dataclass(eq=False, kw_only=True)
class CacheTransformation(Transformation):
    """The same records, which the first job that computes them keeps for later ones."""

    input: Transformation = field(repr=False)
    #: Reads what an earlier job has kept; None while there is nothing. Its id is smaller than this one's.
    kept: SourceTransformation | None = field(default=None, repr=False)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return (self.kept or self.input,)


@dataclass(eq=False, kw_only=True)
class SideOutputTransformation(Transformation):
    """What the input emits under a tag, instead of its main output."""

    input: Transformation = field(repr=False)
    tag_id: str

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return (self.input,)
