"""Walking and rebuilding logical trees: what every rule needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, cast

from headrace.planner.expressions import Expression, InputRef, conjunction
from headrace.planner.logical import Filter, LogicalNode, Project, Schema

__all__ = ["Rule", "filtered", "identity", "over_inputs", "projected", "rewritten"]

#: A rewrite of one node: the node that takes its place, or None to leave it.
Rule = Callable[[LogicalNode], LogicalNode | None]

#: Rules come to rest long before; a pair that undoes each other must not continue forever.
_MOST_PASSES = 100


def over_inputs(node: LogicalNode, inputs: Sequence[LogicalNode]) -> LogicalNode:
    """Return the node over other inputs; itself, if they are the ones it has."""
    if all(old is new for old, new in zip(node.inputs, inputs, strict=True)):
        return node
    rest = list(inputs)
    changed: dict[str, Any] = {}
    for each in fields(cast(Any, node)):
        value = getattr(node, each.name)
        if isinstance(value, LogicalNode):
            changed[each.name] = rest.pop(0)
        elif isinstance(value, tuple) and value and isinstance(value[0], LogicalNode):
            changed[each.name], rest = tuple(rest[: len(value)]), rest[len(value) :]
    return cast(LogicalNode, replace(cast(Any, node), **changed))


def rewritten(node: LogicalNode, rules: Sequence[Rule]) -> LogicalNode:
    """Apply rules everywhere, inputs first, until none has anything to do."""
    node = over_inputs(node, [rewritten(each, rules) for each in node.inputs])
    for _ in range(_MOST_PASSES):
        changed = next((found for rule in rules if (found := rule(node)) is not None), None)
        if changed is None:
            return node
        # What the rule made may give work to the others further down.
        node = over_inputs(changed, [rewritten(each, rules) for each in changed.inputs])
    return node


def identity(schema: Schema) -> tuple[Expression, ...]:
    """Return the columns of a schema as expressions over it."""
    return tuple(InputRef(index, field.type) for index, field in enumerate(schema))


def filtered(node: LogicalNode, conditions: Sequence[Expression]) -> LogicalNode:
    """Return the rows of a node for which all conditions hold."""
    return Filter(node, conjunction(list(conditions))) if conditions else node


def projected(node: LogicalNode, columns: Sequence[int]) -> LogicalNode:
    """Return some columns of a node, in this order."""
    schema = node.schema
    return Project(
        node,
        tuple(InputRef(index, schema[index].type) for index in columns),
        tuple(schema[index].name for index in columns),
    )
