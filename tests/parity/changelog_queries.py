"""Queries whose changes are compared with Flink's, row by row. Flink's own Python reads this module, too.

t, u     changelogs with all kinds of rows       id, k, v
p        an upsert changelog, id is its key      id, k, v
e        rows with an event time                 id, k, v, ts
clocked  rows with the clock's time              id, k, v, pt
"""

from __future__ import annotations


def _numbered(table: str, order: str, condition: str, items: str = "id, k, v", part: str = "k") -> str:
    partition = f"PARTITION BY {part} " if part else ""
    number = f"ROW_NUMBER() OVER ({partition}ORDER BY {order}) AS n"
    return f"SELECT {items} FROM (SELECT *, {number} FROM {table}) WHERE {condition}"


_PAIR = "SELECT l.id AS a, l.k AS b, r.id AS c, r.v AS d FROM"
_EXISTS = "SELECT id, k, v FROM t l WHERE {}EXISTS (SELECT 1 FROM u r WHERE r.k = l.k{})"

_JOINS = {
    f"{kind.lower()} join{name}": f"{_PAIR} t l {kind} JOIN u r ON {condition}"
    for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    for name, condition in {
        "": "l.k = r.k",
        " with a condition": "l.k = r.k AND l.v < r.v",
        " of unique rows": "l.id = r.id",
        " that NULLs meet in": "l.k IS NOT DISTINCT FROM r.k",
    }.items()
}
_HALF_JOINS = {
    "semi join": _EXISTS.format("", ""),
    "semi join with a condition": _EXISTS.format("", " AND r.v > l.v"),
    "semi join by IN": "SELECT id, k, v FROM t WHERE v IN (SELECT v FROM u)",
    "anti join": _EXISTS.format("NOT ", ""),
    "anti join with a condition": _EXISTS.format("NOT ", " AND r.v > l.v"),
    "anti join by NOT IN": "SELECT id, k, v FROM t WHERE id NOT IN (SELECT v FROM u WHERE v IS NOT NULL)",
}
_UPSERTED = {
    "left join of an upsert table": f"{_PAIR} t l LEFT JOIN p r ON l.id = r.id",
    "inner join of an upsert table": f"{_PAIR} p l JOIN t r ON l.k = r.k",
    "an upsert table": "SELECT id, k, v FROM p",
    "a part of an upsert table": "SELECT id, v FROM p WHERE v > 1",
    "groups of an upsert table": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM p GROUP BY k",
}
_AGGREGATES = "k, COUNT(*) AS n, SUM(v) AS s, MIN(v) AS lo, MAX(v) AS hi, AVG(v) AS m, COUNT(DISTINCT v) AS d"
_GROUPS = {
    f"{name} of {table}": query.format(table)
    for table in ("t", "e")
    for name, query in {
        "groups": f"SELECT {_AGGREGATES} FROM {{}} GROUP BY k",
        "groups with a filter": "SELECT k, SUM(v) FILTER (WHERE id > 2) AS s FROM {} GROUP BY k",
        "groups with HAVING": "SELECT k, COUNT(*) AS n FROM {} GROUP BY k HAVING COUNT(*) > 1",
        "one group": "SELECT COUNT(*) AS n, MAX(v) AS hi FROM {}",
        "counts": "SELECT k, COUNT(v) AS n FROM {} GROUP BY k",
        "largest": "SELECT k, MAX(v) AS hi FROM {} GROUP BY k",
        "distinct rows": "SELECT DISTINCT k, v FROM {}",
        "distinct keys": "SELECT DISTINCT k FROM {}",
        "grouping sets": "SELECT k, v, COUNT(*) AS n FROM {} GROUP BY GROUPING SETS ((k), (v))",
        "groups of groups": (
            "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM {} GROUP BY k) GROUP BY n"
        ),
    }.items()
}
_TOPS = {
    f"{name} of {table}": _numbered(table, *query)
    for table in ("t", "e")
    for name, query in {
        "first row": ("v, id", "n = 1"),
        "best row": ("v DESC, id", "n = 1"),
        "top 2": ("v DESC, id", "n <= 2"),
        "top 2 numbered": ("v DESC, id", "n <= 2", "id, k, v, n"),
        "top 3 of equals": ("v", "n <= 3"),
        "top 3 of equals numbered": ("v", "n <= 3", "id, k, v, n"),
        "second row": ("v, id", "n = 2"),
        "second and third numbered": ("id", "n > 1 AND n <= 3", "id, k, v, n"),
        "top 2 of all": ("v, id", "n <= 2", "id, k, v", ""),
    }.items()
}
_TOPS |= {
    "top 2 of groups": _numbered(
        "(SELECT k, SUM(v) AS v FROM t GROUP BY k)", "v DESC, k", "n <= 2", "k, v", ""
    ),
    "top 2 of groups numbered": _numbered(
        "(SELECT k, SUM(v) AS v FROM t GROUP BY k)", "v DESC, k", "n <= 2", "k, v, n", ""
    ),
    "top 2 of counts": _numbered(
        "(SELECT k, COUNT(*) AS v FROM e GROUP BY k)", "v DESC, k", "n <= 2", "k, v, n", ""
    ),
}
_DEDUPLICATIONS = {
    "first by the clock": _numbered("clocked", "pt", "n = 1"),
    "last by the clock": _numbered("clocked", "pt DESC", "n = 1"),
    "last by event time": _numbered("e", "ts DESC", "n = 1"),
}
_SET_OPERATIONS = {
    kind.lower(): f"SELECT k, v FROM t {kind} SELECT k, v FROM u"
    for kind in ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
}
_OTHERS = {
    "limit of t": "SELECT id, k, v FROM t ORDER BY v, id LIMIT 2",
    "limit and offset of t": "SELECT id, k, v FROM t ORDER BY v, id LIMIT 2 OFFSET 1",
    "limit of e": "SELECT id, k, v FROM e ORDER BY v DESC, id LIMIT 3",
    "filter": "SELECT id, k, v FROM t WHERE v > 1",
    "projection": "SELECT k, v + 1 AS w FROM t",
    "join of groups": (
        "SELECT l.k AS a, l.n AS b, r.s AS c FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) l "
        "JOIN (SELECT k, SUM(v) AS s FROM u GROUP BY k) r ON l.k = r.k"
    ),
    "left join of groups": (
        "SELECT l.id AS a, l.k AS b, r.s AS c FROM t l "
        "LEFT JOIN (SELECT k, SUM(v) AS s FROM u GROUP BY k) r ON l.k = r.k"
    ),
    "groups of a left join": (
        "SELECT l.k AS a, COUNT(*) AS n, COUNT(r.id) AS m FROM t l LEFT JOIN u r ON l.k = r.k GROUP BY l.k"
    ),
    "a value of all rows": "SELECT id, (SELECT MAX(v) FROM u) AS m FROM t",
    "three tables": "SELECT l.id AS a, r.id AS b, s.id AS c FROM t l JOIN u r ON l.k = r.k LEFT JOIN e s ON s.k = r.k",
}

QUERIES = {
    **_JOINS,
    **_HALF_JOINS,
    **_UPSERTED,
    **_GROUPS,
    **_TOPS,
    **_DEDUPLICATIONS,
    **_SET_OPERATIONS,
    **_OTHERS,
}
