"""What the nodes of a table job mean, whatever else is in the job: state is found again by it when a query has changed.

A node that keeps rows means what it does to which columns of which inputs, with all conditions on the way. Its place
in the plan, names of columns, and what is done with its result do not count. So a query keeps its state if it gets
another sink, a condition after an aggregation, or a column that is computed of what there is; and an aggregation of
other rows is another one, though it stands in the same place.

    SELECT k, SUM(v) FROM t WHERE v > 1 GROUP BY k      GroupAggregate of t: `k`, SUM(`v`), where (`v` > 1)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Final, Protocol

from headrace.operators.table.base import EVENT
from headrace.operators.table.declarations import (
    GroupAggregateDeclaration,
    StatefulNode,
    TableScanDeclaration,
    TableSinkDeclaration,
    WindowAggregateDeclaration,
)
from headrace.operators.table.steps import (
    Explode,
    Fragment,
    PythonCalls,
    RowIds,
    Select,
    Step,
    StepColumn,
    Where,
)

__all__ = ["meanings"]

_NAME: Final = re.compile(r"`((?:[^`]|``)+)`")
_TABLE: Final = re.compile(r"table=\[+(.*?)\]")
#: What a node emits, and how fast: its state is the same.
_NOT_OF_STATE: Final = (
    "output",
    "is_insert_only",
    "emits_update_before",
    "row_by_row",
    "one_phase",
    "first_pairs",
    "renews",
)
#: State has a column more if it expires; when it does, the next start may change.
_TIMES_TO_LIVE: Final = ("ttl_ms", "right_ttl_ms")
#: These keep results of calls; others keep their rows with all columns.
_KEEP_RESULTS: Final = (GroupAggregateDeclaration, WindowAggregateDeclaration)


class _Input(Protocol):
    @property
    def node(self) -> int: ...

    @property
    def fragment(self) -> Fragment: ...

    @property
    def target_input(self) -> int: ...


class _Node(Protocol):
    @property
    def declaration(self) -> Any: ...

    @property
    def description(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> Sequence[_Input]: ...


def meanings(nodes: Sequence[_Node]) -> list[str]:
    """Return what each node means, as text: equal for nodes of two jobs that can continue with the other's state.

    Args:
        nodes: Producers before consumers.
    """
    found: list[str] = []
    for node in nodes:
        text = json.dumps(_meaning(node, nodes, found), sort_keys=True)
        same = sum(each.startswith(text) for each in found)
        found.append(f"{text}#{same}")
    return found


def _meaning(node: _Node, nodes: Sequence[_Node], found: Sequence[str]) -> Any:
    declaration = node.declaration
    kind = type(declaration).__name__.removesuffix("Declaration")
    if isinstance(declaration, TableScanDeclaration | TableSinkDeclaration):
        table = _TABLE.search(node.description)
        return [kind, table[1] if table is not None else re.sub(r"\[\d+\]$", "", node.name)]
    reads = [read for read in node.inputs if read.node < len(found)]
    rows = [_Rows.behind(nodes[read.node].declaration, read.fragment) for read in reads]
    sides = [
        [read.target_input, found[read.node], sorted(each.conditions)]
        for read, each in zip(reads, rows, strict=True)
    ]
    if not isinstance(declaration, StatefulNode):
        return [kind, sides, [sorted(each.columns.items()) for each in rows]]
    names: dict[str, str] = {}
    for read, each in zip(reads, rows, strict=True):
        for name, text in each.columns.items():
            own = f"{read.target_input}:{text}"
            names[name] = own if names.get(name, own) == own else f"{names[name]}|{own}"
    kept = []
    if not isinstance(declaration, _KEEP_RESULTS):
        kept = [_kept(each, read.fragment) for read, each in zip(reads, rows, strict=True)]
    return [kind, _plain(declaration, names), sides, kept]


def _kept(rows: _Rows, fragment: Fragment) -> list[list[str]]:
    """Return the columns that a node keeps of its rows, in their order."""
    return [
        [rows.columns[column.name], column.spark_type] for column in fragment.schema if column.name != EVENT
    ]


@dataclass
class _Rows:
    """Rows on their way to a node: what columns are computed of, and what all rows fulfil."""

    columns: dict[str, str]
    conditions: list[str]

    @classmethod
    def behind(cls, producer: Any, fragment: Fragment) -> _Rows:
        if isinstance(producer, TableScanDeclaration):
            rows = cls({column.name: column.name for column in producer.schema}, [])
            if producer.fragment is not None:
                rows.take(producer.fragment)
        else:
            output = getattr(producer, "output", fragment.schema)
            rows = cls({column.name: f"${at}" for at, column in enumerate(output)}, [])
        rows.take(fragment)
        return rows

    def take(self, fragment: Fragment) -> None:
        for step in fragment.steps:
            self._step(step)

    def _step(self, step: Step) -> None:
        match step:
            case Select(items):
                self.columns = {name: self._written(sql) for sql, name in items if name != EVENT}
            case Where(condition):
                self.conditions.append(self._written(condition))
            case Explode(generator, names, is_outer):
                made = f"{self._written(generator)}{' outer' if is_outer else ''}"
                self.conditions.append(made)
                self.columns |= {name: f"{made}.{at}" for at, name in enumerate(names)}
            case PythonCalls(calls):
                for call in calls:
                    arguments = ", ".join(self.columns[name] for name in call.arguments)
                    self.columns[call.result.name] = f"{_function(call.function)}({arguments})"
            case RowIds(columns, names):
                made = f"id({', '.join(self.columns[name] for name in columns if name != EVENT)})"
                self.columns |= {name: f"{made}.{at}" for at, name in enumerate(names)}

    def _written(self, sql: str) -> str:
        """Write Spark SQL with what its columns are computed of in their places."""

        def origin(match: re.Match[str]) -> str:
            name = match[1].replace("``", "`")
            return self.columns.get(name, match[0])

        return _NAME.sub(origin, sql)


def _plain(value: Any, names: Mapping[str, str]) -> Any:
    """Return a declaration, or a part of it, as plain data; names of columns become what they are computed of."""
    match value:
        case StepColumn():
            return [names.get(value.name, ""), value.spark_type]
        case Enum():
            return value.name
        case str():
            return names.get(value, value)
        case None | bool() | int() | float():
            return value
        case tuple() | list():
            return [_plain(each, names) for each in value]
        case Mapping():
            return [[_plain(key, names), _plain(each, names)] for key, each in value.items()]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, _fields(value, names)]
    return _told(value)


def _fields(value: Any, names: Mapping[str, str]) -> dict[str, Any]:
    made = {}
    for each in fields(value):
        content = getattr(value, each.name)
        if each.name in _TIMES_TO_LIVE:
            made[each.name] = bool(content)
        elif each.name not in _NOT_OF_STATE:
            made[each.name] = _plain(content, names)
    return made


def _told(value: Any) -> str:
    """Return what tells a value from others: a type of Arrow, a date, a function."""
    if isinstance(value, set | frozenset):
        return str(sorted(map(str, value)))
    # Without a text of its own, an object is shown with its address, which is another one on every start.
    is_told = not callable(value) and "__repr__" in {
        name for each in type(value).__mro__[:-1] for name in vars(each)
    }
    return repr(value) if is_told else _function(value)


def _function(function: Any) -> str:
    """Return what a function of the user's is known by."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__
