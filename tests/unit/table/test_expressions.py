from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from headrace.common import Row
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.table.expression import JsonOnNull, JsonQueryWrapper, JsonType, TimeIntervalUnit, TimePointUnit
from headrace.table.expressions import (
    and_,
    array,
    call,
    call_sql,
    coalesce,
    col,
    concat,
    if_then_else,
    json,
    json_array,
    json_array_agg,
    json_object,
    json_object_agg,
    json_string,
    lit,
    map_,
    not_,
    null_of,
    temporal_overlaps,
    timestamp_diff,
)
from headrace.table.window import Over, Session, Slide, Tumble
from headrace.types import DataTypes


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (col("a") + 1, "(`a` + 1)"),
        (1 - col("a"), "(1 - `a`)"),
        (-col("a") * 2.5, "((- `a`) * 2.5E0)"),
        (col("a") ** 2, "POWER(`a`, 2)"),
        ((col("a") == "x") & ~(col("b") >= 2), "((`a` = 'x') AND ((`b` >= 2) IS NOT TRUE))"),
        (and_(col("a"), col("b"), col("c")), "((`a` AND `b`) AND `c`)"),
        (not_(col("a")), "(NOT `a`)"),
        (col("a`b"), "`a``b`"),
        (lit("it's"), "'it''s'"),
        (lit(None), "NULL"),
        (lit(True), "TRUE"),
        (lit(Decimal("1.50")), "1.50"),
        (lit(datetime.date(2020, 2, 1)), "DATE '2020-02-01'"),
        (lit(datetime.datetime.fromisoformat("2020-02-01T03:00")), "TIMESTAMP '2020-02-01 03:00:00.000000'"),
        (lit(5, DataTypes.BIGINT()), "CAST(5 AS BIGINT)"),
        (null_of(DataTypes.INT()), "CAST(NULL AS INT)"),
        (array(1, 2), "ARRAY[1, 2]"),
        (map_("a", 1), "MAP['a', 1]"),
        (lit(5).seconds, "INTERVAL '5' SECOND"),
        (lit(200).minutes, "INTERVAL '200' MINUTE(3)"),
        (lit(1500).millis, "INTERVAL '1.5' SECOND"),
        (lit(2).weeks, "INTERVAL '14' DAY"),
        (col("a").sum, "SUM(`a`)"),
        (col("a").count.distinct, "COUNT(DISTINCT `a`)"),
        (col("a").distinct.count, "COUNT(DISTINCT `a`)"),
        (col("a").is_null, "(`a` IS NULL)"),
        (col("a").like("x%"), "(`a` LIKE 'x%')"),
        (col("a").between(1, 2), "(`a` BETWEEN 1 AND 2)"),
        (col("a").in_(1, 2), "(`a` IN (1, 2))"),
        (col("a").cast(DataTypes.STRING()), "CAST(`a` AS STRING)"),
        (col("a").substring(2), "SUBSTRING(`a`, 2)"),
        (col("a").trim(), "TRIM(BOTH ' ' FROM `a`)"),
        (col("a").extract(TimeIntervalUnit.YEAR), "EXTRACT(YEAR FROM `a`)"),
        (col("a").floor(TimeIntervalUnit.DAY), "FLOOR(`a` TO DAY)"),
        (col("a").get("b").at(1), "`a`.`b`[1]"),
        (col("a").is_json(JsonType.ARRAY), "(`a` IS JSON ARRAY)"),
        (col("a").then(1, 2), "CASE WHEN `a` THEN 1 ELSE 2 END"),
        (if_then_else(col("a"), 1, 2), "CASE WHEN `a` THEN 1 ELSE 2 END"),
        (coalesce(col("a"), 0), "COALESCE(`a`, 0)"),
        (concat("a", "b"), "CONCAT('a', 'b')"),
        (call("MY_FUNCTION", col("a"), "x"), "MY_FUNCTION(`a`, 'x')"),
        (call_sql("a + 1"), "(a + 1)"),
        (
            timestamp_diff(TimePointUnit.DAY, col("a"), col("b")),
            "TIMESTAMPDIFF(DAY, `a`, `b`)",
        ),
        (json_object(), "JSON_OBJECT( NULL ON NULL)"),
        (json_string(col("a")), "JSON_STRING(`a`)"),
        (json_array(JsonOnNull.NULL, 1, json("[2]")), "JSON_ARRAY(1, JSON('[2]') NULL ON NULL)"),
        (json_array_agg(JsonOnNull.ABSENT, col("a")), "JSON_ARRAYAGG(`a` ABSENT ON NULL)"),
        (json_object_agg(JsonOnNull.NULL, "k", 1), "JSON_OBJECTAGG(KEY 'k' VALUE 1 NULL ON NULL)"),
        (col("a").percentile(0.5), "PERCENTILE(`a`, 0.5E0)"),
        (
            col("a").json_query("$", JsonQueryWrapper.UNCONDITIONAL_ARRAY),
            "JSON_QUERY(`a`, '$' WITH UNCONDITIONAL ARRAY WRAPPER NULL ON EMPTY NULL ON ERROR)",
        ),
        (
            temporal_overlaps(col("a"), lit(1).hour, col("b"), col("c")),
            "((`a`, INTERVAL '1' HOUR) OVERLAPS (`b`, `c`))",
        ),
    ],
)
def test_an_expression_is_a_piece_of_sql(expression, sql):
    assert repr(expression) == f"<Expression {sql}>"


def test_an_alias_is_kept_next_to_the_expression():
    assert repr((col("a") + 1).alias("b")) == "<Expression (`a` + 1) AS b>"


def test_an_expression_has_no_truth_before_it_runs():
    with pytest.raises(SqlValidationError, match="has no truth value"):
        bool(col("a") == 1)


def test_what_sql_cannot_write_is_refused():
    with pytest.raises(SqlValidationError, match="has no SQL literal"):
        lit(object())
    with pytest.raises(SqlValidationError, match="an interval needs a number"):
        _ = col("a").seconds


def test_a_property_of_a_window_is_asked_of_its_alias():
    assert repr(col("w").start) == "<Expression `w`.start>"
    with pytest.raises(SqlValidationError, match="the alias of a window"):
        _ = (col("a") + 1).end


def test_group_windows_are_functions_of_sql():
    from headrace.table._pieces import SHOWN

    ts = col("ts")
    assert Tumble.over(lit(10).minutes).on(ts).alias("w")._sql(SHOWN) == "TUMBLE(`ts`, INTERVAL '10' MINUTE)"
    assert (
        Slide.over(lit(1).hours).every(lit(10).minutes).on(ts).alias("w")._sql(SHOWN, "_START")
        == "HOP_START(`ts`, INTERVAL '10' MINUTE, INTERVAL '1' HOUR)"
    )
    assert Session.with_gap(lit(5).seconds).on(ts).alias(col("w"))._sql(SHOWN) == (
        "SESSION(`ts`, INTERVAL '5' SECOND)"
    )


def test_windows_of_rows_have_a_function_for_their_length():
    from headrace.table._pieces import SHOWN
    from headrace.table.expressions import row_interval

    p = col("p")
    assert Tumble.over(row_interval(10)).on(p).alias("w")._sql(SHOWN) == "TUMBLE(`p`, ROW_INTERVAL(10))"
    slide = Slide.over(row_interval(10)).every(row_interval(2)).on(p).alias("w")
    assert slide._sql(SHOWN) == "HOP(`p`, ROW_INTERVAL(2), ROW_INTERVAL(10))"
    with pytest.raises(UnsupportedFeatureError, match="a session window needs a time gap"):
        Session.with_gap(row_interval(10))


def test_over_windows_are_clauses_of_sql():
    from headrace.table._pieces import SHOWN
    from headrace.table.expressions import UNBOUNDED_RANGE, row_interval

    ordered = Over.partition_by(col("a")).order_by(col("ts"))
    assert ordered.preceding(row_interval(3)).alias("w")._sql(SHOWN) == (
        "(PARTITION BY `a` ORDER BY `ts` ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)"
    )
    assert ordered.preceding(UNBOUNDED_RANGE).alias("w")._sql(SHOWN) == (
        "(PARTITION BY `a` ORDER BY `ts` RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )


def test_the_fields_of_a_row_become_columns() -> None:
    inner = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.STRING()), DataTypes.FIELD("b", DataTypes.INT())])
    kinds = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("r", inner)])
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    table = t_env.from_elements([(1, Row("x", 2))], kinds)
    assert table.select(col("id").flatten, col("r").flatten).get_schema().get_field_names() == [
        "id",
        "r$a",
        "r$b",
    ]
    with pytest.raises(SqlValidationError, match="flatten makes several columns"):
        table.select(col("r").flatten.is_null)
