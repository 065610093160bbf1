from headrace.table.compiled_plan import CompiledPlan as CompiledPlan
from headrace.table.explain_detail import ExplainDetail as ExplainDetail
from headrace.table.table_result import TableResult as TableResult
