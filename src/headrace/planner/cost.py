"""The estimates of EXPLAIN ESTIMATED_COST: how many rows an operator gives, and what that costs.

Nobody knows the tables, so these are guesses from the plan alone, by fixed shares: good for comparing two plans of one
query, and for nothing else. A table counts as a hundred million rows, as in Flink, unless its options say how many.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Final

from headrace import types as t
from headrace.planner import expressions as e
from headrace.planner import physical as p
from headrace.planner.logical import JoinKind

__all__ = ["Estimate", "estimates"]

_UNKNOWN_ROWS: Final = 1e8
#: The share of rows that a condition lets through, by its function.
_SHARES: Final = {
    **{"EQUALS": 0.15, "IS_NOT_DISTINCT_FROM": 0.15, "NOT_EQUALS": 0.85, "IS_NULL": 0.1, "IS_NOT_NULL": 0.9},
    **dict.fromkeys(("LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL"), 0.5),
    **{"LIKE": 0.25, "BETWEEN": 0.25, "IN": 0.25},
}
_OTHER_SHARE: Final = 0.25
#: Groups, partitions or keys for each row that comes in.
_GROUPS: Final = 0.1
_ELEMENTS: Final = 3.0
#: Bytes of a value whose type has no fixed size.
_BYTES: Final = 24.0
_SIZES: Final = (
    (t.BooleanType, 1.0),
    (t.TinyIntType, 1.0),
    (t.SmallIntType, 2.0),
    (t.IntType, 4.0),
    (t.FloatType, 4.0),
    (t.DateType, 4.0),
    (t.TimeType, 4.0),
    (t.BigIntType, 8.0),
    (t.DoubleType, 8.0),
)


@dataclass(frozen=True)
class Estimate:
    """Rows that come out, and the costs of this operator and all below it."""

    row_count: float
    rows: float
    cpu: float
    io: float
    network: float
    memory: float

    def __str__(self) -> str:
        costs = ((name, getattr(self, name)) for name in ("rows", "cpu", "io", "network", "memory"))
        shown = ", ".join(f"{_number(value)} {name}" for name, value in costs)
        return f"rowcount = {_number(self.row_count)}, cumulative cost = {{{shown}}}"


def _number(value: float) -> str:
    """A number as Java shows it: 100.0, 1.0E8."""
    if value != 0 and not 1e-3 <= value < 1e7:
        digits, _, exponent = f"{value:.15E}".partition("E")
        digits = digits.rstrip("0")
        return f"{digits}{'0' if digits.endswith('.') else ''}E{int(exponent)}"
    return repr(float(value))


def estimates(nodes: Iterable[p.PhysicalNode]) -> dict[p.PhysicalNode, Estimate]:
    """The estimate of every operator; inputs come before those who read them."""
    found: dict[p.PhysicalNode, Estimate] = {}
    for node in nodes:
        below = [found[each] for each in node.inputs]
        rows = _row_count(node, [each.row_count for each in below])
        size = sum(_size(field.type) for field in node.schema)
        handled = sum(each.row_count for each in below) or rows
        found[node] = Estimate(
            rows,
            rows + sum(each.rows for each in below),
            handled * _work(node) + sum(each.cpu for each in below),
            (rows * size if isinstance(node, p.TableScan) else 0.0) + sum(each.io for each in below),
            (rows * size if isinstance(node, p.Exchange) else 0.0) + sum(each.network for each in below),
            (handled * size if _keeps_rows(node) else 0.0) + sum(each.memory for each in below),
        )
    return found


def _row_count(node: p.PhysicalNode, below: list[float]) -> float:
    match node:
        case p.TableScan():
            given = node.scan.table.options.get("number-of-rows", "")
            return float(given) if given.isdecimal() else _UNKNOWN_ROWS
        case p.Values():
            return float(len(node.rows))
        case p.Calc():
            return below[0] * (1.0 if node.condition is None else _share(node.condition))
        case p.GroupAggregate() | p.WindowAggregate():
            return max(1.0, below[0] * _GROUPS) if node.keys else 1.0
        case p.Deduplicate():
            return max(1.0, below[0] * _GROUPS)
        case p.Rank() | p.WindowRank():
            return _ranked(node, below[0])
        case p.Expand():
            return below[0] * len(node.sets)
        case p.Unnest():
            return below[0] * _ELEMENTS
        case p.Join() | p.WindowJoin():
            return _joined(node, *below)
        case _:
            return sum(below)


def _ranked(node: p.Rank | p.WindowRank, rows: float) -> float:
    if node.last is None:
        return max(0.0, rows - node.first + 1)
    partitions = max(1.0, rows * _GROUPS) if node.partition or isinstance(node, p.WindowRank) else 1.0
    return min(rows, partitions * (node.last - node.first + 1))


def _joined(node: p.Join | p.WindowJoin, left: float, right: float) -> float:
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left * 0.5
    pairs = max(left, right) if node.left_keys else left * right
    pairs *= 1.0 if node.condition is None else _share(node.condition)
    least = {JoinKind.LEFT: left, JoinKind.RIGHT: right, JoinKind.FULL: left + right}.get(node.kind, 0.0)
    return max(pairs, least)


def _share(condition: e.Expression) -> float:
    """The share of rows for which a condition holds."""
    if not isinstance(condition, e.Call):
        return 1.0 if condition == e.TRUE else _OTHER_SHARE
    match condition.function:
        case "AND":
            return prod(map(_share, condition.operands))
        case "OR":
            return 1.0 - prod(1.0 - _share(each) for each in condition.operands)
        case "NOT":
            return 1.0 - _share(condition.operands[0])
        case function:
            return _SHARES.get(function, _OTHER_SHARE)


def _work(node: p.PhysicalNode) -> float:
    """Steps for each row that comes in."""
    match node:
        case p.Calc():
            return 1.0 + sum(isinstance(each, e.Call) for each in (*node.expressions, node.condition))
        case p.GroupAggregate() | p.WindowAggregate():
            return 1.0 + len(node.calls)
        case _:
            return 1.0


def _keeps_rows(node: p.PhysicalNode) -> bool:
    stateful = (p.GroupAggregate, p.WindowAggregate, p.Join, p.WindowJoin, p.Rank, p.WindowRank)
    return isinstance(
        node,
        (
            *stateful,
            p.Deduplicate,
            p.ChangelogNormalize,
            p.TemporalSort,
            p.SessionRows,
            p.OverAggregate,
            p.Match,
        ),
    )


def _size(kind: t.DataType) -> float:
    return next((size for one, size in _SIZES if isinstance(kind, one)), _BYTES)
