"""CASE and similar functions, casts, and functions of types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.planner.coercion import common_type, comparison_type, is_string
from headrace.planner.expressions import Call
from headrace.planner.functions.registry import FunctionRegistry
from headrace.planner.functions.signature import Resolved, Resolver, WrongArguments
from headrace.planner.functions.text import any_is_null, quoted
from headrace.types import (
    ArrayType,
    BooleanType,
    DataType,
    DataTypes,
    MapType,
    MultisetType,
    NullType,
    RowType,
)

__all__ = ["CONDITIONAL", "SINGLE_VALUES"]

CONDITIONAL: Final = FunctionRegistry("conditional")
#: What queries in place of values call.
SINGLE_VALUES: Final = FunctionRegistry("internal")


def _common(name: str, types: Sequence[DataType]) -> DataType:
    found = common_type(types)
    if found is None:
        shown = ", ".join(one.summary_without_null() for one in types)
        raise WrongArguments(f"{name} has no common type for {shown}", "CAST them to the same type")
    return found


def _case(types: Sequence[DataType]) -> Resolved:
    """Operands: condition, value, condition, value, ..., default."""
    conditions, values = types[:-1:2], [*types[1::2], types[-1]]
    for one in conditions:
        if not isinstance(one, BooleanType | NullType):
            raise WrongArguments(f"WHEN takes a BOOLEAN, not {one.summary_without_null()}")
    result = _common("CASE", values)
    arguments: list[DataType] = []
    for place, one in enumerate(types):
        if place % 2 == 0 and place < len(types) - 1:
            arguments.append(BooleanType(one.is_nullable))
        else:
            arguments.append(result.with_nullability(one.is_nullable))
    return tuple(arguments), result


def _emit_case(call: Call, operands: list[str]) -> str:
    branches = " ".join(
        f"WHEN {operands[place]} THEN {operands[place + 1]}" for place in range(0, len(operands) - 1, 2)
    )
    return f"CASE {branches} ELSE {operands[-1]} END"


CONDITIONAL.add_shape(
    "CASE",
    "CASE WHEN condition THEN value ... [ELSE value] END",
    "The value of the first condition that holds; also `CASE value WHEN value THEN value ... END`.",
    _case,
    _emit_case,
)


def _coalesce(types: Sequence[DataType]) -> Resolved:
    if not types:
        raise WrongArguments("COALESCE takes at least one value")
    result = _common("COALESCE", types)
    arguments = tuple(result.with_nullability(one.is_nullable) for one in types)
    return arguments, result.with_nullability(all(one.is_nullable for one in types))


def _if_null(types: Sequence[DataType]) -> Resolved:
    if len(types) != 2:
        raise WrongArguments("IFNULL takes two values", "IFNULL(value, instead)")
    return _coalesce(types)


CONDITIONAL.add_shape(
    "COALESCE", "COALESCE(value, ...)", "The first value that is not NULL.", _coalesce, "coalesce({all})"
)
CONDITIONAL.add_shape(
    "IFNULL", "IFNULL(value, instead)", "The value, or another if it is NULL.", _if_null, "coalesce({0}, {1})"
)


def _null_if(types: Sequence[DataType]) -> Resolved:
    if len(types) != 2:
        raise WrongArguments("NULLIF takes two values", "NULLIF(value, other)")
    if comparison_type(*types) is None or (is_string(types[1]) and not is_string(types[0])):
        raise WrongArguments(f"NULLIF cannot compare {types[0].summary()} and {types[1].summary()}")
    return (types[0], types[1]), types[0].nullable()


CONDITIONAL.add_shape(
    "NULLIF",
    "NULLIF(value, other)",
    "NULL if both are the same, otherwise the value.",
    _null_if,
    lambda call, each: (
        # Spark compares no maps, but lists of their entries.
        f"IF(array_sort(map_entries({each[0]})) = array_sort(map_entries({each[1]})), NULL, {each[0]})"
        if isinstance(call.operands[0].type, MapType)
        else f"nullif({each[0]}, {each[1]})"
    ),
)


SINGLE_VALUES.add_shape(
    "SINGLE_VALUE",
    "SINGLE_VALUE(count, value)",
    "The value of a query in place of a value, which fails if it has more than one row.",
    lambda types: (tuple(types), types[1].nullable()),
    lambda call, each: (
        f"IF({each[0]} > 1, CAST(raise_error('a scalar subquery returned more than one row') "
        f"AS {call.type.spark_name()}), {each[1]})"
    ),
    is_form=True,
)


def _if(types: Sequence[DataType]) -> Resolved:
    if len(types) != 3:
        raise WrongArguments("IF takes a condition and two values", "IF(condition, value, otherwise)")
    if not isinstance(types[0], BooleanType | NullType):
        raise WrongArguments(f"IF takes a BOOLEAN as condition, not {types[0].summary_without_null()}")
    result = _common("IF", types[1:])
    nullable = any(one.is_nullable for one in types)
    return (BooleanType(types[0].is_nullable), result, result), result.with_nullability(nullable)


CONDITIONAL.add_shape("IF", "IF(condition, value, otherwise)", "One of two values.", _if, "IF({0}, {1}, {2})")


def _extreme(name: str) -> Resolver:
    def resolve(types: Sequence[DataType]) -> Resolved:
        if not types:
            raise WrongArguments(f"{name} takes at least one value")
        result = _common(name, types)
        if isinstance(result, ArrayType | MapType | MultisetType | RowType):
            raise WrongArguments(
                f"{name} takes values that can be ordered, not {result.summary_without_null()}"
            )
        return tuple(result.with_nullability(one.is_nullable) for one in types), result

    return resolve


def _emit_extreme(call: Call, operands: list[str]) -> str:
    # Spark's skip NULL; Flink's are NULL if one value is.
    if len(operands) == 1:
        return operands[0]
    text = f"{call.function.lower()}({', '.join(operands)})"
    maybe = [text for text, one in zip(operands, call.operands, strict=True) if one.type.is_nullable]
    return f"IF({any_is_null(maybe)}, NULL, {text})" if maybe else text


CONDITIONAL.add_shape(
    "GREATEST",
    "GREATEST(value, ...)",
    "The largest value; NULL if one is.",
    _extreme("GREATEST"),
    _emit_extreme,
)
CONDITIONAL.add_shape(
    "LEAST", "LEAST(value, ...)", "The smallest value; NULL if one is.", _extreme("LEAST"), _emit_extreme
)


def _type_of(types: Sequence[DataType]) -> Resolved:
    if len(types) != 1:
        raise WrongArguments("TYPEOF takes one value", "TYPEOF(value)")
    return tuple(types), DataTypes.STRING()


CONDITIONAL.add_shape(
    "TYPEOF",
    "TYPEOF(value)",
    "The type of a value, as a string.",
    _type_of,
    lambda call, _: quoted(call.operands[0].type.summary()),
)
