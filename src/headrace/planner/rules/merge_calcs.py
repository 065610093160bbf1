"""Merges two consecutive filters, or two projections, into one."""

from __future__ import annotations

from headrace.planner.expressions import conjunction, conjuncts, is_deterministic, references, substitute
from headrace.planner.logical import Filter, LogicalNode, Project

__all__ = ["merge_filters", "merge_projects"]


def merge_filters(node: LogicalNode) -> LogicalNode | None:
    """Put the conditions of two filters together."""
    match node:
        case Filter(Filter(below, inner), outer):
            return Filter(below, conjunction([*conjuncts(inner), *conjuncts(outer)]))
        case Filter(below, condition) if not conjuncts(condition):
            return below
        case _:
            return None


def merge_projects(node: LogicalNode) -> LogicalNode | None:
    """Compute the columns of the upper projection from those below the lower one."""
    match node:
        case Project(Project(below, inner, _), outer, names):
            used = [index for expression in outer for index in references(expression)]
            # What differs from call to call is called once.
            if any(not is_deterministic(inner[index]) for index in used):
                return None
            mapping = dict(enumerate(inner))
            return Project(below, tuple(substitute(each, mapping) for each in outer), names)
        case _:
            return None
