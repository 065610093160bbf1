"""MATCH_RECOGNIZE queries whose rows are compared with Flink's. Flink's own Python reads this module, too.

Every table has the same columns. A row satisfies the variables whose letters are in `c`, so that rows can be ambiguous.

    id BIGINT NOT NULL, k STRING, c STRING, v BIGINT, f DOUBLE, sec BIGINT, ts (event time, the watermark is 2 s after)

`clocked` has `pt`, the clock's time, instead of an event time that matters.
"""

from __future__ import annotations

import random
from typing import Any

Row = tuple[int, str | None, str, int | None, float | None, int]

_PRICES = [12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19]


def _lettered(texts: str, key: str = "a") -> list[Row]:
    """Rows one second after the other; numbers go up and down."""
    return [
        (at, key, "" if text == "." else text, (at * 7) % 5, at / 4, 100 + at)
        for at, text in enumerate(texts.split())
    ]


def _drawn(seed: int, count: int, letters: str = "abcd", keys: str = "xy") -> list[Row]:
    choose = random.Random(seed)
    return [
        (
            at,
            choose.choice(keys),
            "".join(each for each in letters if choose.random() < 0.5),
            choose.choice([0, 1, 2, 3, None]),
            choose.choice([0.5, 1.25, -3.0, None]),
            100 + at,
        )
        for at in range(count)
    ]


TABLES: dict[str, list[Row]] = {
    "ticker": [(at, "ACME", "", price, at + 1.5, 100 + at) for at, price in enumerate(_PRICES)],
    "plain": _lettered("a b b c a c . a b b b c d b a b c"),
    "mixed": _lettered("a ab b abc bc c a ab abc ac b c abc abc . ab c bc"),
    "loops": _lettered("a a a b a a b b a a a a c a b b c"),
    "keys": sorted(
        [*_lettered("a b a b c a b", "x"), *_lettered("b a a b b c a", "y"), *_lettered("a b . a b c", "z")],
        key=lambda row: (row[5], row[1] or ""),
    ),
    "nokey": [
        (at, None if at % 2 else "x", text, at, None, 100 + at)
        for at, text in enumerate("a a b b a a c b".split())
    ],
    # Three rows of one time, and they come in another order than their numbers.
    "ties": [
        (at, "x", text, number, None, second)
        for at, (text, number, second) in enumerate(
            [
                ("a", 3, 100),
                ("b", 1, 100),
                ("c", 2, 100),
                ("a", 2, 101),
                ("b", 9, 101),
                ("c", 1, 103),
                ("a", 0, 103),
            ]
        )
    ],
    # The watermark has passed rows 3 and 6; row 4 comes late, but not too late.
    "late": [
        (at, "x", text, at, None, second)
        for at, (text, second) in enumerate(
            [
                ("a", 100),
                ("b", 103),
                ("a", 106),
                ("c", 101),
                ("b", 105),
                ("b", 110),
                ("c", 104),
                ("c", 112),
                ("a", 113),
                ("b", 120),
            ]
        )
    ],
    # Steps of 1, 2, 3, ... seconds.
    "apart": [
        (at, "x", text, at, None, 100 + at * (at + 1) // 2)
        for at, text in enumerate("a b a b a b a b a a b".split())
    ],
    "nulls": [
        (at, "x", text, number, number and number / 2, 100 + at)
        for at, (text, number) in enumerate(
            [
                ("a", None),
                ("b", 1),
                ("b", None),
                ("b", 3),
                ("c", 2),
                ("a", 5),
                ("c", None),
                ("a", None),
                ("c", None),
            ]
        )
    ],
    "drawn1": _drawn(1, 40),
    "drawn2": _drawn(2, 40),
    "drawn3": _drawn(3, 60, "abc", "x"),
}

_LETTERS = {name.upper(): f"c LIKE '%{name}%'" for name in "abcd"}
_ALL = "PARTITION BY k ORDER BY ts"


def match(
    table: str,
    pattern: str,
    *,
    measures: str | None = None,
    skip: str = "PAST LAST ROW",
    define: dict[str, str] | str | None = None,
    order: str = _ALL,
    within: str = "",
    rows: str = "ONE ROW PER MATCH",
) -> str:
    """Write a query. Without measures they say which rows each variable has."""
    names = [each for each in "ABCD" if each in pattern.replace("PERMUTE", "")]
    if measures is None:
        each = (f"COUNT({n}.id) AS n{n}, FIRST({n}.id) AS f{n}, LAST({n}.id) AS l{n}" for n in names)
        measures = ", ".join(each)
    if define is None:
        define = {name: _LETTERS[name] for name in names}
    if isinstance(define, dict):
        define = ", ".join(f"{name} AS {text}" for name, text in define.items())
    skip = f"AFTER MATCH SKIP {skip}" if skip else ""
    within = f"WITHIN INTERVAL {within}" if within else ""
    defined = f"DEFINE {define}" if define else ""
    return (
        f"SELECT * FROM {table} MATCH_RECOGNIZE ({order} MEASURES {measures} {rows} {skip} "
        f"PATTERN ({pattern}) {within} {defined})"
    )


_APART = {"A": _LETTERS["A"], "B": _LETTERS["B"], "D": _LETTERS["A"]}
_DOWN_UP = {
    "DOWN": "(LAST(DOWN.v, 1) IS NULL AND DOWN.v < S.v) OR DOWN.v < LAST(DOWN.v, 1)",
    "UP": "UP.v > LAST(DOWN.v, 1)",
}

QUERIES: dict[str, str] = {
    # --- the pattern of the documentation: a price that falls and rises
    "falls and rises": match(
        "ticker",
        "S DOWN+ UP",
        measures="S.ts AS s, LAST(DOWN.ts) AS bottom, LAST(UP.ts) AS e, S.v AS sv, LAST(DOWN.v) AS dv, UP.v AS uv",
        skip="TO LAST UP",
        define=_DOWN_UP,
    ),
    "average below 20": match(
        "ticker",
        "A+ B",
        measures="FIRST(A.id) AS s, LAST(A.id) AS e, AVG(A.v) AS a, SUM(A.v) AS su, B.v AS b",
        define={"A": "AVG(A.v) < 20"},
    ),
    "sum of two variables": match(
        "ticker",
        "A+ B",
        measures="COUNT(A.id) AS n, SUM(A.v * A.f) AS s, MIN(A.v) AS mi, MAX(A.f) AS ma, B.id AS b",
        define={"A": "SUM(A.v) < 60", "B": "SUM(A.v) + B.v >= 60"},
    ),
    # --- quantifiers
    **{
        f"quantifier {quantifier} on {table}": match(table, f"A B{quantifier} C")
        for quantifier in (
            "*",
            "+",
            "?",
            "{2}",
            "{2,}",
            "{1,2}",
            "{0,2}",
            "{,2}",
            "*?",
            "+?",
            "{2,}?",
            "{1,2}?",
            "{,2}?",
            "{0,1}",
            "{1}",
            "{2,3}",
        )
        for table in ("plain", "mixed")
    },
    **{
        f"end {quantifier}": match("loops", f"A B{quantifier}")
        for quantifier in ("+?", "*?", "{2}", "{1,2}?", "{2,}?")
    },
    "greedy loops": match("loops", "A+ B+ C"),
    "greedy then reluctant": match("loops", "A+ B+? C"),
    "reluctant then greedy": match("loops", "A+? B+ C"),
    "loop first": match("mixed", "A* B C"),
    "optional first": match("mixed", "A? B C"),
    "two optional": match("drawn1", "A B? C? D"),
    "one variable": match("plain", "B"),
    "one variable twice": match("plain", "B{2}"),
    "anything in between": match(
        "plain",
        "A X* C",
        define={"A": _LETTERS["A"], "C": _LETTERS["C"]},
        measures="A.id AS a, COUNT(X.id) AS n, C.id AS c",
    ),
    "anything in between, short": match(
        "plain",
        "A X*? C",
        define={"A": _LETTERS["A"], "C": _LETTERS["C"]},
        measures="A.id AS a, COUNT(X.id) AS n, C.id AS c",
    ),
    "exactly then more": match("loops", "A{2} B{1,} C"),
    "greedy up to 3": match("mixed", "A{2,3} B"),
    # --- after match skip
    **{
        f"skip {skip or 'by default'} on {table}": match(table, pattern, skip=skip)
        for skip in ("PAST LAST ROW", "TO NEXT ROW", "TO FIRST B", "TO LAST B", "TO B", "")
        for table, pattern in (("plain", "A B+ C"), ("loops", "A+ B+? "), ("mixed", "A B+ C"))
    },
    "skip to last of the first loop": match("loops", "A+ B", skip="TO LAST A"),
    "skip to the first row": match("loops", "A+ B", skip="TO FIRST A"),
    "skip to a variable without rows": match("mixed", "A B* C", skip="TO FIRST B"),
    "skip to next row, short": match("loops", "A+? B", skip="TO NEXT ROW"),
    "skip to next row, long": match("loops", "A+ B", skip="TO NEXT ROW"),
    # --- within
    **{
        f"within {seconds} s": match("apart", "A B+ D", within=f"'{seconds}' SECOND", define=_APART)
        for seconds in (3, 5, 6, 7, 9, 12)
    },
    "within a minute": match("apart", "A B D", within="'1' MINUTE", define=_APART),
    "within, greedy": match("loops", "A+ B", within="'3' SECOND"),
    "within, next row": match("loops", "A+ B", within="'3' SECOND", skip="TO NEXT ROW"),
    "within, an earlier start has not ended": match(
        "mixed", "A B* C", within="'4' SECOND", skip="TO NEXT ROW"
    ),
    # --- partitions and order
    "several keys": match("keys", "A B"),
    "no partition": match("nokey", "A B", order="ORDER BY ts"),
    "a key that is NULL": match("nokey", "A+ B"),
    "two keys": match("keys", "A B", order="PARTITION BY k, v ORDER BY ts"),
    "ties as they come": match("ties", "A B C"),
    "ties by a number": match("ties", "C+ A+ B", order=f"{_ALL}, v"),
    "ties by a number, descending": match("ties", "A C B", order=f"{_ALL} ASC, v DESC"),
    "ties by two": match("ties", "A+ B", order=f"{_ALL}, c, v DESC"),
    "late rows": match("late", "A B"),
    "late rows, three": match("late", "A B+ C"),
    # --- definitions
    "offsets of LAST": match(
        "drawn3",
        "A+ B",
        measures="LAST(A.id) AS l, LAST(A.id, 1) AS l1, LAST(A.id, 2) AS l2, B.id AS b",
        define={"A": _LETTERS["A"], "B": "LAST(A.v, 1) < B.v OR LAST(A.v, 1) IS NULL"},
    ),
    "offsets of FIRST": match(
        "drawn3",
        "A+ B",
        measures="FIRST(A.id) AS f, FIRST(A.id, 1) AS f1, FIRST(A.id, 2) AS f2, B.id AS b",
        define={"A": _LETTERS["A"], "B": "FIRST(A.v, 1) < B.v OR FIRST(A.v, 1) IS NULL"},
    ),
    "rising": match(
        "drawn1",
        "A{2,} B",
        measures="FIRST(A.id) AS f, LAST(A.id) AS l, B.id AS b",
        define={"A": "LAST(A.v, 1) IS NULL OR A.v > LAST(A.v, 1)", "B": "B.v <= LAST(A.v)"},
    ),
    "falling from the first": match(
        "drawn2",
        "A+ B",
        measures="FIRST(A.id) AS f, COUNT(A.id) AS n, B.id AS b",
        define={"A": "A.v <= FIRST(A.v)", "B": "B.v > FIRST(A.v)"},
    ),
    "expression in LAST": match(
        "drawn1",
        "A B+ C",
        measures="A.id AS a, LAST(B.v * 2 + B.id, 1) AS x, C.id AS c",
        define={"B": "B.v * 2 + B.id >= 0", "C": "C.v + 1 > LAST(B.v + 1)"},
    ),
    "columns without a variable": match(
        "drawn1",
        "A B",
        measures="id AS i, v AS v2, A.id AS a, LAST(id, 1) AS before, FIRST(id) AS f",
        define={"A": "v > 1", "B": "v <= 1"},
    ),
    "earlier variables": match(
        "drawn1",
        "A B C",
        measures="A.id AS a, B.id AS b, C.id AS c",
        define={"B": "B.v > A.v", "C": "C.v < B.v AND C.v + A.v >= 1"},
    ),
    "later variables": match(
        "drawn1", "A B", measures="A.id AS a, B.id AS b", define={"A": "B.v IS NULL", "B": "A.v IS NOT NULL"}
    ),
    "functions of strings": match(
        "drawn1",
        "A B",
        measures="A.id AS a, UPPER(A.c || B.c) AS t, CHAR_LENGTH(B.c) AS l",
        define={"A": "UPPER(A.c) LIKE '%A%'", "B": "CHAR_LENGTH(B.c) > CHAR_LENGTH(A.c)"},
    ),
    "CASE and COALESCE": match(
        "drawn1",
        "A B+ C",
        measures="A.id AS a, COUNT(B.id) AS n, COALESCE(SUM(B.v), -1) AS s",
        define={
            "B": "CASE WHEN A.v IS NULL THEN B.v IS NOT NULL WHEN A.v > 1 THEN B.v > 1 ELSE B.v <= 1 END",
            "C": "COALESCE(LAST(B.v, 1), 0) <= COALESCE(C.v, 0)",
        },
    ),
    "BETWEEN and IN": match(
        "drawn1",
        "A B",
        measures="A.id AS a, B.id AS b",
        define={"B": "B.v BETWEEN A.v - 1 AND A.v + 1 AND B.v NOT IN (A.v, 7)"},
    ),
    "NULL conditions": match(
        "nulls",
        "A B+ C",
        measures="A.id AS a, COUNT(B.v) AS n, SUM(B.v) AS s, C.id AS c",
        define={"A": _LETTERS["A"], "B": "B.v > 0 OR B.v IS NULL", "C": "C.v > 0"},
    ),
    "time between": match(
        "apart",
        "A B",
        measures="A.id AS a, B.id AS b, TIMESTAMPDIFF(SECOND, A.ts, B.ts) AS d",
        define={"B": "TIMESTAMPDIFF(SECOND, A.ts, B.ts) <= 4"},
    ),
    "time plus an interval": match(
        "apart", "A B", measures="A.id AS a, B.id AS b", define={"B": "B.ts > A.ts + INTERVAL '4' SECOND"}
    ),
    "numbers of different types": match(
        "drawn1",
        "A B",
        measures="A.v + B.f AS s, A.v / 2 AS h, B.f / 2 AS g",
        define={"B": "B.f > A.v OR B.f * 2 = A.v - 5"},
    ),
    "modulo and ABS": match(
        "drawn1",
        "A B",
        measures="A.id AS a, B.id AS b",
        define={"B": "ABS(B.v - A.v) = 1 AND MOD(A.v + B.v, 2) = 1"},
    ),
    "casts": match(
        "drawn1",
        "A B",
        measures="A.id AS a, CAST(A.v AS STRING) || '-' || CAST(B.v AS STRING) AS t",
        define={"B": "CAST(A.v AS STRING) <> CAST(B.v AS STRING)"},
    ),
    "NOT and XOR": match(
        "drawn1",
        "A B",
        measures="A.id AS a, B.id AS b",
        define={"A": "NOT (A.v > 1)", "B": "NOT (B.v > A.v AND B.f > 0)"},
    ),
    # --- aggregates
    "all aggregates": match(
        "drawn3",
        "A B+ C",
        measures="COUNT(B.v) AS c, SUM(B.v) AS s, AVG(B.v) AS a, MIN(B.v) AS mi, MAX(B.v) AS ma, "
        "SUM(B.f) AS sf, AVG(B.f) AS af, FIRST_VALUE(B.v) AS fv, LAST_VALUE(B.v) AS lv, STDDEV_POP(B.v) AS d",
    ),
    "aggregates of nothing": match(
        "mixed",
        "A B* C",
        measures="A.id AS a, COUNT(B.v) AS c, SUM(B.v) AS s, AVG(B.f) AS af, MIN(B.v) AS mi",
    ),
    "aggregates of all rows": match("mixed", "A B* C", measures="COUNT(id) AS n, SUM(v) AS s, MAX(id) AS l"),
    "COUNT(*)": match("mixed", "A B* C", measures="COUNT(*) AS n"),
    "COUNT(B.*)": match("mixed", "A B* C", measures="COUNT(B.*) AS n"),
    "aggregates in a definition": match(
        "drawn3",
        "A+ B",
        measures="FIRST(A.id) AS f, COUNT(A.id) AS n, MAX(A.v) AS m, B.id AS b",
        define={"A": "COUNT(A.id) <= 3 AND SUM(COALESCE(A.v, 0)) < 6", "B": "B.v >= MAX(A.v)"},
    ),
    "an aggregate of its own variable": match(
        "drawn3",
        "A B+ C",
        measures="A.id AS a, SUM(B.v) AS s, C.id AS c",
        define={"B": "B.v <= MIN(B.v)", "C": "C.v > AVG(B.v)"},
    ),
    "LISTAGG": match("mixed", "A B* C", measures="LISTAGG(B.c) AS t"),
    "DISTINCT": match("mixed", "A B* C", measures="COUNT(DISTINCT B.c) AS t"),
    # --- measures
    "MATCH_ROWTIME": match("plain", "A B", measures="A.id AS a, MATCH_ROWTIME() AS t"),
    "MATCH_ROWTIME of a column": match("plain", "A B", measures="A.id AS a, MATCH_ROWTIME(ts) AS t"),
    "time attribute after the match": (
        "SELECT TUMBLE_START(t, INTERVAL '5' SECOND) AS s, SUM(n) AS n FROM ({}) "
        "GROUP BY TUMBLE(t, INTERVAL '5' SECOND)"
    ).format(match("plain", "A B+ C", measures="MATCH_ROWTIME() AS t, COUNT(B.id) AS n")),
    "FINAL": match("loops", "A+ B", measures="FINAL LAST(A.id) AS a, FINAL COUNT(A.id) AS n"),
    "RUNNING": match("loops", "A+ B", measures="RUNNING LAST(A.id) AS a"),
    "columns of a match": "SELECT k, a + 1 AS b FROM ({}) WHERE a > 3".format(
        match("plain", "A B", measures="A.id AS a")
    ),
    "an alias": "SELECT m.a, m.k FROM plain MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.id AS a "
    "ONE ROW PER MATCH PATTERN (A B) DEFINE A AS c LIKE '%a%', B AS c LIKE '%b%') AS m",
    "a query below": "SELECT * FROM (SELECT id + 1 AS id, k, c, ts FROM plain WHERE c <> '') MATCH_RECOGNIZE ("
    "PARTITION BY k ORDER BY ts MEASURES A.id AS a, B.id AS b PATTERN (A B) "
    "DEFINE A AS c LIKE '%c%', B AS c LIKE '%a%')",
    "no rows clause": match("plain", "A B", rows="", skip=""),
    "a join of matches": "SELECT a.a, b.b FROM ({}) AS a JOIN ({}) AS b ON a.a = b.b".format(
        match("plain", "A B", measures="A.id AS a"), match("plain", "A B+ C", measures="A.id AS b")
    ),
    "a measure that is NULL": match(
        "mixed", "A B? C", measures="A.id AS a, B.v AS b, LAST(B.v, 3) AS x, C.id AS c"
    ),
    "a constant measure": match("plain", "A B", measures="1 AS o, 'x' AS x, CAST(NULL AS INT) AS n"),
    # --- what Flink plans and ignores, or reads in its own way
    "anchor at the start": match("plain", "^ A B"),
    "anchor at the end": match("plain", "A B $"),
    "both anchors": match("loops", "^ A+ B $", skip="TO NEXT ROW"),
    "anchors and parentheses": match("plain", "^ (A B) $"),
    "SUBSET that nobody names": match("plain", "A B").replace("DEFINE", "SUBSET S = (A, B) DEFINE"),
    "a definition that is not in the pattern": match("plain", "A B", define={"A": "TRUE", "X": "X.v > 1"}),
    "PREV of a variable": match("plain", "A B", define={"B": "B.v > PREV(A.v, 1)"}),
    "LAST in SUM": match("plain", "A B", measures="SUM(LAST(A.v)) AS n"),
    "within 0 s": match("plain", "A B", within="'0' SECOND"),
    **{
        f"PREV {text} in {name}": match(
            table, "A+ B", define={"A": _LETTERS["A"], "B": _LETTERS["B"], name: condition}
        )
        for table in ("drawn1",)
        for name, condition, text in (
            ("B", "B.v > PREV(A.v, 1)", "of another variable"),
            ("B", "B.v >= PREV(A.v)", "of another variable, plain"),
            ("A", "A.v >= PREV(A.v, 1) OR PREV(A.v, 1) IS NULL", "of its own variable"),
            ("B", "B.v >= PREV(B.v, 1) OR PREV(B.v, 1) IS NULL", "of its own variable"),
            ("B", "B.v >= PREV(A.v, 2) OR PREV(A.v, 2) IS NULL", "two rows back"),
            ("B", "B.v >= PREV(A.v, 0)", "no row back"),
            ("B", "B.v >= PREV(v, 1) OR PREV(v, 1) IS NULL", "without a variable"),
            ("B", "B.v >= PREV(A.v + A.id, 1) OR PREV(A.v, 1) IS NULL", "of an expression"),
            ("B", "B.v >= PREV(LAST(A.v), 1) OR PREV(LAST(A.v), 1) IS NULL", "of LAST"),
            ("B", "B.v >= PREV(FIRST(A.v, 1), 1) OR PREV(FIRST(A.v, 1), 1) IS NULL", "of FIRST"),
            ("B", "B.v > NEXT(A.v, 1) OR NEXT(A.v, 1) IS NULL", "NEXT"),
            ("B", "LAST(A.v, 1) IS NULL OR SUM(LAST(A.v)) > 2", "aggregate of LAST"),
            ("B", "SUM(LAST(A.v, 1)) > 2", "aggregate of LAST with an offset"),
            ("B", "SUM(FIRST(A.v)) > 2", "aggregate of FIRST"),
        )
    },
    **{
        f"measure {measure}": match("drawn3", "A+ B", measures=f"FIRST(A.id) AS f, B.id AS b, {measure} AS m")
        for measure in (
            "PREV(A.id)",
            "PREV(A.id, 1)",
            "PREV(A.id, 3)",
            "PREV(B.id, 1)",
            "PREV(id, 1)",
            "NEXT(A.id)",
            "NEXT(A.id, 1)",
            "PREV(LAST(A.id, 1), 1)",
            "SUM(LAST(A.v))",
            "SUM(LAST(A.v, 1))",
            "SUM(FIRST(A.v))",
            "SUM(FIRST(A.v, 1))",
            "COUNT(LAST(A.v))",
            "MAX(LAST(A.v) + A.id)",
            "AVG(LAST(A.f))",
            "MIN(FIRST(A.id))",
            "SUM(LAST(v))",
            "SUM(LAST(B.v) + 1)",
            "SUM(FIRST(A.v) + LAST(A.v))",
            "SUM(PREV(A.v, 1))",
            "COUNT(FIRST(A.v, 1))",
            "LAST(PREV(A.id, 1))",
            "FIRST(A.id) + PREV(A.id, 1)",
        )
    },
    # --- the clock
    "by the clock": match("clocked", "A B+ C", order="PARTITION BY k ORDER BY pt"),
    "by the clock, an hour": match(
        "clocked", "A B+ C", order="PARTITION BY k ORDER BY pt", within="'1' HOUR"
    ),
}

#: What Flink refuses, or fails at.
REFUSED: dict[str, str] = {
    "group": match("plain", "(A B)+ C"),
    "group without a quantifier": match("plain", "(A B) C"),
    "alternation": match("plain", "A | B"),
    "PERMUTE": match("plain", "PERMUTE(A, B)"),
    "exclusion": match("plain", "A {- B -} C"),
    "ALL ROWS PER MATCH": match("plain", "A B", rows="ALL ROWS PER MATCH"),
    "PREV": match("plain", "A B", define={"B": "B.v > PREV(B.v)"}),
    "NEXT": match("plain", "A B", define={"B": "B.v > NEXT(B.v)"}),
    "DISTINCT": match("plain", "A B", measures="COUNT(DISTINCT B.v) AS n"),
    "greedy at the end": match("plain", "A B+"),
    "star at the end": match("plain", "A B*"),
    "greedy range at the end": match("plain", "A B{1,2}"),
    "optional at the end": match("mixed", "A B?"),
    "reluctant optional": match("plain", "A B?? C"),
    "only optional": match("plain", "A*? B*?"),
    "empty match": match("plain", "A*"),
    "a variable twice": match("plain", "A B A"),
    "unknown variable": match("plain", "A B", measures="X.id AS x"),
    "unknown variable in DEFINE": match("plain", "A B", define={"B": "X.v > 1"}),
    "skip to an unknown variable": match("plain", "A B", skip="TO FIRST X"),
    "defined twice": match("plain", "A B", define="A AS TRUE, A AS FALSE"),
    "unknown column": match("plain", "A B", measures="A.nothing AS n"),
    "no order": match("plain", "A B", order="PARTITION BY k"),
    "no time": match("plain", "A B", order="PARTITION BY k ORDER BY id"),
    "time descending": match("plain", "A B", order="PARTITION BY k ORDER BY ts DESC"),
    "time second": match("plain", "A B", order="PARTITION BY k ORDER BY id, ts"),
    "condition that is none": match("plain", "A B", define={"A": "A.v"}),
    "MATCH_NUMBER": match("plain", "A B", measures="MATCH_NUMBER() AS n"),
    "CLASSIFIER": match("plain", "A B", measures="CLASSIFIER() AS n"),
    "two variables in LAST": match("plain", "A B", measures="LAST(A.v + B.v) AS n"),
    "two variables in SUM": match("plain", "A B", measures="SUM(A.v + B.v) AS n"),
    "offset that is no constant": match("plain", "A B", measures="LAST(A.v, A.id) AS n"),
    "negative offset": match("plain", "A B", measures="LAST(A.v, -1) AS n"),
    "FIRST in LAST": match("plain", "A B", measures="LAST(FIRST(A.v)) AS n"),
    "SUM in LAST": match("plain", "A B", measures="LAST(SUM(A.v)) AS n"),
    "an anchor in the middle": match("plain", "A ^ B"),
    "an anchor at the wrong end": match("plain", "A B ^"),
    "an anchor in parentheses": match("plain", "(^ A B)"),
    "only anchors": match("plain", "^ $", measures="1 AS o", define={"A": "TRUE"}),
    "measure without a name": match("plain", "A B", measures="A.v"),
    "within months": match("plain", "A B", within="'1' MONTH"),
    "quantifier the wrong way": match("plain", "A{3,2} B"),
    "quantifier 0": match("plain", "A{0} B"),
    "updates below": "SELECT * FROM (SELECT k, MAX(ts) AS ts, COUNT(*) AS c FROM plain GROUP BY k) "
    "MATCH_RECOGNIZE (ORDER BY ts MEASURES A.c AS a PATTERN (A B) DEFINE A AS A.c > 1)",
    "no DEFINE": match("plain", "A B", define=""),
    "no MEASURES": "SELECT * FROM plain MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts PATTERN (A B) DEFINE A AS A.v > 1)",
    "partition by an expression": match("plain", "A B", order="PARTITION BY UPPER(k) ORDER BY ts"),
    "a query in DEFINE": match("plain", "A B", define={"A": "A.v IN (SELECT v FROM mixed)"}),
    "IN a list with a variable": match("plain", "A B", define={"B": "B.v IN (1, A.v)"}),
    "MATCH_ROWTIME outside": "SELECT MATCH_ROWTIME() FROM plain",
    "MATCH_PROCTIME of event time": match("plain", "A B", measures="MATCH_PROCTIME() AS t"),
    "unknown variable like one": match("plain", "DOWN UP", measures="DOWM.id AS x", define={"DOWN": "TRUE"}),
    "star of a variable": match("plain", "A B", measures="A.* AS x"),
    "no PATTERN": "SELECT * FROM plain MATCH_RECOGNIZE ("
    "PARTITION BY k ORDER BY ts MEASURES A.v AS v DEFINE A AS A.v > 1)",
}


#: Queries that are recorded in BATCH mode as well.
BATCH = (
    "falls and rises",
    "average below 20",
    "quantifier * on mixed",
    "quantifier +? on mixed",
    "greedy loops",
    "skip TO NEXT ROW on loops",
    "skip TO LAST B on mixed",
    "within 6 s",
    "several keys",
    "no partition",
    "ties by a number, descending",
    "late rows",
    "all aggregates",
    "aggregates of nothing",
    "MATCH_ROWTIME",
    "by the clock",
)


def random_queries(seed: int, count: int) -> dict[str, str]:
    """Draw patterns with all quantifiers and ways to continue, over rows that satisfy several variables."""
    choose = random.Random(seed)
    quantifiers = [
        "",
        "",
        "",
        "+",
        "*",
        "?",
        "{2}",
        "{2,}",
        "{1,2}",
        "{,2}",
        "+?",
        "*?",
        "{1,3}?",
        "{2,}?",
        "{2,3}",
    ]
    made: dict[str, str] = {}
    while len(made) < count:
        names = "ABCD"[: choose.randint(2, 4)]
        chosen = [choose.choice(quantifiers) for _ in names]
        if chosen[-1] in ("+", "*", "{2,}", "{1,2}", "{,2}", "{2,3}", "?"):
            chosen[-1] = choose.choice(["", "+?", "*?", "{2}", "{1,3}?"])
        if all(each in ("*", "?", "{,2}", "*?") for each in chosen):
            continue
        pattern = " ".join(map("".join, zip(names, chosen, strict=True)))
        needed = [n for n, q in zip(names, chosen, strict=True) if q not in ("*", "?", "{,2}", "*?")]
        after = [n for n in needed if n != names[0]]
        ways = [
            "PAST LAST ROW",
            "TO NEXT ROW",
            *(f"TO {way} {n}" for n in after for way in ("FIRST", "LAST")),
        ]
        within = choose.choice(["", "", "'5' SECOND", "'8' SECOND"])
        table = choose.choice(["drawn1", "drawn2", "drawn3", "mixed"])
        if table == "drawn3" and "D" in names:
            continue
        skip = choose.choice(ways)
        made[f"random {len(made)}: {table} {pattern} {skip} {within}".strip()] = match(
            table, pattern, skip=skip, within=within
        )
    return made


def all_queries() -> dict[str, str]:
    """Return every query that has rows to compare."""
    return {**QUERIES, **random_queries(0, 80)}


def columns() -> list[tuple[str, Any]]:
    """Return the physical columns, in SQL's types."""
    return [
        ("id", "BIGINT NOT NULL"),
        ("k", "STRING"),
        ("c", "STRING"),
        ("v", "BIGINT"),
        ("f", "DOUBLE"),
        ("sec", "BIGINT"),
    ]
