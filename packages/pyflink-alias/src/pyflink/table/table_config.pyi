from headrace.common.configuration import Configuration as Configuration
from headrace.table.sql_dialect import SqlDialect as SqlDialect
from headrace.table.table_config import TableConfig as TableConfig
