"""Windowing table functions: TUMBLE, HOP, CUMULATE and SESSION in FROM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.catalog.manager import nearest
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import ExpressionBinder
from headrace.planner.binder.literals import interval_ms
from headrace.planner.binder.scope import Scope
from headrace.planner.dialect.syntax import (
    Descriptor,
    FunctionCall,
    Identifier,
    Name,
    Node,
    Subquery,
    TableArgument,
)
from headrace.planner.dialect.tokens import Span
from headrace.planner.expressions import Literal
from headrace.planner.logical import LogicalNode, WindowTable
from headrace.planner.windows import WindowFunctionSpec, WindowKind
from headrace.types import LocalZonedTimestampType, TimestampType

__all__ = ["WINDOWS", "bind_window_table"]

#: Arguments after the table and its time attribute.
WINDOWS: Final = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}


def bind_window_table(
    context: Context, call: FunctionCall, plan_of: Callable[[TableArgument], LogicalNode]
) -> LogicalNode:
    """The rows of a table in their windows.

    Args:
        context: Where binding happens.
        call: The call in FROM.
        plan_of: Gives the rows of the table that is the first argument.
    """
    name = call.name.dotted().upper()
    arguments = _window_arguments(context, name, call)
    data, time = arguments.pop("DATA"), arguments.pop("TIMECOL")
    if isinstance(data, Subquery):
        data = TableArgument(data.query, (), (), data.span)
    if not isinstance(data, TableArgument):
        raise context.error(
            f"{name} takes TABLE t as its first argument",
            data.span,
            hint=f"TABLE({name}(TABLE t, DESCRIPTOR(time), INTERVAL '10' MINUTES))",
        )
    if not isinstance(time, Descriptor) or len(time.columns) != 1:
        raise context.error(f"{name} takes DESCRIPTOR(column) of one time attribute", time.span)
    plan = plan_of(data)
    column = time.columns[0]
    index = _column(context, plan, column)
    found = plan.schema[index]
    is_timestamp = isinstance(found.type, TimestampType | LocalZonedTimestampType)
    if not is_timestamp or (found.time is None and not context.batch):
        raise context.error(
            f"column {column.name!r} is not a time attribute",
            column.span,
            hint="declare a WATERMARK on it, or use PROCTIME()",
        )
    partition = tuple(
        _column(context, plan, part.parts[0])
        if isinstance(part, Name) and len(part.parts) == 1
        else _no_column(context, part)
        for part in data.partition_by
    )
    if partition and name != "SESSION":
        raise context.error(f"PARTITION BY is only valid with SESSION, not with {name}", data.span)
    if data.order_by:
        raise context.error(f"{name} takes no ORDER BY", data.span)
    lengths = {key: _length(context, part, key) for key, part in arguments.items()}
    spec = _spec(context, name, lengths, call.span)
    return WindowTable(plan, spec, index, partition, context.place(column.span))


def _no_column(context: Context, node: Node) -> int:
    raise context.error("PARTITION BY needs column names", node.span)


def _column(context: Context, plan: LogicalNode, column: Identifier) -> int:
    names = [one.name for one in plan.schema]
    if column.name not in names:
        raise context.error(
            f"column {column.name!r} not found", column.span, hint=nearest(column.name, names)
        )
    return names.index(column.name)


def _window_arguments(context: Context, name: str, call: FunctionCall) -> dict[str, Node]:
    order = ("DATA", "TIMECOL", *WINDOWS[name])
    shown = f"{name}(TABLE t, DESCRIPTOR(ts), {', '.join(WINDOWS[name]).lower()})"
    found: dict[str, Node] = {}
    for place, argument in enumerate(call.arguments):
        written = call.argument_names[place] if call.argument_names else None
        if written is None and call.argument_names:
            raise context.error("name either all arguments or none", argument.span)
        if written is None and place >= len(order):
            raise context.error(f"{name} takes fewer arguments", argument.span, hint=shown)
        key = written.upper() if written is not None else order[place]
        if key not in order or key in found:
            raise context.error(
                f"{name} has no argument {written!r} here", argument.span, hint=nearest(key, order)
            )
        found[key] = argument
    missing = [key for key in order if key not in found and key != "OFFSET"]
    if missing:
        raise context.error(f"{name} needs {', '.join(missing)}", call.span, hint=shown)
    return found


def _length(context: Context, node: Node, key: str) -> int:
    bound = ExpressionBinder(context, Scope(context, ()), None, "a window").bind(node)
    length = interval_ms(bound) if isinstance(bound, Literal) else None
    if length is not None and length <= 0 and key != "OFFSET":
        raise context.error(f"{key} must be longer than 0", node.span, hint="INTERVAL '10' SECOND")
    if length is None:
        raise context.error(
            f"{key} must be an interval of days, hours, minutes or seconds",
            node.span,
            hint="INTERVAL '10' SECOND",
        )
    return length


def _spec(context: Context, name: str, lengths: dict[str, int], span: Span) -> WindowFunctionSpec:
    kind, offset = WindowKind[name], lengths.get("OFFSET", 0)
    match kind:
        case WindowKind.SESSION:
            return WindowFunctionSpec(kind, lengths["GAP"], lengths["GAP"])
        case WindowKind.TUMBLE:
            return WindowFunctionSpec(kind, lengths["SIZE"], lengths["SIZE"], offset)
        case WindowKind.HOP:
            step = lengths["SLIDE"]
        case WindowKind.CUMULATE:
            step = lengths["STEP"]
    if kind is WindowKind.CUMULATE and lengths["SIZE"] % step:
        raise context.error(
            "the size of CUMULATE must be a multiple of its step",
            span,
            hint="the step comes before the size: CUMULATE(TABLE t, DESCRIPTOR(time), step, size)",
        )
    return WindowFunctionSpec(kind, lengths["SIZE"], step, offset)
