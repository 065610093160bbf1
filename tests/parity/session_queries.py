"""Queries over SESSION windows, watermarks and functions of ours with OVER; Flink's own Python reads this module, too.

Tables are those of ``timed_queries``.
"""

from __future__ import annotations

_E = "TABLE(SESSION(TABLE e PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND))"
_F = "TABLE(SESSION(TABLE f PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND))"
_ALL = "TABLE(SESSION(TABLE {}, DESCRIPTOR(ts), INTERVAL '1' SECOND))"
_SAME = "l.window_start = r.window_start AND l.window_end = r.window_end"
_NUMBERED = "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY {}) AS n FROM {}"
_SUMS = "SELECT k, window_start, window_end, SUM(v) AS s FROM {} GROUP BY k, window_start, window_end"

_SESSIONS = {
    "rows of sessions": f"SELECT id, k, v, window_start, window_end, window_time FROM {_E}",
    "rows of sessions of all": f"SELECT id, window_start, window_end FROM {_ALL.format('e')}",
    "first of sessions": f"SELECT id, k, n, window_end FROM ({_NUMBERED.format('id DESC', _E)}) WHERE n <= 2",
    "second of sessions": f"SELECT id, k FROM ({_NUMBERED.format('v, id', _E)}) WHERE n BETWEEN 2 AND 3",
    "last of sessions": f"SELECT id, k, window_end FROM ({_NUMBERED.format('ts DESC', _E)}) WHERE n = 1",
    **{
        f"{kind.lower()} join of sessions": (
            f"SELECT l.id AS a, r.id AS b FROM {_ALL.format('e')} l {kind} JOIN {_ALL.format('e')} r "
            f"ON l.v = r.v AND l.id < r.id AND {_SAME}"
        )
        for kind in ("INNER", "LEFT", "FULL")
    },
    "join of sessions of keys": f"SELECT l.id AS a, r.id AS b FROM {_E} l JOIN {_E} r ON l.k = r.k AND {_SAME}",
    "full join of sessions of both": (
        f"SELECT l.id AS a, r.id AS b FROM {_E} l FULL JOIN {_F} r ON l.k = r.k AND {_SAME}"
    ),
    "semi join of sessions": (
        f"SELECT l.id FROM {_E} l WHERE EXISTS (SELECT 1 FROM {_E} r WHERE l.k = r.k AND r.v = 1 AND {_SAME})"
    ),
    "sums of sessions": f"SELECT k, window_end, s FROM ({_SUMS.format(_E)})",
    "sessions by another key": (
        f"SELECT v, window_start, window_end, COUNT(*) AS n FROM {_E} GROUP BY v, window_start, window_end"
    ),
    "sessions without a key": (
        f"SELECT window_start, window_end, COUNT(*) AS n FROM {_E} GROUP BY window_start, window_end"
    ),
    "sessions with a condition": _SUMS.format(f"{_E} WHERE v > 1"),
    "best sessions": (
        "SELECT k, s, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC, k) "
        f"AS n FROM ({_SUMS.format(_E)})) WHERE n <= 1"
    ),
    "join of sums of sessions": (
        f"SELECT l.k, l.s AS a, r.s AS b FROM ({_SUMS.format(_E)}) l JOIN ({_SUMS.format(_F)}) r "
        f"ON l.k = r.k AND {_SAME}"
    ),
    "join of sums of sessions and their rows": (
        f"SELECT l.k, l.s, r.id FROM ({_SUMS.format(_E)}) l JOIN {_E} r ON l.k = r.k AND {_SAME}"
    ),
    "windows of sessions": (
        "SELECT window_start, SUM(s) AS s FROM TABLE(TUMBLE(TABLE session_sums, DESCRIPTOR(wt), "
        "INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    ),
    "sessions of sessions": (
        "SELECT k, window_start, window_end, SUM(s) AS s FROM TABLE(SESSION(TABLE session_sums PARTITION BY k, "
        "DESCRIPTOR(wt), INTERVAL '4' SECOND)) GROUP BY k, window_start, window_end"
    ),
}
_WATERMARKS = {
    "watermarks": "SELECT id, CURRENT_WATERMARK(ts) AS w FROM e",
    "rows in time": "SELECT id FROM e WHERE CURRENT_WATERMARK(ts) IS NULL OR ts > CURRENT_WATERMARK(ts)",
    "late rows": "SELECT id, CURRENT_WATERMARK(ts) AS w FROM e WHERE ts <= CURRENT_WATERMARK(ts)",
}
_FUNCTIONS = {
    "means of 2 rows": (
        "SELECT id, series_mean(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS m "
        "FROM e"
    ),
    "means of 3 seconds": (
        "SELECT id, series_mean(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '3' SECOND PRECEDING "
        "AND CURRENT ROW) AS m FROM e"
    ),
    "means by the clock": (
        "SELECT id, series_mean(v) OVER (PARTITION BY k ORDER BY pt ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS m "
        "FROM clocked"
    ),
}

#: What queries read besides tables.
VIEWS = {
    "session_sums": (
        f"SELECT k, SUM(v) AS s, window_time AS wt FROM {_E} GROUP BY k, window_start, window_end, window_time"
    ),
}
QUERIES = {**_SESSIONS, **_WATERMARKS, **_FUNCTIONS}


def series_mean(values):  # type: ignore[no-untyped-def]  # read by two pythons: pandas is theirs
    """The mean of a column; -1 if it has no values."""
    return -1.0 if values.isnull().all() else float(values.mean())
