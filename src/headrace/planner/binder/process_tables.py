"""Calls of process table functions in FROM: `f(input => TABLE t PARTITION BY k, on_time => DESCRIPTOR(ts))`.

TO_CHANGELOG and FROM_CHANGELOG are such functions, too, built in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.catalog.manager import nearest
from headrace.catalog.process_functions import ArgumentSpec, ArgumentTrait
from headrace.errors import HeadraceError
from headrace.planner import expressions as e
from headrace.planner.binder.constants import constant_of
from headrace.planner.binder.context import Context
from headrace.planner.binder.user_calls import find_user_function
from headrace.planner.dialect.syntax import (
    Constant,
    Descriptor,
    FunctionCall,
    Identifier,
    Name,
    Node,
    OrderItem,
    TableArgument,
)
from headrace.planner.logical import LogicalNode, TimeKind
from headrace.planner.process_tables import ProcessTable, ProcessTableCall, TableInCall, process_of
from headrace.types.logical import DataType, LocalZonedTimestampType, RowType, TimestampType

__all__ = ["ON_TIME", "UID", "arguments_of", "bind_process_table", "column_of", "process_function"]

#: The arguments that all process table functions have.
ON_TIME: Final = "on_time"
UID: Final = "uid"
_UID_FORM: Final = re.compile(r"[a-zA-Z_][a-zA-Z\-_0-9]*")
#: As many tables a call may have, as in Flink (`table.optimizer.ptf.max-tables`).
_MOST_TABLES: Final = 20

PlanOf = Callable[[TableArgument], LogicalNode]


def process_function(context: Context, call: FunctionCall) -> UserFunction | None:
    """Return the process table function of this name; None if it is something else."""
    try:
        found = find_user_function(context, call)
    except HeadraceError:
        return None
    return found if found is not None and found.kind is FunctionKind.PROCESS_TABLE else None


def bind_process_table(
    context: Context, call: FunctionCall, function: UserFunction, plan_of: PlanOf
) -> LogicalNode:
    """Return the rows that a process table function makes of tables.

    Args:
        context: Where binding happens.
        call: The call in FROM.
        function: The function.
        plan_of: Gives the rows of a table that is an argument.

    Raises:
        SqlValidationError: If the call does not fit what the function declares.
    """
    refuse_batch(context, call, function.name)
    specs = process_of(function).signature.arguments
    names = [each.name for each in specs]
    given = arguments_of(context, call, function.name, [*names, ON_TIME, UID])
    tables: list[LogicalNode] = []
    bound: list[TableInCall] = []
    scalars: list[tuple[str, Any]] = []
    for spec in specs:
        node = given.get(spec.name)
        if spec.is_table:
            plan, table = _table(context, call, function, spec, node, plan_of)
            tables.append(plan)
            bound.append(table)
        else:
            scalars.append((spec.name, _scalar(context, call, function, spec, node)))
    if len(tables) > _MOST_TABLES:
        raise context.error(f"a call takes at most {_MOST_TABLES} tables", call.span)
    _check_keys(context, function, tables, bound)
    timed = _timed(context, call, function, given.get(ON_TIME), tables, bound)
    uid = _uid(context, given.get(UID), function, bound)
    made = ProcessTableCall(function, tuple(timed), tuple(scalars), uid, context.place(call.span))
    return ProcessTable(tuple(tables), made)


def refuse_batch(context: Context, call: FunctionCall, name: str) -> None:
    """Refuse a process table function in BATCH mode, as Flink does."""
    if context.batch:
        raise context.error(
            f"{name}: process table functions run in streaming mode only, as in Flink",
            call.span,
            hint="EnvironmentSettings.in_streaming_mode(), or SET 'execution.runtime-mode' = 'streaming'",
        )


def arguments_of(
    context: Context, call: FunctionCall, function: str, names: Sequence[str]
) -> Mapping[str, Node]:
    """Return the arguments of a call by name; those that are left out, or DEFAULT, are missing."""
    found: dict[str, Node] = {}
    shown = f"{function}({', '.join(names)})"
    for place, argument in enumerate(call.arguments):
        written = call.argument_names[place] if call.argument_names else None
        if written is None and call.argument_names:
            raise context.error("name either all arguments or none", argument.span)
        if written is None and place >= len(names):
            raise context.error(
                f"{function} takes at most {len(names)} arguments", argument.span, hint=f"it is {shown}"
            )
        key = names[place] if written is None else written
        if key not in names:
            raise context.error(
                f"{function} has no argument {key!r}",
                argument.span,
                hint=nearest(key, names) or f"it is {shown}",
            )
        if key in found:
            raise context.error(f"argument {key!r} is given twice", argument.span)
        if not _is_default(argument):
            found[key] = argument
    return found


def _is_default(node: Node) -> bool:
    return isinstance(node, Name) and len(node.parts) == 1 and node.parts[0].name.upper() == "DEFAULT"


def column_of(context: Context, plan: LogicalNode, column: Identifier) -> int:
    """Return where a column is in a table."""
    names = [one.name for one in plan.schema]
    if column.name not in names:
        raise context.error(
            f"column {column.name!r} not found", column.span, hint=nearest(column.name, names)
        )
    return names.index(column.name)


# --- tables ---------------------------------------------------------------------------------------


def _table(
    context: Context,
    call: FunctionCall,
    function: UserFunction,
    spec: ArgumentSpec,
    node: Node | None,
    plan_of: PlanOf,
) -> tuple[LogicalNode, TableInCall]:
    example = f"{function.name}({spec.name} => TABLE t{' PARTITION BY k' if spec.is_set else ''})"
    if node is None:
        raise context.error(f"{function.name} needs the table {spec.name!r}", call.span, hint=example)
    if not isinstance(node, TableArgument):
        raise context.error(
            f"argument {spec.name!r} of {function.name} must be a table", node.span, hint=example
        )
    plan = plan_of(node)
    _check_type(context, function, spec, node, plan)
    partition = tuple(_partition_column(context, plan, each) for each in node.partition_by)
    if partition and not spec.is_set:
        raise context.error(
            f"{function.name} takes the rows of {spec.name!r} one by one, so PARTITION BY is not valid",
            node.span,
            hint="declare the argument with ArgumentTrait.SET_SEMANTIC_TABLE",
        )
    if spec.is_set and not partition and not spec.has(ArgumentTrait.OPTIONAL_PARTITION_BY):
        raise context.error(
            f"table {spec.name!r} of {function.name} needs PARTITION BY",
            node.span,
            hint=f"{example}; or declare the argument with ArgumentTrait.OPTIONAL_PARTITION_BY",
        )
    order = _order(context, function, spec, node, plan)
    return plan, TableInCall(spec, partition, order, None, context.place(node.span))


def _check_type(
    context: Context, function: UserFunction, spec: ArgumentSpec, node: TableArgument, plan: LogicalNode
) -> None:
    if not isinstance(spec.data_type, RowType):
        return
    wanted = [(each.name, each.data_type) for each in spec.data_type.fields]
    given = [(each.name, each.type) for each in plan.schema]
    fits = len(wanted) == len(given) and all(
        one[1].with_nullability(True) == other[1].with_nullability(True)
        for one, other in zip(wanted, given, strict=False)
    )
    if not fits:
        shown = ", ".join(f"{name} {kind.summary_without_null()}" for name, kind in given)
        raise context.error(
            f"table {spec.name!r} of {function.name} is {spec.data_type.summary_without_null()}, but this one has the "
            f"columns {shown}",
            node.span,
            hint="select these columns, in this order, and CAST them",
        )


def _partition_column(context: Context, plan: LogicalNode, node: Node) -> int:
    if not isinstance(node, Name) or len(node.parts) != 1:
        raise context.error("PARTITION BY needs column names", node.span)
    return column_of(context, plan, node.parts[0])


def _order(
    context: Context, function: UserFunction, spec: ArgumentSpec, node: TableArgument, plan: LogicalNode
) -> tuple[e.SortKey, ...]:
    if not node.order_by:
        return ()
    if not spec.is_set:
        raise context.error(
            f"{function.name} takes the rows of {spec.name!r} one by one, so ORDER BY is not valid",
            node.span,
            hint="declare the argument with ArgumentTrait.SET_SEMANTIC_TABLE",
        )
    made = [_sort_key(context, plan, item) for item in node.order_by]
    first = made[0].expression
    assert isinstance(first, e.InputRef)
    if plan.schema[first.index].time is not TimeKind.ROWTIME:
        raise context.error(
            f"ORDER BY of a table argument must begin with a time attribute; "
            f"{plan.schema[first.index].name!r} is not one",
            node.order_by[0].span,
            hint="ORDER BY a column with WATERMARK FOR ... AS ...",
        )
    if not made[0].ascending:
        raise context.error(
            "ORDER BY of a table argument must start with a time attribute in ascending order, not with DESC",
            node.order_by[0].span,
            hint="remove DESC; only later ORDER BY columns can be descending",
        )
    return tuple(made)


def _sort_key(context: Context, plan: LogicalNode, item: OrderItem) -> e.SortKey:
    if not isinstance(item.expression, Name) or len(item.expression.parts) != 1:
        raise context.error("ORDER BY of a table argument needs column names", item.span)
    index = column_of(context, plan, item.expression.parts[0])
    nulls_first = item.ascending if item.nulls_first is None else item.nulls_first
    return e.SortKey(e.InputRef(index, plan.schema[index].type), item.ascending, nulls_first)


def _check_keys(
    context: Context, function: UserFunction, tables: Sequence[LogicalNode], bound: Sequence[TableInCall]
) -> None:
    """Tables of one call have keys of the same types."""
    kinds = [[tables[at].schema[key].type for key in each.partition_by] for at, each in enumerate(bound)]
    for table, own in zip(bound[1:], kinds[1:], strict=True):
        if len(own) != len(kinds[0]) or any(
            not _is_same(one, other) for one, other in zip(own, kinds[0], strict=True)
        ):
            assert table.place is not None
            raise context.error(
                f"all tables of {function.name} need the same PARTITION BY: {_shown(kinds[0])} for "
                f"{bound[0].spec.name!r}, but {_shown(own)} for {table.spec.name!r}",
                table.place.span,
                hint="partition by columns of the same number and types; CAST them in a subquery",
            )


def _is_same(one: DataType, other: DataType) -> bool:
    return one.with_nullability(True) == other.with_nullability(True)


def _shown(kinds: Sequence[DataType]) -> str:
    return f"({', '.join(each.summary_without_null() for each in kinds)})"


# --- the other arguments --------------------------------------------------------------------------


def _scalar(
    context: Context, call: FunctionCall, function: UserFunction, spec: ArgumentSpec, node: Node | None
) -> Any:
    if node is None:
        if spec.is_optional:
            return spec.default
        raise context.error(
            f"{function.name} needs the argument {spec.name!r}",
            call.span,
            hint=f"{function.name}(..., {spec.name} => ...), or give the parameter a default value",
        )
    if isinstance(node, TableArgument | Descriptor):
        raise context.error(
            f"argument {spec.name!r} of {function.name} must be a value, not a table", node.span
        )
    assert spec.data_type is not None
    return constant_of(context, node, spec.data_type, f"argument {spec.name!r} of {function.name}")


def _timed(
    context: Context,
    call: FunctionCall,
    function: UserFunction,
    node: Node | None,
    tables: Sequence[LogicalNode],
    bound: Sequence[TableInCall],
) -> list[TableInCall]:
    """Return the tables with the columns that on_time names."""
    columns: tuple[Identifier, ...] = ()
    if node is not None:
        if not isinstance(node, Descriptor):
            raise context.error("on_time must be a DESCRIPTOR", node.span, hint="on_time => DESCRIPTOR(ts)")
        columns = node.columns
    made = [
        replace(each, time_index=_time_column(context, columns, plan, each))
        for each, plan in zip(bound, tables, strict=True)
    ]
    used = {
        tables[at].schema[each.time_index].name for at, each in enumerate(made) if each.time_index is not None
    }
    for column in columns:
        if column.name not in used:
            raise context.error(
                f"on_time: no table of the call has a column {column.name!r}",
                column.span,
                hint=nearest(column.name, [one.name for plan in tables for one in plan.schema]),
            )
    missing = [each for each in made if each.time_index is None]
    for each in missing:
        if columns or each.spec.has(ArgumentTrait.REQUIRE_ON_TIME):
            raise context.error(
                f"{function.name}: table {each.spec.name!r} needs a time attribute, but on_time has no column of it",
                call.span,
                hint="on_time => DESCRIPTOR(ts): a column for every table",
            )
    kinds = {
        type(tables[at].schema[each.time_index].type)
        for at, each in enumerate(made)
        if each.time_index is not None
    }
    if len(kinds) > 1:
        raise context.error(
            f"{function.name}: the columns of on_time must be all TIMESTAMP or all TIMESTAMP_LTZ", call.span
        )
    return made


def _time_column(
    context: Context, columns: Sequence[Identifier], plan: LogicalNode, table: TableInCall
) -> int | None:
    wanted = {column.name: column for column in columns}
    found = [at for at, one in enumerate(plan.schema) if one.name in wanted]
    if not found:
        return None
    column = wanted[plan.schema[found[0]].name]
    if len(found) > 1:
        raise context.error(
            f"on_time names two columns of the table {table.spec.name!r}",
            wanted[plan.schema[found[1]].name].span,
        )
    field = plan.schema[found[0]]
    if not isinstance(field.type, TimestampType | LocalZonedTimestampType):
        raise context.error(
            f"on_time takes a TIMESTAMP or TIMESTAMP_LTZ column, and {field.name!r} is "
            f"{field.type.summary_without_null()}",
            column.span,
        )
    if field.time is not TimeKind.ROWTIME:
        raise context.error(
            f"on_time takes a time attribute; {field.name!r} is not one",
            column.span,
            hint="declare WATERMARK FOR on the column, and select it unchanged",
        )
    if table.order_by:
        first = table.order_by[0].expression
        if not isinstance(first, e.InputRef) or first.index != found[0]:
            raise context.error(
                f"ORDER BY and on_time name different times of the table {table.spec.name!r}", column.span
            )
    return found[0]


def _uid(
    context: Context, node: Node | None, function: UserFunction, bound: Sequence[TableInCall]
) -> str | None:
    if node is None:
        if not any(each.spec.is_set for each in bound):
            return None
        return function.name if _UID_FORM.fullmatch(function.name) else process_of(function).name
    if not isinstance(node, Constant) or not isinstance(node.value, str):
        raise context.error("uid must be a string", node.span, hint="uid => 'my-id'")
    if _UID_FORM.fullmatch(node.value) is None:
        raise context.error(
            f"{node.value!r} is not a valid uid",
            node.span,
            hint="use letters, digits, - and _, and start with a letter or _",
        )
    return node.value
