"""Calls of process table functions in the logical tree, and of the two built-in ones over changelogs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from headrace.catalog.functions import UserFunction
from headrace.catalog.process_functions import ArgumentSpec, ArgumentTrait
from headrace.common.changelog import ChangelogMode
from headrace.common.types import RowKind
from headrace.operators.table.process_declarations import DeclaredFunction
from headrace.planner.expressions import Place, SortKey
from headrace.planner.logical import Field, LogicalNode, Schema, TimeKind
from headrace.types.logical import RowType, VarCharType

__all__ = [
    "ChangelogContext",
    "FromChangelog",
    "ProcessTableCall",
    "ProcessTable",
    "TableInCall",
    "ToChangelog",
    "output_of",
    "process_of",
]


@dataclass(frozen=True)
class TableInCall:
    """A table argument of a call."""

    spec: ArgumentSpec
    partition_by: tuple[int, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    #: The column that on_time names.
    time_index: int | None = None
    #: Where the table stands in the statement.
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ProcessTableCall:
    """A call of a process table function, but for the rows of its tables."""

    function: UserFunction
    tables: tuple[TableInCall, ...]
    #: By name, the values of scalar arguments.
    arguments: tuple[tuple[str, Any], ...] = ()
    #: What its state is found by; None for a function without.
    uid: str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def implementation(self) -> DeclaredFunction:
        """The function with what it declares."""
        return process_of(self.function)

    @property
    def is_set(self) -> bool:
        """Whether its tables are processed by key."""
        return any(each.spec.is_set for each in self.tables)

    @property
    def has_time(self) -> bool:
        """Whether the call has an on_time."""
        return any(each.time_index is not None for each in self.tables)

    def mode_of(self, inputs: Sequence[ChangelogMode], required: ChangelogMode) -> ChangelogMode:
        """Return the kinds of rows that the function emits, as it says."""
        implementation = self.implementation
        if not implementation.signature.emits_updates:
            return ChangelogMode.insert_only()
        modes = {each.spec.name: mode for each, mode in zip(self.tables, inputs, strict=True)}
        mode: ChangelogMode = implementation.implementation.get_changelog_mode(
            ChangelogContext(modes, required)
        )
        return mode


def process_of(function: UserFunction) -> DeclaredFunction:
    """Return a process table function with what it declares."""
    assert isinstance(function.implementation, DeclaredFunction)
    return function.implementation


class ChangelogContext:
    """What a function that emits updates learns of a call while it is planned."""

    def __init__(self, tables: dict[str, ChangelogMode], required: ChangelogMode) -> None:
        self._tables = tables
        self._required = required

    def get_table_changelog_mode(self, argument: str | int) -> ChangelogMode:
        """Return the kinds of rows of a table, which an argument is by its name or by its number among tables."""
        name = list(self._tables)[argument] if isinstance(argument, int) else argument
        return self._tables[name]

    def get_required_changelog_mode(self) -> ChangelogMode:
        """Return the kinds of rows that are asked for: all, or all but UPDATE_BEFORE."""
        return self._required


@dataclass(frozen=True)
class ProcessTable(LogicalNode):
    """The rows that a process table function makes of tables."""

    tables: tuple[LogicalNode, ...]
    call: ProcessTableCall

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return self.tables

    @cached_property
    def schema(self) -> Schema:
        """Keys of each table or columns that pass through, the function's columns, and `rowtime`."""
        return output_of(self.call, [each.schema for each in self.tables])


def output_of(call: ProcessTableCall, schemas: Sequence[Schema]) -> Schema:
    """Return the columns of a call."""
    fields: list[Field] = []
    for table, schema in zip(call.tables, schemas, strict=True):
        if table.spec.has(ArgumentTrait.PASS_COLUMNS_THROUGH):
            fields += schema
        else:
            fields += [schema[at] for at in table.partition_by]
    result = call.function.result_type
    if isinstance(result, RowType):
        fields += [Field(each.name, each.data_type) for each in result.fields]
    else:
        fields.append(Field("EXPR$0", result))
    times = [
        schema[table.time_index].type
        for table, schema in zip(call.tables, schemas, strict=True)
        if table.time_index is not None
    ]
    if times:
        fields.append(Field("rowtime", times[0].not_null(), TimeKind.ROWTIME))
    counts: dict[str, int] = {}
    made = []
    for each in fields:
        seen = counts.get(each.name)
        counts[each.name] = 0 if seen is None else seen + 1
        made.append(Field(each.name if seen is None else f"{each.name}{seen}", each.type, each.time))
    return tuple(made)


@dataclass(frozen=True)
class ToChangelog(LogicalNode):
    """TO_CHANGELOG: what rows do to the table as a column in front of them."""

    input: LogicalNode
    name: str
    #: Kinds of rows, and the code of each; others are left out.
    codes: tuple[tuple[RowKind, str], ...]

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    @cached_property
    def schema(self) -> Schema:
        """The code, then the input."""
        return (Field(self.name, VarCharType(2**31 - 1)), *self.input.schema)


@dataclass(frozen=True)
class FromChangelog(LogicalNode):
    """FROM_CHANGELOG: a column of codes says what rows do to the table."""

    input: LogicalNode
    #: The column of codes.
    index: int
    codes: tuple[tuple[str, RowKind], ...]
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    @cached_property
    def schema(self) -> Schema:
        """The input without the codes."""
        return tuple(each for at, each in enumerate(self.input.schema) if at != self.index)
