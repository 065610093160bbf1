"""Numeric functions: rounding, logarithms, trigonometry, conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headrace.planner.expressions import Call, Literal
from headrace.planner.functions.registry import FunctionRegistry, same_as
from headrace.planner.functions.signature import Emission, Nulls, Resolved, WrongArguments, signature
from headrace.planner.functions.text import constant, negative, quoted
from headrace.types import (
    DataType,
    DataTypes,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NumericType,
    SmallIntType,
    TinyIntType,
)

__all__ = ["MATH"]

MATH: Final = FunctionRegistry("numeric")
_DOUBLE: Final = DoubleType()
_STRING: Final = DataTypes.STRING()
_ODD_DIGITS: Final = "^[0-9A-Fa-f]([0-9A-Fa-f][0-9A-Fa-f])*$"


def _logarithm(operand: str, function: str = "ln") -> str:
    # Spark's logarithms of zero and less are NULL; Flink's are Java's.
    return (
        f"CASE WHEN {operand} > 0 THEN {function}({operand}) WHEN {operand} = 0 THEN double('-Infinity') "
        f"WHEN {operand} < 0 THEN double('NaN') END"
    )


for _name, _text in (
    ("SQRT", "The square root."),
    ("EXP", "e to the power of the number."),
    ("SIN", "The sine."),
    ("SINH", "The hyperbolic sine."),
    ("COS", "The cosine."),
    ("COSH", "The hyperbolic cosine."),
    ("TAN", "The tangent."),
    ("TANH", "The hyperbolic tangent."),
    ("COT", "The cotangent."),
    ("ASIN", "The arc sine."),
    ("ACOS", "The arc cosine."),
    ("ATAN", "The arc tangent."),
    ("DEGREES", "Radians as degrees."),
    ("RADIANS", "Degrees as radians."),
):
    MATH.add(f"{_name}(number DOUBLE)", _DOUBLE, f"{_name.lower()}({{0}})", _text)
MATH.add("POWER(number DOUBLE, power DOUBLE)", _DOUBLE, "power({0}, {1})", "The number to the power.")


def _point(types: Sequence[DataType]) -> Resolved:
    arguments = signature("ATAN2(y DOUBLE, x DOUBLE)").bind(types)
    if any(isinstance(one, DecimalType) for one in types):
        raise WrongArguments("ATAN2 does not accept DECIMAL", "CAST it to DOUBLE")
    return arguments, DoubleType(any(one.is_nullable for one in types))


MATH.add_shape("ATAN2", "ATAN2(y, x)", "The arc tangent of a point.", _point, "atan2({0}, {1})")
MATH.add("LN(number DOUBLE)", _DOUBLE, lambda _, each: _logarithm(each[0]), "The natural logarithm.")
MATH.add(
    "LOG10(number DOUBLE)", _DOUBLE, lambda _, each: _logarithm(each[0], "log10"), "The logarithm to base 10."
)
MATH.add(
    "LOG2(number DOUBLE)", _DOUBLE, lambda _, each: _logarithm(each[0], "log2"), "The logarithm to base 2."
)
MATH.add(
    ["LOG(number DOUBLE)", "LOG(base DOUBLE, number DOUBLE)"],
    _DOUBLE,
    lambda _, each: (
        _logarithm(each[0]) if len(each) == 1 else f"({_logarithm(each[1])}) / ({_logarithm(each[0])})"
    ),
    "The natural logarithm, or the one to a base.",
)


def _emit_abs(call: Call, operands: list[str]) -> str:
    (number,) = operands
    if isinstance(call.type, DecimalType):
        return f"IF({number} < 0, {negative(number, call.type)}, {number})"
    return f"abs({number})"


MATH.add("ABS(number NUMBER)", same_as(), _emit_abs, "The number without its sign.")
MATH.add("SIGN(number NUMBER)", same_as(), "sign({0})", "-1, 0 or 1.")


def _whole(types: Sequence[DataType]) -> DataType:
    one = types[0]
    return DecimalType(one.precision, 0) if isinstance(one, DecimalType) else one


def _emit_whole(name: str) -> Emission:
    def emit(call: Call, operands: list[str]) -> str:
        (number,) = operands
        made = f"{name}({number})"
        if not isinstance(call.type, FloatType | DoubleType):
            return made
        # Spark's are whole numbers: NaN, infinity and zero's sign would be lost.
        kind = call.type.spark_name()
        zero = f"WHEN {number} > -1 AND {number} < 0 THEN CAST('-0.0' AS {kind}) " if name == "ceil" else ""
        return f"CASE {zero}WHEN abs({number}) < 9e15 THEN CAST({made} AS {kind}) ELSE {number} END"

    return emit


MATH.add("CEIL(number NUMBER)", _whole, _emit_whole("ceil"), "The next whole number up.", aliases=["CEILING"])
MATH.add("FLOOR(number NUMBER)", _whole, _emit_whole("floor"), "The next whole number down.")


#: Digits that make a difference where their number is not known.
_DIGITS: Final = range(-19, 39)


def _to_digits(call: Call, operands: list[str], made: Callable[[int], str]) -> str:
    """What is made for a number of digits, which Spark wants to know."""
    digits = constant(call.operands[1]) if len(call.operands) > 1 else 0
    if isinstance(digits, int):
        return made(digits)
    kind = call.type.spark_name()
    if isinstance(call.operands[1], Literal):
        return f"CAST(NULL AS {kind})"
    cases = " ".join(f"WHEN {number} THEN CAST({made(number)} AS {kind})" for number in _DIGITS)
    beyond = f"IF({operands[1]} > 0, {operands[0]}, CAST(0 AS {kind}))"
    return f"IF({operands[1]} IS NULL, NULL, CASE {operands[1]} {cases} ELSE {beyond} END)"


def _rounded(types: Sequence[DataType]) -> DataType:
    # Without the number of digits, which is a value and not a type: `round_type` says it exactly.
    return types[0]


def round_type(name: str, operand: DataType, digits: int | None) -> DataType:
    """The type of ROUND and TRUNCATE, which depends on the number of digits."""
    if not isinstance(operand, DecimalType):
        return operand
    precision, scale = operand.precision, operand.scale
    kept = 0 if digits is None else max(0, min(digits, scale))
    if digits is not None and digits >= scale:
        return operand
    if digits is None:
        return DecimalType(min(max(precision - scale + 1, 1), 38), 0, operand.is_nullable)
    return DecimalType(min(1 + precision - scale + kept, 38), kept, operand.is_nullable)


def _emit_truncate(call: Call, operands: list[str]) -> str:
    if isinstance(call.operands[0].type, TinyIntType | SmallIntType):
        raise WrongArguments(
            f"TRUNCATE takes no {call.operands[0].type.summary_without_null()}", "CAST it to INT"
        )
    number = operands[0]
    if isinstance(call.operands[0].type, FloatType | DoubleType):
        number = f"CAST({number} AS decimal(38,18))"
    elif not isinstance(call.operands[0].type, DecimalType):
        number = f"CAST({number} AS decimal(20,0))"
    made = _to_digits(
        call,
        operands,
        lambda digits: f"IF({operands[0]} < 0, ceil({number}, {digits}), floor({number}, {digits}))",
    )
    return _finite(call, operands, made, "1e20")


def _finite(call: Call, operands: list[str], made: str, limit: str) -> str:
    """What is made of a number that decimal digits can say; others fail, as in Flink."""
    if not isinstance(call.operands[0].type, FloatType | DoubleType):
        return made
    fail = f"raise_error('{call.function} failed: the number is out of range')"
    known = " OR ".join(f"{one} IS NULL" for one in operands)
    return f"CASE WHEN {known} THEN NULL WHEN abs({operands[0]}) < {limit} THEN {made} ELSE {fail} END"


MATH.add(
    "ROUND(number NUMBER [, digits INT])",
    _rounded,
    lambda call, each: _finite(
        call,
        each,
        _to_digits(call, each, lambda digits: f"round({each[0]}, {digits})"),
        "double('Infinity')",
    ),
    "Rounds to some digits after the decimal point; halves away from zero.",
)
MATH.add(
    "TRUNCATE(number NUMBER [, digits INT])",
    _rounded,
    _emit_truncate,
    "Cuts the number off after some digits after the decimal point.",
)
MATH.add("PI()", _DOUBLE, "pi()", "The number pi.", nulls=Nulls.NEVER)
MATH.add("E()", _DOUBLE, "e()", "The number e.", nulls=Nulls.NEVER)
MATH.add(
    "RAND([seed INT])",
    _DOUBLE,
    lambda _, each: f"rand({', '.join(each)})",
    "A random number from 0 up to 1.",
    nulls=Nulls.NEVER,
)
MATH.add(
    ["RAND_INTEGER(bound INT)", "RAND_INTEGER(seed INT, bound INT)"],
    DataTypes.INT(),
    lambda _, each: (
        f"IF({each[-1]} <= 0, CAST(raise_error('RAND_INTEGER takes a bound above 0') AS int), "
        f"CAST(floor(rand({', '.join(each[:-1])}) * {each[-1]}) AS int))"
    ),
    "A random whole number from 0 up to a bound.",
)
MATH.add("UUID()", DataTypes.CHAR(36), "uuid()", "A random id.", nulls=Nulls.NEVER)
MATH.add("BIN(number INTEGER)", _STRING, "bin({0})", "The number in binary digits.")


def _emit_hex(call: Call, operands: list[str]) -> str:
    kind = call.operands[0].type
    if isinstance(kind, NumericType) and not isinstance(kind, IntegralType):
        raise WrongArguments(f"HEX takes a whole number or a string, not {kind.summary_without_null()}")
    return f"hex({operands[0]})"


MATH.add(
    "HEX(value NUMBER OR STRING)",
    _STRING,
    _emit_hex,
    "The number, or the bytes of a string, in hexadecimal digits.",
)
MATH.add(
    "UNHEX(text STRING)",
    DataTypes.BYTES(),
    # As Flink, in which the first of an odd number of digits counts as none.
    f"IF({{0}} RLIKE {quoted(_ODD_DIGITS)}, unhex(concat('00', substring({{0}}, 2))), unhex({{0}}))",
    "The bytes of a string of hexadecimal digits.",
    nulls=Nulls.ALWAYS,
)
