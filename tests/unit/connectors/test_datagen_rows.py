from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from headrace.common import Row
from headrace.connectors.base import Boundedness
from headrace.connectors.datagen import datagen_source
from headrace.errors import ConfigurationError, UnsupportedFeatureError
from headrace.testing.contracts import check_source
from headrace.types import DataType, DataTypes

NOW_MS = 1_700_000_000_000


def row_type(**fields: DataType) -> Any:
    return DataTypes.ROW([DataTypes.FIELD(name, each) for name, each in fields.items()])


def rows(fields: dict[str, DataType], options: dict[str, str], count: int = 300) -> list[Row]:
    source = pickle.loads(pickle.dumps(datagen_source(row_type(**fields), options)))
    make = source.generator_function.at(NOW_MS)
    return [make(index) for index in range(count)]


def test_sequences_bound_the_source_by_the_shortest() -> None:
    options = {
        "connector": "datagen",
        "rows-per-second": "500",
        "number-of-rows": "50",
        "fields.a.kind": "sequence",
        "fields.a.start": "1",
        "fields.a.end": "7",
        "fields.b.kind": "sequence",
        "fields.b.start": "0",
        "fields.b.end": "99",
    }
    source = datagen_source(row_type(a=DataTypes.BIGINT(), b=DataTypes.STRING()), options)
    assert (source.count, source.rate_per_second, source.boundedness) == (7, 500, Boundedness.BOUNDED)
    check_source(source, [Row(i + 1, str(i)) for i in range(7)], parallelism=2)


def test_random_numbers_stay_in_their_range_and_reach_its_ends() -> None:
    fields = {
        "i": DataTypes.INT(),
        "d": DataTypes.DOUBLE(),
        "c": DataTypes.DECIMAL(5, 2),
        "t": DataTypes.TINYINT(),
        "b": DataTypes.BOOLEAN(),
    }
    options = {
        **{"fields.i.min": "-2", "fields.i.max": "3", "fields.d.min": "0", "fields.d.max": "1"},
        **{"fields.c.min": "1", "fields.c.max": "2"},
    }
    found = rows(fields, options)
    assert {row.i for row in found} == set(range(-2, 4))
    assert all(0 <= row.d < 1 for row in found)
    assert all(Decimal(1) <= row.c <= 2 and row.c.as_tuple().exponent == -2 for row in found)
    assert all(-128 <= row.t < 128 for row in found)
    assert min(row.t for row in found) < -100 < 100 < max(row.t for row in found)
    assert {row.b for row in found} == {True, False}


def test_texts_have_their_length() -> None:
    fields = {
        "s": DataTypes.STRING(),
        "v": DataTypes.VARCHAR(7),
        "w": DataTypes.STRING(),
        "y": DataTypes.BYTES(),
    }
    found = rows(fields, {"fields.w.length": "5", "fields.w.var-len": "true", "fields.y.length": "9"})
    assert {(len(row.s), len(row.v), len(row.y)) for row in found} == {(100, 7, 9)}
    assert {len(row.w) for row in found} == {1, 2, 3, 4, 5}
    assert len({row.s for row in found}) == 300


def test_time_is_that_of_the_plan_less_what_may_be_past() -> None:
    fields = {
        "d": DataTypes.DATE(),
        "t": DataTypes.TIMESTAMP(3),
        "z": DataTypes.TIMESTAMP_LTZ(3),
    }
    now = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    found = rows(fields, {"fields.z.max-past": "10 s"})
    assert {row.d for row in found} == {date(2023, 11, 14)}
    assert {row.t for row in found} == {now.replace(tzinfo=None)}
    assert all(now - timedelta(seconds=10) <= row.z <= now for row in found)
    assert len({row.z for row in found}) > 250


def test_values_within_values() -> None:
    fields = {
        "a": DataTypes.ARRAY(DataTypes.INT()),
        "m": DataTypes.MAP(DataTypes.STRING(), DataTypes.BOOLEAN()),
        "r": row_type(x=DataTypes.INT()),
    }
    options = {
        **{"fields.a.length": "2", "fields.a.element.min": "0", "fields.a.element.max": "9"},
        **{"fields.m.key.length": "4", "fields.r.x.max": "5", "fields.r.x.min": "5"},
    }
    found = rows(fields, options)
    assert {len(row.a) for row in found} == {2}
    assert {each for row in found for each in row.a} == set(range(10))
    assert all(len(row.m) == 3 and all(len(key) == 4 for key in row.m) for row in found)
    assert {row.r for row in found} == {Row(5)}


def test_rows_are_the_same_again_and_others_with_another_seed() -> None:
    fields = {"n": DataTypes.BIGINT(), "s": DataTypes.STRING()}
    assert rows(fields, {}) == rows(fields, {})
    assert rows(fields, {"seed": "1"}) != rows(fields, {})
    assert 60 < sum(row.n is None for row in rows(fields, {"fields.n.null-rate": "0.3"})) < 120


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows-per-seconds": "1"}, "unknown option 'rows-per-seconds'"),
        ({"fields.m.min": "1"}, r"unknown option 'fields\.m\.min'"),
        ({"fields.n.kind": "series"}, "must be 'random' or 'sequence'; got 'series'"),
        ({"fields.n.kind": "sequence", "fields.n.start": "1"}, "a sequence needs"),
        ({"fields.n.min": "x"}, r"'fields\.n\.min' must be a whole number; got 'x'"),
        ({"fields.n.min": "2", "fields.n.max": "1"}, "must not be less than"),
        ({"fields.n.null-rate": "2"}, "must be between 0 and 1"),
        ({"fields.v.length": "9"}, "must be between 0 and 7; got 9"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        datagen_source(row_type(n=DataTypes.INT(), v=DataTypes.VARCHAR(7)), options)


def test_types_that_cannot_be_made_up_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="a sequence of BOOLEAN"):
        datagen_source(
            row_type(b=DataTypes.BOOLEAN()),
            {"fields.b.kind": "sequence", "fields.b.start": "1", "fields.b.end": "2"},
        )


def test_intervals_are_months_and_milliseconds_within_their_range() -> None:
    fields = {
        "m": DataTypes.INTERVAL(DataTypes.YEAR(), DataTypes.MONTH()),
        "d": DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3)),
        "any": DataTypes.INTERVAL(DataTypes.SECOND(3)),
    }
    found = rows(fields, {"fields.m.max": "2", "fields.d.min": "-1", "fields.d.max": "1"})
    assert {row.m for row in found} == {0, 1, 2}
    assert {row.d for row in found} == {timedelta(milliseconds=each) for each in (-1, 0, 1)}
    assert max(row.any for row in found) > timedelta(days=10_000)
