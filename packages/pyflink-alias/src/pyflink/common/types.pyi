from headrace.common.types import Row as Row
from headrace.common.types import RowKind as RowKind
