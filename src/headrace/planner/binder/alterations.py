"""ALTER TABLE: the table as it will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from headrace.catalog.manager import nearest
from headrace.catalog.objects import CatalogTable, Column, ComputedColumn
from headrace.planner.binder.context import Context
from headrace.planner.dialect.statement_syntax import (
    AlterTableSyntax,
    ColumnSyntax,
    KeySyntax,
    OptionSyntax,
    WatermarkSyntax,
)
from headrace.planner.dialect.syntax import Identifier
from headrace.planner.dialect.tokens import Span, TokenKind, tokenize

__all__ = ["TableMaker", "altered"]


class TableMaker(Protocol):
    """What ALTER needs of the binder of definitions: the same checks that CREATE TABLE makes."""

    context: Context

    def options(self, options: Sequence[OptionSyntax]) -> dict[str, str]:
        """The options in WITH, by key."""

    def table(
        self,
        columns: Sequence[ColumnSyntax],
        watermarks: Sequence[WatermarkSyntax],
        keys: Sequence[KeySyntax],
        partitioned_by: Sequence[Identifier],
        options: Sequence[OptionSyntax],
        comment: str | None,
        span: Span,
        *,
        base: CatalogTable | None = None,
    ) -> CatalogTable:
        """The table that these make over another."""


def altered(binder: TableMaker, table: CatalogTable, node: AlterTableSyntax) -> CatalogTable:
    """The table after the action; SQL of computed columns and the watermark must still be right."""
    match node.action:
        case "SET":
            return table.with_options(binder.options(node.options))
        case "RESET":
            return replace(
                table,
                options={key: value for key, value in table.options.items() if key not in node.keys_to_reset},
            )
        case "DROP KEY":
            if table.primary_key is None:
                raise binder.context.error("the table has no primary key", node.span)
            return replace(table, primary_key=None)
        case "DROP WATERMARK":
            if table.watermark is None:
                raise binder.context.error("the table has no watermark", node.span)
            return replace(table, watermark=None)
        case "DROP COLUMN":
            return _without(binder, table, node)
        case "RENAME COLUMN":
            return _renamed(binder, table, node)
        case _:
            return _with(binder, table, node)


def _place(binder: TableMaker, table: CatalogTable, column: Identifier) -> int:
    names = [one.name for one in table.columns]
    if column.name not in names:
        raise binder.context.error(
            f"column {column.name!r} not found", column.span, hint=nearest(column.name, names)
        )
    return names.index(column.name)


def _in_use(binder: TableMaker, table: CatalogTable, name: str, span: Span) -> None:
    """Refuse to take away a column that something else of the table is made of."""
    uses = [
        ("the primary key", table.primary_key is not None and name in table.primary_key.columns),
        ("a partition", name in table.partition_keys),
        ("the watermark", table.watermark is not None and _mentions(table.watermark.expression, name)),
        ("the watermark", table.watermark is not None and table.watermark.column == name),
        *(
            (f"computed column {one.name!r}", _mentions(one.expression, name))
            for one in table.columns
            if isinstance(one, ComputedColumn)
        ),
    ]
    for what, used in uses:
        if used:
            raise binder.context.error(
                f"column {name!r} is still used by {what}", span, hint="change that first"
            )


def _mentions(text: str, name: str) -> bool:
    return any(
        token.text == name and token.kind in {TokenKind.WORD, TokenKind.QUOTED} for token in tokenize(text)
    )


def _without(binder: TableMaker, table: CatalogTable, node: AlterTableSyntax) -> CatalogTable:
    for column in node.dropped:
        place = _place(binder, table, column)
        _in_use(binder, table, column.name, column.span)
        table = replace(table, columns=(*table.columns[:place], *table.columns[place + 1 :]))
    if not table.columns:
        raise binder.context.error("a table must have at least one column", node.span)
    return table


def _renamed(binder: TableMaker, table: CatalogTable, node: AlterTableSyntax) -> CatalogTable:
    assert node.old_column is not None
    assert node.new_name is not None
    place = _place(binder, table, node.old_column)
    _in_use(binder, table, node.old_column.name, node.old_column.span)
    new = node.new_name.path[-1]
    if table.column(new) is not None:
        raise binder.context.error(f"column {new!r} already exists", node.new_name.span)
    columns = list(table.columns)
    columns[place] = replace(columns[place], name=new)
    return replace(table, columns=tuple(columns))


def _with(binder: TableMaker, table: CatalogTable, node: AlterTableSyntax) -> CatalogTable:
    """ADD and MODIFY: the new columns among the old ones."""
    base = table
    if node.action == "MODIFY":
        for one in node.columns:
            place = _place(binder, base, one.name)
            base = replace(base, columns=(*base.columns[:place], *base.columns[place + 1 :]))
        base = replace(
            base,
            watermark=None if node.watermarks else base.watermark,
            primary_key=None if node.keys else base.primary_key,
        )
    elif node.watermarks and table.watermark is not None:
        raise binder.context.error("the table has a watermark", node.watermarks[0].span, hint="use MODIFY")
    made = binder.table(node.columns, node.watermarks, node.keys, (), (), None, node.span, base=base)
    added = {one.name: one for one in made.columns if table.column(one.name) != one}
    order = [one.name for one in table.columns if made.column(one.name) is not None]
    for syntax, position in zip(node.columns, node.positions, strict=True):
        name = syntax.name.name
        if name in order and position is not None:
            order.remove(name)
        if name in order:
            continue
        order.insert(_target(binder, order, position), name)
    found: dict[str, Column] = {one.name: one for one in made.columns} | added
    return replace(made, columns=tuple(found[name] for name in order))


def _target(binder: TableMaker, order: list[str], position: Identifier | str | None) -> int:
    if position is None:
        return len(order)
    if isinstance(position, str):
        return 0
    if position.name not in order:
        raise binder.context.error(
            f"column {position.name!r} not found", position.span, hint=nearest(position.name, order)
        )
    return order.index(position.name) + 1
