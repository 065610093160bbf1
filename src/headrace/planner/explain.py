"""EXPLAIN: the query as it was parsed, and the operators that execute it.

== Optimized Physical Plan ==
GroupAggregate(groupBy=[user], select=[user, COUNT(*) AS n], changelogMode=[I,UA])
+- Exchange(distribution=[hash[user]], changelogMode=[I])
+- TableSourceScan(table=[[default_catalog, default_database, clicks]], fields=[user], changelogMode=[I])
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from headrace.common.changelog import ChangelogMode
from headrace.planner import expressions as e
from headrace.planner import logical, physical
from headrace.planner.cost import Estimate, estimates
from headrace.planner.functions.operators import COMPARISON_NAMES
from headrace.planner.logical import LogicalNode, TimeKind
from headrace.planner.optimize import Plan
from headrace.planner.physical import PhysicalNode
from headrace.planner.windows import WindowFunctionSpec

__all__ = ["describe", "explain", "explain_logical", "expression_text", "plan_json"]

Attributes = list[tuple[str, str]]

_INFIX: Final = {
    "PLUS": "+",
    "MINUS": "-",
    "TIMES": "*",
    "DIVIDE": "/",
    **COMPARISON_NAMES,
    "AND": "AND",
    "OR": "OR",
    "IS_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
    "LIKE": "LIKE",
}
_UNITS: Final = tuple(
    (datetime.timedelta(**{unit.lower() + "s": 1}), unit) for unit in ("DAY", "HOUR", "MINUTE", "SECOND")
)
_POSTFIX: Final = {
    "IS_NULL": "IS NULL",
    "IS_NOT_NULL": "IS NOT NULL",
    "IS_TRUE": "IS TRUE",
    "IS_FALSE": "IS FALSE",
}


def explain(
    plan: Plan,
    *,
    changelog_mode: bool = False,
    estimated_cost: bool = False,
    advice: str | None = None,
    execution_plan: str | None = None,
    optimizations: Sequence[str] = (),
) -> str:
    """Return what EXPLAIN prints.

    Args:
        plan: The plan of the job.
        changelog_mode: Whether each operator says which kinds of rows it emits.
        estimated_cost: Whether each operator says how many rows it is supposed to give, at what costs.
        advice: What could be better about the plan (`plan_advice`), to be put after it.
        execution_plan: The job's graph as JSON, to be put at the end.
        optimizations: What options have brought about, a line each.
    """
    trees = [explain_logical(request.query) for request in plan.requests]
    modes = plan.changelogs if changelog_mode else None
    costs = estimates(plan.nodes) if estimated_cost else None
    parts = [
        "== Abstract Syntax Tree ==\n" + "\n\n".join(trees),
        f"== Optimized Physical Plan{'' if advice is None else ' With Advice'} ==\n"
        + "\n\n".join(_physical_trees(plan.sinks, modes, costs)),
    ]
    if advice is not None:
        parts.append(advice)
    if optimizations:
        parts.append("== Optimizations ==\n" + "\n".join(optimizations))
    if execution_plan is not None:
        parts.append("== Physical Execution Plan ==\n" + execution_plan)
    return "\n\n".join(parts) + "\n"


#: Operators that keep a row, or a group, until it is retracted or expires.
_KEEPERS: Final = ("Aggregate", "Join", "Rank", "ChangelogNormalize", "Deduplicate")


def plan_advice(plan: Plan, *, has_ttl: bool) -> str:
    """Return what could be better about a plan, a numbered line each.

    Flink's own advice, to gather rows in mini-batches, has no object here: epochs are mini-batches.

    Args:
        plan: The plan of the job.
        has_ttl: Whether state expires.
    """
    keepers = (
        []
        if has_ttl
        else [
            node.label
            for node in plan.nodes
            if any(word in node.label for word in _KEEPERS) and "Window" not in node.label
        ]
    )
    named = list(dict.fromkeys(keepers))
    if not named:
        return "No available advice..."
    return "\n".join(
        f"advice[{number}]: [ADVICE] {label} keeps its state forever unless table.exec.state.ttl is set."
        for number, label in enumerate(named, start=1)
    )


def plan_json(plan: Plan) -> str:
    """Return the operators and their changelogs as JSON, for programs that look at plans."""
    nodes = plan.nodes
    number = {node: at for at, node in enumerate(nodes, start=1)}
    return json.dumps(
        {
            "nodes": [
                {
                    "id": number[node],
                    "type": node.label,
                    "contents": describe(node),
                    "fields": {field.name: field.summary() for field in node.schema},
                    "changelogMode": str(plan.changelogs[node]),
                    "upsertKeys": [sorted(key) for key in sorted(plan.keys[node], key=sorted)],
                    "predecessors": [number[each] for each in node.inputs],
                }
                for node in nodes
            ]
        },
        indent=2,
    )


# --- trees ----------------------------------------------------------------------------------------


def explain_logical(node: LogicalNode) -> str:
    """Return a logical tree as text."""
    return "\n".join(_drawn(node, lambda each: each.inputs, _logical_line))


def _physical_trees(
    sinks: Sequence[PhysicalNode],
    modes: dict[PhysicalNode, ChangelogMode] | None,
    costs: dict[PhysicalNode, Estimate] | None,
) -> list[str]:
    """Draw plans; a sub-plan that several read is drawn once and referred to from then on."""
    readers = Counter(each for node in physical.walk(sinks) for each in node.inputs)
    reused: dict[PhysicalNode, int] = {}
    drawn: set[PhysicalNode] = set()

    def line(node: PhysicalNode) -> str:
        if node in drawn and node in reused:
            return f"Reused(reference_id=[{reused[node]}])"
        drawn.add(node)
        text = describe(node, None if modes is None else modes[node])
        if costs is not None:
            text += f": {costs[node]}"
        if readers[node] > 1:
            reused[node] = len(reused) + 1
            text += f"(reuse_id=[{reused[node]}])"
        return text

    def below(node: PhysicalNode) -> Sequence[PhysicalNode]:
        return () if node in drawn and node in reused else node.inputs

    return ["\n".join(_drawn(sink, below, line)) for sink in sinks]


def _drawn(
    root: Any, inputs: Callable[[Any], Sequence[Any]], line: Callable[[Any], str], prefix: str = ""
) -> list[str]:
    # Inputs are asked for before the node is drawn: a node that was drawn before has none.
    below = list(inputs(root))
    lines = [line(root)]
    for at, each in enumerate(below):
        is_last = at == len(below) - 1
        inner = _drawn(each, inputs, line)
        lines.append("+- " + inner[0] if is_last else ":- " + inner[0])
        lines += [("   " if is_last else ":  ") + text for text in inner[1:]]
    return [prefix + text for text in lines]


# --- nodes ----------------------------------------------------------------------------------------


def describe(node: PhysicalNode, mode: ChangelogMode | None = None) -> str:
    """Return an operator as a line of a plan."""
    attributes = _attributes(node)
    if mode is not None:
        attributes.append(("changelogMode", str(mode)[1:-1]))
    return f"{node.label}({', '.join(f'{name}=[{value}]' for name, value in attributes)})"


def _attributes(node: PhysicalNode) -> Attributes:
    below = [each.names for each in node.inputs]
    names = below[0] if below else ()
    match node:
        case physical.TableScan():
            return _scan_attributes(node)
        case physical.Values():
            return [("tuples", _rows(node.rows))]
        case physical.Calc():
            chosen: Attributes = [("select", _selected(node.expressions, node.names, names))]
            if node.condition is not None:
                chosen.append(("where", expression_text(node.condition, names)))
            return chosen
        case physical.WatermarkAssigner():
            return [
                ("rowtime", names[node.time_index]),
                ("watermark", expression_text(node.expression, names)),
            ]
        case physical.Unnest():
            return _unnest_attributes(node, names)
        case physical.Expand():
            return [("sets", ", ".join(_set_text(one, names) for one in node.sets))]
        case physical.Exchange():
            keys = ", ".join(names[key] for key in node.columns)
            return [("distribution", f"hash[{keys}]" if node.columns else "single")]
        case physical.WindowTableFunction() | physical.SessionRows():
            window = ("window", _window(node.window, names[node.time_index]))
            parts = [("partitionBy", ", ".join(names[key] for key in node.partition_by))]
            return [window, *(parts if node.partition_by else [])]
        case physical.GroupAggregate():
            return _aggregate_attributes(node.keys, node.calls, node.names, names)
        case physical.WindowAggregate():
            return _window_aggregate_attributes(node, names)
        case physical.Join() | physical.WindowJoin() | physical.IntervalJoin() | physical.TemporalJoin():
            return _join_attributes(node)
        case physical.Rank() | physical.WindowRank():
            return _rank_attributes(node, names)
        case physical.OverAggregate() | physical.Match():
            return _row_attributes(node, names)
        case physical.TemporalSort():
            return [("orderBy", ", ".join(_sort_text(key, names) for key in node.order))]
        case physical.Deduplicate() | physical.ChangelogNormalize():
            return _keyed_attributes(node, names)
        case physical.ProcessTable() | physical.ToChangelog() | physical.FromChangelog():
            return _process_attributes(node)
        case physical.Union():
            return [("all", "true"), ("union", ", ".join(node.names))]
        case physical.Sink():
            shown: Attributes = [("table", node.name), ("fields", ", ".join(node.names))]
            return [*shown, *_sink_attributes(node)]
        case _:
            return []


def _scan_attributes(node: physical.TableScan) -> Attributes:
    read: Attributes = [
        ("table", f"[{', '.join(node.scan.identifier.parts)}]"),
        ("fields", ", ".join(node.names)),
    ]
    return [*read, ("hints", _hints(node.scan.hints))] if node.scan.hints else read


def _aggregate_attributes(
    keys: Sequence[int], calls: Sequence[e.AggregateCall], own: Sequence[str], names: Sequence[str]
) -> Attributes:
    selected = [names[key] for key in keys]
    for call, name in zip(calls, own[len(keys) :], strict=False):
        selected.append(f"{aggregate_text(call, names)} AS {name}")
    grouped: Attributes = [("groupBy", ", ".join(names[key] for key in keys))] if keys else []
    return [*grouped, ("select", ", ".join(selected))]


def _window_aggregate_attributes(node: physical.WindowAggregate, names: Sequence[str]) -> Attributes:
    where = "attached" if node.time_index is None else names[node.time_index]
    *grouped, selected = _aggregate_attributes(node.keys, node.calls, node.names, names)
    properties = ", ".join(node.names[len(node.keys) + len(node.calls) :])
    return [*grouped, ("window", _window(node.window, where)), selected, ("properties", properties)]


def _join_attributes(
    node: physical.Join | physical.WindowJoin | physical.IntervalJoin | physical.TemporalJoin,
) -> Attributes:
    left, right = node.left.names, node.right.names
    equal = [
        f"{left[one]} = {right[other]}" for one, other in zip(node.left_keys, node.right_keys, strict=True)
    ]
    if isinstance(node, physical.TemporalJoin):
        equal.append(f"{right[node.right_time]} AS OF {left[node.left_time]}")
    elif node.condition is not None:
        equal.append(expression_text(node.condition, [*left, *right]))
    shown: Attributes = [
        ("joinType", f"{node.kind.value.capitalize()}Join"),
        ("where", " AND ".join(equal) or "true"),
        ("select", ", ".join(node.names)),
    ]
    if isinstance(node, physical.WindowJoin):
        sides = (("leftWindow", left, node.left_window), ("rightWindow", right, node.right_window))
        shown[:0] = [(name, f"{columns[at[0]]}, {columns[at[1]]}") for name, columns, at in sides]
    if isinstance(node, physical.IntervalJoin):
        is_rowtime = str(node.time is TimeKind.ROWTIME).lower()
        bounds = f"leftLowerBound={node.lower_ms}, leftUpperBound={node.upper_ms}"
        indexes = f"leftTimeIndex={node.left_time}, rightTimeIndex={node.right_time}"
        shown.insert(1, ("windowBounds", f"isRowTime={is_rowtime}, {bounds}, {indexes}"))
    return shown


def _unnest_attributes(node: physical.Unnest, names: Sequence[str]) -> Attributes:
    call = expression_text(node.collection, names)
    shown: Attributes = [
        ("lookup", call) if node.is_lookup else ("invocation", f"UNNEST({call})"),
        ("joinType", "LEFT" if node.is_outer else "INNER"),
    ]
    if node.condition is not None:
        shown.append(("joinCondition", expression_text(node.condition, node.names)))
    return [*shown, ("select", ", ".join(node.names))]


def _rank_attributes(node: physical.Rank | physical.WindowRank, names: Sequence[str]) -> Attributes:
    order = ", ".join(_sort_text(key, names) for key in node.order)
    if isinstance(node, physical.Rank) and node.label != "Rank":
        limits: Attributes = [("orderBy", order)] if order else []
        limits.append(("offset", str(node.first - 1)))
        if node.last is not None:
            limits.append(("fetch", str(node.last - node.first + 1)))
        return [*limits, ("strategy", node.strategy.value)]
    shown: Attributes = [
        ("rankType", "ROW_NUMBER"),
        ("rankRange", f"rankStart={node.first}, rankEnd={node.last}"),
        ("partitionBy", ", ".join(names[key] for key in node.partition)),
        ("orderBy", order),
        ("select", ", ".join(node.names)),
    ]
    if isinstance(node, physical.WindowRank):
        return [("window", ", ".join(names[at] for at in node.window)), *shown]
    return [("strategy", node.strategy.value), *shown]


def _over_attributes(node: physical.OverAggregate, names: Sequence[str]) -> Attributes:
    frames = list(dict.fromkeys(str(call.frame) for call in node.calls))
    own = node.names[len(names) :]
    calls = []
    for call, name in zip(node.calls, own, strict=True):
        distinct = "DISTINCT " if call.distinct else ""
        frame = f" OVER {call.frame}" if len(frames) > 1 else ""
        calls.append(f"{call.function}({distinct}{_listed(call.arguments, names) or '*'}){frame} AS {name}")
    shown: Attributes = [
        ("orderBy", _sort_text(node.order, names)),
        ("window", ", ".join(frames)),
        ("select", ", ".join([*names, *calls])),
    ]
    if node.partition:
        shown.insert(0, ("partitionBy", ", ".join(names[key] for key in node.partition)))
    return shown


def _keyed_attributes(
    node: physical.Deduplicate | physical.ChangelogNormalize, names: Sequence[str]
) -> Attributes:
    key = ("key", ", ".join(names[at] for at in node.keys))
    if isinstance(node, physical.ChangelogNormalize):
        return [key]
    kept = ("keep", "LastRow" if node.keep_last else "FirstRow")
    return [kept, key, ("order", "ROWTIME" if node.is_rowtime else "PROCTIME")]


def _sink_attributes(node: physical.Sink) -> Attributes:
    made: Attributes = [("upsertMaterialize", "true")] if node.materializes else []
    return [*made, ("conflictStrategy", node.on_conflict.value)] if node.on_conflict is not None else made


def _process_attributes(
    node: physical.ProcessTable | physical.ToChangelog | physical.FromChangelog,
) -> Attributes:
    selected: Attributes = [("select", ", ".join(node.names))]
    if not isinstance(node, physical.ProcessTable):
        return selected
    call = node.call
    given = []
    for table, below in zip(call.tables, node.tables, strict=True):
        keys = ", ".join(below.names[key] for key in table.partition_by)
        given.append(f"{table.spec.name} => TABLE{f' PARTITION BY ({keys})' if keys else ''}")
    given += [f"{name} => {value!r}" for name, value in call.arguments]
    uid: Attributes = [] if call.uid is None else [("uid", call.uid)]
    return [("invocation", f"{call.function.name}({', '.join(given)})"), *uid, *selected]


def _set_text(columns: Iterable[int], names: Sequence[str]) -> str:
    return "{" + ", ".join(names[key] for key in columns) + "}"


def _row_attributes(node: physical.OverAggregate | physical.Match, names: Sequence[str]) -> Attributes:
    if isinstance(node, physical.Match):
        return _match_attributes(node, names)
    return _over_attributes(node, names)


def _match_attributes(node: physical.Match, names: Sequence[str]) -> Attributes:
    pattern = node.pattern
    skip = pattern.skip.kind.value
    if pattern.skip.variable >= 0:
        skip = f"{skip} {pattern.variables[pattern.skip.variable].name}"
    shown: Attributes = [
        ("orderBy", ", ".join(_sort_text(key, names) for key in node.order)),
        ("rowsPerMatch", "ONE ROW PER MATCH"),
        ("after", f"SKIP {skip}"),
        ("pattern", f"({' '.join(map(str, pattern.variables))})"),
    ]
    if node.partition:
        shown.insert(0, ("partitionBy", ", ".join(names[key] for key in node.partition)))
    if pattern.within_ms is not None:
        shown.append(("within", f"{pattern.within_ms} ms"))
    return shown


def _window(window: WindowFunctionSpec, time: str) -> str:
    kind, bracket, rest = str(window).partition("(")
    return f"{kind}{bracket}time_col={time}, {rest}"


def _hints(hints: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{key}={value}" for key, value in hints)


def _rows(rows: Iterable[Sequence[e.Expression]]) -> str:
    return ", ".join("{ " + ", ".join(expression_text(each, ()) for each in row) + " }" for row in rows)


def _selected(expressions: Sequence[e.Expression], own: Sequence[str], names: Sequence[str]) -> str:
    shown = []
    for expression, name in zip(expressions, own, strict=True):
        text = expression_text(expression, names)
        shown.append(text if text == name else f"{text} AS {name}")
    return ", ".join(shown)


def _logical_line(node: LogicalNode) -> str:
    names = tuple(field.name for each in node.inputs for field in each.schema)
    shown: Attributes
    match node:
        case logical.Scan():
            shown = [("table", f"[{', '.join(node.identifier.parts)}]")]
        case logical.Project():
            own = tuple(field.name for field in node.schema)
            shown = [("select", _selected(node.expressions, own, names))]
        case logical.Filter() | logical.Join():
            shown = [("condition", expression_text(node.condition, names))]
            if isinstance(node, logical.Join):
                shown.append(("joinType", node.kind.value.lower()))
        case logical.Watermark():
            shown = [
                ("rowtime", names[node.time_index]),
                ("watermark", expression_text(node.expression, names)),
            ]
        case logical.Aggregate():
            own = tuple(field.name for field in node.schema)
            shown = _aggregate_attributes(node.group_keys, node.calls, own, names)
        case logical.WindowTable() | logical.GroupWindowAggregate():
            shown = [("window", _window(node.window, names[node.time_index]))]
        case logical.Over():
            shown = [("calls", ", ".join(_over_text(call, names) for call in node.calls))]
        case logical.Sort():
            shown = [("orderBy", ", ".join(_sort_text(key, names) for key in node.keys))]
        case logical.Limit():
            shown = [("offset", str(node.offset)), ("fetch", str(node.fetch))]
        case logical.SetOperation():
            shown = [("kind", node.kind.value), ("all", str(node.all).lower())]
        case logical.Sink():
            shown = [("table", f"[{', '.join(node.identifier.parts)}]")]
        case logical.Values():
            shown = [("tuples", _rows(node.rows))]
        case logical.Unnest():
            shown = [("collection", expression_text(node.collection, names))]
        case _:
            shown = []
    text = ", ".join(f"{name}=[{value}]" for name, value in shown)
    return f"Logical{type(node).__name__}({text})"


# --- expressions ----------------------------------------------------------------------------------


def expression_text(expression: e.Expression, names: Sequence[str]) -> str:
    """Return an expression as a plan shows it, with the columns' names."""
    match expression:
        case e.InputRef(index):
            return names[index] if index < len(names) else f"${index}"
        case e.Literal(datetime.timedelta() as value):
            return _interval_text(value)
        case e.Literal(value):
            return "null" if value is None else repr(value) if isinstance(value, str) else str(value)
        case e.UserCall():
            return f"{expression.function.name}({_listed(expression.operands, names)})"
    operands = expression.operands
    if expression.function in _INFIX and len(operands) > 1:
        joined = f" {_INFIX[expression.function]} ".join(expression_text(each, names) for each in operands)
        return f"({joined})"
    if expression.function in _POSTFIX:
        return f"{expression_text(operands[0], names)} {_POSTFIX[expression.function]}"
    if expression.function in ("CAST", "TRY_CAST"):
        inner = expression_text(operands[0], names)
        return f"{expression.function}({inner} AS {expression.type.summary_without_null()})"
    return f"{expression.function}({_listed(operands, names)})"


def _interval_text(value: datetime.timedelta) -> str:
    """Write an interval in its largest whole unit."""
    for unit, name in _UNITS:
        if value % unit == datetime.timedelta():
            return f"INTERVAL '{value // unit}' {name}"
    return f"INTERVAL '{value.total_seconds():f}' SECOND"


def aggregate_text(call: e.AggregateCall, names: Sequence[str]) -> str:
    """Return an aggregation as a plan shows it."""
    arguments = _listed(call.arguments, names) or "*"
    text = f"{call.function}({'DISTINCT ' if call.distinct else ''}{arguments})"
    return text if call.filter is None else f"{text} FILTER {expression_text(call.filter, names)}"


def _listed(expressions: Iterable[e.Expression], names: Sequence[str]) -> str:
    return ", ".join(expression_text(each, names) for each in expressions)


def _sort_text(key: e.SortKey, names: Sequence[str]) -> str:
    return f"{expression_text(key.expression, names)} {'ASC' if key.ascending else 'DESC'}"


def _over_text(call: e.WindowCall, names: Sequence[str]) -> str:
    parts = [f"PARTITION BY {_listed(call.partition_by, names)}"] if call.partition_by else []
    if call.order_by:
        parts.append("ORDER BY " + ", ".join(_sort_text(key, names) for key in call.order_by))
    return f"{call.function}({_listed(call.arguments, names)}) OVER ({' '.join(parts)})"
