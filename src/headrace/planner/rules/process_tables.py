"""Process table functions, and the built-in ones over changelogs."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.planner.logical import LogicalNode
from headrace.planner.physical import FromChangelog as PhysicalFromChangelog
from headrace.planner.physical import PhysicalNode, walk
from headrace.planner.physical import ProcessTable as PhysicalProcessTable
from headrace.planner.physical import ToChangelog as PhysicalToChangelog
from headrace.planner.process_tables import FromChangelog, ProcessTable, ToChangelog
from headrace.planner.rules.nodes import Convert, exchanged, placed_error

__all__ = ["check_uids", "convert_process_table"]


def check_uids(roots: Iterable[PhysicalNode]) -> None:
    """Refuse two calls with the same uid: their state could not be distinguished.

    Raises:
        SqlValidationError: If there are such.
    """
    known: set[str] = set()
    for node in walk(roots):
        if not isinstance(node, PhysicalProcessTable) or node.call.uid is None:
            continue
        if node.call.uid in known:
            raise placed_error(
                node.call.place,
                f"two different calls of process table functions have the uid {node.call.uid!r}",
                "give each call its own: uid => 'my-id'",
            )
        known.add(node.call.uid)


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
