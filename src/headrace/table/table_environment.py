"""`TableEnvironment`: where tables, functions and statements of SQL live together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.catalog import CatalogManager, InlineView, UserFunction
from headrace.catalog import ObjectIdentifier as Identifier
from headrace.catalog.objects import CatalogTable, PhysicalColumn
from headrace.catalog.store import FileCatalogStore
from headrace.common import Configuration
from headrace.common.changelog import ChangelogMode
from headrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from headrace.common.types import Row
from headrace.config.options import table as options
from headrace.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from headrace.errors import (
    CatalogError,
    ConfigurationError,
    JobDefinitionError,
    SqlValidationError,
    UnsupportedFeatureError,
    shorten,
)
from headrace.planner import Statement, bind, parse_statement, placed
from headrace.planner.logical import LogicalNode, Scan, Sink
from headrace.planner.optimize import SinkRequest
from headrace.planner.physical import StreamTarget
from headrace.planner.statements import (
    BoundStatement,
    CreateTable,
    Explain,
    ExplainDetail,
    Insert,
    QueryStatement,
)
from headrace.planner.statements import (
    StatementSet as BoundStatementSet,
)
from headrace.table._catalog_calls import CatalogCalls
from headrace.table._elements import rows_and_types
from headrace.table._functions import as_user_function, load_function
from headrace.table._jobs import TableJobs
from headrace.table._paths import create_sql, parts_of, path_sql
from headrace.table._plan_calls import PlanCalls
from headrace.table._process_calls import from_call
from headrace.table._refused import RefusedCalls
from headrace.table._spark_frames import SparkFrameCalls
from headrace.table._statements import StatementRunner
from headrace.table._streams import (
    StreamSchema,
    TargetSchema,
    check_changelog_stream,
    check_changelog_target,
    record_type,
    with_flag,
)
from headrace.table.attachments import AttachedRows
from headrace.table.environment_settings import EnvironmentSettings
from headrace.table.schema import Schema as SchemaDeclaration
from headrace.table.statement_set import StatementSet
from headrace.table.table import Table
from headrace.table.table_config import TableConfig
from headrace.table.table_descriptor import TableDescriptor
from headrace.table.table_result import TableResult
from headrace.types.logical import quote_name
from headrace.util.short_traces import short_trace

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["StreamTableEnvironment", "TableEnvironment"]

#: A database that no statement lists: what tables of the program without a name are found in.
_INLINE = "$inline"


class TableEnvironment(CatalogCalls, PlanCalls, SparkFrameCalls, RefusedCalls):
    """Tables, functions and configuration of a program, and where its statements run.

    Example:
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> t_env.execute_sql("CREATE TABLE t (id BIGINT) WITH ('connector' = 'datagen')").print()
        OK
        >>> t_env.list_tables()
        ['t']
    """

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        self._env = env
        self._config = TableConfig(env._configuration)
        self._config.add_configuration(settings.configuration)
        if not settings.is_streaming_mode():
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        self._jobs = TableJobs(env)
        store = _catalog_store(self._jobs)
        names = _built_in_names(settings, self._jobs)
        self._manager = CatalogManager(*names, store, self._jobs.configuration)
        self._statements = StatementRunner(env, self._jobs, self._manager, self._config, self.execute_sql)
        self._numbers = itertools.count()
        #: Functions that expressions call without a name, by the object they are.
        self._inline_functions: dict[int, tuple[str, Any]] = {}

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """Make an environment.

        Args:
            environment_settings: Streaming or batch mode, names of catalogs; or options alone.
        """
        settings = environment_settings
        if isinstance(settings, Configuration):
            settings = EnvironmentSettings.new_instance().with_configuration(settings).build()
        return TableEnvironment(StreamExecutionEnvironment.get_execution_environment(), settings)

    # --- statements -----------------------------------------------------------------------------------

    @short_trace
    def execute_sql(self, stmt: str) -> TableResult:
        """Carry out a statement. Queries and INSERTs start a job and return at once.

        Args:
            stmt: One statement of SQL.

        Raises:
            SqlError: If it is not understood; the message shows the place.
        """
        return self._execute(stmt, self._bind_one(stmt))

    def _execute(self, text: str, statement: BoundStatement) -> TableResult:
        with placed(text):
            return self._statements.execute(statement)

    @short_trace
    def sql_query(self, query: str) -> Table:
        """Return the table that a query asks for. Nothing runs.

        Raises:
            SqlError: If it is not understood, or is another statement.
        """
        table = Table(self._bind_query(query), self)
        table._text = query
        return table

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """Return the plan of a query or an INSERT as text."""
        statement = self._bind_one(stmt)
        if isinstance(statement, Explain):
            return self._statements.explain(statement.statement, [*statement.details, *extra_details])
        if not isinstance(statement, QueryStatement | Insert | BoundStatementSet):
            raise SqlValidationError("explain_sql() takes a query, an INSERT or a statement set")
        return self._statements.explain(statement, extra_details)

    def create_statement_set(self) -> StatementSet:
        """Start to collect INSERTs that run as one job."""
        return StatementSet(self)

    def _bind_one(self, text: str) -> BoundStatement:
        if not isinstance(text, str):
            raise JobDefinitionError(f"expected a statement as text; got {shorten(text)}")
        return self._bind(parse_statement(text))

    def _bind(self, statement: Statement) -> BoundStatement:
        return bind(
            statement,
            self._manager,
            load_function,
            batch=self._jobs.is_batch,
            load_lookup=self._jobs.lookup_of,
        )

    def _bind_query(self, text: str) -> LogicalNode:
        statement = self._bind_one(text)
        if not isinstance(statement, QueryStatement):
            raise SqlValidationError(
                "sql_query() takes a query: SELECT, VALUES or a set operation", hint="use execute_sql()"
            )
        return statement.plan

    # --- tables ---------------------------------------------------------------------------------------

    def from_path(self, path: str) -> Table:
        """Return a table or view of the catalogs by its name.

        Raises:
            SqlError: If it does not exist.
        """
        table = self.sql_query(f"SELECT * FROM {path_sql(path)}")
        named = self._manager.table(self._manager.qualify(parts_of(path)))
        table._declared = named if isinstance(named, CatalogTable) else None
        return table

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """Return a table that is described, and has no name."""
        name = f"Unregistered_{next(self._numbers)}"
        self._create(name, descriptor, is_temporary=True, if_not_exists=False)
        table = self.from_path(quote_name(name))
        self._manager.drop_temporary_table(self._manager.qualify([name]))
        return table

    def from_elements(self, elements: Any, schema: Any = None, verify_schema: bool = True) -> Table:
        """Return a table of rows that the program holds.

        Args:
            elements: Tuples, lists, `Row`s or dictionaries; or plain values, for a table of one column.
            schema: Names of the columns, or a row type, or a type; found from the elements if None.
            verify_schema: Whether elements are checked against the types.

        Raises:
            JobDefinitionError: If the elements do not fit.

        Example:
            >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
            >>> t_env.from_elements([(1, "tea")], ["id", "drink"]).get_schema().get_field_names()
            ['id', 'drink']
        """
        if not isinstance(elements, Iterable):
            raise JobDefinitionError(f"from_elements(): expected a list of elements; got {shorten(elements)}")
        rows, names, types = rows_and_types(list(elements), schema, is_checked=verify_schema)
        columns = tuple(PhysicalColumn(name, each) for name, each in zip(names, types, strict=True))
        return self._attached(columns, AttachedRows(tuple(rows)))

    def from_pandas(self, pdf: pd.DataFrame, schema: Any = None, splits_num: int = 1) -> Table:
        """Return a table of the rows of a pandas DataFrame.

        Args:
            pdf: The rows.
            schema: Names of the columns, or a row type; found from the DataFrame if None.
            splits_num: No effect: Spark distributes the rows.
        """
        from headrace.table._elements import rows_of_pandas

        rows, names, types = rows_of_pandas(pdf, schema)
        columns = tuple(PhysicalColumn(name, each) for name, each in zip(names, types, strict=True))
        return self._attached(columns, AttachedRows(tuple(rows)))

    def _attached(self, columns: tuple[PhysicalColumn, ...], rows: AttachedRows) -> Table:
        name = f"Elements_{next(self._numbers)}"
        identifier = Identifier(self._manager.current_catalog, _INLINE, name)
        return Table(Scan(CatalogTable(columns, attachment=rows), identifier), self)

    def create_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool = False) -> None:
        """Create a table in a catalog.

        Raises:
            CatalogError: If a table with this name exists.
        """
        self._create(path, descriptor, is_temporary=False, if_not_exists=ignoreIfExists)

    def create_temporary_table(
        self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool = False
    ) -> None:
        """Create a table that lives as long as the environment."""
        self._create(path, descriptor, is_temporary=True, if_not_exists=ignoreIfExists)

    def _create(
        self, path: str, descriptor: TableDescriptor, *, is_temporary: bool, if_not_exists: bool
    ) -> None:
        statement = self._bind_one(create_sql(path, descriptor, is_temporary, if_not_exists))
        assert isinstance(statement, CreateTable)
        self._statements.execute(statement)

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataStream, *fields_or_schema: Any
    ) -> None:
        """Give a table, or the table of a data stream, a name that lives as long as the environment.

        Args:
            view_path: The name.
            table_or_data_stream: The table; or, in a `StreamTableEnvironment`, a stream.
            fields_or_schema: For a stream: as in `StreamTableEnvironment.from_data_stream`.

        Raises:
            CatalogError: If a temporary table or view with this name exists.
        """
        if not isinstance(table_or_data_stream, Table):
            table_or_data_stream = self._table_of_stream(table_or_data_stream, fields_or_schema)
        identifier = self._manager.qualify(parts_of(view_path))
        if self._manager.temporary_table(identifier) is not None:
            raise CatalogError(f"temporary table or view {identifier.dotted()!r} already exists")
        self._manager.put_temporary_table(identifier, _view_of(table_or_data_stream._plan))

    def _table_of_stream(self, data_stream: Any, fields_or_schema: tuple[Any, ...]) -> Table:
        raise SqlValidationError(
            f"create_temporary_view(): expected a Table, got {shorten(data_stream)}",
            hint="tables of data streams are for a StreamTableEnvironment",
        )

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> None:
        """Keep a query in a catalog, under a name.

        Args:
            view_path: The name.
            table: A table that `sql_query` made: a catalog keeps views as text.
            ignore_if_exists: Whether to keep an existing view, without an error.

        Raises:
            CatalogError: If a table or view with this name exists.
        """
        if table._text is None:
            raise UnsupportedFeatureError.not_yet(
                "create_view() of a table made by Table API calls",
                "create_temporary_view(), or create_view() of what sql_query() returns",
            )
        exists = "IF NOT EXISTS " if ignore_if_exists else ""
        self.execute_sql(f"CREATE VIEW {exists}{path_sql(view_path)} AS {table._text}")

    def get_config(self) -> TableConfig:
        """Return the options of the environment."""
        return self._config

    # --- dependencies ---------------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Ship a Python file, package or zip file; functions can import it in every worker."""
        self._env.add_python_file(file_path)

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Name the packages that workers need."""
        self._env.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Ship an archive; it is unpacked in the working directory of every worker."""
        self._env.add_python_archive(archive_path, target_dir)

    def from_call(self, function: Any, *arguments: Any) -> Table:
        """Return the rows of a process table function, called with tables and values; see `Table.process`."""
        return from_call(self, function, arguments)

    # --- what tables ask of it ------------------------------------------------------------------------

    def _attach_inserts(self, sinks: Sequence[Sink]) -> None:
        for step in self._jobs.steps(self._jobs.plan_inserts(sinks)):
            self._env._add_operator(step)

    def _register_inline(self, plan: LogicalNode) -> str:
        """Give a plan a name that SQL can read it by; return it as SQL writes it."""
        name = f"UnnamedTable${next(self._numbers)}"
        identifier = Identifier(self._manager.current_catalog, _INLINE, name)
        self._manager.put_temporary_table(identifier, _view_of(plan))
        return str(identifier)

    def _register_function(self, function: Any) -> str:
        """Give a Python function a name that SQL can call it by."""
        known = self._inline_functions.get(id(function))
        if known is None:
            made = as_user_function(None, function)
            name = made.name
            if self._manager.function([name]) is not None:
                name = f"{name}${next(self._numbers)}"
            self._manager.put_system_function(name, _renamed(made, name))
            known = self._inline_functions[id(function)] = (name, function)
        return known[0]

    def _bind_insert(self, table: Table, target: str | TableDescriptor, overwrite: bool) -> Sink:
        if isinstance(target, TableDescriptor):
            name = f"Unregistered_Sink_{next(self._numbers)}"
            self._create(name, target, is_temporary=True, if_not_exists=False)
            target = quote_name(name)
        how = "OVERWRITE" if overwrite else "INTO"
        statement = self._bind_one(f"INSERT {how} {path_sql(target)} SELECT * FROM {table._as_input()}")
        assert isinstance(statement, Insert)
        return statement.sink

    def _table(self, plan: LogicalNode) -> Table:
        return Table(plan, self)

    def _to_pandas(self, plan: LogicalNode) -> pd.DataFrame:
        from headrace.table._elements import pandas_of

        started = self._jobs.run_query(plan, awaits_end="to_pandas()")
        with started.rows:
            return pandas_of(started.rows, plan.schema, is_insert_only=started.mode.is_insert_only)


class StreamTableEnvironment(TableEnvironment):
    """A table environment over a `StreamExecutionEnvironment`, whose configuration it shares."""

    @staticmethod
    def create(  # type: ignore[override]  # PyFlink's own signature differs so
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """Make an environment.

        Args:
            stream_execution_environment: Whose configuration to share; a new one if None.
            environment_settings: Streaming or batch mode, names of catalogs.
        """
        env = stream_execution_environment or StreamExecutionEnvironment.get_execution_environment()
        settings = environment_settings or EnvironmentSettings.in_streaming_mode()
        return StreamTableEnvironment(env, settings)

    # --- data streams ---------------------------------------------------------------------------------

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """Return a table of the records of a stream. Every record is a row that is added.

        Args:
            data_stream: Records with a type: the fields of a ROW or TUPLE are columns, any other is the column ``f0``.
            fields_or_schema: A `Schema`: columns by name, computed ones, the metadata column ``rowtime`` with the
                timestamp of the record, and a watermark, which ``SOURCE_WATERMARK()`` takes from the stream. Or fields
                as expressions: ``col("a"), col("b").alias("c"), col("ts").rowtime``.

        Raises:
            JobDefinitionError: If the records have no type, and no schema says their columns.
            SqlError: If the schema does not fit them.

        Example:
            >>> from headrace.common import Types
            >>> env = StreamExecutionEnvironment.get_execution_environment()
            >>> t_env = StreamTableEnvironment.create(env)
            >>> named = Types.ROW_NAMED(["id", "drink"], [Types.LONG(), Types.STRING()])
            >>> t_env.from_data_stream(env.from_collection([(1, "tea")], named)).print_schema()
            (
              `id` BIGINT,
              `drink` STRING
            )
        """
        found = StreamSchema.of("from_data_stream()", data_stream, fields_or_schema)
        return self._stream_table(found, ChangelogMode.insert_only())

    def _table_of_stream(self, data_stream: Any, fields_or_schema: tuple[Any, ...]) -> Table:
        return self.from_data_stream(data_stream, *fields_or_schema)

    def from_changelog_stream(
        self,
        data_stream: DataStream,
        schema: SchemaDeclaration | None = None,
        changelog_mode: ChangelogMode | None = None,
    ) -> Table:
        """Return a table of the changes that the records of a stream say by their kinds.

        Args:
            data_stream: Records are `Row`s.
            schema: As in `from_data_stream`. A changelog of upserts needs its primary key.
            changelog_mode: The kinds that come; all of them if None.

        Raises:
            SqlError: If the schema does not fit the records, or a required key is missing.
        """
        call = "from_changelog_stream()"
        mode = changelog_mode or ChangelogMode.all()
        found = StreamSchema.of(call, data_stream, () if schema is None else (schema,))
        check_changelog_stream(call, found, mode)
        return self._stream_table(found, mode)

    def _stream_table(self, found: StreamSchema, mode: ChangelogMode) -> Table:
        identifier = Identifier(self._manager.current_catalog, _INLINE, f"Stream_{next(self._numbers)}")
        sql = f"CREATE TEMPORARY TABLE {identifier} {found.schema.sql()} WITH ('connector' = 'stream')"
        statement = self._bind_one(sql)
        assert isinstance(statement, CreateTable)
        declared = found.attached(statement.table, mode)
        self._manager.put_temporary_table(identifier, declared)
        table = self.sql_query(f"SELECT {found.selected} FROM {identifier}")
        table._declared = declared
        return table

    def to_data_stream(self, table: Table) -> DataStream:
        """Return a stream of the rows of a table whose rows are only ever added.

        Records are `Row`s with the columns as fields. The event time of the table, if it has one, is their timestamp,
        and its watermarks are those of the stream.

        Raises:
            SqlValidationError: If rows of the table change; the message says what makes them.
        """
        return self._to_stream(table, "to_data_stream()", ChangelogMode.insert_only())

    def to_changelog_stream(
        self,
        table: Table,
        target_schema: SchemaDeclaration | None = None,
        changelog_mode: ChangelogMode | None = None,
    ) -> DataStream:
        """Return a stream of the changes of a table: `Row`s whose kind says what they do to it.

        Args:
            table: The table.
            target_schema: Types of the fields, by name; a primary key; the metadata column ``rowtime``, which is the
                timestamp of the record and no field.
            changelog_mode: The kinds that the stream may have; all of them if None. Upserts need a primary key.

        Raises:
            SqlError: If the changes of the table do not fit.
        """
        call = "to_changelog_stream()"
        mode = changelog_mode or ChangelogMode.all()
        target = None
        if target_schema is not None:
            target = TargetSchema.of(call, target_schema, table._plan.schema)
            table = self.sql_query(f"SELECT {', '.join(target.items)} FROM {table._as_input()}")
        check_changelog_target(call, mode, target.keys if target is not None else ())
        return self._to_stream(table, call, mode, target)

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Return a stream of the rows of a table whose rows are only ever added, as PyFlink 1.12 did.

        Args:
            table: The table.
            type_info: The type of the records: a ROW, a TUPLE, or the type of the only column.
        """
        stream = self._to_stream(table, "to_append_stream()", ChangelogMode.insert_only())
        return _typed_stream("to_append_stream()", stream, table, type_info)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Return a stream of pairs: True and a row that is added, or False and a row that is retracted.

        Args:
            table: The table.
            type_info: The type of the rows: a ROW.
        """
        stream = self._to_stream(table, "to_retract_stream()", ChangelogMode.all())
        if not isinstance(type_info, RowTypeInfo):
            raise JobDefinitionError(
                f"to_retract_stream(): expected Types.ROW(...) for the rows, got {type_info.summary()}"
            )
        return stream.map(with_flag, Types.TUPLE([Types.BOOLEAN(), type_info]))

    def _to_stream(
        self, table: Table, call: str, mode: ChangelogMode, target: TargetSchema | None = None
    ) -> DataStream:
        if not isinstance(table, Table):
            raise JobDefinitionError(f"{call}: expected a Table, got {shorten(table)}")
        rowtime = target.rowtime if target is not None else None
        request = SinkRequest(
            table._plan,
            call,
            StreamTarget(call, rowtime),
            mode,
            target.keys if target is not None else (),
        )
        step = self._jobs.steps(self._jobs.plan_stream(request))[-1]
        step.output_type = record_type(table._plan.schema, rowtime)
        return DataStream(self._env, step)


def _typed_stream(call: str, stream: DataStream, table: Table, type_info: TypeInformation) -> DataStream:
    """Give the records of a stream the form that a type says."""
    width = len(table._plan.schema)
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        wanted = len(type_info.get_field_types())
    else:
        wanted = 1
    if wanted != width:
        raise JobDefinitionError(
            f"{call}: {type_info.summary()} has {wanted} fields, and the table {width} columns"
        )
    if isinstance(type_info, RowTypeInfo):
        return stream.map(_as_it_is, type_info)
    return stream.map(tuple if isinstance(type_info, TupleTypeInfo) else _only_field, type_info)


def _as_it_is(row: Row) -> Row:
    return row


def _only_field(row: Row) -> Any:
    return row[0]


def _built_in_names(settings: EnvironmentSettings, jobs: TableJobs) -> tuple[str, str]:
    """Return the names of the first catalog and database: of the settings, else of the configuration."""
    get = jobs.configuration.get
    catalog, database = settings.get_built_in_catalog_name(), settings.get_built_in_database_name()
    return (
        get(options.BUILTIN_CATALOG) if catalog == options.BUILTIN_CATALOG.default else catalog,
        get(options.BUILTIN_DATABASE) if database == options.BUILTIN_DATABASE.default else database,
    )


def _catalog_store(jobs: TableJobs) -> FileCatalogStore | None:
    get = jobs.configuration.get
    if get(options.CATALOG_STORE) is not options.CatalogStoreKind.FILE:
        return None
    path = get(options.CATALOG_STORE_PATH)
    if not path:
        raise ConfigurationError(
            f"{options.CATALOG_STORE.key} is 'file', but {options.CATALOG_STORE_PATH.key} is not set",
            hint="set it to a directory, or to a URI such as s3://bucket/catalogs",
        )
    return FileCatalogStore(path)


def _view_of(plan: LogicalNode) -> InlineView:
    columns = tuple(PhysicalColumn(field.name, field.type) for field in plan.schema)
    return InlineView(plan, columns)


def _renamed(function: UserFunction, name: str) -> UserFunction:
    from dataclasses import replace

    return replace(function, name=name)
