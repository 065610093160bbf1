"""What binding needs wherever it is: the text for errors, the catalogs, the way to user functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from headrace.catalog.functions import CatalogFunction, UserFunction
from headrace.catalog.manager import CatalogManager, nearest
from headrace.catalog.objects import CatalogTable
from headrace.connectors.lookup_tables import TableLookup
from headrace.errors import CatalogError, SqlError, SqlValidationError
from headrace.planner.dialect.tokens import Span, error_at
from headrace.planner.logical import LogicalNode, Place

__all__ = ["BoundTable", "Context", "FunctionLoader", "LookupLoader"]

#: Makes a function that a catalog only names callable.
FunctionLoader = Callable[[str, CatalogFunction], UserFunction]
#: Makes what looks rows of a table up: by its name in messages, itself, and the columns of the key.
LookupLoader = Callable[[str, CatalogTable, Sequence[str]], TableLookup]


@dataclass(frozen=True)
class BoundTable:
    """A query of WITH, bound where it stands."""

    plan: LogicalNode


@dataclass(frozen=True)
class Context:
    """Everything that binding looks names up in, and the SQL text that errors point into."""

    text: str
    manager: CatalogManager
    load_function: FunctionLoader
    #: None where no tables are read.
    load_lookup: LookupLoader | None = None
    #: Queries of WITH in reach.
    common_tables: dict[str, BoundTable] = field(default_factory=dict)
    #: Whether the query runs over bounded input at once, where every timestamp can be windowed.
    batch: bool = False
    #: Views that are being read: one that refers to itself would never end.
    views: tuple[str, ...] = ()

    def error(self, message: str, span: Span, *, hint: str | None = None) -> SqlError:
        """A validation error at a place."""
        return error_at(self.text, span, message, hint=hint, kind=SqlValidationError)

    def catalog_error(self, message: str, span: Span, *, hint: str | None = None) -> SqlError:
        """A catalog error at a place."""
        return error_at(self.text, span, message, hint=hint, kind=CatalogError)

    def unsupported(self, feature: str, span: Span, *, hint: str | None = None) -> SqlError:
        """The error for what Flink has and headrace has not."""
        return self.error(f"{feature} is not supported yet", span, hint=hint)

    def place(self, span: Span) -> Place:
        """A place, for errors that only planning finds."""
        return Place(self.text, span)

    def near_table(self, name: str) -> str | None:
        """Which table or view was probably meant, or which there are."""
        here = self.manager.tables(self.manager.current_catalog, self.manager.current_database)
        return nearest(name, [*here, *self.common_tables])

    def with_common_table(self, name: str, table: BoundTable) -> Context:
        """The context in which one more query of WITH is known."""
        return replace(self, common_tables={**self.common_tables, name: table})

    def in_view(self, name: str, text: str) -> Context:
        """The context of a view's query: its own text, and nothing of the query that reads it."""
        return replace(self, text=text, common_tables={}, views=(*self.views, name))
