"""Random queries that follow time: OVER, joins of rows that are near each other, patterns. As `grammar.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.differential.grammar import Draw, either, one_of

#: As Flink writes calls, and as Spark does; the window is left out.
_CALLS = (
    ("COUNT(*) OVER ({})", "COUNT(*) OVER ({})"),
    ("SUM(v) OVER ({})", "SUM(v) OVER ({})"),
    ("COUNT(v) OVER ({})", "COUNT(v) OVER ({})"),
    ("MIN(v) OVER ({})", "MIN(v) OVER ({})"),
    ("MAX(v) OVER ({})", "MAX(v) OVER ({})"),
    ("MAX(k) OVER ({})", "MAX(k) OVER ({})"),
    ("AVG(CAST(v AS DOUBLE)) OVER ({})", "AVG(CAST(v AS DOUBLE)) OVER ({})"),
    ("COUNT(DISTINCT v) OVER ({})", "size(collect_set(v) OVER ({}))"),
)
#: Those that go by the order of rows.
_PLACES = (
    ("FIRST_VALUE(v) OVER ({})", "first_value(v, true) OVER ({})"),
    ("LAST_VALUE(v) OVER ({})", "last_value(v, true) OVER ({})"),
)
_ROWS = ("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
_RANGES = (
    "RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN INTERVAL '7' SECOND PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "",
)


def _over(draw: Draw, by: str, frames: tuple[str, ...], *, has_places: bool) -> str:
    """Write calls over windows. Rows of the same time are in the order in which they came, which ids tell Spark."""
    calls = []
    for at in range(draw(st.integers(1, 3))):
        part, frame = draw(one_of("PARTITION BY k", "PARTITION BY v", "")), draw(one_of(*frames))
        kinds = (*_CALLS, *_PLACES) if has_places else _CALLS
        flink, spark = draw(st.sampled_from(kinds))
        in_order = f"{by}, id" if has_places and by != "id" else by
        windows = f"{part} ORDER BY {by} {frame}", f"{part} ORDER BY {in_order} {frame}"
        calls.append(f"{either(flink.format(windows[0]), spark.format(windows[1]))} AS r{at}")
    return ", ".join(calls)


@st.composite
def over_rows(draw: Draw) -> str:
    """OVER with frames that count rows."""
    return f"SELECT id, {_over(draw, 'ts', _ROWS, has_places=True)} FROM e"


@st.composite
def over_ranges(draw: Draw) -> str:
    """OVER with frames of time."""
    return f"SELECT id, {_over(draw, 'ts', _RANGES, has_places=False)} FROM {draw(one_of('e', 'f'))}"


@st.composite
def over_changes(draw: Draw) -> str:
    """OVER by a column that is not a time."""
    table = draw(one_of("t", "u", "p"))
    if draw(st.booleans()):
        return f"SELECT id, {_over(draw, 'id', (_ROWS[1],), has_places=True)} FROM {table}"
    return f"SELECT id, {_over(draw, 'v', _RANGES[2:], has_places=False)} FROM {table}"


@st.composite
def interval_joins(draw: Draw) -> str:
    """Pairs of rows whose times are near each other."""
    kind = draw(one_of("INNER", "LEFT", "RIGHT", "FULL"))
    near = draw(
        one_of(
            "l.ts BETWEEN r.ts - INTERVAL '4' SECOND AND r.ts + INTERVAL '2' SECOND",
            "l.ts >= r.ts AND l.ts < r.ts + INTERVAL '3' SECOND",
            "r.ts BETWEEN l.ts - INTERVAL '1' SECOND AND l.ts + INTERVAL '6' SECOND",
            "l.ts = r.ts",
            "l.ts > r.ts + INTERVAL '1' SECOND AND r.ts >= l.ts - INTERVAL '5' SECOND",
        )
    )
    keys = draw(one_of("l.k = r.k AND ", "l.v = r.v AND ", "l.k IS NOT DISTINCT FROM r.k AND ", ""))
    also = draw(one_of("", "", " AND l.v < r.v", " AND l.id <> r.id", " AND l.v + r.v > 3"))
    return f"SELECT l.id AS a, r.id AS b, l.k AS c, r.v AS d FROM e l {kind} JOIN f r ON {keys}{near}{also}"


@st.composite
def windows_of_pairs(draw: Draw) -> str:
    """Windows after an interval join, for which the watermark is held back."""
    kind = draw(one_of("INNER", "LEFT"))
    pairs = (
        f"SELECT l.ts, l.id, r.id AS b FROM e l {kind} JOIN f r "
        "ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '4' SECOND AND r.ts + INTERVAL '2' SECOND"
    )
    start = "timestampadd(SECOND, -(unix_seconds(CAST(ts AS TIMESTAMP)) % 3), date_trunc('SECOND', ts))"
    flink = (
        f"SELECT window_start AS ws, COUNT(*) AS n, COUNT(b) AS m FROM TABLE(TUMBLE(TABLE ({pairs}), "
        "DESCRIPTOR(ts), INTERVAL '3' SECOND)) GROUP BY window_start, window_end"
    )
    spark = f"SELECT {start} AS ws, COUNT(*) AS n, COUNT(b) AS m FROM ({pairs}) x GROUP BY {start}"
    return either(flink, spark)


@st.composite
def over_pairs(draw: Draw) -> str:
    """OVER after an interval join."""
    pairs = (
        "SELECT l.ts, l.id, l.k, r.v FROM e l JOIN f r "
        "ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '4' SECOND AND r.ts + INTERVAL '2' SECOND"
    )
    return f"SELECT id, {_over(draw, 'ts', _RANGES, has_places=False)} FROM ({pairs}) x"


@st.composite
def over_late_rows(draw: Draw) -> str:
    """OVER of rows some of which the watermark has passed."""
    rows = either("o", "(SELECT * FROM o WHERE passed IS NULL OR ts >= passed)")
    return f"SELECT id, {_over(draw, 'ts', _RANGES, has_places=False)} FROM {rows} x"


@st.composite
def temporal_joins(draw: Draw) -> str:
    """Rows with the versions of their times."""
    kind = draw(one_of("INNER", "LEFT"))
    also, left_out = draw(
        st.sampled_from([("", "TRUE"), (" AND l.k <> r.k", "lk <> b"), (" AND r.v > 2", "c > 2")])
    )
    flink = (
        f"SELECT l.id AS a, r.k AS b, r.v AS c FROM e l {kind} JOIN w FOR SYSTEM_TIME AS OF l.ts AS r "
        f"ON CAST(l.v AS BIGINT) = r.id{also}"
    )
    found = (
        "SELECT l.id AS a, any_value(l.k) AS lk, max_by(r.k, r.ts) AS b, max_by(r.v, r.ts) AS c "
        f"FROM e l {kind} JOIN w r ON CAST(l.v AS BIGINT) = r.id AND r.ts <= l.ts GROUP BY l.id"
    )
    spark = f"SELECT a, IF({left_out}, b, NULL) AS b, IF({left_out}, c, NULL) AS c FROM ({found}) x"
    return either(flink, spark if kind == "LEFT" else f"SELECT a, b, c FROM ({found}) x WHERE {left_out}")


@st.composite
def matches(draw: Draw) -> str:
    """Runs of rows of one kind up to the next of another: MATCH_RECOGNIZE."""
    table = draw(one_of("e", "f"))
    part = draw(one_of("", "", "PARTITION BY k"))
    runs, least = draw(st.sampled_from([("A+ B", 1), ("A+ B", 1), ("A{2,} B", 2)]))
    limit = draw(one_of("2", "3", "0"))
    flink = (
        f"SELECT a, n, h, b FROM {table} MATCH_RECOGNIZE ({part} ORDER BY ts "
        "MEASURES FIRST(A.id) AS a, COUNT(A.id) AS n, "
        "MAX(A.v) AS h, B.id AS b AFTER MATCH SKIP PAST LAST ROW "
        f"PATTERN ({runs}) DEFINE A AS A.v > {limit}, B AS B.v <= {limit}) AS m"
    )
    # A run and the row that ends it have the same number: how many rows that are not of the run came before.
    others = f"IF(COALESCE(v > {limit}, FALSE), 0, 1)"
    order = f"OVER ({part} ORDER BY ts, id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    numbered = f"SELECT *, SUM({others}) {order} - {others} AS run FROM {table}"
    spark = (
        "SELECT min_by(id, struct(ts, id)) FILTER (WHERE v > {0}) AS a, COUNT(*) FILTER (WHERE v > {0}) AS n, "
        "MAX(v) FILTER (WHERE v > {0}) AS h, MAX(id) FILTER (WHERE v <= {0}) AS b FROM ({1}) x GROUP BY {2} "
        "HAVING COUNT(*) FILTER (WHERE v > {0}) >= {3} AND MAX(id) FILTER (WHERE v <= {0}) IS NOT NULL"
    ).format(limit, numbered, "k, run" if part else "run", least)
    return either(flink, spark)


IN_TIME = [
    over_rows,
    over_ranges,
    over_late_rows,
    over_changes,
    interval_joins,
    windows_of_pairs,
    over_pairs,
    temporal_joins,
]
