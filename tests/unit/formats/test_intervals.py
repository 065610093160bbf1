"""Intervals in formats that are text: months and milliseconds as numbers, as Flink writes them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headrace.common.types import Row
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError
from headrace.formats.csv import CsvFormat
from headrace.formats.json import JsonFormat
from headrace.types import DataTypes
from headrace.types.type_information import data_type, type_information

_DAYS = DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3))
_ROW = DataTypes.ROW(
    [
        DataTypes.FIELD("d", _DAYS),
        DataTypes.FIELD("m", DataTypes.INTERVAL(DataTypes.YEAR(), DataTypes.MONTH())),
    ]
)
ROWS = [Row(timedelta(days=1, milliseconds=5), 14), Row(timedelta(days=-5), -3), Row(None, None)]


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        (JsonFormat, [b'{"d":86400005,"m":14}', b'{"d":-432000000,"m":-3}', b'{"d":null,"m":null}']),
        (CsvFormat, [b"86400005,14", b"-432000000,-3", b","]),
    ],
)
def test_intervals_are_numbers_of_milliseconds_and_months(kind: Any, lines: list[bytes]) -> None:
    options = TableOptions("t", {})
    written = [kind(options).writer(_ROW).serialize(row) for row in ROWS]
    assert written == lines
    assert [kind(options).reader(_ROW).deserialize(line) for line in lines] == ROWS


def test_a_json_text_of_a_number_is_an_interval_and_others_are_refused() -> None:
    reader = JsonFormat(TableOptions("t", {})).reader(_ROW)
    assert reader.deserialize(b'{"d":"1000","m":"2"}') == Row(timedelta(seconds=1), 2)
    with pytest.raises(FormatError, match="more than an INTERVAL can have"):
        reader.deserialize(b'{"d":99999999999999999999999999}')


def test_streams_have_a_type_for_intervals() -> None:
    made = type_information(_DAYS)
    assert made.from_internal_type(made.to_internal_type(timedelta(seconds=1))) == timedelta(seconds=1)
    assert data_type(made) == DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(6))
