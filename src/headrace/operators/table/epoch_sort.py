"""ORDER BY processing time: sorts the rows of an epoch, which all have the same time, by the other keys.

There is no state: rows of the next epoch have a later time.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.base import SEQUENCE, WITH_SEQUENCE, EpochOutput, EpochTime, InputSpec, numbers
from headrace.operators.table.changelog import changes_table, empty_changes
from headrace.operators.table.declarations import EpochSortDeclaration
from headrace.operators.table.kept_rows import KeptRows
from headrace.operators.table.rank import Ranking
from headrace.operators.table.steps import Schema
from headrace.state.columnar.slots import SlotTable, TableLayout


class EpochSortOperator:
    layouts: tuple[TableLayout, ...] = ()

    def __init__(self, declaration: EpochSortDeclaration, schema: Schema, *, retracts: bool) -> None:
        if retracts:  # as in Flink
            raise UnsupportedFeatureError.not_yet(
                "ORDER BY processing time over a changelog with updates", "use insert-only rows"
            )
        self._declaration = declaration
        self._names = [column.name for column in schema]
        self._ranking = Ranking(declaration.order)
        self.inputs = (InputSpec(side=0, source=0, keys=(), items=(WITH_SEQUENCE,)),)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        declaration, given = self._declaration, inputs.get(0)
        if given is None:
            return EpochOutput(empty_changes(declaration.output, is_insert_only=declaration.is_insert_only))
        given = given.combine_chunks()
        columns = [given.column(name).combine_chunks() for name in self._names]
        none = np.zeros(given.num_rows, np.int64)
        is_update = np.zeros(given.num_rows, np.bool_)
        rows = KeptRows(columns, none, none + 1, is_update, none - 1, numbers(given, SEQUENCE))
        ordered, _ = self._ranking.sorted(rows, self._names)
        kinds = None if declaration.is_insert_only else none.astype(np.int8)
        named = dict(zip((column.name for column in declaration.output), ordered.columns, strict=True))
        return EpochOutput(changes_table(declaration.output, named, kinds))
