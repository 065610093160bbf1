"""Rows of datagen that workers make: as many as asked for, the same every time, and for the types that they know."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from headrace.config.table_options import TableOptions
from headrace.connectors.base import Slice
from headrace.connectors.datagen.columns import MOST_ROWS
from headrace.connectors.datagen.fields import read_generated
from headrace.connectors.datagen.table import NumberRange, RangeTableSource
from headrace.types import DataType, DataTypes

SPLIT = NumberRange("numbers", 0, None)


def source(options: dict[str, str] | None = None, **columns: DataType) -> RangeTableSource:
    fields = read_generated(TableOptions("made", options or {}), columns.items()).fields
    return RangeTableSource(("id",) * len(columns), fields=fields)


def made(each: RangeTableSource, start: int, end: int, **kinds: pa.DataType) -> pa.Table:
    pieces = each.column_pieces([Slice(SPLIT, start, end)], tuple(kinds.items()), set(kinds))
    assert pieces is not None
    (piece,) = pickle.loads(pickle.dumps(pieces))
    return pa.concat_tables(piece.read())


def test_a_row_depends_on_its_number_alone():
    # The numbers of some seeds are longer than an INT, which Spark hashes otherwise.
    kinds = {f"n{at}": pa.int32() for at in range(8)}
    each = source(**dict.fromkeys(kinds, DataTypes.INT()))
    whole = made(each, 0, 20, **kinds)
    parts = pa.concat_tables([made(each, 0, 7, **kinds), made(each, 7, 20, **kinds)])
    assert whole.num_rows == 20
    assert whole.equals(parts)
    assert len({tuple(row.values()) for row in whole.to_pylist()}) == 20


def test_values_stay_within_what_was_asked_for():
    options = {
        "fields.i.min": "-2", "fields.i.max": "3", "fields.d.min": "0.5", "fields.d.max": "1",
        "fields.s.length": "3", "fields.v.length": "9", "fields.v.var-len": "true", "fields.i.null-rate": "0.5",
    }  # fmt: skip
    each = source(
        options, i=DataTypes.TINYINT(), d=DataTypes.FLOAT(), s=DataTypes.STRING(), v=DataTypes.STRING()
    )
    rows = made(each, 0, 500, i=pa.int8(), d=pa.float32(), s=pa.string(), v=pa.string()).to_pydict()
    assert {None, *range(-2, 4)} == set(rows["i"])
    assert 100 < rows["i"].count(None) < 400
    assert all(0.5 <= each <= 1 for each in rows["d"])
    assert {len(text) for text in rows["s"]} == {3}
    assert {len(text) for text in rows["v"]} == set(range(1, 10))


def test_only_wanted_columns_are_made():
    each = source(n=DataTypes.BIGINT(), day=DataTypes.DATE())
    kinds = (("n", pa.int64()), ("day", pa.date32()))
    pieces = each.column_pieces([Slice(SPLIT, 0, 3)], kinds, {"n"})
    assert pieces is not None
    (table,) = pieces[0].read()
    assert table.column_names == ["n"]


@pytest.mark.parametrize(
    ("kind", "arrow"), [(DataTypes.DATE(), pa.date32()), (DataTypes.DECIMAL(5, 2), pa.decimal128(5, 2))]
)
def test_other_types_are_left_to_spark(kind, arrow):
    each = source(n=DataTypes.BIGINT(), other=kind)
    kinds = (("n", pa.int64()), ("other", arrow))
    assert each.column_pieces([Slice(SPLIT, 0, 3)], kinds, {"n", "other"}) is None


def test_many_rows_are_left_to_spark():
    each = source(n=DataTypes.BIGINT())
    assert each.column_pieces([Slice(SPLIT, 0, MOST_ROWS + 1)], (("n", pa.int64()),), {"n"}) is None
