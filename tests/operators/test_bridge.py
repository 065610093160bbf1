"""Records that become rows of tables, and rows that become records."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.common.time import Instant
from headrace.common.types import Row, RowKind, changelog_text
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK, Batch, TableRows
from headrace.errors import UserFunctionError
from headrace.operators.table.bridge import (
    StreamToTable,
    TableToStream,
    from_bytes,
    to_bytes,
)
from headrace.operators.table.steps import KIND, StepColumn
from headrace.operators.table.wall_clock import instant_ms, wall_clock_ms
from headrace.testing.harness import OperatorHarness

ID, NAME = StepColumn("id", "BIGINT", pa.int64()), StepColumn("name", "STRING", pa.string())
TIME = StepColumn("rowtime", "TIMESTAMP", pa.timestamp("us", "UTC"))
FIELDS = (("id", 0), ("name", 1))
UTC = datetime.UTC


class Out:
    """Takes what an operator emits."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def emit(self, batch: Batch) -> None:
        self.batches.append(batch)


def table_of(declaration: StreamToTable, records: list[Any], timestamps: list[Any] | None = None) -> pa.Table:
    """Return the rows that records become."""
    with OperatorHarness(declaration) as harness:
        out = Out()
        harness.operator.output = out  # type: ignore[assignment]
        harness.process_batch(records, timestamps)
        harness.operator.end_epoch()
    rows = [from_bytes(batch.payload) for batch in out.batches if isinstance(batch, TableRows)]
    assert sum(map(len, out.batches)) == len(records)
    return pa.Table.from_batches(rows)


def test_fields_of_rows_tuples_and_dictionaries_become_columns():
    records = [Row(1, "a"), Row(name="b", id=2), (3, "c"), {"name": "d", "id": 4}]
    assert table_of(StreamToTable((ID, NAME), FIELDS), records).to_pydict() == {
        "id": [1, 2, 3, 4],
        "name": ["a", "b", "c", "d"],
    }


def test_a_record_that_is_a_value_is_one_column():
    assert table_of(StreamToTable((ID,), (("f0", 0),), is_atomic=True), [5, None, 7]).to_pydict() == {
        "id": [5, None, 7]
    }


def test_the_timestamp_of_a_record_is_its_rowtime():
    declaration = StreamToTable((ID, NAME, TIME), FIELDS, has_rowtime=True)
    rows = table_of(declaration, [(1, "a")], [1500])
    assert rows.column("rowtime").to_pylist() == [datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=UTC)]
    with pytest.raises(UserFunctionError, match="a record has no timestamp"):
        table_of(declaration, [(1, "a"), (2, "b")], [1500, None])


def test_kinds_of_rows_are_kept_in_a_changelog_and_refused_elsewhere():
    changes = [Row.of_kind(kind, at, "a") for at, kind in enumerate(RowKind)]
    rows = table_of(StreamToTable((ID, NAME), FIELDS, is_insert_only=False), changes)
    assert rows.column(KIND).to_pylist() == [0, 1, 2, 3]
    with pytest.raises(UserFunctionError, match=r"UPDATE_BEFORE.*from_changelog_stream"):
        table_of(StreamToTable((ID, NAME), FIELDS), changes)


def test_a_value_that_is_none_of_its_type_is_named_with_column_and_record():
    with pytest.raises(UserFunctionError, match=r"cannot convert 'two' to BIGINT \(column 'id'\)") as raised:
        table_of(StreamToTable((ID, NAME), FIELDS), [(1, "a"), ("two", "b")])
    assert raised.value.record == "('two', 'b')"
    with pytest.raises(UserFunctionError, match="no field 'name'"):
        table_of(StreamToTable((ID, NAME), FIELDS), [(1,)])


def test_rows_lists_and_maps_inside_records_keep_their_parts():
    inner = pa.struct([pa.field("x", pa.int64()), pa.field("at", pa.timestamp("us", "UTC"))])
    columns = (
        StepColumn("s", "STRUCT<x: BIGINT, at: TIMESTAMP>", inner),
        StepColumn("l", "ARRAY<STRUCT<x: BIGINT, at: TIMESTAMP>>", pa.list_(inner)),
        StepColumn("m", "MAP<STRING, BIGINT>", pa.map_(pa.string(), pa.int64())),
        StepColumn("d", "DECIMAL(10, 2)", pa.decimal128(10, 2)),
    )
    row = Row(x=1, at=Instant(2, 0))
    made = {"x": 1, "at": datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)}
    fields = tuple((column.name, at) for at, column in enumerate(columns))
    found = table_of(
        StreamToTable(columns, fields), [(row, [row, None], {"k": 3}, Decimal("1.5")), (None,) * 4]
    )
    assert found.to_pylist()[0] == {"s": made, "l": [made, None], "m": [("k", 3)], "d": Decimal("1.50")}
    assert set(found.to_pylist()[1].values()) == {None}


def test_a_stream_sends_watermarks_only_to_tables_that_use_them():
    for has_watermarks, told in ((True, 7), (False, MIN_WATERMARK)):
        with OperatorHarness(StreamToTable((ID, NAME), FIELDS, has_watermarks=has_watermarks)) as harness:
            assert harness.operator.table_time(7) == (told, False)
            assert harness.operator.table_time(MAX_WATERMARK) == (MAX_WATERMARK, False)
            harness.operator.process_status(is_active=False)
            assert harness.operator.table_time(7) == (told, True)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "Asia/Kolkata"])
def test_a_moment_comes_back_from_the_clock_on_the_wall(zone: str | None):
    for moment in (MIN_WATERMARK, 0, 1_720_000_000_000, MAX_WATERMARK):
        assert instant_ms(wall_clock_ms(moment, zone), zone) == moment
    assert wall_clock_ms(0, "Asia/Kolkata") == 19_800_000


def test_rows_become_records_with_names_kinds_and_timestamps():
    millis = StepColumn("__time", "BIGINT", pa.int64())
    batch = pa.RecordBatch.from_pydict(
        {"id": [1, 2], "name": ["a", None], "__time": [10, None], KIND: [0, 3]}
    )
    with OperatorHarness(TableToStream((ID, NAME, millis), ("id", "who"), "__time")) as harness:
        harness.operator.process(TableRows(to_bytes(batch), 0))
        assert [changelog_text(row) for row in harness.output] == ["+I[1, a]", "-D[2, null]"]
        assert [row.as_dict() for row in harness.output] == [{"id": 1, "who": "a"}, {"id": 2, "who": None}]
        assert [at for _, at in harness.output_with_timestamps] == [10, None]
