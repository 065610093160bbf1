from headrace.table.sql_dialect import SqlDialect as SqlDialect
