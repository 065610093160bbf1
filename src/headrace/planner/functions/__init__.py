"""Built-in functions: their names, their arguments and results by Flink's rules, and their Spark SQL.

Emission keeps Flink's meaning, not Spark's; it counts on `spark.sql.ansi.enabled=false`, whose arithmetic and
casts of numbers are Java's, as Flink's are, and raises errors itself where Flink does.
"""

from collections.abc import Sequence
from typing import Final

from headrace.catalog.modules import CORE
from headrace.catalog.modules import HIVE as HIVE_MODULE
from headrace.planner.functions.aggregates import BuiltInAggregate, aggregates, find_aggregate, over_lists
from headrace.planner.functions.collections import COLLECTIONS
from headrace.planner.functions.conditional import CONDITIONAL, SINGLE_VALUES
from headrace.planner.functions.hive import HIVE, hive_name
from headrace.planner.functions.json import JSON
from headrace.planner.functions.json_text import JSON_TEXT, LISTED_JSON
from headrace.planner.functions.math import MATH
from headrace.planner.functions.operators import OPERATORS
from headrace.planner.functions.percentile import LISTED_NUMBERS
from headrace.planner.functions.registry import FunctionRegistry
from headrace.planner.functions.signature import BuiltInFunction, WrongArguments
from headrace.planner.functions.strings import STRINGS
from headrace.planner.functions.temporal import TEMPORAL
from headrace.planner.functions.variants import VARIANTS

__all__ = [
    "FUNCTIONS",
    "MISSING",
    "BuiltInAggregate",
    "BuiltInFunction",
    "WrongArguments",
    "aggregates",
    "built_in_names",
    "find_aggregate",
    "find_function",
    "module_names",
    "over_lists",
]


def _all() -> FunctionRegistry:
    every = FunctionRegistry()
    for one in (OPERATORS, MATH, STRINGS, TEMPORAL, CONDITIONAL, COLLECTIONS, JSON, JSON_TEXT, VARIANTS):
        every.include(one)
    for one in (LISTED_JSON, LISTED_NUMBERS, SINGLE_VALUES, HIVE):
        every.include(one)
    return every


#: Functions of Flink that are not here: an error says so, rather than that there is no such function.
MISSING: Final = frozenset(
    """
    BITMAP_AND BITMAP_ANDNOT BITMAP_BUILD BITMAP_CARDINALITY BITMAP_FROM_BYTES BITMAP_OR BITMAP_TO_ARRAY
    BITMAP_TO_BYTES BITMAP_TO_STRING BITMAP_XOR JSON_TYPE OBJECT_OF
    OBJECT_UPDATE BITMAP_AND_AGG BITMAP_AND_CARDINALITY_AGG BITMAP_BUILD_AGG
    BITMAP_BUILD_CARDINALITY_AGG BITMAP_OR_AGG BITMAP_OR_CARDINALITY_AGG BITMAP_XOR_AGG BITMAP_XOR_CARDINALITY_AGG
    """.split()
)
#: Every built-in scalar function.
FUNCTIONS: Final = _all()


def find_function(name: str, modules: Sequence[str]) -> BuiltInFunction | None:
    """The function with this name in the first module that has it; those of `core` need no module, as in Flink."""
    for module in (*modules, CORE):
        found = FUNCTIONS.find(hive_name(name) if module == HIVE_MODULE else name)
        if found is not None:
            return found
    return None


def module_names(module: str) -> list[str]:
    """The names of a module's functions."""
    if module == HIVE_MODULE:
        return [each.removeprefix(hive_name("")) for each in HIVE.names()]
    return built_in_names()


def built_in_names() -> list[str]:
    """The names of all built-in functions, but for operators and those of modules that have to be loaded."""
    hidden = ("operators", "internal", "hive")
    scalar = [
        name for one in FUNCTIONS.functions() if one.group not in hidden for name in (one.name, *one.aliases)
    ]
    return sorted(
        {*scalar, *(name for one in (*aggregates(), *over_lists()) for name in (one.name, *one.aliases))}
    )
