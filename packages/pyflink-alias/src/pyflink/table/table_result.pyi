from headrace.table.table_result import CloseableIterator as CloseableIterator
from headrace.common.job_client import JobClient as JobClient
from headrace.table.catalog import ResolvedSchema as ResolvedSchema
from headrace.table.result_kind import ResultKind as ResultKind
from headrace.common.types import Row as Row
from headrace.common.types import RowKind as RowKind
from headrace.table.table_result import TableResult as TableResult
from headrace.table.table_schema import TableSchema as TableSchema
