"""The grammar of materialized tables: tables that keep up with a query.

CREATE MATERIALIZED TABLE t [(PRIMARY KEY ...)] [COMMENT] [PARTITIONED BY] [WITH] [FRESHNESS] [REFRESH_MODE] AS query
ALTER MATERIALIZED TABLE t SUSPEND | RESUME [WITH (...)] | REFRESH [PARTITION (...)]
DROP MATERIALIZED TABLE [IF EXISTS] t
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from headrace.planner.dialect.inspection import Inspection
from headrace.planner.dialect.statement_syntax import (
    AlterMaterializedSyntax,
    CreateMaterializedSyntax,
    CreateTableSyntax,
    DropMaterializedSyntax,
    KeySyntax,
    OptionSyntax,
)
from headrace.planner.dialect.syntax import Constant, Identifier
from headrace.planner.dialect.tokens import Token

__all__ = ["MaterializedTables"]

_UNITS: Final = {
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
}


class MaterializedTables(Inspection):
    """Reads statements about materialized tables, after their first words."""

    def create_materialized(self, start: Token) -> CreateMaterializedSyntax:
        """CREATE MATERIALIZED TABLE, from TABLE on."""
        self.expect("TABLE")
        missing = self.accept("IF", "NOT", "EXISTS")
        name = self.name("the table's name")
        keys = (self._key_of_table(),) if self.sees("(") else ()
        comment, partitioned_by, options = self.clauses_of_table()
        freshness = self._freshness() if self.accept("FRESHNESS") else None
        mode = None
        if self.accept("REFRESH_MODE"):
            self.expect("=")
            mode = self.choose("CONTINUOUS", "FULL")
        self.expect("AS")
        query = self.query()
        span = self.span_from(start)
        table = CreateTableSyntax(
            name,
            span,
            if_not_exists=missing,
            keys=keys,
            comment=comment,
            partitioned_by=partitioned_by,
            options=options,
            query=query,
        )
        return CreateMaterializedSyntax(table, freshness, mode, span)

    def clauses_of_table(self) -> tuple[str | None, tuple[Identifier, ...], tuple[OptionSyntax, ...]]:
        """COMMENT, PARTITIONED BY and WITH, which every CREATE of a table has."""
        comment = self.string() if self.accept("COMMENT") else None
        if self.sees("DISTRIBUTED"):
            self.unsupported("DISTRIBUTED")
        partitioned_by: tuple[Identifier, ...] = ()
        if self.accept("PARTITIONED"):
            self.expect("BY")
            partitioned_by = self.identifiers("a partition column")
        options = self.options() if self.accept("WITH") else ()
        return comment, partitioned_by, options

    def _key_of_table(self) -> KeySyntax:
        self.expect("(")
        start = self.token
        if not self.sees_any("CONSTRAINT", "PRIMARY"):
            self.unsupported(
                "columns of a materialized table", hint="leave them out: they are those of the query"
            )
        name = self.identifier("the constraint's name").name if self.accept("CONSTRAINT") else None
        self.expect("PRIMARY", "KEY")
        columns = self.identifiers()
        self.expect("NOT", "ENFORCED")
        key = KeySyntax(name, columns, self.span_from(start))
        self.expect(")")
        return key

    def _freshness(self) -> timedelta:
        self.expect("=")
        self.expect("INTERVAL")
        token = self.token
        text = self.string("a number in single quotes")
        unit = self.choose(*_UNITS)
        if not text.strip().isdigit() or int(text) == 0:
            self.fail(f"FRESHNESS is a whole number of {unit.lower()}s; got {text!r}", token.span)
        return int(text) * _UNITS[unit]

    def alter_materialized(self, start: Token) -> AlterMaterializedSyntax:
        """ALTER MATERIALIZED TABLE, from TABLE on."""
        self.expect("TABLE")
        name = self.name("a materialized table")
        if self.sees_any("AS", "ADD", "MODIFY", "DROP", "SET", "RESET", "RENAME"):
            self.unsupported(
                f"ALTER MATERIALIZED TABLE ... {self.token.upper}", hint="drop the table and create it again"
            )
        action = self.choose("SUSPEND", "RESUME", "REFRESH")
        options = self.options() if action == "RESUME" and self.accept("WITH") else ()
        partition: tuple[tuple[Identifier, Constant | None], ...] = ()
        if action == "REFRESH" and self.accept("PARTITION"):
            partition = self.parenthesized(self.partition_item)
        return AlterMaterializedSyntax(name, action, options, partition, self.span_from(start))

    def drop_materialized(self, start: Token) -> DropMaterializedSyntax:
        """DROP MATERIALIZED TABLE, from TABLE on."""
        self.expect("TABLE")
        if_exists = self.accept("IF", "EXISTS")
        return DropMaterializedSyntax(self.name("a materialized table"), if_exists, self.span_from(start))
