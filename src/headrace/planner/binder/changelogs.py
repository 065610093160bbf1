"""TO_CHANGELOG and FROM_CHANGELOG in FROM: a table's changes as rows with codes, and the other way round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from headrace.common.types import RowKind
from headrace.planner.binder.constants import constant_of
from headrace.planner.binder.context import Context
from headrace.planner.binder.process_tables import ON_TIME, UID, arguments_of, column_of, refuse_batch
from headrace.planner.dialect.syntax import Descriptor, FunctionCall, Identifier, Node, TableArgument
from headrace.planner.logical import LogicalNode
from headrace.planner.process_tables import FromChangelog, ToChangelog
from headrace.types.logical import CharType, MapType, VarCharType

__all__ = ["CHANGELOGS", "bind_changelog", "is_changelog"]

_TO, _FROM = "TO_CHANGELOG", "FROM_CHANGELOG"
#: The built-in process table functions.
CHANGELOGS: Final = (_TO, _FROM)
_KINDS: Final = {kind.name: kind for kind in RowKind}
_MAPPING: Final = MapType(VarCharType(2**31 - 1), VarCharType(2**31 - 1))
_EXAMPLE: Final = "op_mapping => MAP['INSERT, UPDATE_AFTER', 'upsert', 'DELETE', 'delete']"


def is_changelog(call: FunctionCall) -> bool:
    """Whether a call is of one of the built-in functions."""
    return call.name.dotted().upper() in CHANGELOGS


def bind_changelog(
    context: Context, call: FunctionCall, plan_of: Callable[[TableArgument], LogicalNode]
) -> LogicalNode:
    """Return the rows of TO_CHANGELOG or FROM_CHANGELOG.

    Raises:
        SqlValidationError: If the arguments are not valid.
    """
    name = call.name.dotted().upper()
    refuse_batch(context, call, name)
    given = arguments_of(context, call, name, ["input", "op", "op_mapping", ON_TIME, UID])
    table = given.get("input")
    if not isinstance(table, TableArgument):
        place = call.span if table is None else table.span
        raise context.error(f"{name} needs a table", place, hint=f"{name}(input => TABLE t)")
    plan = plan_of(table)
    if table.partition_by or table.order_by:
        clause = "PARTITION BY" if table.partition_by else "ORDER BY"
        raise context.error(
            f"{name} takes rows one by one, so {clause} is not valid, as in Flink 2.3", table.span
        )
    if ON_TIME in given:
        raise context.error(
            f"{name} has no on_time: it reads or emits updates, and updates have no time", given[ON_TIME].span
        )
    op = _op(context, name, given.get("op"))
    mapping = _mapping(context, name, given.get("op_mapping"))
    if name == _TO:
        return ToChangelog(plan, "op" if op is None else op.name, _to_codes(context, given, mapping))
    index = _op_column(context, plan, op, call)
    return FromChangelog(plan, index, _from_codes(context, given, mapping), context.place(table.span))


def _op(context: Context, name: str, node: Node | None) -> Identifier | None:
    if node is None:
        return None
    if not isinstance(node, Descriptor) or len(node.columns) != 1:
        raise context.error(
            f"op of {name} is a DESCRIPTOR of one column", node.span, hint="op => DESCRIPTOR(op)"
        )
    return node.columns[0]


def _mapping(context: Context, name: str, node: Node | None) -> Mapping[str, str] | None:
    if node is None:
        return None
    found: Mapping[str | None, str | None] | None = constant_of(
        context, node, _MAPPING, f"op_mapping of {name}"
    )
    if found is None:
        return None
    made = {key: value for key, value in found.items() if key is not None and value is not None}
    if len(made) < len(found):
        raise context.error("op_mapping must not contain NULL", node.span, hint=_EXAMPLE)
    return made


def _op_column(context: Context, plan: LogicalNode, op: Identifier | None, call: FunctionCall) -> int:
    if op is not None:
        index = column_of(context, plan, op)
    else:
        names = [one.name for one in plan.schema]
        if "op" not in names:
            raise context.error(
                "FROM_CHANGELOG: the table has no column 'op' with operation codes",
                call.span,
                hint="name the column with the codes: op => DESCRIPTOR(my_op)",
            )
        index = names.index("op")
    kind = plan.schema[index].type
    if not isinstance(kind, VarCharType | CharType):
        raise context.error(
            f"FROM_CHANGELOG: the operation codes of column {plan.schema[index].name!r} must be of type STRING, not "
            f"{kind.summary_without_null()}",
            call.span if op is None else op.span,
        )
    return index


def _kind(context: Context, node: Node, name: str, seen: set[RowKind]) -> RowKind:
    kind = _KINDS.get(name)
    if kind is None:
        raise context.error(
            f"op_mapping: {name!r} is not a change operation",
            node.span,
            hint=f"use one of {', '.join(_KINDS)}",
        )
    if kind in seen:
        raise context.error(
            f"op_mapping has the change operation {name} twice",
            node.span,
            hint="list all codes or operations of an entry with commas between them",
        )
    seen.add(kind)
    return kind


def _to_codes(
    context: Context, given: Mapping[str, Node], mapping: Mapping[str, str] | None
) -> tuple[tuple[RowKind, str], ...]:
    """Return the code of each operation."""
    if mapping is None:
        return tuple((kind, kind.name) for kind in RowKind)
    node, seen = given["op_mapping"], set[RowKind]()
    return tuple(
        (_kind(context, node, name.strip(), seen), code)
        for names, code in mapping.items()
        for name in names.split(",")
    )


def _from_codes(
    context: Context, given: Mapping[str, Node], mapping: Mapping[str, str] | None
) -> tuple[tuple[str, RowKind], ...]:
    """Return the operation of each code."""
    if mapping is None:
        return tuple((kind.name, kind) for kind in RowKind)
    node, seen = given["op_mapping"], set[RowKind]()
    made: dict[str, RowKind] = {}
    for codes, name in mapping.items():
        kind = _kind(context, node, name.strip(), seen)
        for code in codes.split(","):
            if code.strip() in made:
                raise context.error(f"op_mapping has the code {code.strip()!r} twice", node.span)
            made[code.strip()] = kind
    if RowKind.UPDATE_AFTER in seen and RowKind.UPDATE_BEFORE not in seen:
        raise context.error(
            "op_mapping with UPDATE_AFTER needs UPDATE_BEFORE, too: upserts are not supported, as in Flink 2.3",
            node.span,
            hint="map a code to UPDATE_BEFORE",
        )
    return tuple(made.items())
