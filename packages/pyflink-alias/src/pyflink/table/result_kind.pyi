from headrace.table.result_kind import ResultKind as ResultKind
