"""`JdbcLookup`: looks up the rows of a table by key when a record needs them, and caches them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.common.types import Row, make_row
from headrace.connectors.jdbc._tables import TableColumns, column
from headrace.connectors.jdbc.options import JdbcConnectionOptions
from headrace.connectors.jdbc.table import TypedRows
from headrace.connectors.lookup import LookupCache, LookupCacheOptions
from headrace.errors import JobDefinitionError


@dataclass
class JdbcLookup:
    """Looks up rows by a key; for use in `map`, `flat_map`, a process function, or asynchronous I/O.

    Each worker has its own cache and connections: what pickles is the declaration.

    Args:
        connection: Where the database is.
        table: The table, with its schema if need be.
        columns: The columns of the rows that are returned.
        key_columns: The columns that the key is compared with.
        cache: How much is remembered, and for how long; None: nothing.
        max_retries: How often a question is asked again when the database is away.

    Raises:
        JobDefinitionError: There are no columns, or no key.
    """

    connection: JdbcConnectionOptions
    table: str
    columns: Sequence[str]
    key_columns: Sequence[str]
    cache: LookupCacheOptions | None = None
    max_retries: int = 3
    _cache: LookupCache | None = field(init=False, repr=False, compare=False, default=None)
    _columns: TableColumns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.key_columns:
            raise JobDefinitionError("JdbcLookup: at least one key column is needed")
        self._columns = TableColumns(self.connection, self.table, tuple(self.columns))
        self._cache = None if self.cache is None else LookupCache(self.cache)

    def __reduce__(self) -> tuple[Any, ...]:
        settings = (self.connection, self.table, self.columns, self.key_columns, self.cache, self.max_retries)
        return JdbcLookup, settings

    def __call__(self, *key: Any) -> list[Row]:
        """Return the rows under a key, one value for each key column. Nothing is found under None.

        Raises:
            ConnectorError: The database refused, or was away for too long.
            TypeError: There are more or fewer values than key columns.
        """
        if len(key) != len(self.key_columns):
            raise TypeError(
                f"JdbcLookup: expected {len(self.key_columns)} values ({', '.join(self.key_columns)}); "
                f"got {len(key)}"
            )
        if None in key:
            return []
        found = None if self._cache is None else self._cache.get(key)
        if found is None:
            found = self._ask(key)
            if self._cache is not None:
                self._cache.put(key, found)
        return list(found)

    async def ask(self, *key: Any) -> list[Row]:
        """Do the same without stopping others, for an `AsyncFunction`: drivers block, so it waits in a thread."""
        return await asyncio.to_thread(self, *key)

    def _ask(self, key: tuple[Any, ...]) -> list[Row]:
        query = self._columns.select()
        for name, value in zip(self.key_columns, key, strict=True):
            query = query.where(column(name) == value)
        names = tuple(self.columns)
        return [make_row(names, row, 0) for row in self._columns.fetch(query, self.max_retries)]


@dataclass(frozen=True)
class JdbcTableLookup:
    """Rows of a table in the types that it declares, under a key or all of them; for lookup joins of SQL."""

    lookup: JdbcLookup
    rows: TypedRows

    def ask(self, *key: Any) -> list[tuple[Any, ...]]:
        """Return the rows under a key."""
        return [self.rows.typed(tuple(row)) for row in self.lookup(*key)]

    def read_all(self) -> list[tuple[Any, ...]]:
        columns = TableColumns(self.lookup.connection, self.lookup.table, tuple(self.lookup.columns))
        found = columns.fetch(columns.select(), self.lookup.max_retries)
        return [self.rows.typed(row) for row in found]
