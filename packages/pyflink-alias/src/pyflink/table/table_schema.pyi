from headrace.table.types import DataType as DataType
from headrace.table.types import RowType as RowType
from headrace.table.table_schema import TableSchema as TableSchema
