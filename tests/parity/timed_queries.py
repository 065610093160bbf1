"""Queries that follow time, compared with Flink row by row. Flink's own Python reads this module, too.

e, f     rows with an event time, of which the watermark is 5 s after    id, k, v, ts
w        versions of rows: a changelog, id is its key, the same            id, k, v, ts
t        a changelog with all kinds of rows                               id, k, v
clocked  rows with the clock's time                                       id, k, v, pt
"""

from __future__ import annotations

_FRAMES = {
    "2 rows": "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "3 seconds": "RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW",
    "all rows": "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "all until now": "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
}
_CALLS = ", ".join(
    f"{call} OVER w AS r{at}"
    for at, call in enumerate(
        [
            "COUNT(*)",
            "COUNT(v)",
            "SUM(v)",
            "AVG(v)",
            "MIN(v)",
            "MAX(v)",
            "FIRST_VALUE(v)",
            "LAST_VALUE(v)",
            "COUNT(DISTINCT v)",
            "SUM(DISTINCT v)",
        ]
    )
)


def _over(table: str, order: str, frame: str, calls: str = _CALLS, part: str = "PARTITION BY k ") -> str:
    return f"SELECT id, {calls} FROM {table} WINDOW w AS ({part}ORDER BY {order} {frame})"


_OVER = {f"over {name}": _over("e", "ts", frame) for name, frame in _FRAMES.items()}
_OVER |= {
    f"over {name} by the clock": _over("clocked", "pt", _FRAMES[name])
    for name in ("2 rows", "all rows", "all until now")
}
_OVER |= {
    "over all keys": _over("e", "ts", _FRAMES["2 rows"], part=""),
    "numbers": "SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM e",
    "ranks": "SELECT id, RANK() OVER w AS r, DENSE_RANK() OVER w AS d FROM e WINDOW w AS (PARTITION BY k ORDER BY ts)",
    "lag": "SELECT id, LAG(v) OVER w AS a, LAG(v, 2) OVER w AS b FROM e WINDOW w AS (PARTITION BY k ORDER BY ts)",
    "lag by the clock": "SELECT id, LAG(v, 2) OVER (PARTITION BY k ORDER BY pt) AS b FROM clocked",
    "lists": "SELECT id, LISTAGG(CAST(v AS STRING), ';') OVER (PARTITION BY k ORDER BY ts) AS a FROM e",
    "short lists": _over(
        "e",
        "ts",
        _FRAMES["2 rows"],
        "LISTAGG(CAST(v AS STRING), ';') OVER w AS a, LISTAGG(DISTINCT k) OVER w AS b",
    ),
    "over sums": (
        "SELECT id, SUM(s) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM "
        "(SELECT id, k, ts, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS s FROM e)"
    ),
    "windows of sums": (
        "SELECT window_start, k, SUM(s) AS s FROM TABLE(TUMBLE(DATA => TABLE sums, TIMECOL => DESCRIPTOR(ts), "
        "SIZE => INTERVAL '4' SECOND)) GROUP BY window_start, window_end, k"
    ),
}
_SORTED = {
    f"{name} of t by {order}": f"SELECT id, {calls} FROM t WINDOW w AS (PARTITION BY k ORDER BY {order})"
    for order in ("v", "id")
    # Flink 2.3 fails over retracted extremes and different values here: it cannot compare their accumulators.
    for name, calls in {"sums": "COUNT(*) OVER w AS n, SUM(v) OVER w AS s"}.items()
}
_SORTED |= {
    "numbers of t": "SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM t",
    "rows of t": _over("t", "id", _FRAMES["all rows"], "COUNT(*) OVER w AS n, SUM(v) OVER w AS s"),
    "sums of groups": (
        "SELECT k, n, SUM(n) OVER (ORDER BY n) AS s FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)"
    ),
}

_PAIR = "SELECT l.id AS a, r.id AS b FROM e l {} JOIN f r ON {}"
_NEAR = "l.ts BETWEEN r.ts - INTERVAL '4' SECOND AND r.ts + INTERVAL '2' SECOND"
_INTERVAL = {
    f"{kind.lower()} interval join{name}": _PAIR.format(kind, condition)
    for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    for name, condition in {
        "": f"l.k = r.k AND {_NEAR}",
        " with a condition": f"l.k = r.k AND l.v < r.v AND {_NEAR}",
        " of later rows": "l.k = r.k AND l.ts > r.ts AND l.ts <= r.ts + INTERVAL '3' SECOND",
    }.items()
}
_INTERVAL |= {
    "interval join without a key": _PAIR.format(
        "INNER", "l.ts >= r.ts AND l.ts < r.ts + INTERVAL '2' SECOND"
    ),
    "full interval join without a key": _PAIR.format("FULL", "l.ts = r.ts"),
    "interval join by the clock": (
        "SELECT l.id AS a, r.id AS b FROM clocked l JOIN clocked r ON l.k = r.k AND l.v < r.v AND "
        "l.pt BETWEEN r.pt - INTERVAL '1' HOUR AND r.pt + INTERVAL '1' HOUR"
    ),
    "windows of pairs": (
        "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(DATA => TABLE pairs, TIMECOL => DESCRIPTOR(ts), "
        "SIZE => INTERVAL '4' SECOND)) GROUP BY window_start, window_end"
    ),
    "windows of padded rows": (
        "SELECT window_start, COUNT(*) AS n, COUNT(b) AS m FROM TABLE(TUMBLE(DATA => TABLE padded, "
        "TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '4' SECOND)) GROUP BY window_start, window_end"
    ),
}
_VERSIONS = {
    f"{kind.lower()} temporal join{name}": (
        f"SELECT l.id AS a, r.k AS b, r.v AS c FROM e l {kind} JOIN {table} FOR SYSTEM_TIME AS OF l.ts AS r "
        f"ON {condition}"
    )
    for kind in ("INNER", "LEFT")
    for name, (table, condition) in {
        "": ("w", "l.v = r.id"),
        " with a condition": ("w", "l.v = r.id AND l.k <> r.k"),
        " of a deduplication": ("latest", "l.k = r.k"),
    }.items()
}

#: What queries read besides tables.
VIEWS = {
    "sums": "SELECT k, ts, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS s FROM e",
    "pairs": f"SELECT l.ts FROM e l JOIN f r ON l.k = r.k AND {_NEAR}",
    "padded": f"SELECT l.ts, r.id AS b FROM e l LEFT JOIN f r ON l.k = r.k AND {_NEAR}",
    "latest": (
        "SELECT id, k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM f) "
        "WHERE n = 1"
    ),
}
QUERIES = {**_OVER, **_SORTED, **_INTERVAL, **_VERSIONS}
