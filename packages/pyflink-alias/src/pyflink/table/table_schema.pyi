from headrace.table.table_schema import TableSchema as TableSchema
