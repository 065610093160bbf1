"""What classes of process table functions derive from, and the hints of their parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.catalog.process_functions import ArgumentTrait
from headrace.common.changelog import ChangelogMode
from headrace.errors import JobDefinitionError
from headrace.planner.process_tables import ChangelogContext
from headrace.table._function_classes import UserDefinedFunction
from headrace.types import DataType

__all__ = ["ArgumentHint", "ChangelogFunction", "ProcessTableFunction", "StateHint"]


@dataclass(frozen=True, init=False)
class ArgumentHint:
    """Says how a parameter of `eval` is an argument of the call.

    Args:
        *traits: `ArgumentTrait`; none for a scalar argument.
        type: Of a scalar argument its type, if its hint does not say it; of a table the ROW that it must be.
        name: What calls name it; the parameter's name if None.

    Example:
        >>> ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.REQUIRE_ON_TIME).name is None
        True
    """

    traits: frozenset[ArgumentTrait]
    type: DataType | str | None
    name: str | None

    def __init__(
        self, *traits: ArgumentTrait, type: DataType | str | None = None, name: str | None = None
    ) -> None:
        given: tuple[Any, ...] = traits
        wrong = [each for each in given if not isinstance(each, ArgumentTrait)]
        if wrong:
            raise JobDefinitionError(
                f"ArgumentHint(): expected members of ArgumentTrait; got {wrong[0]!r}",
                hint="ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE)",
            )
        object.__setattr__(self, "traits", frozenset(traits))
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "name", name)


@dataclass(frozen=True)
class StateHint:
    """Makes a parameter of `eval` an entry of state, which every key has its own of.

    Args:
        type: The ROW of a `Row`; other values need none.
        ttl: How long the entry stays after it was last written, such as ``"1 h"`` or a `timedelta`; None: as
            ``table.exec.state.ttl`` says. Elements of lists and maps end one by one.
    """

    type: DataType | str | None = None
    ttl: timedelta | str | None = None


class ProcessTableFunction(UserDefinedFunction, ABC):
    """Makes rows of tables. Derive a class, define `eval`, and maybe `on_timer`, and pass it to `ptf`.

    ``eval(self, ctx, state..., argument...)`` is called for every row of a table. It yields results: a value, a tuple
    or a `Row`. The context comes first, if it is there; then state, whose hints are `StateHint`; then arguments: tables
    have an `ArgumentHint`. With several tables, all but the row's own table are None.

    ``on_timer(self, ctx, state...)`` is called when the watermark has passed a timer; its context is optional, too.
    """

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Yield the results for a row."""

    def get_result_type(self) -> DataType:
        """Return the type of a result: a ROW with the columns, or another type for one column."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_result_type()")


class ChangelogFunction(ABC):
    """Derive from it, too, if a process table function emits updates; the kinds of its rows say what they do."""

    @abstractmethod
    def get_changelog_mode(self, changelog_context: ChangelogContext) -> ChangelogMode:
        """Return the kinds of rows that the function emits.

        Without UPDATE_BEFORE, a result replaces the one before of its PARTITION BY.
        """
