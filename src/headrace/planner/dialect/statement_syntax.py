"""The syntax tree of statements; `syntax` has that of the queries and expressions in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal as OneOf

from headrace.planner.dialect.syntax import Constant, Hint, Identifier, Name, Node, Query
from headrace.planner.dialect.tokens import Span
from headrace.types.logical import DataType


@dataclass(frozen=True)
class ColumnSyntax:
    """A column of CREATE TABLE."""

    name: Identifier
    kind: OneOf["physical", "computed", "metadata"]
    type: DataType | None
    #: Text and tree of a computed column.
    expression: Node | None
    expression_text: str | None
    metadata_key: str | None
    virtual: bool
    comment: str | None
    is_key: bool
    span: Span


@dataclass(frozen=True)
class WatermarkSyntax:
    """WATERMARK FOR column AS expression."""

    column: Name
    expression: Node
    expression_text: str
    span: Span


@dataclass(frozen=True)
class KeySyntax:
    """PRIMARY KEY (...) NOT ENFORCED."""

    name: str | None
    columns: tuple[Identifier, ...]
    span: Span


@dataclass(frozen=True)
class LikeSyntax:
    """LIKE base (INCLUDING ...)."""

    base: Name
    #: (INCLUDING, EXCLUDING or OVERWRITING; what; where it is written)
    options: tuple[tuple[str, str, Span], ...]


@dataclass(frozen=True)
class OptionSyntax:
    key: str
    value: str
    span: Span


@dataclass(frozen=True)
class CreateTableSyntax:
    name: Name
    span: Span
    temporary: bool = False
    if_not_exists: bool = False
    #: None: no parentheses at all.
    columns: tuple[ColumnSyntax, ...] | None = None
    watermarks: tuple[WatermarkSyntax, ...] = ()
    keys: tuple[KeySyntax, ...] = ()
    #: Names alone, in CREATE TABLE t (a, b) AS SELECT.
    column_names: tuple[Identifier, ...] = ()
    comment: str | None = None
    partitioned_by: tuple[Identifier, ...] = ()
    options: tuple[OptionSyntax, ...] = ()
    like: LikeSyntax | None = None
    query: Query | None = None
    #: REPLACE, or CREATE OR REPLACE: a table that is there makes room for this one.
    replaces: str | None = None


@dataclass(frozen=True)
class CreateMaterializedSyntax:
    """A table with its query, and how it is kept up to date; None where nothing is said."""

    table: CreateTableSyntax
    freshness: timedelta | None
    mode: str | None
    span: Span


@dataclass(frozen=True)
class AlterMaterializedSyntax:
    name: Name
    #: SUSPEND, RESUME or REFRESH.
    action: str
    options: tuple[OptionSyntax, ...]
    partition: tuple[tuple[Identifier, Constant | None], ...]
    span: Span


@dataclass(frozen=True)
class DropMaterializedSyntax:
    name: Name
    if_exists: bool
    span: Span


@dataclass(frozen=True)
class CreateViewSyntax:
    name: Name
    columns: tuple[Identifier, ...]
    comment: str | None
    query: Query
    query_text: str
    temporary: bool
    if_not_exists: bool
    span: Span


@dataclass(frozen=True)
class CreateFunctionSyntax:
    name: Name
    class_name: str
    language: str
    temporary: bool
    system: bool
    if_not_exists: bool
    span: Span


@dataclass(frozen=True)
class CreateDatabaseSyntax:
    """CREATE DATABASE, and CREATE CATALOG, which looks the same."""

    kind: OneOf["DATABASE", "CATALOG"]
    name: Name
    comment: str | None
    options: tuple[OptionSyntax, ...]
    if_not_exists: bool
    span: Span


@dataclass(frozen=True)
class DropSyntax:
    kind: OneOf["TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG"]
    name: Name
    temporary: bool
    system: bool
    if_exists: bool
    cascade: bool
    span: Span


@dataclass(frozen=True)
class AlterTableSyntax:
    """ALTER TABLE: one action and what it needs."""

    name: Name
    if_exists: bool
    action: OneOf[
        "RENAME TO",
        "RENAME COLUMN",
        "SET",
        "RESET",
        "ADD",
        "MODIFY",
        "DROP COLUMN",
        "DROP KEY",
        "DROP WATERMARK",
    ]
    span: Span
    new_name: Name | None = None
    old_column: Identifier | None = None
    options: tuple[OptionSyntax, ...] = ()
    keys_to_reset: tuple[str, ...] = ()
    columns: tuple[ColumnSyntax, ...] = ()
    #: Where each column goes: FIRST, AFTER name, or None for the end or where it was.
    positions: tuple[Identifier | OneOf["FIRST"] | None, ...] = ()
    watermarks: tuple[WatermarkSyntax, ...] = ()
    keys: tuple[KeySyntax, ...] = ()
    dropped: tuple[Identifier, ...] = ()


@dataclass(frozen=True)
class AlterViewSyntax:
    name: Name
    new_name: Name | None
    query: Query | None
    query_text: str
    span: Span


@dataclass(frozen=True)
class AlterDatabaseSyntax:
    """ALTER DATABASE ... SET."""

    name: Name
    options: tuple[OptionSyntax, ...]
    span: Span


@dataclass(frozen=True)
class UseSyntax:
    kind: OneOf["CATALOG", "DATABASE"]
    name: Name
    span: Span


@dataclass(frozen=True)
class ShowSyntax:
    #: CATALOGS, TABLES, COLUMNS, CREATE TABLE, ...
    subject: str
    source: Name | None
    pattern: str | None
    negated: bool
    ignore_case: bool
    span: Span


@dataclass(frozen=True)
class ShowPartitionsSyntax:
    """SHOW PARTITIONS of a table, with those that have the given values."""

    table: Name
    partition: tuple[tuple[Identifier, Constant | None], ...]
    span: Span


@dataclass(frozen=True)
class DescribeSyntax:
    name: Name
    span: Span
    kind: str = "TABLE"
    extended: bool = False


@dataclass(frozen=True)
class UseModulesSyntax:
    names: tuple[Identifier, ...]
    span: Span


@dataclass(frozen=True)
class ModuleSyntax:
    """LOAD or UNLOAD MODULE."""

    loads: bool
    name: Identifier
    options: tuple[OptionSyntax, ...]
    span: Span


@dataclass(frozen=True)
class JobSyntax:
    """SHOW JOBS, or DESCRIBE JOB of one."""

    action: str
    job_id: str | None
    span: Span


@dataclass(frozen=True)
class StopJobSyntax:
    job_id: str
    with_savepoint: bool
    with_drain: bool
    span: Span


@dataclass(frozen=True)
class InsertSyntax:
    target: Name
    hints: tuple[Hint, ...]
    overwrite: bool
    partition: tuple[tuple[Identifier, Constant | None], ...]
    columns: tuple[Identifier, ...]
    query: Query
    span: Span
    #: ON CONFLICT DO NOTHING, ERROR or DEDUPLICATE.
    on_conflict: str | None = None


@dataclass(frozen=True)
class StatementSetSyntax:
    """EXECUTE STATEMENT SET BEGIN ... END."""

    inserts: tuple[InsertSyntax, ...]
    span: Span


@dataclass(frozen=True)
class ExplainSyntax:
    details: tuple[str, ...]
    statement: Query | InsertSyntax | StatementSetSyntax
    span: Span


@dataclass(frozen=True)
class CompilePlanSyntax:
    """COMPILE [AND EXECUTE] PLAN."""

    path: str
    statement: InsertSyntax | StatementSetSyntax
    if_not_exists: bool
    executes: bool
    span: Span


@dataclass(frozen=True)
class ExecutePlanSyntax:
    path: str
    span: Span


@dataclass(frozen=True)
class SetSyntax:
    key: str | None
    value: str | None
    span: Span


@dataclass(frozen=True)
class ResetSyntax:
    key: str | None
    span: Span


StatementSyntax = (
    Query
    | InsertSyntax
    | StatementSetSyntax
    | ExplainSyntax
    | CompilePlanSyntax
    | ExecutePlanSyntax
    | CreateTableSyntax
    | CreateMaterializedSyntax
    | AlterMaterializedSyntax
    | DropMaterializedSyntax
    | CreateViewSyntax
    | CreateFunctionSyntax
    | CreateDatabaseSyntax
    | DropSyntax
    | AlterTableSyntax
    | AlterViewSyntax
    | AlterDatabaseSyntax
    | UseSyntax
    | UseModulesSyntax
    | ModuleSyntax
    | ShowSyntax
    | ShowPartitionsSyntax
    | DescribeSyntax
    | JobSyntax
    | StopJobSyntax
    | SetSyntax
    | ResetSyntax
)
