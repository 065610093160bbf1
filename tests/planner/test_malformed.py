"""Malformed statements: each one ends in a SqlError that shows a place, or is a statement after all."""

from __future__ import annotations

import random

import pytest

from headrace.errors import SqlError
from headrace.planner import bind, parse_statements
from headrace.planner.dialect.tokens import TokenKind, tokenize
from tests.planner import nexmark
from tests.planner.environment import Session, load
from tests.planner.test_types_against_flink import TABLE, TYPES

CORPUS = [
    *(f"INSERT INTO nexmark_{name} {text}" for name, text in nexmark.QUERIES.items()),
    *(f"SELECT {text} AS x FROM t" for text in TYPES if not text.startswith("SELECT")),
    *(text for text in TYPES if text.startswith("SELECT")),
    "CREATE TABLE u (a INT NOT NULL, b AS a + 1, c BIGINT METADATA FROM 'x' VIRTUAL, ts TIMESTAMP(3), "
    "WATERMARK FOR ts AS ts - INTERVAL '4' SECOND, PRIMARY KEY (a) NOT ENFORCED) COMMENT 'c' PARTITIONED BY (a) "
    "WITH ('connector' = 'datagen', 'rows-per-second' = '5')",
    "CREATE TEMPORARY TABLE IF NOT EXISTS u WITH ('a' = 'b') LIKE t (INCLUDING ALL EXCLUDING OPTIONS)",
    "CREATE VIEW w (x, y) COMMENT 'v' AS SELECT i, s FROM t",
    "CREATE TEMPORARY SYSTEM FUNCTION f AS 'm.f' LANGUAGE PYTHON",
    "ALTER TABLE t ADD (z INT FIRST, q ROW<a INT, b MAP<STRING, ARRAY<INT>>> AFTER i)",
    "ALTER TABLE t SET ('a' = 'b')",
    "DROP TABLE IF EXISTS u",
    "SHOW TABLES FROM default_database NOT LIKE 't%'",
    "DESCRIBE t",
    "SET 'parallelism.default' = '2'",
    "EXPLAIN CHANGELOG_MODE, JSON_EXECUTION_PLAN SELECT * FROM t /*+ OPTIONS('a' = 'b') */",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO nexmark_q2 SELECT auction, price FROM bid; END",
    "SELECT * FROM TABLE(CUMULATE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(`dateTime`), STEP => INTERVAL '1' MINUTE, "
    "SIZE => INTERVAL '5' MINUTE))",
    "SELECT i FROM t WHERE EXISTS (SELECT 1 FROM bid WHERE bid.auction = t.b) AND s NOT IN (SELECT url FROM bid)",
    "SELECT i, COUNT(*) FROM t GROUP BY GROUPING SETS ((i), (), CUBE (i, s)) HAVING COUNT(*) > 1 "
    "ORDER BY 2 DESC LIMIT 5",
    "WITH a AS (SELECT 1 AS x), b (y) AS (SELECT x FROM a) SELECT * FROM a NATURAL JOIN b UNION ALL VALUES (1, 2)",
    "SELECT bidder, window_start, COUNT(DISTINCT auction) FILTER (WHERE price > 5), LISTAGG(url, ';') FROM "
    "SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND) "
    "GROUP BY bidder, window_start, window_end",
    "SELECT auction, HOP_START(`dateTime`, INTERVAL '2' SECOND, INTERVAL '10' SECOND), AVG(price) FROM bid "
    "GROUP BY auction, HOP(`dateTime`, INTERVAL '2' SECOND, INTERVAL '10' SECOND)",
    "SELECT auction, window_end, GROUPING(bidder), SUM(price) FROM HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' "
    "SECOND, INTERVAL '10' SECOND, INTERVAL '1' SECOND) GROUP BY window_start, window_end, ROLLUP (auction, bidder)",
    "SELECT * FROM bid QUALIFY ROW_NUMBER() OVER (PARTITION BY auction ORDER BY `dateTime` DESC NULLS LAST) <= 3",
    "SELECT SUM(price) OVER w, LAG(price, 2) OVER w FROM bid WINDOW w AS (PARTITION BY auction ORDER BY `dateTime` "
    "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW)",
    "SELECT t.i, u.e, u.n FROM t CROSS JOIN UNNEST(ARRAY[1, 2, 3]) WITH ORDINALITY AS u (e, n)",
    "SELECT /*+ STATE_TTL('l' = '1d', 'r' = '2 h') */ l.i, r.url FROM t l FULL OUTER JOIN bid r ON l.b = r.auction "
    "AND r.price BETWEEN 1 AND 9",
    "SELECT i FROM t INTERSECT ALL SELECT i FROM t EXCEPT (SELECT 1 ORDER BY 1 OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY)",
    "SELECT b.auction FROM bid AS b LEFT JOIN t FOR SYSTEM_TIME AS OF b.`dateTime` AS r ON b.auction = r.b",
    "SELECT CAST(ROW(1, 'a') AS ROW<x BIGINT, y STRING>).x, MAP['k', 1]['k'], TRY_CAST(s AS DECIMAL(9, 2)) FROM t",
    "SELECT EXTRACT(DAY FROM `dateTime`), TIMESTAMPADD(HOUR, 1, `dateTime`), TRIM(BOTH 'x' FROM url), "
    "OVERLAY(url PLACING 'a' FROM 2 FOR 1), JSON_VALUE(extra, '$.a') FROM bid",
    "INSERT OVERWRITE nexmark_q2 (price) SELECT price FROM bid",
    "CREATE TABLE c WITH ('connector' = 'print') AS SELECT auction FROM bid",
    "CREATE CATALOG c WITH ('type' = 'generic_in_memory')",
    "CREATE DATABASE IF NOT EXISTS d COMMENT 'c' WITH ('a' = 'b')",
    "ALTER DATABASE default_database SET ('a' = 'b')",
    "ALTER VIEW w RENAME TO x",
    "ALTER TABLE t MODIFY (WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, PRIMARY KEY (i) NOT ENFORCED)",
    "ALTER TABLE t DROP (i, s)",
    "SHOW CREATE TABLE t",
    "SHOW COLUMNS FROM t LIKE 'a%'",
    "SHOW USER FUNCTIONS",
    "SHOW PARTITIONS t PARTITION (i = 1, s = 'a')",
    "DESCRIBE FUNCTION EXTENDED upper",
    "STOP JOB 'abc' WITH SAVEPOINT WITH DRAIN",
    "USE MODULES core, other",
    "CREATE OR REPLACE TABLE c WITH ('connector' = 'print') AS SELECT auction FROM bid",
    "RESET 'parallelism.default'",
    "USE CATALOG default_catalog",
]

#: What is put in place of a token, or between two.
NOISE = [
    *(
        "(",
        ")",
        ",",
        ".",
        "*",
        "'",
        "`",
        "[",
        "]",
        "<",
        ">",
        "=",
        ";",
        "/*+",
        "*/",
        "/*",
        "--",
        "$",
        "\\",
        "é",
        "\x00",
    ),
    *(
        "SELECT",
        "FROM",
        "AS",
        "NULL",
        "OVER",
        "GROUP BY",
        "NOT",
        "INTERVAL",
        "CASE",
        "END",
        "IN",
        "ROW",
        "TABLE",
    ),
    *(
        "0",
        "1e999",
        "99999999999999999999",
        "'x'",
        "``",
        "x",
        "DECIMAL(99, 1)",
        "TIMESTAMP '2020-99-01'",
        "::",
        "!=",
    ),
]


def mutated(text: str, chance: random.Random) -> str:
    """The text with tokens lost, doubled, swapped, replaced or cut."""
    tokens = [token for token in tokenize(text) if token.kind is not TokenKind.END]
    pieces = [text[token.span.start : token.span.end] for token in tokens]
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(pieces))
        match chance.randrange(7):
            case 0 if len(pieces) > 1:
                del pieces[place]
            case 1:
                pieces.insert(place, pieces[place])
            case 2:
                other = chance.randrange(len(pieces))
                pieces[place], pieces[other] = pieces[other], pieces[place]
            case 3:
                pieces[place] = chance.choice(NOISE)
            case 4:
                pieces.insert(place, chance.choice(NOISE))
            case 5:
                word = pieces[place]
                cut = chance.randrange(len(word) + 1)
                pieces[place] = word[:cut] + word[cut + 1 :]
            case _:
                pieces = pieces[: place + 1]
    return " ".join(pieces)


def fresh() -> Session:
    session = Session(nexmark.DDL + nexmark.BEFORE + "".join(map(nexmark.sink, nexmark.QUERIES)))
    session.run(TABLE)
    return session


def check(text: str, session: Session) -> bool:
    """Read and bind the text; say whether it was refused. Anything but a SqlError with a place is a failure.

    What would hang is stopped by the time limit of tests.
    """
    error = None
    try:
        for statement in parse_statements(text):
            bind(statement, session.manager, load)
    except SqlError as refusal:
        error = refusal
    assert error is None or (error.line is not None and error.column is not None), text
    assert error is None or str(error)
    return error is not None


@pytest.mark.parametrize("seed", range(10))
def test_a_malformed_statement_ends_in_an_error_with_a_place(seed: int) -> None:
    session, chance = fresh(), random.Random(seed)
    refused = sum(check(mutated(chance.choice(CORPUS), chance), session) for _ in range(1000))
    assert refused > 600


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000,
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "NOT " * 5000 + "TRUE",
        "SELECT " + "- " * 5000 + "1",
        "SELECT " + "CASE WHEN " * 500,
        "SELECT * FROM " + "(SELECT * FROM " * 500 + "t",
        "CREATE TABLE x (a " + "ARRAY<" * 5000,
        "SELECT " + "a." * 20000 + "b",
        "SELECT '" + "x" * 1_000_000,
        "/*" * 5000,
        "",
        ";" * 10000,
        "SELECT " + ", ".join(["1"] * 5000),
        "SELECT " + " + ".join(["1"] * 300),
        "SELECT " + " + ".join(["1"] * 200),
        "SELECT i FROM t WHERE " + " OR ".join(["i = 1"] * 2000),
        "SELECT 1" + " UNION ALL SELECT 1" * 300,
    ],
    ids=range(17),
)
def test_long_and_deep_texts_neither_hang_nor_overflow(text: str) -> None:
    check(text, fresh())


def test_errors_of_the_catalog_are_sql_errors_too() -> None:
    session = fresh()
    for text in ("DROP TABLE nowhere", "USE CATALOG nowhere", "CREATE DATABASE a.b.c"):
        with pytest.raises(SqlError):
            session.run(text)
