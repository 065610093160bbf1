from headrace.table.table_config import TableConfig as TableConfig
