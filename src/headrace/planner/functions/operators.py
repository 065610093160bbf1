"""Comparisons, logic and arithmetic: functions that are written as operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from headrace import types as t
from headrace.planner.coercion import (
    adjusted_decimal,
    as_decimal,
    common_type,
    comparison_type,
    is_binary,
    is_interval,
    is_string,
    is_temporal,
    length_of,
)
from headrace.planner.expressions import Call, Expression
from headrace.planner.functions.registry import FunctionRegistry
from headrace.planner.functions.signature import Emission, Resolved, Resolver, WrongArguments
from headrace.planner.functions.temporal import truncated
from headrace.planner.functions.text import constant, is_null, negative, quoted, string_constant, whole_months
from headrace.types.logical import MAX_LENGTH

__all__ = ["COMPARISON_NAMES", "OPERATORS"]

OPERATORS: Final = FunctionRegistry("operators")
#: The operators of comparisons by function, for plans and messages.
COMPARISON_NAMES: Final = {
    "EQUALS": "=",
    "NOT_EQUALS": "<>",
    "LESS_THAN": "<",
    "LESS_THAN_OR_EQUAL": "<=",
    "GREATER_THAN": ">",
    "GREATER_THAN_OR_EQUAL": ">=",
}


def _operator(
    name: str, shown: str, resolve: Resolver, emission: Emission, description: str, exact: bool = True
) -> None:
    OPERATORS.add_shape(name, shown, description, resolve, emission, exact=exact, is_form=name != "MOD")


def _nullable(types: Sequence[t.DataType]) -> bool:
    return any(one.is_nullable for one in types)


#: Comparisons that take no text for a number.
_EQUALITY: Final = ("=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")

_ORDERING: Final = ("<", "<=", ">", ">=")

# --- comparisons ----------------------------------------------------------------------------------


def _compared(symbol: str) -> Resolver:
    def resolve(types: Sequence[t.DataType]) -> Resolved:
        found: t.DataType | None = types[0]
        for other in types[1:]:
            found = None if found is None else comparison_type(found, other)
        if symbol in _EQUALITY and any(map(is_string, types)) and isinstance(found, t.NumericType):
            # As Flink, which compares them with < and > alone.
            found = None
        if symbol in _ORDERING and isinstance(found, t.VariantType):
            found = None
        if found is None:
            shown = ", ".join(one.summary_without_null() for one in types)
            raise WrongArguments(f"{symbol} cannot compare {shown}", "CAST one of them to the other's type")
        if isinstance(found, t.NullType):
            found = t.DataTypes.STRING()
        return tuple(found.with_nullability(one.is_nullable) for one in types), t.BooleanType(
            _nullable(types)
        )

    return resolve


def _never_null(inner: Resolver) -> Resolver:
    def resolve(types: Sequence[t.DataType]) -> Resolved:
        return inner(types)[0], t.BooleanType(False)

    return resolve


def _emit_compared(template: str) -> Callable[[Call, list[str]], str]:
    """Spark compares no maps, but lists of their entries."""

    def emit(call: Call, operands: list[str]) -> str:
        if isinstance(call.operands[0].type, t.MapType):
            operands = [f"array_sort(map_entries({text}))" for text in operands]
        return template.format(*operands)

    return emit


for _name, _symbol in COMPARISON_NAMES.items():
    _operator(
        _name,
        f"value1 {_symbol} value2",
        _compared(_symbol),
        _emit_compared("({0} " + _symbol + " {1})"),
        "Compares; NULL if one of the values is.",
    )
_operator(
    "IS_DISTINCT_FROM",
    "value1 IS DISTINCT FROM value2",
    _never_null(_compared("IS DISTINCT FROM")),
    _emit_compared("(NOT ({0} <=> {1}))"),
    "Whether the values differ, where NULL is a value like others.",
)
_operator(
    "IS_NOT_DISTINCT_FROM",
    "value1 IS NOT DISTINCT FROM value2",
    _never_null(_compared("IS NOT DISTINCT FROM")),
    _emit_compared("({0} <=> {1})"),
    "Whether the values are the same, where NULL is a value like others.",
)
_operator(
    "BETWEEN",
    "value1 [NOT] BETWEEN [ASYMMETRIC] value2 AND value3",
    _compared("BETWEEN"),
    "({0} BETWEEN {1} AND {2})",
    "Whether a value lies in a range, ends included.",
)
_operator(
    "BETWEEN_SYMMETRIC",
    "value1 [NOT] BETWEEN SYMMETRIC value2 AND value3",
    _compared("BETWEEN"),
    "(({0} BETWEEN {1} AND {2}) OR ({0} BETWEEN {2} AND {1}))",
    "Whether a value lies in a range whose ends may come in any order.",
)


def _listed(types: Sequence[t.DataType]) -> Resolved:
    """A text is looked for among texts, also where the list has numbers: as in Flink it need not be a number."""
    if any(map(is_string, types[1:])) and any(isinstance(one, t.NumericType) for one in types[1:]):
        raise WrongArguments("IN cannot compare strings with numbers", "CAST them to one type")
    if is_string(types[0]) and all(is_string(one) or isinstance(one, t.NumericType) for one in types[1:]):
        texts = tuple(t.DataTypes.STRING().with_nullability(one.is_nullable) for one in types)
        return texts, t.BooleanType(_nullable(types))
    return _compared("IN")(types)


def _emit_in(call: Call, operands: list[str]) -> str:
    return f"({operands[0]} IN ({', '.join(operands[1:])}))"


_operator(
    "IN",
    "value [NOT] IN (value, ...)",
    _listed,
    _emit_in,
    "Whether a value is one of a list.",
)


def _any_value(types: Sequence[t.DataType]) -> Resolved:
    return tuple(types), t.BooleanType(False)


_operator("IS_NULL", "value IS NULL", _any_value, "({0} IS NULL)", "Whether a value is NULL.")
_operator("IS_NOT_NULL", "value IS NOT NULL", _any_value, "({0} IS NOT NULL)", "Whether a value is not NULL.")


# --- text -----------------------------------------------------------------------------------------


def _strings(name: str) -> Resolver:
    def resolve(types: Sequence[t.DataType]) -> Resolved:
        for one in types:
            if not is_string(one) and not isinstance(one, t.NullType):
                raise WrongArguments(
                    f"{name} takes strings, not {one.summary_without_null()}", "CAST it to STRING"
                )
        found = tuple(t.DataTypes.STRING() if isinstance(one, t.NullType) else one for one in types)
        return found, t.BooleanType(_nullable(types))

    return resolve


def _emit_like(call: Call, operands: list[str]) -> str:
    # Spark's LIKE takes \ as an escape where Flink's has none: give it a character nobody writes.
    escape = string_constant(call, 2) if len(call.operands) == 3 else "\u0001"
    if escape is None or len(escape) != 1:
        raise WrongArguments("the ESCAPE of LIKE must be one character")
    if len(call.operands) == 3 and _ends_in_escape(string_constant(call, 1), escape):
        raise WrongArguments(
            "the pattern of LIKE ends with the ESCAPE character, which must be followed by another character"
        )
    return f"({operands[0]} LIKE {operands[1]} ESCAPE {quoted(escape)})"


def _ends_in_escape(pattern: str | None, escape: str) -> bool:
    if pattern is None:
        return False
    return (len(pattern) - len(pattern.rstrip(escape))) % 2 == 1


def _emit_similar(call: Call, operands: list[str]) -> str:
    pattern = string_constant(call, 1)
    escape = string_constant(call, 2) if len(call.operands) == 3 else None
    if pattern is None:
        raise WrongArguments("SIMILAR TO takes a constant pattern")
    return f"({operands[0]} RLIKE {quoted(_regular_expression(pattern, escape))})"


def _regular_expression(pattern: str, escape: str | None) -> str:
    """SQL's regular expressions as Java's: % and _ are .* and ., the rest is alike."""
    made, place = [], 0
    while place < len(pattern):
        letter = pattern[place]
        if escape is not None and letter == escape and place + 1 < len(pattern):
            place += 1
            made.append(re.escape(pattern[place]))
        elif letter in "\\^$":
            made.append("\\" + letter)
        else:
            made.append({"%": ".*", "_": "."}.get(letter, letter))
        place += 1
    return f"^(?s:{''.join(made)})$"


_operator(
    "LIKE",
    "string1 [NOT] LIKE string2 [ESCAPE char]",
    _strings("LIKE"),
    _emit_like,
    "Whether a string matches a pattern, in which % is any text and _ any character.",
)
_operator(
    "SIMILAR",
    "string1 [NOT] SIMILAR TO string2 [ESCAPE char]",
    _strings("SIMILAR TO"),
    _emit_similar,
    "Whether a string matches an SQL regular expression.",
)


def _concatenated(types: Sequence[t.DataType]) -> Resolved:
    if all(isinstance(one, t.CharType) for one in types):
        return tuple(types), t.CharType(sum(map(length_of, types)), _nullable(types))
    for same, made in ((is_string, t.VarCharType), (is_binary, t.VarBinaryType)):
        if all(same(one) or isinstance(one, t.NullType) for one in types):
            length = sum(map(length_of, types))
            found = tuple(made(MAX_LENGTH) if isinstance(one, t.NullType) else one for one in types)
            return found, made(min(length, MAX_LENGTH), _nullable(types))
    shown = " and ".join(one.summary_without_null() for one in types)
    raise WrongArguments(f"|| joins strings, not {shown}", "CAST the other values to STRING")


_operator("CONCAT_OPERATOR", "string1 || string2", _concatenated, "concat({0}, {1})", "Joins strings.")


# --- logic ----------------------------------------------------------------------------------------


def _booleans(name: str, never_null: bool = False) -> Resolver:
    def resolve(types: Sequence[t.DataType]) -> Resolved:
        for one in types:
            if not isinstance(one, t.BooleanType | t.NullType):
                raise WrongArguments(f"{name} takes BOOLEAN, not {one.summary_without_null()}")
        found = tuple(t.BooleanType(one.is_nullable) for one in types)
        return found, t.BooleanType(not never_null and _nullable(types))

    return resolve


def _emit_joined(word: str) -> Callable[[Call, list[str]], str]:
    return lambda _, operands: "(" + f" {word} ".join(operands) + ")"


_operator("AND", "boolean1 AND boolean2", _booleans("AND"), _emit_joined("AND"), "Both.")
_operator("OR", "boolean1 OR boolean2", _booleans("OR"), _emit_joined("OR"), "One or both.")
_operator("NOT", "NOT boolean", _booleans("NOT"), "(NOT {0})", "The opposite.")
for _name, _shown, _text in (
    ("IS_TRUE", "IS TRUE", "coalesce({0}, false)"),
    ("IS_NOT_TRUE", "IS NOT TRUE", "(NOT coalesce({0}, false))"),
    ("IS_FALSE", "IS FALSE", "coalesce(NOT {0}, false)"),
    ("IS_NOT_FALSE", "IS NOT FALSE", "coalesce({0}, true)"),
    ("IS_UNKNOWN", "IS UNKNOWN", "({0} IS NULL)"),
    ("IS_NOT_UNKNOWN", "IS NOT UNKNOWN", "({0} IS NOT NULL)"),
):
    _operator(_name, f"boolean {_shown}", _booleans(_shown, True), _text, "TRUE or FALSE, never NULL.")


# --- arithmetic -----------------------------------------------------------------------------------


def _numbers(symbol: str, types: Sequence[t.DataType]) -> list[t.DataType]:
    found: list[t.DataType] = []
    for one, other in ((types[0], types[1]), (types[1], types[0])):
        kept = other if isinstance(one, t.NullType) else one
        if not isinstance(kept, t.NumericType):
            shown = " and ".join(each.summary_without_null() for each in types)
            times = t.DateType | t.TimeType | t.TimestampType | t.LocalZonedTimestampType
            hint = "CAST strings to a number first"
            if any(isinstance(each, times) for each in types):
                hint = "move a time by an interval, as in ts + INTERVAL '1' DAY; TIMESTAMPDIFF(DAY, a, b) is a number"
            raise WrongArguments(f"{symbol} takes numbers, not {shown}", hint)
        found.append(kept.with_nullability(one.is_nullable))
    return found


def _arithmetic(symbol: str, types: Sequence[t.DataType]) -> Resolved:
    one, other = _numbers(symbol, types)
    nullable = _nullable(types)
    if symbol == "%" and not all(isinstance(each, t.IntegralType | t.DecimalType) for each in (one, other)):
        raise WrongArguments("% takes whole numbers and DECIMALs", "CAST the number to a DECIMAL")
    if symbol == "%" and not getattr(one, "scale", 0) and not getattr(other, "scale", 0):
        # A remainder is no larger than the divisor.
        return (one, other), other.with_nullability(nullable)
    if isinstance(one, t.DecimalType) or isinstance(other, t.DecimalType):
        left, right = as_decimal(one), as_decimal(other)
        if left is not None and right is not None:
            return (left, right), _decimal_result(symbol, left, right, nullable)
    if isinstance(one, t.FloatType | t.DoubleType) and isinstance(other, t.FloatType | t.DoubleType):
        # Flink takes the first of two floating types, whichever is wider.
        result: t.DataType = one
    else:
        result = common_type([one, other]) or t.DoubleType()
    arguments = tuple(result.with_nullability(each.is_nullable) for each in (one, other))
    return arguments, result.with_nullability(nullable)


def _decimal_result(symbol: str, left: t.DecimalType, right: t.DecimalType, nullable: bool) -> t.DecimalType:
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    match symbol:
        case "*":
            return adjusted_decimal(p1 + p2 + 1, s1 + s2, nullable)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return adjusted_decimal(p1 - s1 + s2 + scale, scale, nullable)
        case "%":
            scale = max(s1, s2)
            return adjusted_decimal(min(p1 - s1, p2 - s2) + scale, scale, nullable)
        case _:
            scale = max(s1, s2)
            return adjusted_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale, nullable)


def _sum(symbol: str) -> Resolver:
    def resolve(types: Sequence[t.DataType]) -> Resolved:
        one, other = types
        nullable = _nullable(types)
        if is_temporal(one) and is_interval(other):
            return (one, other), one.with_nullability(nullable)
        if symbol == "+" and is_interval(one) and is_temporal(other):
            return (one, other), other.with_nullability(nullable)
        if is_interval(one) and type(one) is type(other):
            return (one, other), one.with_nullability(nullable)
        if is_temporal(one) and is_temporal(other):
            raise WrongArguments(
                f"{symbol} takes numbers, or a time and an interval",
                "use TIMESTAMPDIFF for the time between two timestamps",
            )
        return _arithmetic(symbol, types)

    return resolve


def _months(operand: Expression, text: str) -> str:
    """Months as Spark adds them to a time."""
    value = constant(operand)
    return f"INTERVAL '{value}' MONTH" if isinstance(value, int) else f"make_ym_interval(0, {text})"


def _emit_sum(symbol: str) -> Callable[[Call, list[str]], str]:
    def emit(call: Call, operands: list[str]) -> str:
        if is_temporal(call.type) and not isinstance(call.type, t.TimeType):
            operands = [
                _months(one, text) if isinstance(one.type, t.YearMonthIntervalType) else text
                for one, text in zip(call.operands, operands, strict=True)
            ]
        text = f"({operands[0]} {symbol} {operands[1]})"
        if isinstance(call.type, t.DateType):
            return _day(call, operands, symbol)
        if isinstance(call.type, t.DecimalType):
            # Spark has other digits for the sum of two decimals.
            return f"CAST({text} AS {call.type.spark_name()})"
        if isinstance(call.type, t.TimeType):
            return _time_of_day(call, operands, symbol)
        return text

    return emit


def _day(call: Call, operands: list[str], symbol: str) -> str:
    """A day and an interval, of which whole days count."""
    is_first = isinstance(call.operands[0].type, t.DateType)
    day, interval = operands if is_first else reversed(operands)
    if isinstance(call.operands[1 if is_first else 0].type, t.YearMonthIntervalType):
        return f"CAST(({day} {symbol} {interval}) AS date)"
    return f"date_add({day}, {symbol} CAST(extract(DAY FROM {interval}) AS int))"


def _time_of_day(call: Call, operands: list[str], symbol: str) -> str:
    """A time of day and an interval: that of any day, on which it may go past midnight."""
    is_first = isinstance(call.operands[0].type, t.TimeType)
    time, interval = operands if is_first else reversed(operands)
    if not isinstance(call.operands[1 if is_first else 0].type, t.DayTimeIntervalType):
        return f"IF({interval} IS NULL, NULL, {time})"  # whole days, as months are
    moment = f"make_timestamp_ntz(DATE'2000-01-01', {time}) {symbol} {interval}"
    return f"CAST(({moment}) AS {call.type.spark_name()})"


def _product(symbol: str) -> Resolver:
    def resolve(types: Sequence[t.DataType]) -> Resolved:
        one, other = types
        if is_interval(one) and isinstance(other, t.IntegralType) and symbol == "*":
            return (one, other), one.with_nullability(_nullable(types))
        if is_interval(other) and isinstance(one, t.IntegralType) and symbol == "*":
            return (one, other), other.with_nullability(_nullable(types))
        return _arithmetic(symbol, types)

    return resolve


def _emit_times(call: Call, operands: list[str]) -> str:
    text = f"({operands[0]} * {operands[1]})"
    is_sized = isinstance(call.type, t.DecimalType | t.YearMonthIntervalType)
    return f"CAST({text} AS {call.type.spark_name()})" if is_sized else text


def _guarded(call: Call, operands: list[str], text: str) -> str:
    """Division that fails where the divisor is zero, as in Flink; Spark would give NULL."""
    divisor = constant(call.operands[1])
    if divisor is not None and divisor != 0:
        return text
    return f"IF({operands[1]} = 0, CAST(raise_error('/ by zero') AS {call.type.spark_name()}), {text})"


def _emit_divide(call: Call, operands: list[str]) -> str:
    name = call.type.spark_name()
    if isinstance(call.type, t.IntegralType):
        return _guarded(call, operands, f"CAST(({operands[0]} DIV {operands[1]}) AS {name})")
    if isinstance(call.type, t.DecimalType):
        return _guarded(call, operands, f"CAST(({operands[0]} / {operands[1]}) AS {name})")
    divisor = constant(call.operands[1])
    text = f"CAST(({operands[0]} / {operands[1]}) AS {name})"
    if divisor is not None and divisor != 0:
        return text
    # Floating division by zero is infinite, not NULL; 0 / 0 is not a number.
    return f"IF({operands[1]} = 0, CAST({operands[0]} * double('Infinity') AS {name}), {text})"


def _emit_mod(call: Call, operands: list[str]) -> str:
    text = f"CAST(({operands[0]} % {operands[1]}) AS {call.type.spark_name()})"
    return text if isinstance(call.type, t.FloatType | t.DoubleType) else _guarded(call, operands, text)


_operator(
    "PLUS",
    "value1 + value2",
    _sum("+"),
    _emit_sum("+"),
    "Adds numbers, or an interval to a time. Whole numbers wrap around at their ends.",
)
_operator(
    "MINUS",
    "value1 - value2",
    _sum("-"),
    _emit_sum("-"),
    "Subtracts numbers, or an interval from a time.",
)
_operator("TIMES", "value1 * value2", _product("*"), _emit_times, "Multiplies.")
_operator(
    "DIVIDE",
    "value1 / value2",
    _product("/"),
    _emit_divide,
    "Divides; the quotient of whole numbers has no fraction. Division of whole numbers by zero fails.",
)


def _remainder(types: Sequence[t.DataType]) -> Resolved:
    if len(types) != 2:
        raise WrongArguments("MOD takes two numbers", "MOD(value1, value2)")
    return _product("%")(types)


_operator("MOD", "value1 % value2, MOD(value1, value2)", _remainder, _emit_mod, "The remainder.")


def _signed(types: Sequence[t.DataType]) -> Resolved:
    if not isinstance(types[0], t.NumericType | t.DayTimeIntervalType | t.YearMonthIntervalType):
        raise WrongArguments(f"a sign can only precede a number, not {types[0].summary_without_null()}")
    return tuple(types), types[0]


_operator(
    "NEGATE",
    "- value",
    _signed,
    lambda call, each: negative(each[0], call.type),
    "The number with the other sign.",
)
_operator("POSITIVE", "+ value", _signed, "{0}", "The number itself.")


def _time_difference(types: Sequence[t.DataType]) -> Resolved:
    return _subtracted(types, t.DataTypes.INTERVAL(t.DataTypes.SECOND(3)))


def _subtracted(types: Sequence[t.DataType], result: t.DataType) -> Resolved:
    if not all(is_temporal(one) for one in types):
        raise WrongArguments("(a - b) with an interval qualifier needs two times")
    found = common_type(types)
    if found is None:
        raise _other_time()
    if _are_of_one_kind(types):
        return (found, found), result.with_nullability(_nullable(types))
    return tuple(types), result.with_nullability(_nullable(types))


def _are_of_one_kind(types: Sequence[t.DataType]) -> bool:
    return len({isinstance(one, t.LocalZonedTimestampType) for one in types}) == 1


def _other_time() -> WrongArguments:
    return WrongArguments("both times must have the same type", "CAST one of them to the other's type")


def _is_null_difference(call: Call) -> bool:
    """Whether it is NULL for every row: Flink asks no further then."""
    if any(is_null(one) for one in call.operands):
        return True
    if not _are_of_one_kind([one.type for one in call.operands]):
        raise _other_time()
    return False


def _month_difference(types: Sequence[t.DataType]) -> Resolved:
    return _subtracted(types, t.DataTypes.INTERVAL(t.DataTypes.MONTH()))


def _emit_month_difference(call: Call, operands: list[str]) -> str:
    if _is_null_difference(call):
        return "NULL"
    times = [f"CAST({text} AS timestamp_ntz)" for text in operands]
    return f"CAST({whole_months('MONTH', times[1], times[0])} AS int)"


def _emit_time_difference(call: Call, operands: list[str]) -> str:
    if _is_null_difference(call):
        return "NULL"
    # An interval has milliseconds, and so have the times that it lies between.
    one, other = (
        truncated(text, 3) if getattr(each.type, "precision", 0) > 3 else text
        for each, text in zip(call.operands, operands, strict=True)
    )
    return f"({one} - {other})"


_operator(
    "TIMESTAMP_MINUS",
    "(time1 - time2) {DAY | HOUR | MINUTE | SECOND | DAY TO SECOND | ...}",
    _time_difference,
    _emit_time_difference,
    "The interval between two times.",
    exact=False,
)
_operator(
    "MONTHS_MINUS",
    "(time1 - time2) {YEAR | MONTH | YEAR TO MONTH}",
    _month_difference,
    _emit_month_difference,
    "The whole months between two times.",
    exact=False,
)
