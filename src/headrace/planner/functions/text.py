"""Pieces of Spark SQL text that emissions share."""

from __future__ import annotations

from headrace.operators.table.base import SIGNED_DIGITS, negative_decimal
from headrace.planner.expressions import Call, Expression, Literal
from headrace.types import DataType, DecimalType

__all__ = [
    "any_is_null",
    "constant",
    "is_null",
    "let",
    "negative",
    "quoted",
    "string_constant",
    "whole_months",
    "without_cast",
]


def quoted(text: str) -> str:
    r"""A string literal of Spark SQL, whose strings know backslashes.

    >>> print(quoted("it's a \\d"))
    'it\'s a \\d'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0") + "'"


def let(name: str, value: str, text: str) -> str:
    """A text in which a name stands for a value that is worked out once; it hides columns of that name.

    >>> print(let("__n", "rand()", "__n + __n"))
    element_at(transform(array(rand()), __n -> __n + __n), 1)
    """
    return f"element_at(transform(array({value}), {name} -> {text}), 1)"


def constant(expression: Expression) -> object | None:
    """The value of a literal, also after a cast of it; None for anything else."""
    expression = without_cast(expression)
    return expression.value if isinstance(expression, Literal) else None


def is_null(expression: Expression) -> bool:
    """Whether it is NULL for every row."""
    expression = without_cast(expression)
    return isinstance(expression, Literal) and expression.value is None


def without_cast(expression: Expression) -> Expression:
    """What a cast is of."""
    while isinstance(expression, Call) and expression.function == "CAST":
        expression = expression.operands[0]
    return expression


def string_constant(call: Call, place: int) -> str | None:
    """The string that an operand is, if it is a literal."""
    value = constant(call.operands[place]) if place < len(call.operands) else None
    return value if isinstance(value, str) else None


def any_is_null(operands: list[str]) -> str:
    """Whether one of them is NULL."""
    return " OR ".join(f"{one} IS NULL" for one in operands)


def negative(number: str, kind: DataType) -> str:
    """The number with the other sign, with all its digits.

    >>> print(negative("v", DecimalType(20, 2)))
    (- v)
    """
    if isinstance(kind, DecimalType) and kind.precision > SIGNED_DIGITS:
        return negative_decimal(number, kind.spark_name())
    return f"(- {number})"


def whole_months(unit: str, first: str, second: str) -> str:
    """How many whole months, quarters or years lie between two timestamps."""
    forward, backward = _months(unit, first, second), _months(unit, second, first)
    return f"IF({first} <= {second}, {forward}, - ({backward}))"


def _months(unit: str, early: str, late: str) -> str:
    # From the 31st of January to the 28th of February is a month, because a month later than the first is the second.
    whole = f"timestampdiff({unit}, {early}, {late})"
    return f"IF(timestampadd({unit}, CAST({whole} + 1 AS int), {early}) <= {late}, {whole} + 1, {whole})"
