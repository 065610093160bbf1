"""Nodes that have an operator of their own kind: scans, projections, filters, unions and the like."""

from __future__ import annotations

from headrace.planner.expressions import Literal
from headrace.planner.logical import (
    Field,
    Filter,
    JoinKind,
    LogicalNode,
    Project,
    Scan,
    Union,
    Unnest,
    Values,
    Watermark,
    WindowTable,
)
from headrace.planner.physical import (
    PhysicalNode,
    SessionRows,
    TableScan,
    WatermarkAssigner,
    WindowTableFunction,
)
from headrace.planner.physical import Union as PhysicalUnion
from headrace.planner.physical import Unnest as PhysicalUnnest
from headrace.planner.physical import Values as PhysicalValues
from headrace.planner.rules.nodes import Convert, calc, exchanged
from headrace.planner.rules.tree import identity
from headrace.planner.windows import WindowKind
from headrace.types.logical import IntType

__all__ = ["convert_plain", "with_a_column"]


def with_a_column(node: Values) -> Values:
    """Give rows without columns, those of a SELECT without FROM, one that nobody reads: Spark wants it."""
    if node.fields:
        return node
    zero = Literal(0, IntType(False))
    return Values(tuple((zero,) for _ in node.rows), (Field("ZERO", zero.type),))


def convert_plain(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn a node into the operator of its kind."""
    match node:
        case Scan():
            return TableScan(schema=node.schema, scan=node)
        case Values():
            node = with_a_column(node)
            return PhysicalValues(schema=node.schema, rows=node.rows)
        case Project(Filter(below, condition), expressions, names):
            times = [field.time for field in node.schema]
            return calc(convert(below), expressions, names, condition, times)
        case Project(below, expressions, names):
            return calc(convert(below), expressions, names, None, [field.time for field in node.schema])
        case Filter(below, condition):
            names = tuple(field.name for field in node.schema)
            return calc(convert(below), identity(node.schema), names, condition)
        case Watermark():
            return WatermarkAssigner(
                schema=node.schema,
                input=convert(node.input),
                time_index=node.time_index,
                expression=node.expression,
            )
        case WindowTable():
            rows = convert(node.input)
            is_session = node.window.kind is WindowKind.SESSION
            return (SessionRows if is_session else WindowTableFunction)(
                schema=node.schema,
                input=exchanged(rows, node.partition_by) if is_session else rows,
                window=node.window,
                time_index=node.time_index,
                partition_by=node.partition_by,
            )
        case Union():
            return PhysicalUnion(schema=node.schema, branches=tuple(convert(each) for each in node.branches))
        case Unnest():
            return PhysicalUnnest(
                schema=node.schema,
                input=convert(node.input),
                collection=node.collection,
                is_outer=node.kind is JoinKind.LEFT,
                with_ordinality=node.with_ordinality,
                condition=node.condition,
            )
        case _:
            return None
