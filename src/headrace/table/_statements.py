"""Carries out statements that are bound: what they answer at once, and the jobs of queries and INSERTs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headrace.catalog import CatalogManager, ObjectIdentifier
from headrace.catalog.objects import CatalogTable
from headrace.common import JobClient
from headrace.common.types import Row
from headrace.config.options import table as options
from headrace.datastream import StreamExecutionEnvironment
from headrace.errors import CatalogError, UnsupportedFeatureError
from headrace.planner import ddl
from headrace.planner import statements as s
from headrace.planner.explain import explain, explain_logical, plan_advice, plan_json
from headrace.planner.logical import Field, LogicalNode, Sink
from headrace.planner.optimize import Plan
from headrace.table._job_statements import JOB_FIELDS, SAVEPOINT_FIELDS, job_rows, stop_job
from headrace.table._jobs import TableJobs
from headrace.table._materialized import MaterializedTableKeeper
from headrace.table._plans import CompiledPlans, PlanJson
from headrace.table.result_kind import ResultKind
from headrace.table.table_config import TableConfig
from headrace.table.table_result import TableResult
from headrace.types import DataTypes

__all__ = ["StatementRunner"]

_RESULT = DataTypes.STRING()


class StatementRunner:
    """Carries out the statements of an environment.

    Args:
        env: Knows the jobs that were started.
        jobs: Plans and starts jobs.
        manager: What names stand for; statements change it.
        config: What SET and RESET change.
        execute_sql: Carries out a statement of SQL, for those that are made of others.
    """

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        jobs: TableJobs,
        manager: CatalogManager,
        config: TableConfig,
        execute_sql: Callable[[str], TableResult],
    ) -> None:
        self._env = env
        self._jobs = jobs
        self._manager = manager
        self._config = config
        self._materialized = MaterializedTableKeeper(manager, config, lambda: jobs.configuration, execute_sql)

    def execute(self, statement: s.BoundStatement) -> TableResult:
        """Carry out a statement. Queries and INSERTs start a job."""
        match statement:
            case s.QueryStatement(plan):
                return self.execute_query(plan)
            case s.Insert(sink):
                return self.execute_inserts([sink])
            case s.StatementSet(inserts):
                return self.execute_inserts([insert.sink for insert in inserts])
            case s.CompilePlan():
                return self._compile(statement)
            case s.ExecutePlan():
                return self.execute_plan(self.plans.read(statement.path))
            case s.Explain(inner, details):
                return self._text(self.explain(inner, list(details)))
            case s.CreateTableAs(create, insert, replaces):
                if replaces is not None:
                    self._make_room(create.identifier, replaces)
                self.execute(create)
                return self.execute_inserts([insert.sink])
            case s.CreateMaterializedTable() | s.AlterMaterializedTable() | s.DropMaterializedTable():
                return self._materialized.carry_out(statement) or self._ok()
            case s.ShowPartitions():
                rows = [Row(each) for each in self._jobs.partitions(statement)]
                return self._table_of([Field("partition name", _RESULT)], rows)
            case s.ShowJobs(job_id):
                return self._table_of(JOB_FIELDS, job_rows(self._env._started_jobs, job_id))
            case s.StopJob():
                path = stop_job(self._env._started_jobs, statement)
                return self._ok() if path is None else self._table_of(SAVEPOINT_FIELDS, [Row(path)])
            case s.Set():
                return self._set(statement)
            case s.Reset():
                return self._reset(statement)
            case _:
                return self._change_catalog(statement)

    def _make_room(self, identifier: ObjectIdentifier, replaces: str) -> None:
        """Drop the table that another one replaces; its rows stay where they are."""
        if isinstance(self._manager.permanent_table(identifier), CatalogTable):
            self.execute(s.DropTable(identifier))
        elif replaces == "REPLACE":
            raise CatalogError(
                f"cannot replace table {identifier.dotted()!r}: it does not exist",
                hint="CREATE OR REPLACE TABLE ... AS",
            )

    def _change_catalog(self, statement: s.CatalogStatement) -> TableResult:
        answer = ddl.execute(statement, self._manager)
        if answer is ddl.OK:
            return self._ok()
        if isinstance(statement, s.ShowCreate | s.ShowCreateCatalog):
            return self._text(str(answer.rows[0][0]))
        return self._table_of(
            [
                Field(name, DataTypes.BOOLEAN() if name in answer.booleans else _RESULT)
                for name in answer.columns
            ],
            [Row(*row) for row in answer.rows],
        )

    def _set(self, statement: s.Set) -> TableResult:
        if statement.key is not None and statement.value is not None:
            self._config.set(statement.key, statement.value)
            return self._ok()
        # Also what the configuration file, the environment and the command line say. Secrets are hidden.
        found = [(each.key, each.value) for each in self._jobs.configuration.entries()]
        if statement.key is not None:
            found = [(key, value) for key, value in found if key == statement.key]
        return self._table_of(
            [Field("key", _RESULT), Field("value", _RESULT)], [Row(key, value) for key, value in found]
        )

    def _reset(self, statement: s.Reset) -> TableResult:
        keys = [statement.key] if statement.key is not None else list(self._config.to_map())
        for key in keys:
            self._config.get_configuration().remove_config(key)
        return self._ok()

    def _ok(self) -> TableResult:
        field = (Field("result", _RESULT),)
        return TableResult(field, lambda: iter([Row("OK")]), kind=ResultKind.SUCCESS)

    def _text(self, text: str) -> TableResult:
        return TableResult((Field("result", _RESULT),), lambda: iter([Row(text)]), is_raw=True)

    def _table_of(self, fields: Sequence[Field], rows: Sequence[Row]) -> TableResult:
        return TableResult(tuple(fields), lambda: iter(rows), max_width=self._max_width * 100)

    @property
    def _max_width(self) -> int:
        return self._jobs.configuration.get(options.MAX_COLUMN_WIDTH)

    def execute_query(self, plan: LogicalNode) -> TableResult:
        """Start a query; its rows come to the program."""
        started = self._jobs.run_query(plan)
        is_batch = self._jobs.is_batch
        names = tuple(field.name for field in plan.schema)
        return TableResult(
            plan.schema,
            lambda: _named(started.rows, names),
            job_client=started.client,
            has_kinds=not is_batch,
            is_endless=started.is_endless,
            max_width=self._max_width,
        )

    def execute_inserts(self, sinks: Sequence[Sink]) -> TableResult:
        """Start INSERTs as one job."""
        return self._inserted(self._jobs.run_inserts(sinks), [sink.identifier.dotted() for sink in sinks])

    def _inserted(self, client: JobClient, sinks: Sequence[str]) -> TableResult:
        if self._jobs.configuration.get(options.DML_SYNC):
            client.get_job_execution_result().result()
        fields = tuple(Field(name, DataTypes.BIGINT()) for name in sinks)
        # How many rows it will be nobody knows: Flink says -1.
        counts = Row(*(-1 for _ in sinks))
        return TableResult(fields, lambda: iter([counts]), job_client=client, is_raw=True)

    def _compile(self, statement: s.CompilePlan) -> TableResult:
        if not (statement.if_not_exists and self.plans.exists(statement.path)):
            plan = self.plans.compile([insert.sink for insert in statement.inserts])
            self.plans.write(statement.path, plan, ignore_if_exists=False)
        return self.execute_plan(self.plans.read(statement.path)) if statement.executes else self._ok()

    def execute_plan(self, plan: PlanJson) -> TableResult:
        """Start the INSERTs of a compiled plan as one job."""
        client, sinks = self.plans.run(plan)
        return self._inserted(client, sinks)

    @property
    def plans(self) -> CompiledPlans:
        """Compiles plans, and reads them."""
        return CompiledPlans(self._jobs, self._manager)

    def explain(
        self, statement: s.QueryStatement | s.Insert | s.StatementSet, details: Sequence[s.ExplainDetail]
    ) -> str:
        """Return the plan of a statement as text."""
        match statement:
            case s.QueryStatement(plan):
                return self.explain_query(plan, details)
            case s.Insert(sink):
                return self.explain_inserts([sink], details)
            case s.StatementSet(inserts):
                return self.explain_inserts([insert.sink for insert in inserts], details)

    def explain_query(self, plan: LogicalNode, details: Sequence[s.ExplainDetail]) -> str:
        """Return the plan of a query as text."""
        return self._explained(self._jobs.plan_query(plan), details)

    def explain_inserts(self, sinks: Sequence[Sink], details: Sequence[s.ExplainDetail]) -> str:
        """Return the plan of INSERTs that run as one job."""
        return self._explained(self._jobs.plan_inserts(sinks), details)

    def _explained(self, plan: Plan, details: Sequence[s.ExplainDetail]) -> str:
        if self._jobs.is_batch:
            if s.ExplainDetail.ESTIMATED_COST in details:
                raise UnsupportedFeatureError.not_yet(
                    "EXPLAIN ESTIMATED_COST in BATCH mode",
                    "EXPLAIN without it shows the statement that Spark plans",
                )
            trees = "\n\n".join(explain_logical(request.query) for request in plan.requests)
            queries = [
                node.declaration.sql for node in self._jobs.nodes(plan) if hasattr(node.declaration, "sql")
            ]
            return f"== Abstract Syntax Tree ==\n{trees}\n\n== Spark SQL ==\n" + "\n\n".join(queries) + "\n"
        # Translation asks connectors for sources and sinks, and these check the options of their tables, as Flink does.
        applied = self._jobs.optimizations.applied_to(self._jobs.nodes(plan), plan.nodes)
        is_json = s.ExplainDetail.JSON_EXECUTION_PLAN in details
        return explain(
            plan,
            changelog_mode=s.ExplainDetail.CHANGELOG_MODE in details,
            advice=plan_advice(plan, has_ttl=self._jobs.has_state_ttl)
            if s.ExplainDetail.PLAN_ADVICE in details
            else None,
            estimated_cost=s.ExplainDetail.ESTIMATED_COST in details,
            execution_plan=plan_json(plan) if is_json else None,
            optimizations=applied,
        )


def _named(rows: Iterator[Row], names: tuple[str, ...]) -> Iterator[Row]:
    """Give rows their columns' names; closing it closes what they come from."""
    try:
        for row in rows:
            row.set_field_names(names)
            yield row
    finally:
        close = getattr(rows, "close", None)
        if close is not None:
            close()
