"""Bound statements: what a statement asks for once its names are resolved and its expressions typed.

Queries and INSERTs carry logical trees for the planner. The others change or show the catalog, and
`planner.ddl.execute` carries them out. SET and RESET are for whoever owns the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from headrace.catalog.functions import CatalogFunction
from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.objects import CatalogDatabase, CatalogTable, CatalogView, RefreshMode
from headrace.planner.logical import LogicalNode, Schema, Sink

__all__ = [
    "AlterDatabase",
    "AlterMaterializedTable",
    "AlterTable",
    "AlterView",
    "BoundStatement",
    "CatalogStatement",
    "CreateCatalog",
    "CreateDatabase",
    "CreateFunction",
    "CreateMaterializedTable",
    "CreateTable",
    "CreateTableAs",
    "CreateView",
    "Describe",
    "DescribeCatalog",
    "DescribeDatabase",
    "DescribeFunction",
    "DropCatalog",
    "DropDatabase",
    "DropFunction",
    "DropMaterializedTable",
    "DropTable",
    "DropView",
    "CompilePlan",
    "ExecutePlan",
    "Explain",
    "ExplainDetail",
    "Insert",
    "JobStatement",
    "LoadModule",
    "MaterializedTableStatement",
    "QueryStatement",
    "RenameTable",
    "Reset",
    "Set",
    "Show",
    "ShowColumns",
    "ShowCreate",
    "ShowCreateCatalog",
    "ShowJobs",
    "ShowPartitions",
    "ShowSubject",
    "StatementSet",
    "StopJob",
    "UnloadModule",
    "UseCatalog",
    "UseDatabase",
    "UseModules",
]

# --- data -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QueryStatement:
    """SELECT, VALUES, or a set operation."""

    plan: LogicalNode


@dataclass(frozen=True)
class Insert:
    """INSERT INTO or OVERWRITE."""

    sink: Sink


@dataclass(frozen=True)
class StatementSet:
    """INSERTs that run as one job."""

    inserts: tuple[Insert, ...]


class ExplainDetail(Enum):
    """What EXPLAIN shows beside the plans."""

    ESTIMATED_COST = "ESTIMATED_COST"
    CHANGELOG_MODE = "CHANGELOG_MODE"
    JSON_EXECUTION_PLAN = "JSON_EXECUTION_PLAN"
    PLAN_ADVICE = "PLAN_ADVICE"


@dataclass(frozen=True)
class Explain:
    """EXPLAIN of a query, an INSERT or a statement set."""

    statement: QueryStatement | Insert | StatementSet
    details: frozenset[ExplainDetail] = frozenset()


@dataclass(frozen=True)
class CompilePlan:
    """COMPILE PLAN: write the plan of INSERTs to a file; and run it, if it says so."""

    path: str
    inserts: tuple[Insert, ...]
    if_not_exists: bool = False
    executes: bool = False


@dataclass(frozen=True)
class ExecutePlan:
    """EXECUTE PLAN: run the INSERTs of a plan."""

    path: str


# --- what statements are about --------------------------------------------------------------------


@dataclass(frozen=True)
class _OfObject:
    """A statement about a table, a view or a function."""

    identifier: ObjectIdentifier


@dataclass(frozen=True)
class _OfDatabase:
    """A statement about a database."""

    catalog: str
    name: str


@dataclass(frozen=True)
class _OfCatalog:
    """A statement about a catalog."""

    name: str


@dataclass(frozen=True)
class _DropOfObject(_OfObject):
    temporary: bool = False
    if_exists: bool = False


# --- tables and views -----------------------------------------------------------------------------


@dataclass(frozen=True)
class CreateTable(_OfObject):
    """CREATE TABLE; LIKE is resolved already."""

    table: CatalogTable
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateTableAs:
    """[CREATE [OR] | REPLACE] TABLE ... AS SELECT: create the table, then run the INSERT as a job."""

    create: CreateTable
    insert: Insert
    #: REPLACE, or CREATE OR REPLACE: the table that is there makes room, and REPLACE wants one.
    replaces: str | None = None


@dataclass(frozen=True)
class CreateMaterializedTable:
    """CREATE MATERIALIZED TABLE: create the table, and keep it up to date.

    Args:
        create: The table.
        query: The query, with every table by its full name.
        freshness: How far the table may be behind; None: the default.
        mode: None: it follows from the freshness.
    """

    create: CreateTable
    query: str
    freshness: timedelta | None = None
    mode: RefreshMode | None = None


@dataclass(frozen=True)
class AlterMaterializedTable(_OfObject):
    """ALTER MATERIALIZED TABLE ... SUSPEND, RESUME or REFRESH.

    Args:
        action: Which.
        options: Of RESUME: for the table, as long as it runs.
        partition: Of REFRESH: the one to write again.
    """

    action: str
    options: Mapping[str, str] = field(default_factory=dict)
    partition: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DropMaterializedTable(_OfObject):
    """DROP MATERIALIZED TABLE, which also ends its job."""

    if_exists: bool = False


#: Statements for whoever keeps materialized tables up to date.
MaterializedTableStatement = CreateMaterializedTable | AlterMaterializedTable | DropMaterializedTable


class DropTable(_DropOfObject):
    pass


@dataclass(frozen=True)
class AlterTable(_OfObject):
    """ALTER TABLE: the table as it will be."""

    table: CatalogTable


@dataclass(frozen=True)
class RenameTable(_OfObject):
    """ALTER TABLE or VIEW ... RENAME TO."""

    new_identifier: ObjectIdentifier
    is_view: bool = False


@dataclass(frozen=True)
class CreateView(_OfObject):
    view: CatalogView
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterView(_OfObject):
    """ALTER VIEW ... AS: the view as it will be."""

    view: CatalogView


class DropView(_DropOfObject):
    pass


# --- databases, catalogs, functions ---------------------------------------------------------------


@dataclass(frozen=True)
class CreateDatabase(_OfDatabase):
    database: CatalogDatabase
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterDatabase(_OfDatabase):
    """ALTER DATABASE ... SET: properties to set."""

    properties: Mapping[str, str]


@dataclass(frozen=True)
class DropDatabase(_OfDatabase):
    """DROP DATABASE; RESTRICT, the default, refuses one that is not empty."""

    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class CreateCatalog(_OfCatalog):
    properties: Mapping[str, str]
    if_not_exists: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class DropCatalog(_OfCatalog):
    if_exists: bool = False


@dataclass(frozen=True)
class CreateFunction(_OfObject):
    """CREATE FUNCTION. A temporary system function belongs to no database."""

    function: CatalogFunction
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropFunction(_OfObject):
    temporary: bool = False
    system: bool = False
    if_exists: bool = False


class UseCatalog(_OfCatalog):
    pass


@dataclass(frozen=True)
class UseDatabase:
    catalog: str
    database: str


@dataclass(frozen=True)
class LoadModule:
    name: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class UnloadModule:
    name: str


@dataclass(frozen=True)
class UseModules:
    """USE MODULES: those in use, the first one looked at first."""

    names: tuple[str, ...]


# --- showing --------------------------------------------------------------------------------------


class ShowSubject(Enum):
    """What SHOW lists; the value is the title of its column, or the titles of its columns."""

    CATALOGS = "catalog name"
    CURRENT_CATALOG = "current catalog name"
    DATABASES = "database name"
    CURRENT_DATABASE = "current database name"
    TABLES = "table name"
    VIEWS = "view name"
    FUNCTIONS = "function name"
    USER_FUNCTIONS = "user function name"
    MODULES = "module name"
    FULL_MODULES = "module name, used"
    JARS = "jars"
    PROCEDURES = "procedure name"
    MODELS = "model name"
    MATERIALIZED_TABLES = "materialized table"


@dataclass(frozen=True)
class Show:
    """SHOW of names, with FROM or IN, and LIKE."""

    subject: ShowSubject
    catalog: str | None = None
    database: str | None = None
    #: LIKE's pattern.
    pattern: str | None = None
    negated: bool = False
    #: ILIKE: capitals do not matter.
    ignore_case: bool = False


@dataclass(frozen=True)
class ShowColumns(_OfObject):
    """SHOW COLUMNS FROM a table."""

    table: CatalogTable | CatalogView | None
    fields: Schema
    pattern: str | None = None
    negated: bool = False
    ignore_case: bool = False


@dataclass(frozen=True)
class ShowCreate(_OfObject):
    """SHOW CREATE TABLE or VIEW."""

    table: CatalogTable | CatalogView


class ShowCreateCatalog(_OfCatalog):
    pass


@dataclass(frozen=True)
class ShowPartitions(_OfObject):
    """SHOW PARTITIONS of a table: those with the given values. For whoever knows connectors."""

    table: CatalogTable
    values: Mapping[str, str]


@dataclass(frozen=True)
class DescribeCatalog(_OfCatalog):
    """DESCRIBE CATALOG; EXTENDED shows its options, too."""

    extended: bool = False


@dataclass(frozen=True)
class DescribeDatabase(_OfDatabase):
    """DESCRIBE DATABASE; EXTENDED shows its properties, too."""

    extended: bool = False


@dataclass(frozen=True)
class DescribeFunction:
    """DESCRIBE FUNCTION; EXTENDED shows how it is called, too."""

    path: tuple[str, ...]
    extended: bool = False


@dataclass(frozen=True)
class Describe(_OfObject):
    """DESCRIBE a table or view: its declaration, and the schema a query sees."""

    table: CatalogTable | CatalogView | None
    fields: Schema


# --- jobs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShowJobs:
    """SHOW JOBS, or DESCRIBE JOB of one."""

    job_id: str | None = None


@dataclass(frozen=True)
class StopJob:
    """STOP JOB: cancelled, or ended with a savepoint; DRAIN lets all time pass before."""

    job_id: str
    with_savepoint: bool = False
    with_drain: bool = False


# --- configuration --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Set:
    """SET 'key' = 'value'; without a key: show everything that is set."""

    key: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Reset:
    """RESET 'key'; without a key: everything."""

    key: str | None = None


#: Statements that `planner.ddl.execute` carries out.
CatalogStatement = (
    CreateTable
    | DropTable
    | AlterTable
    | RenameTable
    | CreateView
    | AlterView
    | DropView
    | CreateDatabase
    | AlterDatabase
    | DropDatabase
    | CreateCatalog
    | DropCatalog
    | CreateFunction
    | DropFunction
    | UseCatalog
    | UseDatabase
    | LoadModule
    | UnloadModule
    | UseModules
    | Show
    | ShowColumns
    | ShowCreate
    | ShowCreateCatalog
    | Describe
    | DescribeCatalog
    | DescribeDatabase
    | DescribeFunction
)
#: Statements for whoever knows the jobs.
JobStatement = ShowJobs | StopJob

BoundStatement = (
    QueryStatement
    | Insert
    | StatementSet
    | Explain
    | CompilePlan
    | ExecutePlan
    | CreateTableAs
    | MaterializedTableStatement
    | Set
    | Reset
    | ShowPartitions
    | JobStatement
    | CatalogStatement
)
