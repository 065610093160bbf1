"""Errors in SQL statements, which point at the place in the text."""

from __future__ import annotations

from headrace.errors.base import HeadraceError


class SqlError(HeadraceError):
    """A SQL statement could not be understood or executed.

    Cause:
        See the more specific classes below. The message shows the statement with the place underlined.

    Remedy:
        Correct the statement at the underlined place.

    Args:
        message: What is wrong.
        sql: The statement, or the script it is part of.
        line: Line of the offending place, from 1.
        column: Column of the offending place, from 1.
        length: Number of characters to underline.
        hint: What to do about it.
        retryable: Set it to differ from the class for this one error.

    Example:
        >>> print(SqlError("no such column: nam", sql="SELECT nam FROM t", line=1, column=8, length=3))
        no such column: nam
          1 | SELECT nam FROM t
                     ^^^
    """

    domain = "user"

    def __init__(
        self,
        message: str,
        *,
        sql: str | None = None,
        line: int | None = None,
        column: int | None = None,
        length: int = 1,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.sql = sql
        self.line = line
        self.column = column
        self.length = length

    def _details(self) -> list[str]:
        text = (self.sql or "").splitlines()
        if self.line is None:
            return []
        if not 1 <= self.line <= len(text):
            return [f"  at line {self.line}" + ("" if self.column is None else f", column {self.column}")]
        margin = f"  {self.line} | "
        shown = [margin + text[self.line - 1].replace("\t", " ")]
        if self.column is not None:
            # A place that continues to the next line is underlined to the end of this one.
            room = max(len(text[self.line - 1]) - self.column + 1, 1)
            under = "^" * max(1, min(self.length, room))
            shown.append(" " * (len(margin) + max(self.column, 1) - 1) + under)
        return shown


class SqlParseError(SqlError):
    """The text is not a valid Flink SQL statement.

    Cause:
        A typing error, a missing keyword, comma or quote, or a reserved word used as a name.

    Remedy:
        Correct the statement at the underlined place. Put reserved words that are names into backquotes.
    """


class SqlValidationError(SqlError):
    """The statement parses, but names, types or clauses in it do not match.

    Cause:
        An unknown or ambiguous column, an argument of the wrong type, an aggregate where none is allowed, or a query
        that does not match the columns or the changelog mode of its sink.

    Remedy:
        Correct the statement at the underlined place; for unknown names the message lists those that exist.
    """


class CatalogError(SqlError):
    """A catalog, database, table, view, partition or function does not exist, or already exists.

    Cause:
        The name is misspelled or belongs to another catalog or database, or a CREATE statement uses a name that is
        taken.

    Remedy:
        Look at `SHOW TABLES`, `SHOW DATABASES` and `SHOW CATALOGS`. Use `IF EXISTS` and `IF NOT EXISTS` where both
        states are fine.
    """
