"""Making physical nodes: what every conversion needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headrace.errors import SqlError, SqlValidationError, UnsupportedFeatureError
from headrace.planner import expressions as e
from headrace.planner.dialect.tokens import error_at
from headrace.planner.logical import Field, LogicalNode, TimeKind
from headrace.planner.physical import Calc, Exchange, PhysicalNode
from headrace.types.logical import ArrayType

__all__ = [
    "Conversion",
    "Convert",
    "calc",
    "check_order",
    "columns_of",
    "exchanged",
    "placed_error",
    "with_columns",
]

#: Turns a logical node, and all below it, into physical ones.
Convert = Callable[[LogicalNode], PhysicalNode]
#: Turns a logical node into physical ones if it is of the kind that it knows; None if not.
Conversion = Callable[[LogicalNode, Convert], PhysicalNode | None]


def calc(
    node: PhysicalNode,
    expressions: Sequence[e.Expression],
    names: Sequence[str],
    condition: e.Expression | None = None,
    times: Sequence[TimeKind | None] | None = None,
) -> PhysicalNode:
    """Return a Calc, or the node itself where it would do nothing."""
    fields = tuple(
        Field(name, expression.type, _time(expression, node) if times is None else times[at])
        for at, (name, expression) in enumerate(zip(names, expressions, strict=True))
    )
    if condition is None and _is_identity(expressions, node) and fields == node.schema:
        return node
    if isinstance(node, Calc) and all(map(e.is_deterministic, node.expressions)):
        # Two in a row are one.
        inner = dict(enumerate(node.expressions))
        expressions = [e.substitute(each, inner) for each in expressions]
        conditions = e.conjuncts(node.condition)
        conditions += [e.substitute(each, inner) for each in e.conjuncts(condition)]
        condition, node = e.conjunction(conditions) if conditions else None, node.input
    return Calc(schema=fields, input=node, expressions=tuple(expressions), condition=condition)


def _is_identity(expressions: Sequence[e.Expression], node: PhysicalNode) -> bool:
    return len(expressions) == len(node.schema) and all(
        isinstance(each, e.InputRef) and each.index == at for at, each in enumerate(expressions)
    )


def _time(expression: e.Expression, node: PhysicalNode) -> TimeKind | None:
    return node.schema[expression.index].time if isinstance(expression, e.InputRef) else None


def columns_of(node: PhysicalNode, columns: Iterable[int]) -> list[e.Expression]:
    """Return columns of a node as expressions over it."""
    return [e.InputRef(index, node.schema[index].type) for index in columns]


def with_columns(node: PhysicalNode, expressions: Sequence[e.Expression]) -> tuple[PhysicalNode, list[int]]:
    """Compute what is not a column yet, after the columns that are there; return where each expression is."""
    computed: list[e.Expression] = []
    places: list[int] = []
    width = len(node.schema)
    for each in expressions:
        if isinstance(each, e.InputRef):
            places.append(each.index)
        elif each in computed:
            places.append(width + computed.index(each))
        else:
            places.append(width + len(computed))
            computed.append(each)
    if not computed:
        return node, places
    names = [*node.names, *(f"$k{at}" for at in range(len(computed)))]
    return calc(node, [*columns_of(node, range(width)), *computed], names), places


def check_order(keys: Iterable[e.SortKey]) -> None:
    """Refuse to keep rows in the order of an array, which columns in state do not have."""
    if any(isinstance(key.expression.type, ArrayType) for key in keys):
        raise UnsupportedFeatureError.not_yet(
            "ORDER BY an ARRAY in streaming mode", "order by elements of it, or use BATCH mode"
        )


def exchanged(node: PhysicalNode, columns: Sequence[int]) -> PhysicalNode:
    """Bring rows that agree in the columns to one place."""
    return Exchange(schema=node.schema, input=node, columns=tuple(columns))


def placed_error(place: e.Place | None, message: str, hint: str) -> SqlError:
    """Return the error of what only planning finds, at its place in the statement if that is known."""
    if place is None:
        return SqlValidationError(message, hint=hint)
    return error_at(place.text, place.span, message, hint=hint, kind=SqlValidationError)
