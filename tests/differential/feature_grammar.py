"""Random queries over what other random queries leave out: sessions where any window may stand, aggregate functions of
ours with OVER, process table functions, VARIANT and intervals. As `grammar.py`.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.differential.grammar import (
    CONDITIONS,
    Draw,
    either,
    in_flink,
    in_sessions,
    in_spark,
    one_of,
    relations,
)

_SAME = "l.window_start = r.window_start AND l.window_end = r.window_end"


@st.composite
def _session_rows(draw: Draw) -> tuple[str, str, int]:
    """Return a table with its sessions, the keys that these are of, and their gap."""
    keys, gap = draw(one_of("k", "")), draw(st.sampled_from([3, 4]))
    return in_sessions(draw(one_of("e", "f", "n")), keys, gap), keys, gap


@st.composite
def rows_of_sessions(draw: Draw) -> str:
    rows, _, _ = draw(_session_rows())
    return f"SELECT id, k, v, window_start AS ws, window_end AS we FROM {rows} s WHERE {draw(CONDITIONS)}"


@st.composite
def best_of_sessions(draw: Draw) -> str:
    rows, keys, _ = draw(_session_rows())
    part = draw(one_of(f", {keys}" if keys else "", ", v"))
    order, limit = draw(
        st.sampled_from([("v DESC, id", "n <= 2"), ("id", "n = 1"), ("id", "n BETWEEN 2 AND 3")])
    )
    number = f"ROW_NUMBER() OVER (PARTITION BY window_start, window_end{part} ORDER BY {order})"
    return (
        f"SELECT id, k, v, window_start AS ws, n FROM (SELECT *, {number} AS n FROM {rows} s) x WHERE {limit}"
    )


@st.composite
def joins_of_sessions(draw: Draw) -> str:
    keys, gap = draw(one_of("k", "")), draw(st.sampled_from([3, 4]))
    left, right = (
        f"(SELECT * FROM {in_sessions(table, keys, gap)} s)" for table in ("e", draw(one_of("e", "f")))
    )
    kind = draw(one_of("JOIN", "LEFT JOIN", "FULL JOIN", "EXISTS", "NOT EXISTS"))
    also = draw(one_of(" AND l.k = r.k", " AND l.k = r.k AND l.v < r.v"))
    if kind.endswith("EXISTS"):
        return f"SELECT l.id, l.k FROM {left} l WHERE {kind} (SELECT 1 FROM {right} r WHERE {_SAME}{also})"
    return f"SELECT l.id AS a, r.id AS b, l.window_end AS we FROM {left} l {kind} {right} r ON {_SAME}{also}"


@st.composite
def sums_of_sessions(draw: Draw) -> str:
    """The best or all sums of sessions, by their own keys or by others."""
    rows, keys, _ = draw(_session_rows())
    by = draw(one_of("k, ", "v, ", ""))
    if by == f"{keys}, ":
        by = ""
    grouped = f"SELECT {by}window_start, window_end, COUNT(*) AS n, SUM(v) AS s FROM {rows} x"
    sums = f"{grouped} GROUP BY {by}window_start, window_end"
    if by != "k, " or draw(st.booleans()):
        return f"SELECT n, s, window_end AS we FROM ({sums}) y"
    number = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC, k)"
    return f"SELECT k, n, s FROM (SELECT *, {number} AS place FROM ({sums}) y) z WHERE place <= 1"


SESSIONS = [rows_of_sessions, best_of_sessions, joins_of_sessions, sums_of_sessions]


# -- what only Spark runs --------------------------------------------------------------------------------------

_FRAMES = ("RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW", "RANGE UNBOUNDED PRECEDING")


@st.composite
def over_functions_of_ours(draw: Draw) -> str:
    """Aggregate functions in Python, plain and of pandas, over windows of rows."""
    part, frame = draw(one_of("PARTITION BY k", "PARTITION BY v", "")), draw(one_of(*_FRAMES))
    window = f"({part} ORDER BY ts {frame})"
    flink, spark = draw(
        st.sampled_from(
            [
                ("total(CAST(v AS BIGINT))", "COALESCE(SUM(CAST(v AS BIGINT)) {0}, 0)"),
                (
                    "span(CAST(v AS BIGINT))",
                    "COALESCE(MAX(CAST(v AS BIGINT)) {0} - MIN(CAST(v AS BIGINT)) {0}, -1)",
                ),
            ]
        )
    )
    call = either(f"{flink} OVER {window}", spark.format(f"OVER {window}"))
    return f"SELECT id, {call} AS s FROM {draw(one_of('e', 'f'))}"


@st.composite
def calls_of_process_functions(draw: Draw) -> str:
    """A function with state gives each row the number of the rows that its key has had."""
    table = draw(one_of("e", "f"))
    uid = f"u{draw(st.integers(0, 10**9))}"  # which calls of a job must not share
    flink = f"SELECT k, n FROM numbered(input => TABLE {table} PARTITION BY k, uid => '{uid}')"
    spark = f"SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM {table}"
    counted = "SELECT n, COUNT(*) AS m FROM ({}) x GROUP BY n"
    if draw(st.booleans()):
        flink, spark = counted.format(flink), counted.format(spark)
    return either(flink, spark)


_WHOLE = "CAST(v AS BIGINT)"
_DOCUMENT = (
    "PARSE_JSON(CONCAT('{\"k\": ', COALESCE(CONCAT('\"', k, '\"'), 'null'), "
    f"', \"list\": [', COALESCE(CAST({_WHOLE} AS STRING), 'null'), ', ', CAST(id AS STRING), ']}}'))"
)


def _both(flink: str, spark: str) -> str:
    """Return a text in two ways, of texts that may have been written in two ways."""
    return either(in_flink(flink), in_spark(spark))


@st.composite
def variants(draw: Draw) -> str:
    """Documents that are made, taken apart, grouped by and joined."""
    rows = draw(relations())
    number, letter = "CAST(NULLIF(JSON_STRING(d['list'][1]), 'null') AS BIGINT)", "JSON_STRING(d['k'])"
    quoted = "COALESCE(concat('\"', k, '\"'), 'null')"
    documents = f"(SELECT id, {_DOCUMENT} AS d FROM {rows} x)"
    parts, grouped = draw(st.integers(0, 2)), draw(one_of("d['k']", "d['list'][1]"))
    if parts == 0:
        flink = f"SELECT id, {number} AS n, {letter} AS k FROM {documents} y"
        return _both(flink, f"SELECT id, {_WHOLE} AS n, {quoted} AS k FROM {rows} x")
    if parts == 1:
        inner = f"SELECT {grouped} AS p FROM {documents} y"
        flink = f"SELECT JSON_STRING(p) AS p, COUNT(*) AS n FROM ({inner}) z GROUP BY p"
        by = quoted if "k" in grouped else f"COALESCE(CAST({_WHOLE} AS STRING), 'null')"
        return _both(flink, f"SELECT {by} AS p, COUNT(*) AS n FROM {rows} x GROUP BY {by}")
    flink = f"SELECT {letter} AS k, SUM({number}) AS s FROM {documents} y GROUP BY {letter}"
    return _both(flink, f"SELECT {quoted} AS k, SUM({_WHOLE}) AS s FROM {rows} x GROUP BY {quoted}")


@st.composite
def intervals(draw: Draw) -> str:
    """Intervals that are added to times, compared, grouped by and aggregated."""
    rows = draw(relations())
    start = "TIMESTAMP '2024-01-01 00:00:00'"
    flink, spark = f"{_WHOLE} * INTERVAL '1' SECOND", f"make_dt_interval(0, 0, 0, {_WHOLE})"
    kind = draw(st.integers(0, 3))

    def query(template: str) -> str:
        texts = [
            template.format(f"(SELECT id, k, {one} AS i FROM {rows} x)", f"CAST({start} AS {timestamp})")
            for one, timestamp in ((flink, "TIMESTAMP(3)"), (spark, "TIMESTAMP_NTZ"))
        ]
        return _both(*texts)

    if kind == 0:
        return query("SELECT id, {1} + i AS a, {1} - i AS b FROM {0} y WHERE i > INTERVAL '1' SECOND")
    if kind == 1:
        return query("SELECT {1} + i AS i, COUNT(*) AS n FROM {0} y GROUP BY i")
    if kind == 2:
        return query(
            "SELECT k, {1} + MAX(i) AS h, {1} + MIN(i) AS l, COUNT(DISTINCT i) AS d FROM {0} y GROUP BY k"
        )
    return query("SELECT l.id AS a, r.id AS b FROM {0} l JOIN {0} r ON l.i = r.i")


ON_SPARK = [over_functions_of_ours, calls_of_process_functions, variants, intervals]
