"""A table of a database as SQL that every dialect has: SQLAlchemy's expressions, without types of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.connectors.jdbc._connections import engine_for, read_in_transaction, transact
from headrace.connectors.jdbc.options import JdbcConnectionOptions
from headrace.errors import JobDefinitionError

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Select


@dataclass(frozen=True)
class TableColumns:
    """Some columns of a table."""

    connection: JdbcConnectionOptions
    #: With its schema in front, if need be.
    table: str
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.table or not self.columns or len(set(self.columns)) < len(self.columns):
            raise JobDefinitionError(
                f"JDBC: expected a table name and unique column names; got {self.table!r}, {list(self.columns)}"
            )

    def select(self) -> Select[Any]:
        """Begin a query for the columns."""
        from sqlalchemy import column, select, table

        schema, _, name = self.table.rpartition(".")
        columns: list[Any] = [column(each) for each in self.columns]
        return select(*columns).select_from(table(name, *columns, schema=schema or None))

    def fetch(
        self, query: Select[Any], max_retries: int = 3, *, auto_commit: bool = False
    ) -> Sequence[Sequence[Any]]:
        """Ask the database.

        Raises:
            ConnectorError: It refused, or was away for too long.
        """
        return transact(
            self.connection,
            lambda connection: connection.execute(query).fetchall(),
            max_retries=max_retries,
            what=f"reading {self.table}",
            auto_commit=auto_commit,
        )

    def portions(self, query: Callable[[], Select[Any]], rows: int) -> Iterator[Sequence[Sequence[Any]]]:
        """Ask the database in one transaction, and yield so many rows at a time through a cursor of its own.

        Args:
            query: Returns what to ask; called again, for the rows that are left, if the connection was lost.
            rows: How many rows a portion has.

        Raises:
            ConnectorError: It refused, or was away for too long.
        """

        def read(connection: Connection) -> Iterator[Sequence[Sequence[Any]]]:
            with connection.execution_options(yield_per=rows).execute(query()) as found:
                yield from found.partitions()

        yield from read_in_transaction(self.connection, read, max_retries=3, what=f"reading {self.table}")

    def primary_key(self) -> tuple[str, ...]:
        """Return the columns of the primary key; empty if the table has no primary key.

        Raises:
            ConnectorError: The table is not there, or the database cannot be reached.
        """
        from sqlalchemy import inspect

        schema, _, name = self.table.rpartition(".")

        def look(connection: Any) -> tuple[str, ...]:
            found = inspect(connection).get_pk_constraint(name, schema=schema or None)
            return tuple(found["constrained_columns"])

        engine_for(self.connection)
        return transact(
            self.connection, look, max_retries=3, what=f"reading the definition of table {self.table}"
        )


def column(name: str) -> ColumnElement[Any]:
    """Return a column by its name."""
    from sqlalchemy import column as any_column

    return any_column(name)
