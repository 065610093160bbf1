"""'connector' = 'datagen': rows that Spark generates from their numbers."""

from __future__ import annotations

from headrace.catalog.objects import PhysicalColumn
from headrace.connectors.base import Source
from headrace.connectors.datagen.fields import read_generated
from headrace.connectors.datagen.sql import field_sql
from headrace.connectors.datagen.table import RangeTableSource
from headrace.connectors.tables import TableRequest

__all__ = ["DatagenFactory"]


class DatagenFactory:
    """Creates `datagen` tables, whose rows are generated."""

    def source(self, request: TableRequest) -> Source:
        options, columns = request.options, request.table.source_columns
        if not all(isinstance(column, PhysicalColumn) for column in columns):
            raise options.error("datagen has no metadata columns")
        generated = read_generated(options, [(column.name, column.type) for column in columns])
        return RangeTableSource(
            tuple(map(field_sql, generated.fields)),
            generated.count,
            float(generated.rate),
            generated.fields,
        )
