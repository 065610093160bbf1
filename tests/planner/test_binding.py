"""What names and clauses of queries mean, and how wrong ones are refused."""

from __future__ import annotations

import pytest

from headrace.errors import CatalogError, SqlError, SqlParseError, SqlValidationError
from headrace.planner.expressions import Call, InputRef, Literal, conjuncts, references
from headrace.planner.logical import (
    Aggregate,
    Filter,
    GroupWindowAggregate,
    Join,
    JoinKind,
    Limit,
    LogicalNode,
    Over,
    Project,
    Scan,
    SetOperation,
    Sort,
    Union,
    Unnest,
    Values,
    Watermark,
    WindowTable,
)
from headrace.planner.statements import QueryStatement
from headrace.planner.windows import WindowKind
from headrace.types import IntType
from tests.planner.environment import Session

TABLES = """
CREATE TABLE bids (auction BIGINT, price BIGINT, ts TIMESTAMP(3), tags ARRAY<STRING>, r ROW<a INT, b ROW<c STRING>>,
  pt AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen');
CREATE TABLE auctions (id BIGINT NOT NULL, price BIGINT, seller STRING) WITH ('connector' = 'datagen');
CREATE TABLE a (k INT, x INT) WITH ('connector' = 'datagen');
CREATE TABLE b (k INT, y INT) WITH ('connector' = 'datagen');
"""


@pytest.fixture
def session() -> Session:
    return Session(TABLES)


def plan(session: Session, text: str) -> LogicalNode:
    bound = session.one(text)
    assert isinstance(bound, QueryStatement)
    return bound.plan


def kinds(node: LogicalNode) -> list[str]:
    """Names of the nodes from the top down the first input."""
    return [type(node).__name__, *(kinds(node.inputs[0]) if node.inputs else [])]


def refused(session: Session, text: str, kind: type[SqlError] = SqlValidationError) -> SqlError:
    with pytest.raises(kind) as caught:
        session.run(text)
    assert caught.value.line is not None
    return caught.value


@pytest.mark.parametrize(
    ("text", "meant", "kind"),
    [
        ("SELECT SUMM(price) FROM bids", "'SUM'", SqlValidationError),
        ("SELECT LISTAG(name) FROM bids", "'LISTAGG'", SqlValidationError),
        ("SELECT CONT(*) FROM bids", "'COUNT'", SqlValidationError),
        ("SELECT CONT(DISTINCT price) FROM bids", "'COUNT'", SqlValidationError),
        ("SELECT ROWNUMBER() OVER (ORDER BY ts) FROM bids", "'ROW_NUMBER'", SqlValidationError),
        ("SELECT SUM(price) OVER ww FROM bids WINDOW w AS (ORDER BY ts)", "'w'", SqlValidationError),
        ("SELECT CAST(price AS BIGNT) FROM bids", "BIGINT", SqlParseError),
        ("SHOW CREATE TABLE bid", "'bids'", CatalogError),
        ("ALTER TABLE bid SET ('a' = 'b')", "'bids'", CatalogError),
        ("CREATE TABLE copy LIKE bid", "'bids'", CatalogError),
    ],
)
def test_an_unknown_name_comes_with_the_one_that_was_probably_meant(
    session: Session, text: str, meant: str, kind: type[SqlError]
) -> None:
    assert refused(session, text, kind).hint == f"did you mean {meant}?"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT name FORM bids", "'FORM' was read as a name: did you mean FROM?"),
        ("SELECT name, FROM bids", "take the comma away; a column with this name is written `FROM`"),
        ('SELECT "a" FROM bids', "write strings in single quotes, 'a string', and names in back quotes"),
        ("SELECT * FROM bids WHERE name == 'a'", "write ="),
        ("SELECT * FROM bids WHERE name ILIKE 'a%'", "write LOWER(text) LIKE 'pattern'"),
        ("SELECT * EXCEPT (name) FROM bids", "list the columns that you want"),
    ],
)
def test_functions_of_other_dialects_are_refused_with_the_one_to_use(
    session: Session, text: str, hint: str
) -> None:
    assert refused(session, text, SqlParseError).hint == hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT STRING_AGG(name, ',') FROM bids", "write LISTAGG(column, ',')"),
        ("SELECT DATE_TRUNC('hour', ts) FROM bids", "write FLOOR(time TO HOUR)"),
        ("SELECT name FROM bids WHERE COUNT(*) > 1 GROUP BY name", "put conditions on groups into HAVING"),
        ("SELECT b.name FROM bids AS a", "available: a"),
        (
            "SELECT price * 2 AS twice FROM bids WHERE twice > 3",
            "SELECT computes 'twice' later: repeat its expression here, or move the SELECT into a subquery",
        ),
        (
            "SELECT * FROM TABLE(CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' MINUTES, INTERVAL '5' MINUTES))",
            "the step comes before the size: CUMULATE(TABLE t, DESCRIPTOR(time), step, size)",
        ),
    ],
)
def test_a_mistake_in_meaning_comes_with_the_way_out(session: Session, text: str, hint: str) -> None:
    assert refused(session, text).hint == hint


def test_a_database_that_is_not_there_is_named(session: Session) -> None:
    error = refused(session, "SELECT * FROM nowhere.bids", CatalogError)

    assert error.message == "database 'nowhere' does not exist in catalog 'default_catalog'"


def test_set_operations_may_follow_a_star(session: Session) -> None:
    assert session.schema("SELECT * FROM (VALUES (1)) AS t(a) EXCEPT (SELECT 2)") == ["a INT NOT NULL"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("JSON('{}')", "as a value of JSON_OBJECT or JSON_ARRAY"),
        ("JSON_VALUE(tags[1], '$.a' NULL ON EMPTY ERROR ON EMPTY)", "ON EMPTY is given twice"),
        ("JSON_VALUE(tags[1], tags[1])", "a constant path"),
        ("JSON_VALUE(tags[1], 'a.b')", "'a.b' is not a JSON path"),
        ("JSON_LENGTH(tags[1], '$.a[*].b[*]')", "is not supported yet"),
        ("JSON_QUERY(tags[1], '$.a' RETURNING INT)", "returns STRING or ARRAY<STRING>, not INT"),
        ("JSON_VALUE(price, '$.a')", "takes a JSON string and a path, not BIGINT"),
        ("JSON_STRING(CAST(ts AS DATE))", "a value of type DATE cannot be made JSON"),
        ("JSON_OBJECT('d' VALUE ARRAY[CAST(ts AS DATE)])", "cannot be made JSON"),
        ("JSON_OBJECT(price VALUE 1)", "a key of JSON_OBJECT must be a STRING"),
        ("JSON_OBJECTAGG(price VALUE 1)", "a key of JSON_OBJECTAGG must be a STRING"),
        ("JSON_ARRAYAGG(price) OVER (ORDER BY ts)", "JSON_ARRAYAGG with OVER is not supported yet"),
        ("PERCENTILE(price)", "wrong arguments for PERCENTILE"),
        ("PERCENTILE(tags[1], 0.5)", "PERCENTILE takes numbers, not STRING"),
        ("PERCENTILE(price, 2.0)", "between 0 and 1, not 2.0"),
        ("PERCENTILE(price, ARRAY[0.1, 7])", "between 0 and 1, not 7"),
        ("PERCENTILE(price, 0.5, 0.5)", "the frequency of PERCENTILE must be a whole number"),
        ("(ts, ts) OVERLAPS (ts, ts, ts)", "a period must be"),
        ("BITMAP_OR_AGG(price)", "BITMAP_OR_AGG is not supported yet"),
        ("MOD(price)", "MOD takes two numbers"),
        ("EQUALS(price)", "function 'EQUALS' does not exist"),
        ("JSON_ARRAY_OF(price)", "function 'JSON_ARRAY_OF' does not exist"),
        ("`JSON_VALUE`(tags[1])", "function 'JSON_VALUE' does not exist"),
    ],
)
def test_wrong_calls_say_what_is_wrong(session: Session, call: str, message: str) -> None:
    assert message in refused(session, f"SELECT {call} FROM bids", SqlError).message


def test_strings_may_name_characters_by_their_numbers(session: Session) -> None:
    made = plan(session, r"SELECT U&'\00e9t\00e9 \+01F600 a\\b it''s'")
    assert isinstance(made, Project)
    assert made.expressions == (Literal("\u00e9t\u00e9 \U0001f600 a\\b it's", made.expressions[0].type),)
    for wrong in (r"U&'\0'", r"U&'\+FFFFFF'"):
        assert "four hexadecimal digits" in refused(session, f"SELECT {wrong}", SqlParseError).message


def test_group_id_is_the_first_of_sets_that_differ(session: Session) -> None:
    query = "SELECT GROUP_ID() AS id FROM bids GROUP BY"
    assert session.schema(f"{query} ROLLUP (price, auction)") == ["id BIGINT NOT NULL"]
    error = refused(session, f"{query} GROUPING SETS ((price), (price))")
    assert "GROUP_ID with duplicate grouping sets" in error.message


def test_aggregates_over_lists_are_aggregates(session: Session) -> None:
    assert session.schema("SELECT JSON_ARRAYAGG(price), PERCENTILE(price, 0.5) FROM bids") == [
        "EXPR$0 STRING NOT NULL",
        "EXPR$1 DOUBLE",
    ]
    refused(session, "SELECT price FROM bids WHERE PERCENTILE(price, 0.5) > 1", SqlValidationError)


def test_an_approximate_count_is_an_exact_one(session: Session) -> None:
    node = plan(session, "SELECT APPROX_COUNT_DISTINCT(price) FILTER (WHERE auction > 1) FROM bids")
    aggregate = node.inputs[0]
    assert isinstance(aggregate, Aggregate)
    (call,) = aggregate.calls
    assert (call.function, call.distinct, call.filter is None) == ("COUNT", True, False)
    assert session.schema("SELECT APPROX_COUNT_DISTINCT(price) AS n FROM bids") == ["n BIGINT NOT NULL"]
    refused(session, "SELECT APPROX_COUNT_DISTINCT(price) OVER (ORDER BY ts) FROM bids", SqlValidationError)


# --- names ----------------------------------------------------------------------------------------


def test_a_scan_has_computed_columns_and_the_watermark_above_it(session: Session) -> None:
    assert kinds(plan(session, "SELECT * FROM bids")) == ["Project", "Watermark", "Project", "Scan"]
    assert session.schema("SELECT * FROM bids")[2] == "ts TIMESTAMP(3) *ROWTIME*"
    assert session.schema("SELECT * FROM bids")[5] == "pt TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*"


def test_fields_of_rows_are_columns_of_columns(session: Session) -> None:
    assert session.schema("SELECT r.a, bids.r.b.c, r.b FROM bids") == [
        "a INT",
        "c STRING",
        "b ROW<`c` STRING>",
    ]
    assert session.schema("SELECT r.* FROM bids") == ["a INT", "b ROW<`c` STRING>"]


def test_a_wrong_name_is_underlined_and_the_nearest_suggested(session: Session) -> None:
    error = refused(session, "SELECT auction,\n  pirce FROM bids")
    assert (error.line, error.column, error.length) == (2, 3, 5)
    assert str(error) == (
        "column 'pirce' not found\n  2 |   pirce FROM bids\n        ^^^^^\nhint: did you mean 'price'?"
    )
    assert "did you mean 'bids'?" in str(refused(session, "SELECT 1 FROM bidz", CatalogError))
    assert "did you mean 'UPPER'" in str(refused(session, "SELECT UPER('a')"))


def test_a_column_of_two_tables_needs_its_table(session: Session) -> None:
    error = refused(session, "SELECT price FROM bids JOIN auctions ON auction = id")
    assert "bids.price or auctions.price" in str(error)
    assert session.schema("SELECT bids.price FROM bids JOIN auctions ON auction = id") == ["price BIGINT"]


def test_an_alias_hides_the_name_of_its_table(session: Session) -> None:
    assert (
        "table 'bids' is not part of this query"
        in refused(session, "SELECT bids.price FROM bids AS b").message
    )
    assert "is used twice" in refused(session, "SELECT 1 FROM a JOIN a ON TRUE").message


def test_queries_of_with_are_seen_by_those_after_them(session: Session) -> None:
    text = "WITH p AS (SELECT price FROM bids), q (x) AS (SELECT price + 1 FROM p) SELECT x FROM q"
    assert session.schema(text) == ["x BIGINT"]


# --- joins ----------------------------------------------------------------------------------------


def test_using_makes_one_column_of_two(session: Session) -> None:
    assert session.schema("SELECT * FROM a JOIN b USING (k)") == ["k INT", "x INT", "y INT"]
    assert session.schema("SELECT * FROM a NATURAL JOIN b") == ["k INT", "x INT", "y INT"]
    full = plan(session, "SELECT k FROM a FULL JOIN b USING (k)")
    assert isinstance(full, Project)
    assert isinstance(full.expressions[0], Call)
    assert full.expressions[0].function == "COALESCE"


def test_a_missing_partner_makes_columns_nullable(session: Session) -> None:
    text = "SELECT id FROM bids LEFT JOIN auctions ON auction = id"
    assert session.schema(text) == ["id BIGINT"]


def test_in_and_exists_become_semi_and_anti_joins(session: Session) -> None:
    semi = plan(session, "SELECT k FROM a WHERE k IN (SELECT k FROM b) AND x > 1")
    assert kinds(semi) == ["Project", "Filter", "Join", "Scan"]
    join = semi.inputs[0].inputs[0]
    assert isinstance(join, Join)
    assert join.kind is JoinKind.SEMI
    anti = plan(
        session, "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND y > 2)"
    ).inputs[0]
    assert isinstance(anti, Join)
    assert anti.kind is JoinKind.ANTI
    assert isinstance(anti.right, Filter)
    (condition,) = conjuncts(anti.condition)
    assert isinstance(condition, Call)
    assert set(condition.operands) == {
        InputRef(2, condition.operands[0].type),
        InputRef(0, condition.operands[0].type),
    }


def test_a_null_in_not_in_counts_as_a_partner(session: Session) -> None:
    join = plan(session, "SELECT k FROM a WHERE k NOT IN (SELECT y FROM b)").inputs[0]
    assert isinstance(join, Join)
    assert isinstance(join.condition, Call)
    assert join.condition.function == "OR"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT k FROM a WHERE k = 1 OR k IN (SELECT k FROM b)",
            "IN with a query anywhere but in the AND-ed",
        ),
        (
            "SELECT * FROM a JOIN b ON a.k > (SELECT MAX(k) FROM b)",
            "a scalar subquery in ON",
        ),
        ("SELECT JSON_TYPE(k) FROM a", "the function JSON_TYPE is not supported yet"),
    ],
)
def test_what_is_not_there_is_refused_by_name(session: Session, text: str, message: str) -> None:
    assert message in refused(session, text).message


def test_unnest_makes_a_row_of_each_element(session: Session) -> None:
    node = plan(session, "SELECT auction, tag FROM bids CROSS JOIN UNNEST(tags) AS t (tag)")
    assert isinstance(node.inputs[0], Unnest)
    assert node.schema[1].type.summary() == "STRING"
    left = plan(session, "SELECT tag FROM bids LEFT JOIN UNNEST(tags) AS t (tag) ON TRUE").inputs[0]
    assert isinstance(left, Unnest)
    assert left.kind is JoinKind.LEFT


# --- groups ---------------------------------------------------------------------------------------


def test_expressions_of_keys_and_aggregates_are_projected_above_the_groups(session: Session) -> None:
    node = plan(
        session, "SELECT auction + 1, COUNT(*) + SUM(price) FROM bids GROUP BY auction HAVING COUNT(*) > 1"
    )
    assert kinds(node)[:3] == ["Project", "Filter", "Aggregate"]
    aggregate = node.inputs[0].inputs[0]
    assert isinstance(aggregate, Aggregate)
    assert [call.function for call in aggregate.calls] == ["COUNT", "SUM"]


def test_a_key_that_is_computed_is_a_column_below_the_groups(session: Session) -> None:
    text = "SELECT DATE_FORMAT(ts, 'yyyy'), COUNT(*) FROM bids GROUP BY DATE_FORMAT(ts, 'yyyy')"
    aggregate = plan(session, text).inputs[0]
    assert isinstance(aggregate, Aggregate)
    assert isinstance(aggregate.input, Project)
    assert aggregate.group_keys == (len(aggregate.input.schema) - 1,)


def test_a_column_that_is_not_a_group_key_needs_an_aggregate(session: Session) -> None:
    assert "'price' is not in GROUP BY" in refused(session, "SELECT price FROM bids GROUP BY auction").message
    assert "not allowed in WHERE" in refused(session, "SELECT 1 FROM bids WHERE COUNT(*) > 1").message
    assert "aggregate functions are not allowed in an aggregate" in (
        refused(session, "SELECT SUM(COUNT(*)) FROM bids").message
    )


def test_rollup_and_cube_are_grouping_sets(session: Session) -> None:
    def sets(group: str) -> object:
        node = plan(session, f"SELECT COUNT(*) FROM bids GROUP BY {group}").inputs[0]
        assert isinstance(node, Aggregate)
        return node.grouping_sets

    assert sets("ROLLUP (auction, price)") == ((0, 1), (0,), ())
    assert sets("CUBE (auction, price)") == ((0, 1), (0,), (1,), ())
    assert sets("GROUPING SETS ((auction, price), (price), ())") == ((0, 1), (1,), ())
    assert sets("auction, ROLLUP (price)") == ((0, 1), (0,))
    assert sets("auction, price") is None


def test_a_group_window_has_its_properties_after_the_aggregates(session: Session) -> None:
    text = """SELECT TUMBLE_END(ts, INTERVAL '1' MINUTE) AS e, auction, COUNT(*),
                     TUMBLE_ROWTIME(ts, INTERVAL '1' MINUTE)
              FROM bids GROUP BY auction, TUMBLE(ts, INTERVAL '1' MINUTE)"""
    node = plan(session, text)
    assert isinstance(node.inputs[0], GroupWindowAggregate)
    assert session.schema(text) == [
        "e TIMESTAMP(3) NOT NULL",
        "auction BIGINT",
        "EXPR$2 BIGINT NOT NULL",
        "EXPR$3 TIMESTAMP(3) NOT NULL *ROWTIME*",
    ]


# --- windows and OVER -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "size", "step", "offset"),
    [
        ("TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)", "TUMBLE", 10_000, 10_000, 0),
        ("TUMBLE((SELECT * FROM bids), DESCRIPTOR(ts), INTERVAL '10' SECOND)", "TUMBLE", 10_000, 10_000, 0),
        (
            "HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)",
            "HOP",
            10_000,
            2_000,
            0,
        ),
        (
            "CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY, INTERVAL '8' HOUR)",
            "CUMULATE",
            86_400_000,
            3_600_000,
            28_800_000,
        ),
        (
            "SESSION(DATA => TABLE bids PARTITION BY auction, TIMECOL => DESCRIPTOR(ts), GAP => INTERVAL '5' MINUTE)",
            "SESSION",
            300_000,
            300_000,
            0,
        ),
    ],
)
def test_windowing_table_functions(
    session: Session, text: str, kind: str, size: int, step: int, offset: int
) -> None:
    for source in (f"TABLE({text})", text):
        node = plan(session, f"SELECT * FROM {source}").inputs[0]
        assert isinstance(node, WindowTable)
        assert (node.window.kind, node.window.size_ms) == (WindowKind[kind], size)
        assert (node.window.step_ms, node.window.offset_ms) == (step, offset)
        assert node.partition_by == ((0,) if kind == "SESSION" else ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TUMBLE(TABLE auctions, DESCRIPTOR(price), INTERVAL '1' SECOND)", "not a time attribute"),
        ("TUMBLE(TABLE bids, DESCRIPTOR(ts))", "TUMBLE needs SIZE"),
        (
            "TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' MONTH)",
            "interval of days, hours, minutes or seconds",
        ),
        (
            "CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '10' SECOND)",
            "multiple of its step",
        ),
        (
            "TUMBLES(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' SECOND)",
            "table function 'TUMBLES' does not exist",
        ),
        (
            "TUMBLE(TABLE bids PARTITION BY price, DESCRIPTOR(ts), INTERVAL '1' SECOND)",
            "is only valid with SESSION",
        ),
    ],
)
def test_windows_that_make_no_sense_are_refused(session: Session, text: str, message: str) -> None:
    assert message in refused(session, f"SELECT * FROM TABLE({text})").message


def test_over_calls_are_columns_behind_their_input(session: Session) -> None:
    node = plan(
        session,
        "SELECT price, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS n FROM bids "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) <= 3",
    )
    assert kinds(node)[:3] == ["Project", "Filter", "Over"]
    over = node.inputs[0].inputs[0]
    assert isinstance(over, Over)
    assert len(over.calls) == 1
    assert not over.calls[0].order_by[0].ascending
    assert not over.calls[0].order_by[0].nulls_first


def test_qualify_takes_the_names_of_select_where_they_are_not_columns(session: Session) -> None:
    call = "ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC)"
    named = plan(session, f"SELECT price, {call} AS n FROM bids QUALIFY n <= 3 AND price > 1")
    written = plan(session, f"SELECT price, {call} AS n FROM bids QUALIFY {call} <= 3 AND price > 1")
    assert named == written
    # There is a column price: that is what is meant.
    both = plan(session, f"SELECT price + 1 AS price, {call} AS n FROM bids QUALIFY n = 1 AND price > 1")
    assert (
        both.inputs[0]
        == plan(session, f"SELECT 1, {call} AS n FROM bids QUALIFY n = 1 AND price > 1").inputs[0]
    )
    assert "'m'" in refused(session, f"SELECT {call} AS n FROM bids QUALIFY m = 1").message


@pytest.mark.parametrize(
    ("quantified", "plain"), [("= ANY", "IN"), ("= SOME", "IN"), ("<> ALL", "NOT IN")], ids=lambda text: text
)
def test_comparisons_with_any_and_all_rows_are_in_and_not_in(
    session: Session, quantified: str, plain: str
) -> None:
    for choices in ("(SELECT auction FROM bids WHERE auction IS NOT NULL)", "(1, 2)"):
        one, other = (
            plan(session, f"SELECT price FROM bids WHERE price {word} {choices}")
            for word in (quantified, plain)
        )
        assert one == other


@pytest.mark.parametrize("unit", ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"])
def test_units_of_intervals_have_a_plural(session: Session, unit: str) -> None:
    one, many = (
        plan(session, f"SELECT ts + INTERVAL '3' {word} AS x FROM bids") for word in (unit, f"{unit}S")
    )
    assert one == many


def test_frames_and_named_windows(session: Session) -> None:
    node = plan(
        session,
        "SELECT SUM(price) OVER w, COUNT(*) OVER (w ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) FROM bids "
        "WINDOW w AS (PARTITION BY auction ORDER BY ts)",
    ).inputs[0]
    assert isinstance(node, Over)
    assert [str(call.frame) for call in node.calls] == [
        "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "ROWS BETWEEN 9 PRECEDING AND CURRENT ROW",
    ]


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        ("ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING", "ROWS BETWEEN 0 PRECEDING AND 1 FOLLOWING"),
        ("ts ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING", "ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING"),
        (
            "ts ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
            "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
        ),
        ("price RANGE BETWEEN 2 PRECEDING AND 3 FOLLOWING", "RANGE BETWEEN 2 PRECEDING AND 3 FOLLOWING"),
        (
            "ts RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND INTERVAL '2' SECOND FOLLOWING",
            "RANGE BETWEEN 1000 PRECEDING AND 2000 FOLLOWING",
        ),
    ],
)
def test_a_frame_may_end_after_the_current_row(session: Session, frame: str, shown: str) -> None:
    node = plan(session, f"SELECT SUM(price) OVER (ORDER BY {frame}) FROM bids").inputs[0]
    assert isinstance(node, Over)
    assert str(node.calls[0].frame) == shown


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("ts ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW", "a window frame must not end before it starts"),
        ("ts ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING", "a window frame must not end before it starts"),
        ("ts RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "RANGE over a time column needs an interval"),
        (
            "price RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND CURRENT ROW",
            "needs a constant that is not negative",
        ),
        (
            "ts, price RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
            "needs ORDER BY one column of numbers or times",
        ),
    ],
)
def test_a_frame_that_means_nothing_is_refused(session: Session, frame: str, message: str) -> None:
    assert message in refused(session, f"SELECT SUM(price) OVER (ORDER BY {frame}) FROM bids").message


# --- order, sets, values --------------------------------------------------------------------------


def test_order_by_takes_names_numbers_and_hidden_columns(session: Session) -> None:
    assert kinds(plan(session, "SELECT price AS p FROM bids ORDER BY p DESC, 1 LIMIT 3 OFFSET 2"))[:2] == [
        "Limit",
        "Sort",
    ]
    hidden = plan(session, "SELECT price FROM bids ORDER BY auction")
    assert isinstance(hidden, Project)
    assert isinstance(hidden.inputs[0], Sort)
    assert [one.name for one in hidden.schema] == ["price"]
    assert "column 3 not found" in refused(session, "SELECT price FROM bids ORDER BY 3").message


def test_fetch_is_limit(session: Session) -> None:
    node = plan(session, "SELECT price FROM bids OFFSET 2 ROWS FETCH NEXT 5 ROWS ONLY")
    assert isinstance(node, Limit)
    assert (node.offset, node.fetch) == (2, 5)


def test_set_operations_bring_both_sides_to_one_type(session: Session) -> None:
    assert session.schema("SELECT x FROM a UNION ALL SELECT price FROM bids") == ["x BIGINT"]
    three = plan(session, "SELECT x FROM a UNION ALL SELECT y FROM b UNION ALL SELECT k FROM a")
    assert isinstance(three, Union)
    assert len(three.branches) == 3
    nested = plan(session, "SELECT x FROM a UNION SELECT y FROM b INTERSECT SELECT k FROM a")
    assert isinstance(nested, SetOperation)
    assert isinstance(nested.right, SetOperation)
    assert (
        "UNION needs the same number of columns on both sides, got 1 and 2"
        in refused(session, "SELECT x FROM a UNION SELECT * FROM b").message
    )


def test_values_that_are_not_literals_are_computed_row_by_row(session: Session) -> None:
    node = plan(session, "VALUES ('a', 1), ('abc', 1 + 1)")
    assert isinstance(node, Project)
    assert isinstance(node.input, Values)
    assert node.input.rows == ((Literal(0, IntType(False)),), (Literal(1, IntType(False)),))
    assert [field.type.summary() for field in node.schema] == ["VARCHAR(3) NOT NULL", "INT NOT NULL"]


def test_values_have_the_common_type_of_their_rows(session: Session) -> None:
    assert isinstance(plan(session, "VALUES (1, 'a'), (2, 'b')"), Values)
    node = plan(session, "VALUES (1, 'a'), (2.5, NULL)")
    assert [one.type.summary() for one in node.schema] == ["DECIMAL(11, 1) NOT NULL", "CHAR(1)"]
    assert "incompatible types" in refused(session, "VALUES (1), ('a')").message


# --- hints, views, inserts ------------------------------------------------------------------------


def test_options_of_a_hint_are_those_of_the_table(session: Session) -> None:
    node = plan(session, "SELECT * FROM a /*+ OPTIONS('rows-per-second' = '7') */").inputs[0]
    assert isinstance(node, Scan)
    assert dict(node.table.options) == {"connector": "datagen", "rows-per-second": "7"}
    assert (
        "hint OPTION does not exist" in refused(session, "SELECT * FROM a /*+ OPTION('x' = '1') */").message
    )
    assert "no effect in streaming mode" in refused(session, "SELECT /*+ BROADCAST(a) */ * FROM a").message
    assert "not supported yet" in refused(session, "SELECT /*+ MULTI_JOIN(a, b) */ * FROM a, b").message


def test_a_view_means_the_same_in_every_database(session: Session) -> None:
    session.run("CREATE VIEW v (n) AS SELECT x FROM a; CREATE DATABASE other; USE other")
    assert session.schema("SELECT * FROM default_database.v") == ["n INT"]


def test_an_insert_is_of_the_types_of_its_sink(session: Session) -> None:
    error = refused(session, "INSERT INTO a SELECT id, price FROM auctions")
    assert "column 'k' is INT, but the query returns BIGINT" in error.message
    assert "has 2 columns (k, x)" in refused(session, "INSERT INTO a SELECT 1").message
    session.run("INSERT INTO a (x) SELECT 1; INSERT INTO a VALUES (1, NULL)")
    assert "gets no value" in refused(session, "INSERT INTO auctions (price) VALUES (1)").message


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("SELECT 1 +", 1, 11, "expected an expression, found the end of the statement"),
        ("SELECT a\nFROM\n  WHERE x", 3, 3, "reserved word"),
        ("CREATE TABLE t (a INT) WITH (a = 'b')", 1, 30, "an option's key in single quotes"),
        ("SELECT x BETWEEN 1 2", 1, 20, "expected AND"),
        ("SELECT a != b FROM t", 1, 10, "has no '!='"),
        ("SELECT 'abc", 1, 8, "this string is not closed"),
        ("SELECT * FROM t LIMIT 1, 2", 1, 24, "LIMIT takes one number"),
        ("DELETE FROM t", 1, 1, "the statement DELETE is not supported yet"),
        ("SELECT * FROM t MATCH_RECOGNIZE (x)", 1, 34, "expected PATTERN"),
        ("CREATE TABLE t (a DECIMAL(39, 2))", 1, 19, "between 1 and 38"),
        ("SELECT JSON_OBJECT('a', 1)", 1, 23, "expected VALUE"),
    ],
)
def test_what_cannot_be_read_is_shown_with_its_place(text: str, line: int, column: int, message: str) -> None:
    error = refused(Session(), text, SqlParseError)
    assert (error.line, error.column) == (line, column)
    assert message in error.message


def test_the_watermark_is_bound_over_the_tables_columns(session: Session) -> None:
    node = plan(session, "SELECT * FROM bids").inputs[0]
    assert isinstance(node, Watermark)
    assert node.time_index == 2


def test_state_ttl_goes_to_the_sides_of_joins_and_to_groups(session: Session) -> None:
    join = plan(
        session, "SELECT /*+ STATE_TTL('a' = '1 d', 'c' = '12h') */ * FROM a JOIN b AS c ON a.k = c.k"
    ).inputs[0]
    assert isinstance(join, Join)
    assert (join.left_ttl_ms, join.right_ttl_ms) == (86_400_000, 43_200_000)
    group = plan(session, "SELECT /*+ STATE_TTL('a' = '10 s') */ k, COUNT(*) FROM a GROUP BY k").inputs[0]
    assert isinstance(group, Aggregate)
    assert group.ttl_ms == 10_000
    assert "names 'z'" in refused(session, "SELECT /*+ STATE_TTL('z' = '1 d') */ * FROM a, b").message
    assert (
        "is not a duration" in refused(session, "SELECT /*+ STATE_TTL('a' = 'soon') */ * FROM a, b").message
    )


def test_columns_of_the_query_around_stand_in_where_only(session: Session) -> None:
    text = "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b JOIN auctions ON auctions.price = a.x)"
    assert "a correlated column outside" in refused(session, text).message
    join = plan(session, "SELECT k FROM a WHERE x IN (SELECT y + a.k FROM b)").inputs[0]
    assert isinstance(join, Join)
    assert references(join.condition) == {0, 1, 3}


def test_a_query_in_place_of_a_value_is_joined_to_every_row(session: Session) -> None:
    text = "SELECT x, (SELECT MAX(y) FROM b) AS top FROM a WHERE k > (SELECT AVG(k) FROM b) AND x IN (SELECT y FROM b)"
    assert session.schema(text) == ["x INT", "top INT"]
    node = plan(session, text)
    assert kinds(node) == ["Project", "Join", "Filter", "Join", "Join", "Scan"]
    assert isinstance(node, Project)
    assert [references(one) for one in node.expressions] == [{1}, {3}]
    assert (
        "must return one column, not 2"
        in refused(session, "SELECT (SELECT MAX(y), MIN(y) FROM b) FROM a").message
    )


def test_one_column_of_two_goes_through_further_joins(session: Session) -> None:
    session.run("CREATE TABLE c (k INT NOT NULL, z INT) WITH ('connector' = 'datagen')")
    chain = plan(session, "SELECT k FROM a JOIN b USING (k) RIGHT JOIN c USING (k)")
    assert isinstance(chain, Project)
    assert chain.expressions == (InputRef(4, chain.schema[0].type),)
    assert session.schema("SELECT k FROM a JOIN b USING (k) RIGHT JOIN c USING (k)") == ["k INT NOT NULL"]
