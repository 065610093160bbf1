"""The way in for SQL text: `parse_statements`, then `bind` one by one.

One by one, because a statement may need what the one before it has created.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.catalog.functions import CatalogFunction, UserFunction
from headrace.catalog.manager import CatalogManager
from headrace.errors import CatalogError, SqlError, SqlParseError, UnsupportedFeatureError
from headrace.planner.binder import Context, FunctionLoader, bind_statement
from headrace.planner.binder.context import LookupLoader
from headrace.planner.binder.expressions import ExpressionBinder
from headrace.planner.binder.scope import Relation, Scope
from headrace.planner.dialect import Statements, StatementSyntax
from headrace.planner.dialect.tokens import Span, error_at
from headrace.planner.expressions import Expression
from headrace.planner.logical import Schema
from headrace.planner.statements import BoundStatement

__all__ = ["Statement", "bind", "bind_expression", "parse_statement", "parse_statements", "placed"]


@dataclass(frozen=True)
class Statement:
    """A statement that reads well; its names are not looked up yet."""

    #: The whole text, for the places of errors.
    text: str
    syntax: StatementSyntax

    @property
    def sql(self) -> str:
        """The text of this statement alone."""
        return self.text[self.syntax.span.start : self.syntax.span.end]


def parse_statements(text: str) -> list[Statement]:
    """Read a script: statements with semicolons between them.

    Raises:
        SqlParseError: The text is not Flink's SQL, or what headrace does not have; with line and column.

    Example:
        >>> [one.sql for one in parse_statements("USE CATALOG c; SELECT 1")]
        ['USE CATALOG c', 'SELECT 1']
    """
    try:
        return [Statement(text, syntax) for syntax in Statements(text).script()]
    except RecursionError:
        raise _too_deep(text) from None


def _too_deep(text: str) -> SqlParseError:
    return SqlParseError("the statement is nested too deeply", sql=text, line=1, column=1)


def parse_statement(text: str) -> Statement:
    """Read a text that is one statement.

    Raises:
        SqlParseError: It is not valid, or more than one.
    """
    found = parse_statements(text)
    if len(found) != 1:
        what = "no statement" if not found else f"{len(found)} statements"
        raise SqlParseError(f"expected one statement; got {what}", sql=text, line=1, column=1)
    return found[0]


def _no_loader(name: str, function: CatalogFunction) -> UserFunction:
    raise UnsupportedFeatureError.not_yet(f"the call of {name}, a function {function.language},")


def bind(
    statement: Statement,
    manager: CatalogManager,
    load_function: FunctionLoader = _no_loader,
    *,
    batch: bool = False,
    load_lookup: LookupLoader | None = None,
) -> BoundStatement:
    """Look up the names of a statement and type its expressions. Changes nothing.

    Args:
        statement: The statement.
        manager: The catalogs it is read in.
        load_function: Makes functions callable that the catalog only names (CREATE FUNCTION).
        batch: Whether it will run in BATCH mode, where windows need no time attribute.
        load_lookup: Makes what looks rows up in a table, for lookup joins.

    Raises:
        SqlValidationError: Names, types or clauses do not fit; with line and column.
        CatalogError: A table, view or database is missing; with line and column.
    """
    try:
        context = Context(statement.text, manager, load_function, load_lookup, batch=batch)
        return bind_statement(context, statement.syntax)
    except RecursionError:
        raise _too_deep(statement.text) from None
    except SqlError as wrong:
        if wrong.line is None:
            raise type(wrong)(wrong.message, sql=statement.text, line=1, column=1, hint=wrong.hint) from wrong
        raise


@contextmanager
def placed(text: str) -> Iterator[None]:
    """Give errors of the catalog a place in the statement that is being carried out.

    >>> with placed("DROP TABLE t"):
    ...     raise CatalogError("table 't' does not exist")
    Traceback (most recent call last):
    headrace.errors.CatalogError: table 't' does not exist
      1 | DROP TABLE t
          ^^^^^^^^^^^^
    """
    try:
        yield
    except CatalogError as wrong:
        if wrong.line is not None:
            raise
        start = len(text) - len(text.lstrip())
        span = Span(start, len(text.rstrip()))
        raise error_at(text, span, wrong.message, hint=wrong.hint, kind=CatalogError) from wrong


def bind_expression(
    text: str, schema: Schema, manager: CatalogManager, load_function: FunctionLoader = _no_loader
) -> Expression:
    """An expression of SQL over columns, as the Table API takes them (`Table.select("a + 1")`).

    Raises:
        SqlError: It is not an expression over these columns.
    """
    reader = Statements(text)
    node = reader.expression()
    if not reader.at_end():
        reader.expected("the end of the expression")
    context = Context(text, manager, load_function)
    scope = Scope(context, (Relation((), 0, schema),))
    return ExpressionBinder(context, scope, None, "an expression").typed(node)
