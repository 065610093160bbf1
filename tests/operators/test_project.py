from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from headrace.common import Row
from headrace.datastream._projection import Projection
from headrace.elements import Batch, ColumnBatch
from headrace.errors import UserFunctionError
from headrace.formats.columns import ArrowRows, RowColumns
from headrace.operators.simple import ProjectDeclaration
from headrace.testing.harness import OperatorHarness
from headrace.types import DataTypes

ROW_TYPE = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.BIGINT()),
        DataTypes.FIELD("name", DataTypes.STRING()),
        DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
    ]
)
NAMES = ["id", "name", "tags"]


def columns() -> ArrowRows:
    batch = pa.RecordBatch.from_pydict({"id": [1, 2], "name": ["ann", None], "tags": [["x"], []]})
    return RowColumns(ROW_TYPE).rows_in(batch, NAMES)


def projected(batch: Batch, *indexes: int) -> Batch:
    with OperatorHarness(ProjectDeclaration(Projection(indexes, None))) as harness:
        harness.operator.process(batch)
        (found,) = harness._recorder.batches
        return found


def test_columns_stay_columns() -> None:
    found = projected(ColumnBatch(columns()), 1, 0)
    assert isinstance(found, ColumnBatch)
    assert (found.is_untouched, len(found)) == (True, 2)
    assert found.values == [Row(name="ann", id=1), Row(name=None, id=2)]
    assert found.values[0].name == "ann"


def test_rows_that_were_accessed_are_not_read_again() -> None:
    batch = ColumnBatch(columns())
    batch.values[0][0] = 7
    found = projected(batch, 0)
    assert type(found) is Batch
    assert found.values == [Row(7), Row(2)]


@pytest.mark.parametrize("records", [[Row(1, "a", [])], [(1, "a", [])]])
def test_columns_and_records_give_the_same(records: Sequence[Any]) -> None:
    assert list(projected(Batch(list(records)), 1, 2).values[0]) == ["a", []]


def test_a_field_that_is_not_there_is_an_error_with_the_record() -> None:
    with pytest.raises(UserFunctionError, match="IndexError") as caught:
        projected(ColumnBatch(columns()), 3)
    assert caught.value.record == "Row(id=1, name='ann', tags=['x'])"


def test_a_batch_of_columns_is_a_batch_like_any_other() -> None:
    batch = ColumnBatch(columns())
    assert batch == Batch([Row(1, "ann", ["x"]), Row(2, None, [])])
    assert ColumnBatch(columns()[1:]).values == [Row(2, None, [])]
