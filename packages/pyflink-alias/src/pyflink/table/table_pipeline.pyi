from headrace.table.compiled_plan import CompiledPlan as CompiledPlan
from headrace.table.explain_detail import ExplainDetail as ExplainDetail
from headrace.table.catalog import ObjectIdentifier as ObjectIdentifier
from headrace.table.table_pipeline import TablePipeline as TablePipeline
from headrace.table.table_result import TableResult as TableResult
