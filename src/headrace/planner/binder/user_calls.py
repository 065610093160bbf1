"""Calls of the user's own functions: found in the catalog, and their arguments checked."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from headrace.catalog.functions import CatalogFunction, FunctionKind, UserFunction
from headrace.errors import HeadraceError
from headrace.planner import expressions as e
from headrace.planner.binder.casts import cast_to
from headrace.planner.binder.context import Context
from headrace.planner.coercion import can_cast_implicitly
from headrace.planner.dialect import syntax
from headrace.types import ArrayType

__all__ = ["calls_user_aggregate", "checked_operands", "find_user_function", "is_aggregate"]

#: What takes the arguments of a row, by the kind of a function.
_METHODS = {
    FunctionKind.AGGREGATE: "accumulate",
    FunctionKind.PANDAS_AGGREGATE: "accumulate",
    FunctionKind.TABLE_AGGREGATE: "accumulate",
}


def is_aggregate(function: UserFunction) -> bool:
    """Whether a function gives one value for each group; rows of a group, where they are asked for as an array."""
    gives_array = isinstance(function.result_type, ArrayType)
    return function.kind in (FunctionKind.AGGREGATE, FunctionKind.PANDAS_AGGREGATE) or (
        function.kind is FunctionKind.TABLE_AGGREGATE and gives_array
    )


def find_user_function(context: Context, node: syntax.FunctionCall) -> UserFunction | None:
    """Return the user's function of this name; None if there is none."""
    try:
        found = context.manager.function(node.name.path)
    except HeadraceError as wrong:
        raise context.catalog_error(wrong.message, node.name.span) from wrong
    if isinstance(found, CatalogFunction):
        try:
            return context.load_function(node.name.path[-1], found)
        except HeadraceError as wrong:
            raise context.error(wrong.message, node.span, hint=wrong.hint) from wrong
    return found


def calls_user_aggregate(context: Context, node: syntax.FunctionCall) -> bool:
    """Whether a call is of an aggregate function of the user's; what else is wrong with it is told later."""
    try:
        found = find_user_function(context, node)
    except HeadraceError:
        return False
    return found is not None and is_aggregate(found)


def checked_operands(
    context: Context, node: syntax.FunctionCall, function: UserFunction, operands: Sequence[e.Expression]
) -> tuple[e.Expression, ...]:
    """Return the arguments of a call as the types that the function declares.

    Raises:
        SqlValidationError: If they are too many, too few, or of other types.
    """
    if not _takes(function, len(operands)):
        raise context.error(
            f"{function.name} does not take {len(operands)} argument{'' if len(operands) == 1 else 's'}",
            node.span,
            hint=f"it is {function.name}{_shown(function)}",
        )
    if function.argument_types is None:
        return tuple(operands)
    if len(operands) != len(function.argument_types):
        raise context.error(
            f"{function.name} takes {len(function.argument_types)} arguments, not {len(operands)}",
            node.span,
        )
    for place, (one, wanted) in enumerate(zip(operands, function.argument_types, strict=True)):
        if not can_cast_implicitly(one.type, wanted):
            raise context.error(
                f"argument {place + 1} of {function.name} is {wanted.summary_without_null()}, "
                f"not {one.type.summary_without_null()}",
                node.arguments[place].span,
                hint="CAST it",
            )
    return tuple(cast_to(one, kind) for one, kind in zip(operands, function.argument_types, strict=True))


def _signature(function: UserFunction) -> inspect.Signature | None:
    """What a Python function takes; None if unknown."""
    implementation = function.implementation
    called = getattr(implementation, _METHODS.get(function.kind, "eval"), implementation)
    try:
        return inspect.signature(called)
    except (TypeError, ValueError):
        return None


def _given(function: UserFunction) -> int:
    """How many arguments a function gets besides those of the call: the accumulator, if it has one."""
    is_class = hasattr(function.implementation, "accumulate")
    return 1 if is_class and function.kind in _METHODS else 0


def _takes(function: UserFunction, count: int) -> bool:
    signature = _signature(function)
    if signature is None:
        return True
    try:
        signature.bind(*(None for _ in range(count + _given(function))))
    except TypeError:
        return False
    return True


def _shown(function: UserFunction) -> str:
    """The arguments that a function takes, as its signature says."""
    signature = _signature(function)
    assert signature is not None
    parameters = list(signature.parameters.values())[_given(function) :]
    return str(signature.replace(parameters=parameters))
