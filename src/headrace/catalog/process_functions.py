"""What a process table function declares: its arguments and its state, as the planner checks and operators use them.

`headrace.table` reads it off the hints of a class (`table/_process_hints.py`); nothing here calls the function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from headrace.types.logical import DataType

__all__ = [
    "ArgumentSpec",
    "ArgumentTrait",
    "ProcessSignature",
    "StateKind",
    "StateSpec",
]


class ArgumentTrait(Enum):
    """How a process table function takes an argument, under Flink's names.

    A table argument has `ROW_SEMANTIC_TABLE` or `SET_SEMANTIC_TABLE`; others add to these. An argument without one of
    them is `SCALAR`: a constant.
    """

    #: A constant.
    SCALAR = "SCALAR"
    #: A table whose rows have nothing to do with each other: no PARTITION BY, and no state.
    ROW_SEMANTIC_TABLE = "ROW_SEMANTIC_TABLE"
    #: A table whose rows are processed by key: PARTITION BY says which.
    SET_SEMANTIC_TABLE = "SET_SEMANTIC_TABLE"
    #: PARTITION BY may be left out; then all rows have one key.
    OPTIONAL_PARTITION_BY = "OPTIONAL_PARTITION_BY"
    #: The columns of the table come in front of the result.
    PASS_COLUMNS_THROUGH = "PASS_COLUMNS_THROUGH"  # noqa: S105 - not a password
    #: Rows of the table may be updated and deleted; the kind of a row says what it does.
    SUPPORT_UPDATES = "SUPPORT_UPDATES"
    #: An update always comes with the row before it.
    REQUIRE_UPDATE_BEFORE = "REQUIRE_UPDATE_BEFORE"
    #: A deleted row comes with all its columns.
    REQUIRE_FULL_DELETE = "REQUIRE_FULL_DELETE"
    #: The call must name a time attribute of the table with on_time.
    REQUIRE_ON_TIME = "REQUIRE_ON_TIME"

    @property
    def is_table(self) -> bool:
        """Whether the trait makes an argument a table."""
        return self in (ArgumentTrait.ROW_SEMANTIC_TABLE, ArgumentTrait.SET_SEMANTIC_TABLE)


@dataclass(frozen=True)
class ArgumentSpec:
    """An argument of a call."""

    name: str
    traits: frozenset[ArgumentTrait] = frozenset({ArgumentTrait.SCALAR})
    #: Of a scalar argument its type; of a table the ROW that it must be, or None for any.
    data_type: DataType | None = None
    is_optional: bool = False
    #: What an optional argument is if the call leaves it out.
    default: Any = field(default=None, compare=False)

    def has(self, trait: ArgumentTrait) -> bool:
        """Whether the argument has a trait."""
        return trait in self.traits

    @property
    def is_table(self) -> bool:
        """Whether the argument is a table."""
        return any(trait.is_table for trait in self.traits)

    @property
    def is_set(self) -> bool:
        """Whether the argument is a table that is processed by key."""
        return ArgumentTrait.SET_SEMANTIC_TABLE in self.traits


class StateKind(Enum):
    """How an entry of state is stored."""

    #: As a whole: read before a call, and written after it.
    VALUE = "value"
    #: Element by element.
    LIST = "list"
    #: Entry by entry.
    MAP = "map"


@dataclass(frozen=True)
class StateSpec:
    """An entry of state, which each key has its own of."""

    name: str
    kind: StateKind = StateKind.VALUE
    #: Makes the value of a key that has none yet; None for lists and maps.
    make: Callable[[], Any] | None = field(default=None, compare=False)
    #: How long it stays after it was last written, in ms; 0: forever; None: as the job says.
    ttl_ms: int | None = None
    #: Whether a value is an object of the program's own class: its attributes are stored, not the object.
    is_object: bool = False


@dataclass(frozen=True)
class ProcessSignature:
    """What `eval` and `on_timer` take."""

    arguments: tuple[ArgumentSpec, ...]
    states: tuple[StateSpec, ...] = ()
    #: Whether `eval` takes a context first.
    has_context: bool = False
    #: Whether there is an `on_timer`, and whether it takes a context first.
    has_timer: bool = False
    timer_has_context: bool = False
    #: Whether the function emits updates: the kinds of its rows say what they do.
    emits_updates: bool = False

    @property
    def tables(self) -> tuple[ArgumentSpec, ...]:
        """The arguments that are tables."""
        return tuple(each for each in self.arguments if each.is_table)
