"""What a process table function declares, read off the signatures of `eval` and `on_timer`."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from headrace.catalog.process_functions import (
    ArgumentSpec,
    ArgumentTrait,
    ProcessSignature,
    StateKind,
    StateSpec,
)
from headrace.common.types import Row, make_row
from headrace.config.parsing import parse_duration
from headrace.errors import JobDefinitionError
from headrace.operators.table.process_context import ProcessTableContext
from headrace.table._process_classes import ArgumentHint, ProcessTableFunction, StateHint
from headrace.table._wrappers import hinted_type, read_type
from headrace.table.data_view import ListView, MapView
from headrace.types import DataTypes, RowType

__all__ = ["read_signature"]

#: What a context is called where it has no hint.
_CONTEXTS: Final = ("ctx", "context")
#: What a function cannot change in place, so that it would be lost.
_FIXED: Final = (int, float, complex, str, bytes, bool, tuple, frozenset, type(None))
_INTERVAL: Final = DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3))
_RESERVED: Final = ("on_time", "uid")


def read_signature(
    function: ProcessTableFunction,
    arguments: Mapping[str, ArgumentHint],
    state: Mapping[str, StateHint],
    emits_updates: bool,
) -> ProcessSignature:
    """Return what a function declares.

    Args:
        function: The function.
        arguments: Hints by parameter, in place of those in the signature.
        state: The same for state.
        emits_updates: Whether it emits updates.

    Raises:
        JobDefinitionError: If the signature is not valid.
    """
    reader = _Reader(function, arguments, state)
    specs, states, has_context = reader.eval_parameters()
    has_timer, timer_has_context = reader.timer_parameters(len(states))
    _check(reader.name, specs, states, has_timer, emits_updates)
    return ProcessSignature(
        tuple(specs), tuple(states), has_context, has_timer, timer_has_context, emits_updates
    )


class _Reader:
    """Reads the parameters of one function."""

    def __init__(
        self,
        function: ProcessTableFunction,
        arguments: Mapping[str, ArgumentHint],
        state: Mapping[str, StateHint],
    ) -> None:
        self._function = function
        self.name = type(function).__name__
        self._arguments = dict(arguments)
        self._state = dict(state)

    def eval_parameters(self) -> tuple[list[ArgumentSpec], list[StateSpec], bool]:
        """Return the arguments and the state of `eval`, and whether it has a context."""
        parameters = self._parameters("eval")
        hints = self._hints("eval", parameters)
        unknown = {*self._arguments, *self._state} - {each.name for each in parameters}
        if unknown:
            raise self._wrong(
                f"eval() has no parameter {sorted(unknown)[0]!r}", "use the names of parameters"
            )
        has_context = bool(parameters) and self._is_context(parameters[0], hints)
        specs: list[ArgumentSpec] = []
        states: list[StateSpec] = []
        for each in parameters[1 if has_context else 0 :]:
            kind, told = hints.get(each.name, (None, None))
            if isinstance(told, StateHint):
                if specs:
                    raise self._wrong(
                        f"state {each.name!r} comes after an argument",
                        "eval(self, ctx, state..., argument...)",
                    )
                states.append(self._state_spec(each.name, kind, told))
            else:
                specs.append(self._argument_spec(each, kind, told))
        return specs, states, has_context

    def timer_parameters(self, states: int) -> tuple[bool, bool]:
        """Return whether there is an `on_timer`, and whether it has a context."""
        if not callable(getattr(self._function, "on_timer", None)):
            return False, False
        count = len(self._parameters("on_timer"))
        if count not in (states, states + 1):
            raise self._wrong(
                f"on_timer() takes {count} parameters, but eval() has {states} of state",
                "on_timer(self, ctx, state...): all state of eval(), in the same order; ctx may be left out",
            )
        return True, count > states

    def _parameters(self, method: str) -> list[inspect.Parameter]:
        found = list(inspect.signature(getattr(self._function, method)).parameters.values())
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        for each in found:
            if each.kind in several:
                raise self._wrong(
                    f"{method}() takes any number of arguments (*{each.name})",
                    "name every argument of a call",
                )
        return found

    def _hints(
        self, method: str, parameters: list[inspect.Parameter]
    ) -> dict[str, tuple[Any, ArgumentHint | StateHint | None]]:
        """Return the type of each parameter, and what it is."""
        try:
            found = typing.get_type_hints(getattr(self._function, method), include_extras=True)
        except NameError as error:
            raise self._wrong(
                f"the hints of {method}() cannot be resolved: {error}",
                "define the class at the top of a module, or leave out `from __future__ import annotations`",
            ) from error
        made: dict[str, tuple[Any, ArgumentHint | StateHint | None]] = {}
        for each in parameters:
            hint = found.get(each.name)
            told: ArgumentHint | StateHint | None = self._state.get(each.name) or self._arguments.get(
                each.name
            )
            if typing.get_origin(hint) is typing.Annotated:
                hint, *extras = typing.get_args(hint)
                extras = [extra() if extra in (StateHint, ArgumentHint) else extra for extra in extras]
                own = [extra for extra in extras if isinstance(extra, StateHint | ArgumentHint)]
                told = told or (own[0] if own else None)
            made[each.name] = (hint, told)
        return made

    @staticmethod
    def _is_context(
        parameter: inspect.Parameter, hints: Mapping[str, tuple[Any, ArgumentHint | StateHint | None]]
    ) -> bool:
        hint, told = hints[parameter.name]
        if hint is None:
            return told is None and parameter.name in _CONTEXTS
        return isinstance(hint, type) and issubclass(hint, ProcessTableContext)

    def _state_spec(self, name: str, kind: Any, told: StateHint) -> StateSpec:
        ttl_ms = self._ttl_ms(name, told)
        origin = typing.get_origin(kind) or kind
        if origin is ListView:
            return StateSpec(name, StateKind.LIST, ttl_ms=ttl_ms)
        if origin is MapView:
            return StateSpec(name, StateKind.MAP, ttl_ms=ttl_ms)
        if told.type is not None or kind is Row:
            row = None if told.type is None else read_type(told.type, "StateHint()")
            if not isinstance(row, RowType):
                raise self._wrong(
                    f"state {name!r} is a Row, and its columns are not known",
                    "StateHint('ROW<count BIGINT, last STRING>')",
                )
            return StateSpec(name, StateKind.VALUE, _RowMaker(tuple(row.field_names())), ttl_ms)
        if not isinstance(origin, type) or issubclass(origin, _FIXED):
            shown = getattr(kind, "__name__", kind)
            raise self._wrong(
                f"state {name!r} is {shown}, which cannot be changed in place",
                "use a class with attributes, a Row, a ListView or a MapView",
            )
        is_object = origin.__module__ != "builtins" and hasattr(self._tried(name, origin), "__dict__")
        return StateSpec(
            name, StateKind.VALUE, origin, ttl_ms, is_object and not issubclass(origin, dict | list | set)
        )

    def _tried(self, name: str, kind: type) -> Any:
        try:
            return kind()
        except TypeError as error:
            raise self._wrong(
                f"state {name!r}: {kind.__name__}() fails: {error}",
                "give all attributes a default value: a new key starts with them",
            ) from error

    def _ttl_ms(self, name: str, told: StateHint) -> int | None:
        if told.ttl is None:
            return None
        try:
            ttl = told.ttl if isinstance(told.ttl, timedelta) else parse_duration(told.ttl)
        except ValueError as error:
            raise self._wrong(f"state {name!r}: {error}", "StateHint(ttl='1 h')") from error
        return ttl // timedelta(milliseconds=1)

    def _argument_spec(
        self, parameter: inspect.Parameter, kind: Any, told: ArgumentHint | StateHint | None
    ) -> ArgumentSpec:
        hint = told if isinstance(told, ArgumentHint) else ArgumentHint()
        name = hint.name or parameter.name
        if name in _RESERVED:
            raise self._wrong(f"argument {name!r}: all calls have on_time and uid", "use another name")
        data_type = None if hint.type is None else read_type(hint.type, "ArgumentHint()")
        if any(trait.is_table for trait in hint.traits):
            return ArgumentSpec(name, hint.traits, data_type)
        extra = hint.traits - {ArgumentTrait.SCALAR}
        if extra:
            raise self._wrong(
                f"argument {name!r} has the trait {sorted(each.name for each in extra)[0]}, but is not a table",
                "add ArgumentTrait.SET_SEMANTIC_TABLE or ArgumentTrait.ROW_SEMANTIC_TABLE",
            )
        data_type = data_type or (_INTERVAL if kind is timedelta else hinted_type(kind))
        if data_type is None:
            raise self._wrong(
                f"parameter {name!r} has no type that is known",
                "annotate it: n: int, ArgumentHint(type=DataTypes.INT()), a table with "
                "Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE)], or state with StateHint()",
            )
        has_default = parameter.default is not inspect.Parameter.empty
        default = parameter.default if has_default else None
        return ArgumentSpec(
            name, frozenset({ArgumentTrait.SCALAR}), data_type, is_optional=has_default, default=default
        )

    def _wrong(self, message: str, hint: str) -> JobDefinitionError:
        return JobDefinitionError(f"ptf(): {self.name}: {message}", hint=hint)


class _RowMaker:
    """Makes rows without values."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def __call__(self) -> Row:
        return make_row(self._names, [None] * len(self._names), 0)


def _check(
    name: str,
    specs: list[ArgumentSpec],
    states: list[StateSpec],
    has_timer: bool,
    emits_updates: bool,
) -> None:
    """Refuse what does not go together, as Flink does."""
    tables = [each for each in specs if each.is_table]
    is_set = any(each.is_set for each in tables)
    trait = ArgumentTrait
    problems = {
        "a function needs a table argument": not tables,
        "several tables need ArgumentTrait.SET_SEMANTIC_TABLE": len(tables) > 1
        and not all(each.is_set for each in tables),
        "a table has either ROW_SEMANTIC_TABLE or SET_SEMANTIC_TABLE": any(
            each.is_set and each.has(trait.ROW_SEMANTIC_TABLE) for each in tables
        ),
        "columns of several tables cannot pass through": len(tables) > 1
        and any(each.has(trait.PASS_COLUMNS_THROUGH) for each in tables),
        "a table with updates cannot pass columns through": any(
            each.has(trait.PASS_COLUMNS_THROUGH) and each.has(trait.SUPPORT_UPDATES) for each in tables
        ),
        "REQUIRE_UPDATE_BEFORE and REQUIRE_FULL_DELETE need SUPPORT_UPDATES": any(
            (each.has(trait.REQUIRE_UPDATE_BEFORE) or each.has(trait.REQUIRE_FULL_DELETE))
            and not each.has(trait.SUPPORT_UPDATES)
            for each in tables
        ),
        "OPTIONAL_PARTITION_BY needs SET_SEMANTIC_TABLE": any(
            each.has(trait.OPTIONAL_PARTITION_BY) and not each.is_set for each in tables
        ),
        "state needs a table with SET_SEMANTIC_TABLE: it belongs to a key": bool(states) and not is_set,
        "timers need a table with SET_SEMANTIC_TABLE: they belong to a key": has_timer and not is_set,
        "timers and columns that pass through exclude each other": has_timer
        and any(each.has(trait.PASS_COLUMNS_THROUGH) for each in tables),
        "updates are emitted for keys: a table needs SET_SEMANTIC_TABLE": emits_updates and not is_set,
        "two arguments have the same name": len({each.name for each in specs}) < len(specs),
    }
    for problem, is_there in problems.items():
        if is_there:
            raise JobDefinitionError(f"ptf(): {name}: {problem}", hint="see docs/sql/process_functions.md")
