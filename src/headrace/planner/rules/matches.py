"""MATCH_RECOGNIZE: what is about one row below the operator, the pattern in it, measures after it."""

from __future__ import annotations

from headrace.planner.logical import Field, LogicalNode
from headrace.planner.logical_match import MatchRecognize
from headrace.planner.matches import plan_match
from headrace.planner.physical import Match, PhysicalNode
from headrace.planner.rules.nodes import Convert, calc, exchanged, placed_error

__all__ = ["convert_match"]


def convert_match(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn MATCH_RECOGNIZE into an operator.

    Raises:
        SqlValidationError: If rows have no time attribute any more.
    """
    if not isinstance(node, MatchRecognize):
        return None
    below = convert(node.input)
    time = below.schema[node.time_index]
    if time.time is None:
        raise placed_error(
            node.place,
            f"ORDER BY of MATCH_RECOGNIZE must begin with a time attribute; {time.name!r} is a plain timestamp here",
            "look for the pattern before the rows are joined or aggregated; or run the query in BATCH mode",
        )
    plan = plan_match(node)
    names = [f"$k{at}" for at in range(len(plan.columns))]
    for key, place in zip(node.partition_by, plan.keys, strict=True):
        names[place] = node.input.schema[key].name
    made = exchanged(calc(below, plan.columns, names), plan.keys)
    groups = tuple(Field(names[key], made.schema[key].type) for key in plan.keys)
    found = Match(
        schema=(*groups, *plan.results),
        input=made,
        partition=plan.keys,
        order=plan.order,
        pattern=plan.pattern,
    )
    own = [field.name for field in node.schema]
    times = [field.time for field in node.schema]
    return calc(found, plan.measures, own, None, times)
