from headrace.table.compiled_plan import CompiledPlan as CompiledPlan
