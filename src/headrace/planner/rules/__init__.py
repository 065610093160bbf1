"""Rewrites of the logical tree, and its conversion to physical nodes: a rule is a function, next to similar ones.

`REWRITES` run until none has anything to do; then columns are pruned; then every node is converted by the first of
`CONVERSIONS` that knows it.
"""

from typing import Final

from headrace.planner.rules.aggregations import convert_aggregate, convert_group_window
from headrace.planner.rules.joins import convert_join
from headrace.planner.rules.matches import convert_match
from headrace.planner.rules.merge_calcs import merge_filters, merge_projects
from headrace.planner.rules.nodes import Conversion
from headrace.planner.rules.over import convert_over
from headrace.planner.rules.plain import convert_plain
from headrace.planner.rules.process_tables import convert_process_table
from headrace.planner.rules.push_filters import push_filter, push_join_condition
from headrace.planner.rules.set_operations import replace_distinct, replace_set_operation
from headrace.planner.rules.sort_limit import convert_sort_limit
from headrace.planner.rules.top_n import convert_top_n
from headrace.planner.rules.tree import Rule

__all__ = ["CONVERSIONS", "REWRITES"]

REWRITES: Final[tuple[Rule, ...]] = (
    replace_set_operation,
    replace_distinct,
    merge_filters,
    merge_projects,
    push_filter,
    push_join_condition,
)

#: In this order: what looks at several nodes comes before what takes them one by one.
CONVERSIONS: Final[tuple[Conversion, ...]] = (
    convert_top_n,
    convert_sort_limit,
    convert_aggregate,
    convert_group_window,
    convert_join,
    convert_over,
    convert_process_table,
    convert_match,
    convert_plain,
)
