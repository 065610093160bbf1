"""Logical trees by hand, for tests of the planner that need no SQL."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog import CatalogTable, ObjectIdentifier, PhysicalColumn
from headrace.catalog.objects import PrimaryKey
from headrace.common.changelog import ALL, ChangelogMode
from headrace.planner.explain import describe
from headrace.planner.expressions import (
    AggregateCall,
    Call,
    Expression,
    InputRef,
    Literal,
    SortKey,
    WindowCall,
)
from headrace.planner.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LogicalNode,
    Over,
    Project,
    Scan,
    Watermark,
    WindowTable,
)
from headrace.planner.optimize import Plan, SinkRequest, plan_job
from headrace.planner.physical import CollectTarget
from headrace.planner.windows import WindowFunctionSpec, WindowKind
from headrace.types import DataTypes

BIGINT = DataTypes.BIGINT()
STRING = DataTypes.STRING()
BOOLEAN = DataTypes.BOOLEAN()
TIMESTAMP = DataTypes.TIMESTAMP(3)


class Modes:
    """Changelogs of tables by name; those that are not named only insert."""

    def __init__(self, **modes: ChangelogMode) -> None:
        self._modes = modes

    def mode_of(self, scan: Scan) -> ChangelogMode:
        return self._modes.get(scan.identifier.name, ChangelogMode.insert_only())


def table(name: str = "bids", key: tuple[str, ...] = ()) -> Scan:
    """A table with user, price and ts."""
    columns = (
        PhysicalColumn("user", STRING),
        PhysicalColumn("price", BIGINT),
        PhysicalColumn("ts", TIMESTAMP),
    )
    primary = PrimaryKey("pk", key) if key else None
    return Scan(
        CatalogTable(columns, primary_key=primary),
        ObjectIdentifier("default_catalog", "default_database", name),
    )


def timed(name: str = "bids") -> Watermark:
    """The same table, with ts as event time."""
    scan = table(name)
    return Watermark(scan, 2, ref(scan, 2))


def ref(node: LogicalNode, index: int) -> InputRef:
    return InputRef(index, node.schema[index].type)


def compare(function: str, left: Expression, right: Expression | int | str) -> Call:
    if not isinstance(right, InputRef | Literal | Call):
        right = Literal(right, STRING if isinstance(right, str) else BIGINT)
    return Call(function, (left, right), BOOLEAN)


def both(*conditions: Expression) -> Call:
    return Call("AND", conditions, BOOLEAN)


def project(node: LogicalNode, *columns: int) -> Project:
    return Project(
        node,
        tuple(ref(node, index) for index in columns),
        tuple(node.schema[index].name for index in columns),
    )


def where(node: LogicalNode, function: str, index: int, value: int | str) -> Filter:
    return Filter(node, compare(function, ref(node, index), value))


def count_by(node: LogicalNode, *keys: int) -> Aggregate:
    names = (*(node.schema[key].name for key in keys), "n")
    return Aggregate(node, keys, (AggregateCall("COUNT", (), DataTypes.BIGINT(False)),), names)


def sum_by(node: LogicalNode, column: int, *keys: int) -> Aggregate:
    names = (*(node.schema[key].name for key in keys), "total")
    return Aggregate(node, keys, (AggregateCall("SUM", (ref(node, column),), BIGINT),), names)


def join(
    left: LogicalNode,
    right: LogicalNode,
    kind: JoinKind = JoinKind.INNER,
    on: Sequence[tuple[int, int]] = ((0, 0),),
) -> Join:
    width = len(left.schema)
    pairs = [
        compare("EQUALS", ref(left, one), InputRef(width + other, right.schema[other].type))
        for one, other in on
    ]
    return Join(left, right, kind, pairs[0] if len(pairs) == 1 else both(*pairs))


def numbered(node: LogicalNode, partition: Sequence[int], order: int, *, ascending: bool = True) -> Over:
    call = WindowCall(
        "ROW_NUMBER",
        (),
        DataTypes.BIGINT(False),
        tuple(ref(node, index) for index in partition),
        (SortKey(ref(node, order), ascending, ascending),),
    )
    return Over(node, (call,), ("rn",))


def tumble(node: LogicalNode, size_ms: int = 10_000, time: int = 2) -> WindowTable:
    return WindowTable(node, WindowFunctionSpec(WindowKind.TUMBLE, size_ms, size_ms), time)


def plan(
    *queries: LogicalNode,
    accepts: ChangelogMode = ALL,
    keys: tuple[int, ...] = (),
    sources: Modes | None = None,
) -> Plan:
    requests = [SinkRequest(query, "out", CollectTarget("test"), accepts, keys) for query in queries]
    return plan_job(requests, sources)


def changelogs(made: Plan) -> dict[str, str]:
    """What each operator emits, by its label; exchanges are left out."""
    return {node.label: str(made.changelogs[node]) for node in made.nodes if node.label != "Exchange"}


def lines(made: Plan) -> list[str]:
    """The operators as a plan shows them, the sink first; exchanges are left out."""
    return [describe(node) for node in reversed(made.nodes) if node.label != "Exchange"]
