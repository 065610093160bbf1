"""Process table functions, and the built-in ones over changelogs."""

from __future__ import annotations

from headrace.planner.logical import LogicalNode
from headrace.planner.physical import FromChangelog as PhysicalFromChangelog
from headrace.planner.physical import PhysicalNode
from headrace.planner.physical import ProcessTable as PhysicalProcessTable
from headrace.planner.physical import ToChangelog as PhysicalToChangelog
from headrace.planner.process_tables import FromChangelog, ProcessTable, ToChangelog
from headrace.planner.rules.nodes import Convert, exchanged

__all__ = ["convert_process_table"]


def convert_process_table(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn a call of a process table function into its operator; rows of a key come to one place."""
    match node:
        case ProcessTable():
            tables = [
                exchanged(convert(each), table.partition_by) if table.spec.is_set else convert(each)
                for each, table in zip(node.tables, node.call.tables, strict=True)
            ]
            return PhysicalProcessTable(schema=node.schema, tables=tuple(tables), call=node.call)
        case ToChangelog():
            return PhysicalToChangelog(
                schema=node.schema, input=convert(node.input), name=node.name, codes=node.codes
            )
        case FromChangelog():
            return PhysicalFromChangelog(
                schema=node.schema,
                input=convert(node.input),
                index=node.index,
                codes=node.codes,
                place=node.place,
            )
        case _:
            return None
