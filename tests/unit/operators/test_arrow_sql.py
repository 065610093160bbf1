"""Spark SQL that workers compute by themselves: what is understood, what it means, and what is left to Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.operators.table.arrow_expression import NotComputedError, SharedColumns
from headrace.operators.table.arrow_sql import aggregate, expression
from headrace.planner.emit import emit
from headrace.planner.fragments import millis
from headrace.planner.functions.temporal import truncated
from headrace.types.logical import TimestampType
from tests.planner.environment import Session

TYPES = {
    "n": pa.int64(),
    "i": pa.int32(),
    "s": pa.string(),
    "t": pa.timestamp("us"),
    "z": pa.timestamp("us", "UTC"),
    "f": pa.float32(),
    "b": pa.bool_(),
    "u": pa.string(),
    "d": pa.decimal128(10, 2),
    "with `tick": pa.int64(),
}
COLUMNS = {
    "n": pa.array([1, -7, None, 2**63 - 1], pa.int64()),
    "i": pa.array([1, 2, None, 4], pa.int32()),
    "s": pa.array(["a", "b", None, "ü"]),
    "t": pa.array([0, -1, None, 1_767_323_045_006_007], pa.timestamp("us")),
    "z": pa.array([0, -1, None, 1_767_323_045_006_007], pa.timestamp("us", "UTC")),
    "f": pa.array([0.5, -1.5, None, 3.25], pa.float32()),
    "u": pa.array(["x/Y/", "", None, "ü/z"]),
    "b": pa.array([True, False, None, True]),
    "with `tick": pa.array([5, 5, 5, 5], pa.int64()),
}


def moments(*micros: int) -> list[datetime]:
    return [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=each) for each in micros]


def computed(sql: str, *, is_utc: bool = True) -> list[object]:
    made = expression(sql, TYPES, is_utc=is_utc)
    assert made is not None, sql
    found = made.of(COLUMNS, 4)
    assert found.type == made.kind
    return found.to_pylist()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("`n` < CAST(2 AS bigint)", [True, True, None, False]),
        ("(`n` >= 1L) AND (`i` <> 4)", [True, False, None, False]),
        ("`b` OR `n` IS NULL", [True, False, True, True]),
        ("NOT `b`", [False, True, None, False]),
        ("`s` IN ('a', 'ü')", [True, False, None, True]),
        ("`i` IN (1, 4)", [True, False, None, True]),
        ("`with ``tick` = 5", [True] * 4),
        # Beyond the highest number comes the lowest, as in Spark without ANSI mode.
        ("`n` + 1L", [2, -6, None, -(2**63)]),
        ("-`n` - 1L * 2L", [-3, 5, None, 2**63 - 1]),
        ("pmod(`n`, 10L)", [1, 3, None, 7]),
        ("CAST(`n` AS INT)", [1, -7, None, -1]),
        # What is left has the sign of what was divided.
        ("CAST(`n` % 3 AS int)", [1, -1, None, 1]),
        ("`n` % 10L", [1, -7, None, 7]),
        (
            "CAST(CAST((CAST(0.5 AS decimal(2,1)) * CAST(`n` AS decimal(19,0))) AS decimal(22,1)) AS decimal(21,1))",
            [Decimal("0.5"), Decimal("-3.5"), None, Decimal("4611686018427387903.5")],
        ),
        ("IF(`b`, `n`, NULL)", [1, None, None, 2**63 - 1]),
        ("IF(`b`, NULL, `s`)", [None, "b", None, None]),
        ("get(split(`u`, '/'), 0)", ["x", "", None, "ü"]),
        ("get(split(`u`, '/'), 1)", ["Y", None, None, "z"]),
        ("get(split(`u`, '/'), 2)", ["", None, None, None]),
        ("`u` RLIKE '/([^/]*)'", [True, False, None, True]),
        ("`u` RLIKE 'x'", [True, False, None, False]),
        ("regexp_extract(`u`, '(^|x)/([^/]*)', 2)", ["Y", "", None, ""]),
        ("regexp_extract(`u`, '/([^/]*)', 1)", ["Y", "", None, "z"]),
        ("CASE WHEN `b` THEN `n` ELSE 0L END", [1, 0, 0, 2**63 - 1]),
        ("CASE WHEN `b` THEN `n` END", [1, None, None, 2**63 - 1]),
        ("coalesce(`n`, 3L)", [1, -7, 3, 2**63 - 1]),
        ("CAST(`i` AS BIGINT)", [1, 2, None, 4]),
        ("unix_millis(CAST(`t` AS TIMESTAMP))", [0, -1, None, 1_767_323_045_006]),
        (
            "unix_millis(`z` - INTERVAL '0 00:00:01.000000' DAY TO SECOND)",
            [-1000, -1001, None, 1_767_323_044_006],
        ),
        ("unix_millis(CAST(CAST(`z` AS timestamp_ntz) AS timestamp))", [0, -1, None, 1_767_323_045_006]),
        ("unix_timestamp(`z`)", [0, 0, None, 1_767_323_045]),
        ("`z` <= CAST(`t` AS TIMESTAMP)", [True, True, None, True]),
        (truncated("`z`", 3), [*moments(0, -1000), None, *moments(1_767_323_045_006_000)]),
        (f"unix_millis({truncated('CAST(`z` AS timestamp_ntz)', 0)})", [0, -1000, None, 1_767_323_045_000]),
        ("CAST(`f` AS DOUBLE)", [0.5, -1.5, None, 3.25]),
        ("`t` < TIMESTAMP_NTZ '1970-01-01 00:00:00'", [False, True, None, False]),
        (
            "CAST(date_format(`t`, 'yyyy-MM-dd') AS string)",
            ["1970-01-01", "1969-12-31", None, "2026-01-02"],
        ),
        ("date_format(`t`, 'HH:mm:ss')", ["00:00:00", "23:59:59", None, "03:04:05"]),
    ],
)
def test_parsed_spark_sql_has_the_results_of_spark(sql, expected):
    assert computed(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "upper(`s`)",
        "`missing` = 1",
        "`n` = 1 1",
        "`n` +",
        "`n` / 2L",
        "`i` + 1",  # an INT of Spark, which starts again elsewhere
        "`d` = `d`",
        "`s` = 1",
        "`n` = 1.5",
        "`n` % `n`",
        "`n` % 0L",
        "1.5 + 1.5",
        "CAST(`i` AS decimal(19,0))",
        "CAST(`n` AS decimal(18,0))",
        "CAST(`d` AS decimal(10,1))",
        "CAST(1.5 AS decimal(20,1)) * CAST(`n` AS decimal(19,0))",  # more digits than there are
        "`s` RLIKE 'a.b'",
        "`s` RLIKE `s`",
        "regexp_extract(`s`, '(a)', 2)",
        "regexp_extract(`s`, 'a', 1)",
        "get(split(`s`, '|'), 1)",
        "split(`s`, '/')",
        "IF(`b`, NULL, NULL)",
        "IF(`b`, `s`, `n`)",
        "CAST(`s` AS TIMESTAMP)",
        "CASE WHEN `b` THEN `n` ELSE 0 END",
        "date_format(`t`, 'yyy')",
        "date_format(`t`, 'MMM')",
        "date_format(`t`, `s`)",
        "'a\\n'",
        "`n` IN (`i`)",
        "99999999999",
    ],
)
def test_everything_else_is_left_to_spark(sql):
    assert expression(sql, TYPES, is_utc=True) is None


@pytest.mark.parametrize(
    "sql",
    [
        "unix_millis(CAST(`t` AS TIMESTAMP))",
        "date_format(`t`, 'HH')",
        "CAST(`t` AS TIMESTAMP)",
        "CAST(`z` AS TIMESTAMP_NTZ)",
        truncated("`z`", 3),
    ],
)
def test_times_of_other_zones_are_left_to_spark(sql):
    assert expression(sql, TYPES, is_utc=False) is None


@pytest.mark.parametrize("time", ["`t`", "(`t` - INTERVAL '0 00:00:01.000000' DAY TO SECOND)"])
def test_a_wall_clock_shows_the_same_time_in_every_zone(time):
    sql = millis(time, TimestampType(3), is_utc=False)
    later_ms = 0 if time == "`t`" else 1000
    expected = [-later_ms, -1 - later_ms, None, 1_767_323_045_006 - later_ms]
    assert computed(sql, is_utc=False) == expected
    # Spark cuts off towards 1970.
    seconds = [-later_ms // 1000, -later_ms // 1000, None, 1_767_323_045 - later_ms // 1000]
    assert computed(f"unix_timestamp({time})", is_utc=False) == seconds


def test_milliseconds_of_several_times_are_not_texts_of_the_planner():
    sql = millis("`t`", TimestampType(3), is_utc=False)
    assert expression(sql.replace("minute(`t`)", "minute(`z`)"), TYPES, is_utc=False) is None
    assert expression(sql.replace("`t`", "`z`"), TYPES, is_utc=False) is None


def test_a_year_of_five_digits_is_left_to_spark():
    made = expression("date_format(`t`, 'yyyy')", TYPES, is_utc=True)
    assert made is not None
    with pytest.raises(NotComputedError):
        made.of({"t": pa.array([253_402_300_800_000_000], pa.timestamp("us"))}, 1)


def test_small_letters_of_ascii_are_computed_and_others_are_left_to_spark():
    made = expression("lower(`s`)", TYPES, is_utc=True)
    assert made is not None
    assert made.of({"s": pa.array(["Ab", None, ""])}, 3).to_pylist() == ["ab", None, ""]
    with pytest.raises(NotComputedError):
        made.of(COLUMNS, 4)


def test_a_decimal_that_has_too_many_digits_is_left_to_spark():
    made = expression("CAST(CAST(`n` AS decimal(19,0)) AS decimal(18,0))", TYPES, is_utc=True)
    assert made is not None
    assert made.of({"n": pa.array([10**17])}, 1).to_pylist() == [Decimal(10**17)]
    with pytest.raises(NotComputedError):
        made.of({"n": pa.array([10**18])}, 1)


def test_common_subexpressions_are_computed_once():
    columns = SharedColumns({"s": pa.array(["A/b", "C"])})
    first = expression("lower(`s`) = 'c'", TYPES, is_utc=True)
    second = expression(
        "CASE WHEN `s` RLIKE '(/)' THEN regexp_extract(`s`, '(/)', 1) ELSE lower(`s`) END", TYPES, is_utc=True
    )
    assert first is not None
    assert second is not None
    assert first.of(columns, 2).to_pylist() == [False, True]
    kept = columns["\0lower ( `s` )"]
    assert second.of(columns, 2).to_pylist() == ["/", "c"]
    assert columns["\0lower ( `s` )"] is kept
    assert len(columns) == 3


@pytest.mark.parametrize(
    ("sql", "function", "values", "is_zero"),
    [
        ("count(1)", "sum", [1, 1, 1, 1], True),
        ("count(CASE WHEN `b` THEN 1 END)", "sum", [1, 0, 0, 1], True),
        ("count(1) FILTER (WHERE `b`)", "sum", [1, 0, 0, 1], True),
        ("CAST(sum(`n`) AS BIGINT)", "sum", [1, -7, None, 2**63 - 1], False),
        ("CAST(coalesce(sum(CASE WHEN `b` THEN 1L END), 0L) AS BIGINT)", "sum", [1, None, None, 1], True),
        (
            "CAST(sum(CASE WHEN `f` IS NOT NULL THEN CAST(`f` AS DOUBLE) END) AS DOUBLE)",
            "sum",
            [0.5, -1.5, None, 3.25],
            False,
        ),
        ("MAX(CASE WHEN `s` IS NOT NULL THEN `s` END)", "max", ["a", "b", None, "ü"], False),
    ],
)
def test_aggregates(sql, function, values, is_zero):
    made = aggregate(sql, TYPES, is_utc=True)
    assert made is not None
    assert (made.function, made.is_zero) == (function, is_zero)
    assert made.argument.of(COLUMNS, 4).to_pylist() == values


@pytest.mark.parametrize(
    "sql",
    [
        "sum(`d`)",
        "sum(`i`)",
        "avg(`n`)",
        "CAST(sum(`n`) AS INT)",
        "max(`b`)",
        "collect_set(`n`)",
        "collect_list(`z`)",
        "`n`",
    ],
)
def test_aggregates_that_are_left_to_spark(sql):
    assert aggregate(sql, TYPES, is_utc=True) is None


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ('{"a": {"b": "x"}}', "x"),
        ('{"a": {"b": "{x}"}}', "{x}"),
        ('{"a": {"b": -12}}', "-12"),
        ('{"a": {"b": true}, "c": 1.5}', "true"),
        ('{"a": {"b": {"c": 1}}}', None),
        ('{"a": {"b": [1]}}', None),
        ('{"a": {}}', None),
        (None, None),
    ],
)
def test_a_value_of_a_json_document(document, value):
    made = expression(written_for("JSON_VALUE(s, '$.a.b')"), TYPES, is_utc=True)
    assert made is not None
    assert made.of({"s": pa.array([document], pa.string())}, 1).to_pylist() == [value]


@pytest.mark.parametrize(
    "document",
    [
        "",
        "no JSON",
        '{"a": ',
        '{"a": 1}',
        '{"a": [{"b": 1}]}',
        '{"a": {"b": null}}',
        '{"a": {"b": 1.0}}',
        '{"a": {"b": -0}}',
        '{"a": {"b": 1234567890123456789}}',
        '{"a": {"b": NaN}}',
        '{"a": {"b": 1, "b": 2}}',
        r'{"a": {"b": "\ud800"}}',
    ],
)
def test_documents_that_spark_has_to_read(document):
    made = expression(written_for("JSON_VALUE(s, '$.a.b')"), TYPES, is_utc=True)
    assert made is not None
    with pytest.raises(NotComputedError):
        made.of({"s": pa.array([document])}, 1)


@pytest.mark.parametrize("kind", ["BIGINT", "INT", "SMALLINT", "TINYINT"])
def test_texts_that_are_whole_numbers(kind):
    made = expression(written_for(f"CAST(s AS {kind})"), TYPES, is_utc=True)
    assert made is not None
    assert made.of({"s": pa.array(["0", "-12", None, "99"])}, 4).to_pylist() == [0, -12, None, 99]
    for text in ("", " 1", "+1", "01", "-0", "1.0", "x", "9223372036854775808"):
        with pytest.raises(NotComputedError):
            made.of({"s": pa.array([text])}, 1)


def test_a_text_that_is_too_large_for_its_type_is_left_to_spark():
    made = expression(written_for("CAST(s AS TINYINT)"), TYPES, is_utc=True)
    assert made is not None
    with pytest.raises(NotComputedError):
        made.of({"s": pa.array(["128"])}, 1)


@pytest.mark.parametrize(
    "text", ["JSON_VALUE(s, '$.a[0]')", "JSON_VALUE(s, '$.a' DEFAULT 'x' ON ERROR)", "CAST(s AS DOUBLE)"]
)
def test_spark_sql_of_other_functions_is_not_parsed(text):
    assert expression(written_for(text), TYPES, is_utc=True) is None


def written_for(text: str) -> str:
    """Return what the planner writes for an expression over a column of texts."""
    (query,) = Session("CREATE TABLE t (s STRING) WITH ('connector' = 'datagen')").run(
        f"SELECT {text} AS x FROM t"
    )
    return emit(query.plan.expressions[0], ["`s`"])
