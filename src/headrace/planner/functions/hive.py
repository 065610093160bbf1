"""Functions of the module `hive`: built-in functions of Hive that Flink's SQL does not have, with Hive's results.

Spark has them from Hive. They are found by their names while the module is in use; inside, a name has a prefix, so that
a plan says whose function it calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from headrace.planner.coercion import common_type
from headrace.planner.functions.registry import FunctionRegistry, same_as
from headrace.planner.functions.signature import Nulls, Resolved, WrongArguments
from headrace.types import BigIntType, BooleanType, DataType, DataTypes, DateType, DoubleType, IntType

__all__ = ["HIVE", "hive_name"]

_PREFIX: Final = "HIVE."
_STRING, _INT, _LONG = DataTypes.STRING(), IntType(), BigIntType()
_DAY: Final = "CAST({0} AS DATE)"
_written: Final = FunctionRegistry("hive")


def hive_name(name: str) -> str:
    """Return what a function of Hive is called in plans."""
    return f"{_PREFIX}{name.upper()}"


def _nvl(types: Sequence[DataType]) -> Resolved:
    kind = common_type(types) if len(types) == 2 else None
    if kind is None:
        raise WrongArguments("NVL takes two values of one type", "NVL(value, instead)")
    return (kind, kind), kind.with_nullability(all(each.is_nullable for each in types))


_written.add_shape(
    "NVL", "NVL(value, instead)", "The value, or another if it is NULL.", _nvl, "nvl({0}, {1})"
)
_written.add("ISNULL(value ANY)", BooleanType(), "isnull({0})", "Whether a value is NULL.", nulls=Nulls.NEVER)
_written.add(
    "ISNOTNULL(value ANY)", BooleanType(), "isnotnull({0})", "Whether a value is not NULL.", nulls=Nulls.NEVER
)
_written.add("LENGTH(text STRING)", _INT, "length({0})", "The number of characters.")
_written.add("SPACE(count INT)", _STRING, "space({0})", "As many spaces.")
_written.add(
    "SUBSTRING_INDEX(text STRING, delimiter STRING, count INT)",
    _STRING,
    "substring_index({0}, {1}, {2})",
    "The text before the given number of delimiters, or, if it is negative, after that many from the end.",
)
_written.add(
    "LEVENSHTEIN(text STRING, other STRING)",
    _INT,
    "levenshtein({0}, {1})",
    "The edit distance of two strings.",
)
_written.add("SOUNDEX(text STRING)", _STRING, "soundex({0})", "How a word sounds.")
_written.add(
    "GET_JSON_OBJECT(json STRING, path STRING)",
    _STRING,
    "get_json_object({0}, {1})",
    "The value at a path such as `$.a[0]`, as text; NULL if it does not exist.",
    nulls=Nulls.ALWAYS,
)
_written.add("CRC32(text STRING)", _LONG, "crc32({0})", "The checksum of a string.")
_written.add("CBRT(number DOUBLE)", DoubleType(), "cbrt({0})", "The cube root.")
_written.add("FACTORIAL(number INT)", _LONG, "factorial({0})", "The factorial, up to 20.", nulls=Nulls.ALWAYS)
_written.add(
    "PMOD(number INTEGER, divisor INTEGER)",
    same_as(1),
    "pmod({0}, {1})",
    "The remainder, never negative; NULL if the divisor is 0.",
    nulls=Nulls.ALWAYS,
)
_written.add("SIZE(collection COLLECTION)", _INT, "size({0})", "The number of elements.")
_written.add("SORT_ARRAY(array ARRAY)", same_as(), "sort_array({0})", "The elements in ascending order.")
for _name, _what in (("DATE_ADD", "later"), ("DATE_SUB", "earlier")):
    _written.add(
        [f"{_name}(day TIME POINT, days INT)", f"{_name}(day STRING, days INT)"],
        DateType(),
        f"{_name.lower()}({_DAY}, {{1}})",
        f"The date some days {_what}.",
        nulls=Nulls.ALWAYS,
    )
_written.add(
    ["DATEDIFF(end TIME POINT, start TIME POINT)", "DATEDIFF(end STRING, start STRING)"],
    _INT,
    f"datediff({_DAY}, CAST({{1}} AS DATE))",
    "The days from one date to another.",
    nulls=Nulls.ALWAYS,
)
_written.add(
    ["ADD_MONTHS(day TIME POINT, months INT)", "ADD_MONTHS(day STRING, months INT)"],
    DateType(),
    f"add_months({_DAY}, {{1}})",
    "The date some months later; the last day of a month that is too short.",
    nulls=Nulls.ALWAYS,
)
_written.add(
    ["LAST_DAY(day TIME POINT)", "LAST_DAY(day STRING)"],
    DateType(),
    f"last_day({_DAY})",
    "The last day of the month.",
    nulls=Nulls.ALWAYS,
)
_written.add(
    ["NEXT_DAY(day TIME POINT, weekday STRING)", "NEXT_DAY(day STRING, weekday STRING)"],
    DateType(),
    f"next_day({_DAY}, {{1}})",
    "The first day after a date that is a day of the week, such as 'TU'.",
    nulls=Nulls.ALWAYS,
)
_written.add(
    ["WEEKOFYEAR(day TIME POINT)", "WEEKOFYEAR(day STRING)"],
    _INT,
    f"weekofyear({_DAY})",
    "The week of the year, by ISO 8601.",
    nulls=Nulls.ALWAYS,
)


def _prefixed() -> FunctionRegistry:
    made = FunctionRegistry("hive")
    for each in _written.functions():
        made.put(replace(each, name=hive_name(each.name)))
    return made


#: By names with the prefix.
HIVE: Final = _prefixed()
