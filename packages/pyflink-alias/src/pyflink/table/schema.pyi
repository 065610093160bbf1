from headrace.table.schema import Schema as Schema
