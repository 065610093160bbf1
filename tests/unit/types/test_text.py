"""Rows of print tables, as Flink 2.3 prints them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from headrace.common.types import Row, RowKind
from headrace.types import DataTypes
from headrace.types.text import row_writer

_DAY = datetime.datetime.fromisoformat("2026-01-02")
_MOMENT = datetime.datetime.fromisoformat("2026-01-02T03:04:05.678")


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        (DataTypes.FLOAT(), 110.0999984741211, "110.1"),
        (DataTypes.DOUBLE(), 1e7, "1.0E7"),
        (DataTypes.BOOLEAN(), True, "true"),
        (DataTypes.STRING(), None, "null"),
        (DataTypes.DECIMAL(5, 2), Decimal("1.50"), "1.50"),
        (DataTypes.DATE(), datetime.date(2026, 1, 2), "2026-01-02"),
        (DataTypes.TIME(), datetime.time(10, 0), "10:00"),
        (DataTypes.TIME(), datetime.time(10, 0, 1), "10:00:01"),
        (DataTypes.TIMESTAMP(3), _DAY, "2026-01-02T00:00"),
        (DataTypes.TIMESTAMP(3), _MOMENT, "2026-01-02T03:04:05.678"),
        (DataTypes.TIMESTAMP_LTZ(3), _MOMENT.replace(tzinfo=datetime.UTC), "2026-01-02T03:04:05.678Z"),
        (DataTypes.TIMESTAMP_LTZ(3), datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC), "1970-01-01T00:00:00Z"),
        (DataTypes.BYTES(), b"\x01\xff", "[1, -1]"),
        (DataTypes.ARRAY(DataTypes.FLOAT()), [1.0, None], "[1.0, null]"),
        (DataTypes.MAP(DataTypes.STRING(), DataTypes.BOOLEAN()), {"a": False}, "{a=false}"),
        (DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]), Row(1), "+I[1]"),
    ],
)  # fmt: skip
def test_values_are_written_as_java_writes_their_type(data_type, value, expected):
    assert row_writer([data_type])(Row(value)) == f"+I[{expected}]"


def test_rows_begin_with_the_mark_of_their_kind():
    row = Row.of_kind(RowKind.UPDATE_BEFORE, 1, "a")

    assert row_writer([DataTypes.INT(), DataTypes.STRING()])(row) == "-U[1, a]"
