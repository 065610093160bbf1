"""TimedWay: the way of a stream's rows to where a table reads event time off them, in a worker.

rows --fragment--> rows of the table, whose highest time is noted --> on to the node that reads them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.arrow_expression import ColumnExpression
from headrace.operators.table.arrow_sql import expression
from headrace.operators.table.declarations import TableWatermarkDeclaration
from headrace.operators.table.packed_input import PackedInput
from headrace.operators.table.row_steps import Caller
from headrace.operators.table.spark_types import as_spark_gives

__all__ = ["TimedWay"]


@dataclass(frozen=True)
class TimedWay:
    """What happens to rows until their time is known.

    Args:
        way: What is done to them first.
        declaration: How time is read off them.
        vertex_id: The vertex that does it.
    """

    way: PackedInput
    declaration: TableWatermarkDeclaration
    vertex_id: str

    @property
    def time(self) -> ColumnExpression | None:
        """What is computed of the rows; None if only Spark can."""
        types = {column.name: column.arrow for column in as_spark_gives(self.declaration.output)}
        return expression(self.declaration.watermark.time, types, is_utc=self.way.is_utc)

    def rows(
        self, tables: Iterable[pa.Table], highest: list[int], caller: Caller | None
    ) -> Iterator[pa.Table]:
        """Return the table's rows.

        Args:
            tables: The stream's rows.
            highest: Gets the highest time of each table, in microseconds since 1970, or in the watermark's own numbers.
            caller: Calls functions on the way.
        """
        time = self.time
        assert time is not None
        for table in tables:
            rows = self.way.rows(table, caller)
            columns = {name: rows.column(name).combine_chunks() for name in rows.column_names}
            found = pc.max(time.of(columns, rows.num_rows).cast(pa.int64())).as_py()
            if found is not None:
                highest.append(found)
            yield rows
