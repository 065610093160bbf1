from headrace.table.types import DataType as DataType
from headrace.table.expression import Expression as Expression
from headrace.table.schema import Schema as Schema
