from headrace.table.explain_detail import ExplainDetail as ExplainDetail
