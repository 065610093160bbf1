"""Random queries that go by time: OVER, and joins of rows that are near each other. As `grammar.py`."""

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
    """OVER by a column that is no time."""
    table = draw(one_of("t", "u", "p"))
    if draw(st.booleans()):
        return f"SELECT id, {_over(draw, 'id', (_ROWS[1],), has_places=True)} FROM {table}"
    return f"SELECT id, {_over(draw, 'v', _RANGES[2:], has_places=False)} FROM {table}"


IN_TIME = [over_rows, over_ranges, over_changes]
