"""A view's query with every table by its full name, so that it means the same wherever it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from headrace.planner.binder.context import Context
from headrace.planner.dialect.syntax import Name, Query, TableArgument, TableName

__all__ = ["expanded_query"]


def expanded_query(context: Context, query: Query) -> str:
    """The text of a query, with the names of catalogs and databases put in."""
    made, place = [], query.span.start
    for name in sorted(_tables(query, frozenset()), key=lambda one: one.span.start):
        made.append(context.text[place : name.span.start])
        made.append(str(context.manager.qualify(name.path)))
        place = name.span.end
    made.append(context.text[place : query.span.end])
    return "".join(made)


def _tables(node: object, common: frozenset[str]) -> Iterator[Name]:
    """Names of tables of catalogs; those of WITH are none."""
    if isinstance(node, Query):
        for one in node.with_:
            yield from _tables(one.query, common)
            common = common | {one.name.name}
        yield from _tables(node.body, common)
        yield from _tables(node.order_by, common)
        return
    if isinstance(node, TableName) and not (len(node.name.path) == 1 and node.name.path[0] in common):
        yield node.name
    if isinstance(node, TableArgument) and isinstance(node.source, Name):
        if not (len(node.source.path) == 1 and node.source.path[0] in common):
            yield node.source
        yield from _tables((node.partition_by, node.order_by), common)
        return
    if isinstance(node, tuple):
        for one in node:
            yield from _tables(one, common)
    elif is_dataclass(node) and not isinstance(node, Name):
        for part in fields(node):
            yield from _tables(getattr(node, part.name), common)
