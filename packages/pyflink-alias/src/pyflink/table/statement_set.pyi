from headrace.table.compiled_plan import CompiledPlan as CompiledPlan
from headrace.table.explain_detail import ExplainDetail as ExplainDetail
from headrace.table.statement_set import StatementSet as StatementSet
from headrace.table.table_descriptor import TableDescriptor as TableDescriptor
from headrace.table.table_pipeline import TablePipeline as TablePipeline
from headrace.table.table_result import TableResult as TableResult
