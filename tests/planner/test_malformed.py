"""Malformed statements: each one ends in a SqlError that shows a place, or is a statement after all."""

from __future__ import annotations

import random
import time

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
    session = Session(nexmark.DDL + nexmark.VIEW_Q12 + "".join(map(nexmark.sink, nexmark.QUERIES)))
    session.run(TABLE)
    return session


def check(text: str, session: Session) -> bool:
    """Read and bind the text; say whether it was refused. Anything but a SqlError with a place is a failure."""
    started, error = time.process_time(), None
    try:
        for statement in parse_statements(text):
            bind(statement, session.manager, load)
    except SqlError as refusal:
        error = refusal
    # Generous for a slow machine: an endless loop is what this finds.
    assert time.process_time() - started < 5, text
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
