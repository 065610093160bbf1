"""Names of tables, databases and catalogs in statements, and options: found, or refused at their place."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.manager import nearest
from headrace.catalog.objects import CatalogTable
from headrace.errors import HeadraceError, SqlError
from headrace.planner.binder.context import Context
from headrace.planner.binder.literals import bind_constant
from headrace.planner.dialect.statement_syntax import OptionSyntax
from headrace.planner.dialect.syntax import Constant, Identifier, Name
from headrace.planner.dialect.tokens import Span
from headrace.planner.expressions import Literal

__all__ = ["NameBinder", "partition_constants"]


def partition_constants(
    context: Context,
    table: CatalogTable,
    identifier: ObjectIdentifier,
    items: Sequence[tuple[Identifier, Constant | None]],
) -> dict[str, Literal]:
    """The values that PARTITION (column = value, ...) gives to columns; those without one are left out."""
    found: dict[str, Literal] = {}
    for column, value in items:
        if column.name not in table.partition_keys:
            raise context.error(
                f"{column.name!r} is not a partition column of {identifier.dotted()}",
                column.span,
                hint=nearest(column.name, table.partition_keys),
            )
        if value is not None:
            found[column.name] = bind_constant(context, value)
    return found


class NameBinder:
    """What binders of statements have in common."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def qualify(self, name: Name) -> ObjectIdentifier:
        """The full name of what a statement names."""
        try:
            return self.context.manager.qualify(name.path)
        except HeadraceError as wrong:
            raise self.context.catalog_error(wrong.message, name.span) from wrong

    def database(self, name: Name) -> tuple[str, str]:
        """A catalog and a database in it."""
        match name.path:
            case (database,):
                return self.context.manager.current_catalog, database
            case (catalog, database):
                return catalog, database
            case _:
                raise self.context.error("a database name must have one or two parts", name.span)

    def one_name(self, name: Name, what: str) -> str:
        """A name without dots."""
        if len(name.path) != 1:
            raise self.context.error(f"a {what} name must have only one part", name.span)
        return name.path[0]

    def catalog(self, name: Name) -> str:
        """A catalog that is there."""
        found = self.one_name(name, "catalog")
        if found not in self.context.manager.catalogs():
            near = nearest(found, self.context.manager.catalogs())
            raise self.context.catalog_error(f"catalog {found!r} does not exist", name.span, hint=near)
        return found

    def options(self, options: Sequence[OptionSyntax]) -> dict[str, str]:
        """Options by key, each of them once."""
        found: dict[str, str] = {}
        for option in options:
            if option.key in found:
                raise self.context.error(f"option {option.key!r} is given twice", option.span)
            found[option.key] = option.value
        return found

    def missing(self, what: str, identifier: ObjectIdentifier, span: Span) -> SqlError:
        """The error for a table or view that there is not."""
        hint = self.context.near_table(identifier.name)
        return self.context.catalog_error(f"{what} {identifier.dotted()!r} does not exist", span, hint=hint)
