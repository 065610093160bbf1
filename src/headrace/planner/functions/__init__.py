"""Built-in functions: their names, what they take and give by Flink's rules, and how Spark says them.

Emission keeps Flink's meaning, not Spark's; it counts on `spark.sql.ansi.enabled=false`, whose arithmetic and
casts of numbers are Java's, as Flink's are, and raises errors itself where Flink does.
"""

from typing import Final

from headrace.planner.functions.aggregates import AggregateFunction, aggregates, find_aggregate
from headrace.planner.functions.collections import COLLECTIONS
from headrace.planner.functions.conditional import CONDITIONAL
from headrace.planner.functions.json import JSON
from headrace.planner.functions.math import MATH
from headrace.planner.functions.operators import OPERATORS
from headrace.planner.functions.registry import Registry
from headrace.planner.functions.signature import Function, WrongArguments
from headrace.planner.functions.strings import STRINGS
from headrace.planner.functions.temporal import TEMPORAL

__all__ = ["FUNCTIONS", "AggregateFunction", "Function", "WrongArguments", "aggregates", "find_aggregate"]


def _all() -> Registry:
    every = Registry()
    for one in (OPERATORS, MATH, STRINGS, TEMPORAL, CONDITIONAL, COLLECTIONS, JSON):
        every.include(one)
    return every


#: Every built-in scalar function.
FUNCTIONS: Final = _all()
