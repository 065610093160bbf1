"""Errors of wrong queries say where, why, and what to do, in both modes."""

from __future__ import annotations

import pytest

from headrace.errors import SqlError
from headrace.table import EnvironmentSettings, TableEnvironment

_BOUNDED = "WITH ('connector' = 'datagen', 'number-of-rows' = '1')"
_TABLES = (
    "CREATE TABLE e (id BIGINT, k STRING, v BIGINT, ts TIMESTAMP(3), pt AS PROCTIME(), "
    f"WATERMARK FOR ts AS ts) {_BOUNDED}",
    "CREATE TABLE endless (id BIGINT) WITH ('connector' = 'datagen')",
    "CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:/none', "
    "'table-name' = 'd')",
    "CREATE TABLE files (k STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/none', 'format' = 'json')",
)
_PATTERN = "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY ts MEASURES {} AS x PATTERN (A B) DEFINE A AS {}, B AS B.v < 1)"
_ANY, _STREAMING, _BATCH = ("streaming", "batch"), ("streaming",), ("batch",)

#: The modes, the statement with the place between »«, the reason, and the remedy.
_CASES = [
    (
        _STREAMING,
        "INSERT INTO files »SELECT k, COUNT(*) FROM e GROUP BY k«",
        "'default_catalog.default_database.files' does not support update changes, which GroupAggregate produces",
        "declare PRIMARY KEY",
    ),
    (
        _ANY,
        "SELECT * FROM e JOIN d FOR SYSTEM_TIME AS OF e.pt ON »e.id > d.id«",
        "a lookup join needs an equality with a column of the table that is looked up",
        "ON left_column = column_of_the_table",
    ),
    (
        _STREAMING,
        "SELECT »SUM(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)« FROM e",
        "SUM() OVER with a bounded frame must be ordered by a time attribute, but 'id' is BIGINT",
        "ORDER BY a column with WATERMARK FOR",
    ),
    (
        _ANY,
        "SELECT window_start FROM TUMBLE(TABLE e, DESCRIPTOR(»v«), INTERVAL '1' MINUTE)",
        "column 'v' is not a time attribute",
        "declare a WATERMARK on it",
    ),
    (_ANY, "SELECT »ABS(k)« FROM e", "ABS takes a NUMBER as number, not STRING", "usage: ABS(number NUMBER)"),
    (_ANY, "SELECT »SUM(k)« FROM e", "SUM takes a number, not STRING", "CAST it to a number"),
    (_ANY, "SELECT »k + 1« FROM e", "+ takes numbers, not STRING and INT", "CAST strings to a number first"),
    (_ANY, "SELECT »ts + 1« FROM e", "+ takes numbers, not TIMESTAMP(3) and INT", "ts + INTERVAL '1' DAY"),
    (
        _ANY,
        _PATTERN.format("»Z«.id", "A.v > 1"),
        "pattern variable 'Z' is not part of PATTERN",
        "available: A, B",
    ),
    (
        _ANY,
        _PATTERN.format("A.id", "»Z«.v > 1"),
        "pattern variable 'Z' is not part of PATTERN",
        "available: A, B",
    ),
    (_STREAMING, "SELECT * FROM e ORDER BY »v«", "ORDER BY without LIMIT is not possible", "add a LIMIT"),
    (
        _BATCH,
        "SELECT * FROM »endless«",
        "is unbounded, but the query runs in BATCH mode",
        "use STREAMING mode",
    ),
    (
        _ANY,
        "SELECT »TIMESTAMP '2020-01-01 00:00:00.123456789'«",
        "a TIMESTAMP with more than 6 digits of a second is not supported yet",
        "leave out the digits after the 6th",
    ),
    (_ANY, "SELECT id FROM e WHERE »k«", "WHERE needs a BOOLEAN condition, not STRING", "compare it"),
    (
        _ANY,
        "SELECT * FROM TUMBLE(TABLE e, DESCRIPTOR(ts), »INTERVAL '0' MINUTE«)",
        "SIZE must be longer than 0",
        "INTERVAL '10' SECOND",
    ),
    (
        _ANY,
        "SELECT »TIMESTAMP '2021-02-29 00:00:00'«",
        "not a valid TIMESTAMP: day is out of range for month",
        "takes the last day of the month",
    ),
    (_ANY, "SELECT »DATE '2021-02-29'«", "not a valid DATE", "a date of the calendar"),
    (_ANY, "SELECT »k LIKE 5« FROM e", "LIKE takes strings, not INT", "CAST it to STRING"),
    (
        _ANY,
        "SELECT »JSON_VALUE(k, k)« FROM e",
        "JSON_VALUE takes a constant path",
        "write it as a string, such as '$.name'",
    ),
    (
        _ANY,
        "SELECT id FROM e WHERE »v IN (SELECT id, n FROM e, files)«",
        "IN compares 1 value with a query of 2 columns",
        "as many columns",
    ),
    (
        _ANY,
        "SELECT (»SELECT id, v FROM e«) FROM e",
        "a scalar subquery must return one column, not 2",
        "select one of them",
    ),
    (_ANY, "SELECT »'«abc FROM e", "this string is not closed", "close it with '"),
    (_ANY, "SELECT »CAST(ARRAY[v] AS INT)« FROM e", "cannot CAST ARRAY<BIGINT> to INT", "a[1] of an array"),
    (
        _ANY,
        "SELECT »CAST(PARSE_JSON(k) AS INT)« FROM e",
        "cannot CAST VARIANT to INT",
        "CAST(JSON_VALUE(JSON_STRING(v), '$') AS INT)",
    ),
    (
        _ANY,
        "SELECT »JSON_OBJECT(k VALUE v)« FROM e",
        "a key of JSON_OBJECT must be a string literal",
        "MAP[...] in JSON_STRING",
    ),
]


@pytest.fixture(scope="module")
def environments() -> dict[str, TableEnvironment]:
    made = {
        "streaming": TableEnvironment.create(EnvironmentSettings.in_streaming_mode()),
        "batch": TableEnvironment.create(EnvironmentSettings.in_batch_mode()),
    }
    for t_env in made.values():
        for statement in _TABLES:
            t_env.execute_sql(statement)
    return made


@pytest.mark.parametrize(
    ("mode", "marked", "reason", "remedy"),
    [(mode, *case) for modes, *case in _CASES for mode in modes],
)
def test_an_error_names_the_place_the_reason_and_the_remedy(environments, mode, marked, reason, remedy):
    before, _, rest = marked.partition("»")
    place, _, behind = rest.partition("«")
    with pytest.raises(SqlError) as caught:
        environments[mode].explain_sql(before + place + behind)
    message, statement, underline = str(caught.value).splitlines()[:3]
    assert reason in message
    assert statement.endswith(before + place + behind)
    start = statement.index(before + place) + len(before)
    assert underline.rstrip() == " " * start + "^" * len(place)
    assert remedy in caught.value.hint
