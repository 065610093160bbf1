"""Where time attributes end: a join that keeps rows forever says nothing about how far time has advanced after it.

Rows of a regular join come whenever a partner does, also long after the watermark has passed them: a window above
it would drop them as late. So, as in Flink, time attributes become plain timestamps there, and what needs one above
it is refused. A window join keeps them, since it is done with a window before the watermark passes, and so does an
interval join, after which the watermark is held back.

    left row  12:00 --+
                      +--> pair 12:00, made at 12:30, when the watermark is at 12:29
    right row 12:30 --+

A join is known for what it is only when the conditions of WHERE have reached it: this runs after all rewrites.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.planner.expressions import InputRef
from headrace.planner.logical import (
    GroupWindowAggregate,
    Join,
    LogicalNode,
    WindowTable,
)
from headrace.planner.process_tables import ProcessTable
from headrace.planner.rules.intervals import interval_of
from headrace.planner.rules.joins import is_window_join
from headrace.planner.rules.nodes import placed_error
from headrace.planner.rules.tree import over_inputs

__all__ = ["settle_time_attributes"]


def settle_time_attributes(node: LogicalNode) -> LogicalNode:
    """Return the tree with time attributes where there are some.

    Raises:
        SqlValidationError: If a window is over a column that is not a time attribute any more.
    """
    node = over_inputs(node, [settle_time_attributes(each) for each in node.inputs])
    match node:
        case Join():
            return _settled_join(node)
        case WindowTable() | GroupWindowAggregate() if node.input.schema[node.time_index].time is None:
            name = node.input.schema[node.time_index].name
            raise placed_error(
                node.place,
                f"a window needs a time attribute, and {name!r} is a plain timestamp after a join: the join emits rows "
                "long after the watermark has passed them",
                "put the rows into windows before the join, and join rows of the same window (window_start and "
                "window_end equal); or run the query in BATCH mode",
            )
        case ProcessTable():
            _check_times(node)
    return node


def _check_times(node: ProcessTable) -> None:
    """Refuse a process table function that uses the time of a table which has none any more."""
    for table, below in zip(node.call.tables, node.tables, strict=True):
        ordered = [key.expression for key in table.order_by[:1]]
        times = [table.time_index, *(each.index for each in ordered if isinstance(each, InputRef))]
        for at in times:
            if at is not None and below.schema[at].time is None:
                raise placed_error(
                    table.place,
                    f"{node.call.function.name}: {below.schema[at].name!r} is a plain timestamp after a join: the join "
                    "emits rows long after the watermark has passed them",
                    "call the function before the join, or join rows of the same window or interval",
                )


def _settled_join(node: Join) -> LogicalNode:
    if is_window_join(node):
        return node
    if node.as_of is not None or interval_of(node) is not None:
        return node
    return replace(node, keeps_times=False)
