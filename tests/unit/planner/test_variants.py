"""VARIANT, casts of intervals and CURRENT_WATERMARK: what they are bound to, and what is refused."""

from __future__ import annotations

import pytest

from headrace.errors import SqlError
from headrace.operators.table.steps import Select, Where, at_watermark, reads_watermark
from headrace.planner.emit import emit
from headrace.planner.logical import Project
from headrace.planner.statements import QueryStatement
from tests.planner.environment import Session

TABLE = """CREATE TABLE t (id BIGINT, s STRING, m MAP<STRING, INT>, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
    WITH ('connector' = 'datagen')"""


def bound(expression: str, batch: bool = False) -> tuple[str, str]:
    (query,) = Session(TABLE).run(f"SELECT {expression} AS x FROM t", batch=batch)
    assert isinstance(query, QueryStatement)
    assert isinstance(query.plan, Project)
    made = query.plan.expressions[0]
    return made.type.summary(), emit(made, ["`id`", "`s`", "`m`", "`ts`"])


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("PARSE_JSON(s)", "VARIANT"),
        ("TRY_PARSE_JSON('1')", "VARIANT"),
        ("CAST(NULL AS VARIANT)", "VARIANT"),
        ("PARSE_JSON(s)['a'][1]", "VARIANT"),
        ("PARSE_JSON(s)[id]", "VARIANT"),
        ("JSON_STRING(PARSE_JSON(s))", "STRING"),
        ("CAST(INTERVAL '1' DAY AS STRING)", "STRING NOT NULL"),
        ("CAST(id AS INTERVAL DAY)", "INTERVAL SECOND(3)"),
        ("CAST(id AS INTERVAL YEAR)", "INTERVAL MONTH"),
        ("CAST(INTERVAL '1' DAY AS INTERVAL HOUR)", "INTERVAL SECOND(3) NOT NULL"),
        ("CURRENT_WATERMARK(ts)", "TIMESTAMP(3)"),
    ],
)
def test_types(expression: str, kind: str) -> None:
    assert bound(expression)[0] == kind


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("PARSE_JSON(s, s = 'x')", "takes a constant TRUE or FALSE as allow_duplicate_keys"),
        ("PARSE_JSON(s)[s]", "must be a constant"),
        ("PARSE_JSON(s)[2.5]", "takes an integer or a string"),
        ("MIN(PARSE_JSON(s))", "can be ordered"),
        ("CAST(PARSE_JSON(s) AS TIME)", "cannot CAST"),
        ("CAST(PARSE_JSON(s)['a'] AS INT)", "cannot CAST VARIANT to INT"),
        ("TRY_CAST(PARSE_JSON(s) AS STRING)", "cannot CAST VARIANT to STRING"),
        ("PARSE_JSON(s) < PARSE_JSON('1')", "< cannot compare VARIANT, VARIANT"),
        ("CAST(id AS INTERVAL DAY TO SECOND)", "cannot CAST"),
        ("CAST(INTERVAL '1' DAY AS INTERVAL MONTH)", "cannot CAST"),
        ("CAST(INTERVAL '1' DAY AS BIGINT)", "cannot CAST"),
        ("CURRENT_WATERMARK(CAST(ts AS TIMESTAMP(3)))", "must be a rowtime attribute"),
        ("CURRENT_WATERMARK(id)", "must be a rowtime attribute"),
    ],
)
def test_refusals(expression: str, reason: str) -> None:
    with pytest.raises(SqlError, match=reason):
        bound(expression)


@pytest.mark.parametrize("column", ["m", "PARSE_JSON(s)"])
def test_rows_cannot_be_sorted_by_types_without_an_order(column: str) -> None:
    with pytest.raises(SqlError, match="cannot be ordered"):
        Session(TABLE).run(f"SELECT id FROM t ORDER BY {column} LIMIT 3")


def test_there_is_no_watermark_in_batch_mode() -> None:
    with pytest.raises(SqlError, match="must be a rowtime attribute"):
        bound("CURRENT_WATERMARK(ts)", batch=True)


def test_steps_learn_the_watermark_of_their_epoch() -> None:
    _, sql = bound("CURRENT_WATERMARK(ts)")
    steps = [Where(f"`ts` > {sql}"), Select(((sql, "x"),))]
    assert reads_watermark(steps)
    known = at_watermark(steps, 1234)
    assert not reads_watermark(known)
    assert known[1] == Select(
        (("timestampadd(MILLISECOND, 1234L, TIMESTAMP_NTZ'1970-01-01 00:00:00')", "x"),)
    )
    assert "CAST(NULL AS BIGINT)" in str(at_watermark(steps, None))
