from headrace.table.statement_set import StatementSet as StatementSet
