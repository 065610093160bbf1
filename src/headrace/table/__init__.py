"""Tables and SQL: PyFlink's names.

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("CREATE TABLE clicks (...) WITH (...)")
t_env.execute_sql("SELECT user, COUNT(*) FROM clicks GROUP BY user").print()
"""

from headrace.common._missing import missing_names
from headrace.common.changelog import ChangelogMode
from headrace.common.types import Row, RowKind
from headrace.planner.statements import ExplainDetail
from headrace.table.compiled_plan import CompiledPlan
from headrace.table.data_view import DataView, ListView, MapView
from headrace.table.environment_settings import EnvironmentSettings
from headrace.table.expression import Expression
from headrace.table.module import Module, ModuleEntry
from headrace.table.plan_reference import PlanReference
from headrace.table.result_kind import ResultKind
from headrace.table.schema import Schema
from headrace.table.sql_dialect import SqlDialect
from headrace.table.statement_set import StatementSet
from headrace.table.table import (
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    Table,
    WindowGroupedTable,
)
from headrace.table.table_config import TableConfig
from headrace.table.table_descriptor import FormatDescriptor, TableDescriptor
from headrace.table.table_environment import StreamTableEnvironment, TableEnvironment
from headrace.table.table_pipeline import TablePipeline
from headrace.table.table_result import TableResult
from headrace.table.table_schema import TableSchema
from headrace.table.udf import (
    AggregateFunction,
    AsyncScalarFunction,
    AsyncTableFunction,
    FunctionContext,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
)
from headrace.types import DataTypes

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "AsyncTableFunction",
    "ChangelogMode",
    "CompiledPlan",
    "DataTypes",
    "DataView",
    "EnvironmentSettings",
    "ExplainDetail",
    "Expression",
    "FormatDescriptor",
    "FunctionContext",
    "GroupWindowedTable",
    "GroupedTable",
    "ListView",
    "MapView",
    "Module",
    "ModuleEntry",
    "OverWindowedTable",
    "PlanReference",
    "ResultKind",
    "Row",
    "RowKind",
    "ScalarFunction",
    "Schema",
    "SqlDialect",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableAggregateFunction",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableFunction",
    "TablePipeline",
    "TableResult",
    "TableSchema",
    "WindowGroupedTable",
]

__getattr__ = missing_names(
    __name__,
    "UserDefinedType",
    # Modules.
    "descriptors",
    "functions",
    "model_descriptor",
    "resolved_expression",
    "serializers",
    "utils",
)
