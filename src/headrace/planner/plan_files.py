"""Plans as JSON: the nodes of a table job with the ids of their state, to be executed by a later version as they are.

    {"headracePlan": 1, "name": ..., "sessionSettings": {...}, "nodes": [{"id", "kind", "declaration", "inputs", ...}]}

Nodes are pure data (`operators.table.declarations`), so they are written field by field. What reads and writes tables
is not: a scan or a sink keeps the name of its table and how it was created, and gets its connector when the plan is
loaded.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import ModuleType
from typing import Any, Final

import pyarrow as pa

from headrace.catalog.objects import CatalogTable
from headrace.connectors.values import ValuesSource
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.graph.table_job import TableInput, TableNode, node_ids
from headrace.operators.table import declarations, steps, timed_declarations
from headrace.operators.table.declarations import TableScanDeclaration, TableSinkDeclaration
from headrace.operators.table.user_functions import UserAggregate
from headrace.planner.logical import Scan
from headrace.planner.physical import TableTarget
from headrace.planner.show_create import create_table_text

__all__ = ["VERSION", "PlanFile", "PlanTable", "decoded_plan", "encoded_plan"]

#: Counts up when plans change so that an older version cannot read them, or a newer one has to convert them.
VERSION: Final = 1
_KEY: Final = "headracePlan"
_TYPE: Final = "$type"


def _classes(*modules: ModuleType) -> dict[str, type]:
    found = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and (is_dataclass(value) or issubclass(value, Enum)):
                found[value.__name__] = value
    return found


#: What the nodes of a plan consist of.
_KNOWN: Final = _classes(declarations, timed_declarations, steps)


_TIMES: Final[dict[str, Any]] = {"datetime": datetime, "date": date, "time": time}


@dataclass(frozen=True)
class PlanTable:
    """A table that a plan reads or writes.

    Args:
        path: Catalog, database and name.
        ddl: How it was created, without passwords; None if the plan keeps only its name.
        is_overwrite: Whether rows of a sink replace what is there.
        static_partitions: What PARTITION (column = value) says about a sink.
    """

    path: tuple[str, ...]
    ddl: str | None = None
    is_overwrite: bool = False
    static_partitions: Mapping[str, str] | None = None


@dataclass(frozen=True)
class PlanFile:
    """A plan that was read."""

    name: str
    nodes: tuple[TableNode, ...]
    session_settings: Mapping[str, str]


# -- writing ---------------------------------------------------------------------------------------------------


def encoded_plan(
    nodes: Sequence[TableNode], name: str, session_settings: Mapping[str, str], *, keeps_tables: bool
) -> str:
    """Return a plan as JSON.

    Args:
        nodes: The nodes of the job, producers before consumers.
        name: What the job is called.
        session_settings: What its Spark SQL relies on.
        keeps_tables: Whether to write how tables were created, not only their names.

    Raises:
        UnsupportedFeatureError: If it contains what only the program has: a function, a stream, rows of the program.
    """
    made = []
    for node, operator_id in zip(nodes, node_ids(nodes), strict=True):
        made.append(
            {
                "id": operator_id,
                "kind": type(node.declaration).__name__.removesuffix("Declaration"),
                "name": node.name,
                "description": node.description,
                "parallelism": node.parallelism,
                "inputs": [_encoded(read) for read in node.inputs],
                "table": _table(node, keeps_tables=keeps_tables),
                "declaration": _declaration(node),
            }
        )
    plan = {_KEY: VERSION, "name": name, "sessionSettings": dict(session_settings), "nodes": made}
    return json.dumps(plan, indent=2, ensure_ascii=False) + "\n"


def _table(node: TableNode, *, keeps_tables: bool) -> Any:
    origin = node.origin
    if not isinstance(origin, Scan | TableTarget):
        return None
    if origin.table.attachment is not None:
        raise _only_here(f"table {origin.identifier.dotted()!r}, whose rows are in the program")
    ddl = create_table_text(origin.identifier, origin.table) if keeps_tables else None
    made: dict[str, Any] = {"path": list(origin.identifier.parts), "ddl": ddl}
    if isinstance(origin, TableTarget):
        made |= {"isOverwrite": origin.is_overwrite, "staticPartitions": dict(origin.static_partitions)}
    return made


def _declaration(node: TableNode) -> Any:
    declaration: Any = node.declaration
    if node.stream is not None:
        raise _only_here("a data stream of the program")
    if type(declaration).__name__ not in _KNOWN:
        raise UnsupportedFeatureError.not_yet(f"{node.name} in a compiled plan", "run the statement itself")
    if isinstance(declaration, TableScanDeclaration):
        source = declaration.source
        rows = (
            [[_encoded(value) for value in row] for row in source.rows]
            if isinstance(source, ValuesSource)
            else None
        )
        return _encoded(declaration, without="source") | {"values": rows}
    if isinstance(declaration, TableSinkDeclaration):
        if not isinstance(node.origin, TableTarget):
            raise _only_here("a query whose rows come to the program")
        return _encoded(declaration, without="sink")
    return _encoded(declaration)


def _encoded(value: Any, without: str | None = None) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Enum():
            return {_TYPE: type(value).__name__, "name": value.name}
        case tuple() | list():
            return [_encoded(each) for each in value]
        case pa.DataType():
            data = pa.schema([("type", value)]).serialize().to_pybytes()
            return {_TYPE: "arrow", "text": str(value), "data": base64.b64encode(data).decode()}
        case Decimal():
            return {_TYPE: "decimal", "text": str(value)}
        case datetime() | date() | time():
            return {_TYPE: type(value).__name__, "text": value.isoformat()}
        case timedelta():
            return {_TYPE: "timedelta", "micros": value // timedelta(microseconds=1)}
        case bytes():
            return {_TYPE: "bytes", "data": base64.b64encode(value).decode()}
        case UserAggregate():
            raise _only_here(f"the function {value.name}")
    if is_dataclass(value) and type(value).__name__ in _KNOWN:
        named = [each.name for each in fields(value)]
        items = {name: None if name == without else _encoded(getattr(value, name)) for name in named}
        return {_TYPE: type(value).__name__, **items}
    raise _only_here(f"the function {getattr(value, '__name__', type(value).__name__)}")


def _only_here(what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"a compiled plan cannot contain {what}",
        feature="compiled plans of what only the program has",
        hint="run the statement itself: its operators keep their ids as long as they mean the same",
    )


# -- reading ---------------------------------------------------------------------------------------------------


def decoded_plan(
    text: str,
    source_of: Callable[[PlanTable], Any],
    sink_of: Callable[[PlanTable], Any],
    values_of: Callable[[Sequence[Sequence[Any]]], Any],
    place: str,
) -> PlanFile:
    """Read a plan.

    Args:
        text: The JSON.
        source_of: Makes what reads a table.
        sink_of: Makes what writes one.
        values_of: Makes what gives the rows of VALUES.
        place: Where the plan is, for messages.

    Raises:
        SqlValidationError: If it is not a plan, or one of another version.
    """
    try:
        plan = json.loads(text)
    except ValueError as error:
        raise SqlValidationError(
            f"{place} is not a plan: {error}", hint="COMPILE PLAN writes plans"
        ) from None
    if not isinstance(plan, dict) or _KEY not in plan:
        known = isinstance(plan, dict) and "flinkVersion" in plan
        hint = (
            "plans of Flink name its Java operators: compile the statement again"
            if known
            else "COMPILE PLAN writes plans"
        )
        raise SqlValidationError(f"{place} is not a plan of headrace", hint=hint)
    if plan[_KEY] != VERSION:
        raise SqlValidationError(
            f"{place} is a plan of version {plan[_KEY]}; this headrace reads version {VERSION}",
            hint="compile the statement again with this version",
        )
    try:
        nodes = tuple(_node(each, source_of, sink_of, values_of) for each in plan["nodes"])
        return PlanFile(plan["name"], nodes, plan["sessionSettings"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SqlValidationError(
            f"{place} is damaged: {type(error).__name__}: {error}", hint="compile the statement again"
        ) from error


def _node(
    data: Mapping[str, Any],
    source_of: Callable[[PlanTable], Any],
    sink_of: Callable[[PlanTable], Any],
    values_of: Callable[[Sequence[Sequence[Any]]], Any],
) -> TableNode:
    content = dict(data["declaration"])
    values = content.pop("values", None)
    declaration = _decoded(content)
    table = data["table"]
    if table is not None:
        table = PlanTable(
            tuple(table["path"]), table["ddl"], table.get("isOverwrite", False), table.get("staticPartitions")
        )
    if isinstance(declaration, TableScanDeclaration):
        source = source_of(table) if table is not None else values_of([_decoded(row) for row in values])
        declaration = replace(declaration, source=source)
    if isinstance(declaration, TableSinkDeclaration):
        declaration = replace(declaration, sink=sink_of(table))
    return TableNode(
        declaration,
        data["name"],
        tuple(_decoded(read) for read in data["inputs"]),
        description=data["description"],
        parallelism=data["parallelism"],
        operator_id=data["id"],
    )


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(each) for each in value)
    if not isinstance(value, dict):
        return value
    content = dict(value)
    kind = content.pop(_TYPE)
    match kind:
        case "arrow":
            return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["data"]))).field("type").type
        case "decimal":
            return Decimal(content["text"])
        case "datetime" | "date" | "time":
            return _TIMES[kind].fromisoformat(content["text"])
        case "timedelta":
            return timedelta(microseconds=content["micros"])
        case "bytes":
            return base64.b64decode(content["data"])
    made: Any = _KNOWN[kind]
    if issubclass(made, Enum):
        return made[content["name"]]
    return made(**{name: _decoded(each) for name, each in content.items()})


def same_columns(one: CatalogTable, other: CatalogTable) -> bool:
    """Whether two tables give and take the same columns."""
    return [(each.name, each.type) for each in one.columns] == [
        (each.name, each.type) for each in other.columns
    ]


_KNOWN[TableInput.__name__] = TableInput
