from headrace.table.table_result import CloseableIterator as CloseableIterator
from headrace.table.table_result import TableResult as TableResult
