"""Random queries. Where Flink and Spark write a thing differently, the text has both: ``[[Flink's||Spark's]]``.

What is ``v`` may be of any type of numbers, and in one query of several.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

Draw = st.DrawFn
Texts = st.SearchStrategy[str]

_EITHER = re.compile(r"\[\[(.*?)\|\|(.*?)\]\]", re.DOTALL)


def either(flink: str, spark: str) -> str:
    """Return a text that is written in two ways. Inside of it nothing may be."""
    assert "[[" not in flink + spark
    return f"[[{flink}||{spark}]]"


def in_flink(query: str) -> str:
    """Return a query as Flink writes it."""
    return _EITHER.sub(r"\1", query)


def in_spark(query: str) -> str:
    """Return a query as Spark writes it."""
    return _EITHER.sub(r"\2", query)


def one_of(*texts: str) -> Texts:
    """Choose a text; the first ones are the simplest."""
    return st.sampled_from(texts)


#: What the python function does.
_HALF = "CAST(CAST(v AS DECIMAL(20, 8)) / 2 AS DECIMAL(20, 9))"

CONDITIONS = one_of(
    "v > 2",
    "k <> 'b'",
    "v IS NOT NULL",
    "k IS NULL",
    "k = 'a' OR v < 0",
    "v BETWEEN 0 AND 5",
    "k IN ('a', 'c') AND NOT v = 3",
    "CASE WHEN k = 'a' THEN v ELSE 1 END > 0",
    "COALESCE(v, 7) <> 7",
    "k IN ('1', 'a', '2.5')",
    "v IN (1, 3.0)",
    either("twice(CAST(v AS BIGINT)) > 2", "CAST(v AS BIGINT) * 2 > 2"),
    either("half(CAST(v AS DECIMAL(20, 8))) > 1", "CAST(v AS DECIMAL(20, 8)) > 2"),
    either("loud(k) = 'A!'", "concat(upper(k), '!') = 'A!'"),
)
_IS_WHOLE = "typeof({}) IN ('int', 'bigint')"


def quotient(value: str, number: str) -> str:
    """Write, for Spark, a quotient that is a whole number if the value is, as in Flink."""
    return f"IF({_IS_WHOLE.format(value)}, CAST({value} / {number} AS BIGINT), {value} / {number})"


def average(distinct: str = "") -> str:
    """Write an AVG: in Flink it has as many digits as the sum, at least six. Spark's CASE has one type for all."""
    total, count = f"SUM({distinct}v)", f"COUNT({distinct}v)"
    types = {"'double'": "DOUBLE", "'decimal%,8)'": "DECIMAL(38, 8)", "'decimal%,9)'": "DECIMAL(38, 9)"}
    types |= {"'decimal%'": "DECIMAL(38, 6)", "'%int'": "BIGINT"}
    cases = "".join(
        f" WHEN typeof({total}) LIKE {like} THEN CAST(CAST({total} / {count} AS {kind}) AS DOUBLE)"
        for like, kind in types.items()
    )
    return either(f"CAST(AVG({distinct}v) AS DOUBLE)", f"CASE{cases} END")


#: To ARRAY_AGG, NULL is a value.
DISTINCT_VALUES = "COUNT(DISTINCT v) + IF(COUNT(*) > COUNT(v), 1, 0)"
AGGREGATES = one_of(
    "COUNT(*)",
    "SUM(v)",
    "COUNT(v)",
    "MIN(v)",
    "MAX(v)",
    "MAX(k)",
    average(),
    "COUNT(DISTINCT v)",
    "COUNT(DISTINCT k)",
    "SUM(DISTINCT v)",
    "MIN(DISTINCT v)",
    average("DISTINCT "),
    "COUNT(*) FILTER (WHERE v > 1)",
    "SUM(v) FILTER (WHERE k = 'a')",
    either("SUM(v) FILTER (WHERE loud(k) <> 'B!')", "SUM(v) FILTER (WHERE k <> 'b')"),
    "MAX(v) FILTER (WHERE v < 5)",
    "COUNT(DISTINCT v) FILTER (WHERE k <> 'b')",
    "SUM(v + id)",
    "COUNT(DISTINCT k, v)",
    "COUNT(DISTINCT v, k) FILTER (WHERE id > 2)",
    either("CARDINALITY(ARRAY_AGG(DISTINCT v))", DISTINCT_VALUES),
    either("CARDINALITY(ARRAY_AGG(v) FILTER (WHERE id > 1))", "NULLIF(COUNT(*) FILTER (WHERE id > 1), 0)"),
    # So that it is never right between two results.
    "ROUND(VAR_POP(CAST(v AS DOUBLE)) + 0.0000003, 6)",
    "SUM(v * v)",
    # All texts have one letter.
    either("CHAR_LENGTH(LISTAGG(k, '-'))", "IF(COUNT(k) = 0, NULL, 2 * COUNT(k) - 1)"),
    either("SUM(twice(CAST(v AS BIGINT)))", "SUM(CAST(v AS BIGINT) * 2)"),
)
HAVINGS = one_of(
    "",
    "",
    *(f" HAVING {what}" for what in ("COUNT(*) > 1", "COUNT(*) < 3", "SUM(v) > 2", "MAX(v) IS NOT NULL")),
)


def _calls(draw: Draw) -> str:
    calls = draw(st.lists(AGGREGATES, min_size=1, max_size=3))
    return ", ".join(f"{call} AS r{at}" for at, call in enumerate(calls))


# -- relations -------------------------------------------------------------------------------------------------


@st.composite
def relations(draw: Draw, depth: int = 1) -> str:
    """Anything with the columns id, k and v, in parentheses or a table's name."""
    name = draw(one_of("t", "u", "p", "e", "g"))
    table = name if name in "tup" else f"(SELECT id, k, v FROM {name})"
    made = draw(st.sampled_from([None, None, *_RELATIONS])) if depth else None
    return table if made is None else f"({made(draw, depth - 1)})"


def _filtered(draw: Draw, depth: int) -> str:
    return f"SELECT id, k, v FROM {draw(relations(depth))} x WHERE {draw(CONDITIONS)}"


def _computed(draw: Draw, depth: int) -> str:
    key = draw(one_of("k", "COALESCE(k, 'n')", "CASE WHEN v > 3 THEN 'a' ELSE k END"))
    value = draw(
        one_of(
            "v + 1",
            "-v",
            either("twice(CAST(v AS BIGINT))", "CAST(v AS BIGINT) * 2"),
            either("half(CAST(v AS DECIMAL(20, 8)))", _HALF),
            "CAST(v AS DECIMAL(12, 4))",
        )
    )
    return f"SELECT id, {key} AS k, {value} AS v FROM {draw(relations(depth))} x"


def _summed(draw: Draw, depth: int) -> str:
    # Sums of decimals have more digits in Flink, and so fewer after the point in what is computed of them.
    sums = "SUM(CAST(v AS BIGINT))", "CAST(SUM(v) AS DECIMAL(20, 8))"
    call = draw(one_of(*sums, "COUNT(*)", "MAX(v)", "COUNT(DISTINCT v)"))
    return f"SELECT MAX(id) AS id, k, {call} AS v FROM {draw(relations(depth))} x GROUP BY k"


def _distinct(draw: Draw, depth: int) -> str:
    return f"SELECT DISTINCT v AS id, k, v FROM {draw(relations(depth))} x"


def _united(draw: Draw, depth: int) -> str:
    left, right = draw(relations(depth)), draw(relations(depth))
    return f"SELECT id, k, v FROM {left} x UNION ALL SELECT id, k, v FROM {right} y"


def _joined(draw: Draw, depth: int) -> str:
    kind = draw(one_of("JOIN", "LEFT JOIN", "FULL JOIN"))
    left, right = draw(relations(depth)), draw(relations(depth))
    return f"SELECT l.id, r.k, r.v FROM {left} l {kind} {right} r ON l.k = r.k"


def _existing(draw: Draw, depth: int) -> str:
    return f"SELECT id, k, v FROM {draw(relations(depth))} x WHERE k IN (SELECT k FROM {draw(relations(depth))} y)"


def _first(draw: Draw, depth: int) -> str:
    numbered = "SELECT id, k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n"
    return f"SELECT id, k, v FROM ({numbered} FROM {draw(relations(depth))} x) WHERE n <= 2"


_RELATIONS: list[Callable[[Draw, int], str]] = [
    _filtered,
    _computed,
    _summed,
    _distinct,
    _united,
    _joined,
    _existing,
    _first,
]


# -- queries without windows -----------------------------------------------------------------------------------


@st.composite
def projections(draw: Draw) -> str:
    item = draw(
        one_of(
            "v",
            "COALESCE(v, 0) + 1",
            "v * 2 - id",
            "NULLIF(v, 3)",
            "k IS NULL OR v > 1",
            either("v / 2", quotient("v", "2")),
            "CAST(v AS BIGINT) % 3",
            "CAST(CAST(v AS BIGINT) AS STRING)",
            "CAST(v AS DOUBLE)",
            "UPPER(k)",
            either("loud(k)", "concat(upper(k), '!')"),
            either("twice(CAST(v AS BIGINT) + 1) - id", "(CAST(v AS BIGINT) + 1) * 2 - id"),
            either("half(CAST(v AS DECIMAL(20, 8))) + 1", f"{_HALF} + 1"),
            either(
                "marked(loud(k), twice(CAST(id AS BIGINT)))", "concat(upper(k), '!', CAST(id AS BIGINT) * 2)"
            ),
        )
    )
    return f"SELECT k, {item} AS w FROM {draw(relations())} x WHERE {draw(CONDITIONS)}"


@st.composite
def groupings(draw: Draw) -> str:
    keys = draw(one_of("k", "v", "k, v", "COALESCE(k, 'z')"))
    names = ", ".join(f"{key} AS g{at}" for at, key in enumerate(re.split(r", (?!')", keys)))
    return f"SELECT {names}, {_calls(draw)} FROM {draw(relations())} x GROUP BY {keys}{draw(HAVINGS)}"


@st.composite
def nested_groupings(draw: Draw) -> str:
    """Groups, sets and pairs by ROW and ARRAY; only Spark has them."""
    row, items = either("ROW(k, v)", "struct(k, v)"), either("ARRAY[k, 'x']", "array(k, 'x')")
    key = draw(st.sampled_from([row, items]))
    kind = draw(st.integers(0, 2))
    if kind == 0:
        return f"SELECT {_calls(draw)} FROM {draw(relations())} x GROUP BY {key}"
    inner = f"SELECT DISTINCT {key} AS nested FROM {draw(relations())} x"
    if kind == 1:
        return (
            f"SELECT COUNT(*) AS n, COUNT(nested) AS m FROM ({inner}) y{either('', ' HAVING COUNT(*) > 0')}"
        )
    # Whether a row equals another if both have a NULL is not the same in both; here are none.
    some = f"SELECT id, k, {items} AS nested FROM {{}} x WHERE k IS NOT NULL"
    keyed = [f"({some.format(draw(relations(0)))})" for _ in range(2)]
    return f"SELECT l.id AS a, r.k AS b FROM {keyed[0]} l JOIN {keyed[1]} r ON l.nested = r.nested"


@st.composite
def regroupings(draw: Draw) -> str:
    inner = f"SELECT k, {_calls(draw)} FROM {draw(relations())} x GROUP BY k{draw(HAVINGS)}"
    return f"SELECT r0, COUNT(*) AS n, COUNT(DISTINCT k) AS m, MIN(k) AS l FROM ({inner}) y GROUP BY r0"


@st.composite
def global_groupings(draw: Draw) -> str:
    # A query that streams says nothing of no rows; in batch it is one row.
    some = either("", " HAVING COUNT(*) > 0")
    return f"SELECT {_calls(draw)} FROM {draw(relations())} x{some}"


@st.composite
def grouping_sets(draw: Draw) -> str:
    sets = draw(one_of("ROLLUP(k, v)", "CUBE(k, v)", "GROUPING SETS((k), (v))", "GROUPING SETS((k, v), ())"))
    number = draw(one_of("", ", GROUPING(k) AS gk"))
    return f"SELECT k, v, COUNT(*) AS n, SUM(id) AS m{number} FROM {draw(relations())} x GROUP BY {sets}"


@st.composite
def distincts(draw: Draw) -> str:
    return f"SELECT DISTINCT {draw(one_of('k', 'v', 'k, v'))} FROM {draw(relations())} x"


@st.composite
def set_operations(draw: Draw) -> str:
    kind = draw(one_of("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
    return f"SELECT k, v FROM {draw(relations())} x {kind} SELECT k, v FROM {draw(relations())} y"


@st.composite
def joins(draw: Draw) -> str:
    kind = draw(one_of("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    both_sides = either("twice(CAST(l.v + r.v AS BIGINT)) > 4", "CAST(l.v + r.v AS BIGINT) * 2 > 4")
    condition = draw(
        one_of(
            "l.k = r.k",
            "l.k = r.k AND l.v = r.v",
            either("loud(l.k) = loud(r.k)", "l.k = r.k"),
            f"l.k = r.k AND {both_sides}" if kind == "JOIN" else "l.k = r.k AND l.v <> r.v",
            "l.k = r.k AND "
            + either("half(CAST(l.v AS DECIMAL(20, 8))) < r.v", f"{_HALF.replace('(v', '(l.v')} < r.v"),
            "l.k IS NOT DISTINCT FROM r.k",
            "l.v + 1 = r.v",
            "l.id = r.id",
            "l.k = r.k AND l.v < r.v",
            "l.k = r.k AND l.v > 1",
            "l.v < r.v",
            "l.id = 1",
        )
    )
    items = draw(
        one_of("l.id AS a, l.k AS b, r.id AS c, r.v AS d", "l.v AS a, r.v AS b", "l.k AS a, r.k AS b")
    )
    where = draw(one_of("", "", " WHERE l.v > 1", " WHERE r.v IS NULL"))
    return f"SELECT {items} FROM {draw(relations())} l {kind} {draw(relations())} r ON {condition}{where}"


@st.composite
def joins_by_time(draw: Draw) -> str:
    """Events of about the same time. One side's time is a plain timestamp: so it is not an interval join."""
    kind = draw(one_of("JOIN", "LEFT JOIN", "FULL JOIN"))
    left, right = draw(one_of("e", "g", "n")), draw(one_of("f", "g"))
    near = "l.ts BETWEEN r.ts - INTERVAL '3' SECOND AND r.ts + INTERVAL '1' SECOND"
    time = either("CAST(ts AS TIMESTAMP(3)) AS ts", "ts")
    plain = f"(SELECT id, k, v, {time} FROM {right})"
    return f"SELECT l.id AS a, r.id AS b, r.v AS c FROM {left} l {kind} {plain} r ON l.k = r.k AND {near}"


@st.composite
def products(draw: Draw) -> str:
    """Every row with every other one, or with the one row of a query."""
    one, other = draw(relations()), draw(relations())
    # Where nothing is counted, nothing is said in a stream.
    count = f"{either('', 'NULLIF(')}(SELECT COUNT(*) FROM {other} y WHERE v > 1){either('', ', 0)')}"
    # A query that is not an aggregate, and has one row at most.
    highest = f"(SELECT {either('v', 'MAX(v)')} FROM {other} y{either(' ORDER BY v DESC, id LIMIT 1', '')})"
    value = draw(one_of(f"(SELECT MAX(v) FROM {other} y)", count, highest))
    return draw(
        one_of(
            f"SELECT l.id AS a, r.k AS b FROM {one} l CROSS JOIN {other} r",
            f"SELECT id, {value} AS m FROM {one} x",
        )
    )


@st.composite
def half_joins(draw: Draw) -> str:
    outer, inner = draw(relations()), draw(relations())
    condition = draw(
        one_of(
            f"EXISTS (SELECT 1 FROM {inner} r WHERE r.k = s.k)",
            f"NOT EXISTS (SELECT 1 FROM {inner} r WHERE r.k = s.k)",
            f"NOT EXISTS (SELECT 1 FROM {inner} r WHERE r.k = s.k AND r.v = s.v)",
            f"s.k IN (SELECT k FROM {inner} r)",
            f"s.v IN (SELECT v FROM {inner} r WHERE r.k = 'a')",
            f"s.id NOT IN (SELECT v FROM {inner} r WHERE v IS NOT NULL)",
            f"s.k NOT IN (SELECT k FROM {inner} r)",
            f"(s.k, s.v) IN (SELECT k, v FROM {inner} r)",
            f"EXISTS (SELECT 1 FROM {inner} r WHERE r.v > 2)",
            f"EXISTS (SELECT 1 FROM {inner} r WHERE r.k = s.k AND "
            + either("twice(CAST(r.v AS BIGINT)) > s.v)", "CAST(r.v AS BIGINT) * 2 > s.v)"),
            f"s.v < (SELECT MAX(v) FROM {inner} r)",
            f"s.v >= (SELECT SUM(v) FROM {inner} r WHERE v > 0)",
            f"(s.v > 1 OR (SELECT MIN(v) FROM {inner} r) IS NULL)",
            f"s.v < (SELECT MAX(v) FROM {inner} r WHERE r.k = s.k)",
            f"s.v < (SELECT {either('v', 'MAX(v)')} FROM {inner} r WHERE r.k = s.k"
            f"{either(' ORDER BY v DESC, id LIMIT 1', '')})",
            f"s.v >= {either('', 'NULLIF(')}(SELECT COUNT(*) FROM {inner} r WHERE r.k = s.k"
            f"{either(' GROUP BY r.k)', '), 0)')}",
            f"(SELECT COUNT(*) FROM {inner} r WHERE r.k = s.k AND r.v > 1) = 1",
            f"(s.v > 2 OR EXISTS (SELECT 1 FROM {inner} r WHERE r.k = s.k))",
        )
    )
    also = draw(st.one_of(st.just(""), CONDITIONS.map(lambda each: f" AND ({each})")))
    return f"SELECT id, k FROM {outer} s WHERE {condition}{also}"


@st.composite
def besides(draw: Draw) -> str:
    """Rows with those of a query that names their columns."""
    kind = draw(one_of("CROSS JOIN", "LEFT JOIN"))
    inner = f"FROM {draw(relations())} r WHERE r.k = s.k"
    found = draw(
        one_of(
            f"SELECT MAX(v) AS m {inner}",
            f"SELECT COUNT(v) AS m {inner} AND v <> 2",
            f"SELECT v AS m {inner} AND r.v > s.v",
            f"SELECT DISTINCT v AS m {inner}",
            f"SELECT MIN(id) AS m {inner} GROUP BY v",
            f"SELECT v AS m {inner} ORDER BY v DESC LIMIT 2",
        )
    )
    on = " ON TRUE" if kind == "LEFT JOIN" else ""
    return f"SELECT s.id AS a, s.k AS b, x.m AS c FROM {draw(relations())} s {kind} LATERAL ({found}) x{on}"


@st.composite
def top_ns(draw: Draw) -> str:
    order = draw(one_of("id, k, v", "v, id, k", "v DESC, id, k", "id DESC, v, k DESC"))
    part = draw(one_of("PARTITION BY k ", "PARTITION BY v ", ""))
    number = draw(one_of("", ", n"))
    limit = draw(one_of("n <= 2", "n = 1", "n < 3", "n > 1 AND n <= 3", "n = 2"))
    numbered = f"SELECT id, k, v, ROW_NUMBER() OVER ({part}ORDER BY {order}) AS n FROM {draw(relations())} s"
    return f"SELECT id, k, v{number} FROM ({numbered}) x WHERE {limit}"


@st.composite
def limits(draw: Draw) -> str:
    order = draw(one_of("id, k, v", "v DESC, id, k", "k, v, id"))
    end = draw(one_of("LIMIT 2", "LIMIT 3 OFFSET 1", "LIMIT 1"))
    return f"SELECT id, k, v FROM {draw(relations())} s ORDER BY {order} {end}"


@st.composite
def deduplications(draw: Draw) -> str:
    """Of rows of the same time the first or the last one that came counts; of others that are equal the first."""
    orders = [either("ts", "ts, id"), either("ts DESC", "ts DESC, id DESC"), either("v", "v, id")]
    order = draw(st.sampled_from(orders))
    number = f"ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order})"
    numbered = f"SELECT id, k, v, {number} AS n FROM {draw(one_of('e', 'f'))}"
    query = f"SELECT id, k, v FROM ({numbered}) WHERE n = 1"
    return draw(st.sampled_from([query, f"SELECT v, COUNT(*) AS n FROM ({query}) GROUP BY v"]))


# -- queries over windows --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """A kind of windows.

    Args:
        function: Flink's table function.
        sizes: Its arguments, in seconds.
        start: When window ``id`` starts, in seconds.
        end: When it ends; ``step`` is its part, where windows grow.
        steps: In how many steps they grow.
    """

    function: str
    sizes: tuple[int, ...]
    start: str
    end: str
    steps: int = 1

    @property
    def intervals(self) -> str:
        """Return the arguments in SQL."""
        return ", ".join(f"INTERVAL '{size}' SECOND" for size in self.sizes)


def tumble(size: int) -> Window:
    return Window("TUMBLE", (size,), f"id * {size}", f"id * {size} + {size}")


def hop(slide: int, size: int) -> Window:
    return Window("HOP", (slide, size), f"id * {slide}", f"id * {slide} + {size}")


SHIFTED = Window("TUMBLE", (10, 2), "id * 10 + 2", "id * 10 + 12")
CUMULATE = Window("CUMULATE", (5, 20), "id * 20", "id * 20 + 5 * step", 4)
WINDOWS = st.sampled_from([tumble(10), tumble(6), hop(5, 10), hop(4, 12), CUMULATE, SHIFTED])


def _second(sql: str) -> str:
    return f"timestampadd(SECOND, {sql}, TIMESTAMP_NTZ'2024-01-01 00:00:00')"


def _windowed(table: str, window: Window, time: str = "ts") -> str:
    """Return a table with its windows: Flink's function; in Spark a join with all windows that there are."""
    steps = f"SELECT explode(sequence(1, {window.steps})) AS step"
    start, end = _second(window.start), _second(window.end)
    windows = f"SELECT {start} AS window_start, {end} AS window_end FROM range(-10, 60) CROSS JOIN ({steps})"
    late = " AND (x.passed IS NULL OR w.window_end > x.passed)" if time == "ts" else ""
    return either(
        f"TABLE({window.function}(TABLE {table}, DESCRIPTOR({time}), {window.intervals}))",
        f"(SELECT x.*, w.*, window_end - INTERVAL '0.001' SECOND AS window_time FROM {table} x JOIN ({windows}) w "
        f"ON x.{time} >= w.window_start AND x.{time} < w.window_end{late})",
    )


def in_sessions(table: str, keys: str, gap: int, time: str = "ts") -> str:
    """Return a table with its sessions: rows follow one another within the gap, by the clock before its end."""
    by = f"PARTITION BY {keys}" if keys else ""
    together = f"PARTITION BY {keys}, session" if keys else "PARTITION BY session"
    within = "<=" if time == "ts" else "<"
    begins = (
        f"timestampdiff(MILLISECOND, lag({time}) OVER ({by} ORDER BY {time}), {time}) {within} {gap * 1000}"
    )
    spark = (
        f"(SELECT *, min({time}) OVER ({together}) AS window_start, "
        f"max({time}) OVER ({together}) + INTERVAL '{gap}' SECOND AS window_end FROM "
        f"(SELECT *, sum(IF({begins}, 0, 1)) OVER ({by} ORDER BY {time}) AS session "
        f"FROM {table} WHERE {time} IS NOT NULL))"
    )
    return either(f"TABLE(SESSION(TABLE {table} {by}, DESCRIPTOR({time}), INTERVAL '{gap}' SECOND))", spark)


@st.composite
def window_groupings(draw: Draw) -> str:
    rows = _windowed(draw(one_of("e", "o", "g", "n")), draw(WINDOWS))
    keys = draw(one_of("", "k, ", "v, "))
    where = draw(st.one_of(st.just(""), CONDITIONS.map(lambda each: f" WHERE {each}")))
    bounds = draw(one_of("window_start, window_end", "window_end, window_start"))
    return (
        f"SELECT {keys}window_start AS ws, window_end AS we, {_calls(draw)} FROM {rows} s{where} "
        f"GROUP BY {keys}{bounds}{draw(HAVINGS)}"
    )


@st.composite
def window_rows(draw: Draw) -> str:
    """Rows with their windows, and what has no end: groups by a part of the window."""
    rows = _windowed(draw(one_of("e", "g", "n")), draw(WINDOWS))
    if draw(st.booleans()):
        return f"SELECT id, k, v, window_start AS ws, window_end AS we FROM {rows} s WHERE {draw(CONDITIONS)}"
    key = draw(one_of("window_start", "k, window_end"))
    return f"SELECT {key}, {_calls(draw)} FROM {rows} s GROUP BY {key}"


@st.composite
def in_order_of_time(draw: Draw) -> str:
    order = draw(one_of("ts", "ts, v DESC", "ts, k, id"))
    return f"SELECT id, k, v, ts FROM {draw(one_of('e', 'f'))} ORDER BY {order}"


@st.composite
def window_grouping_sets(draw: Draw) -> str:
    rows = _windowed(draw(one_of("e", "g")), draw(WINDOWS))
    sets, keys = draw(
        st.sampled_from(
            [
                ("GROUPING SETS((k), ())", [["k"], []]),
                ("ROLLUP(k, v)", [["k", "v"], ["k"], []]),
                ("CUBE(k, v)", [["k", "v"], ["k"], ["v"], []]),
            ]
        )
    )
    # In Spark the window is a part of each set.
    spelt = ", ".join(f"({', '.join(['window_start', 'window_end', *each])})" for each in keys)
    grouped = either(f"window_start, window_end, {sets}", f"GROUPING SETS({spelt})")
    items = f"{', '.join(keys[0])}, window_start AS ws, window_end AS we, COUNT(*) AS n, SUM(id) AS m"
    return f"SELECT {items} FROM {rows} s GROUP BY {grouped}"


@st.composite
def sessions(draw: Draw) -> str:
    table, gap = draw(one_of("e", "f", "n")), draw(st.sampled_from([3, 4]))
    keys = draw(one_of("k", "", "k, v"))
    rows = in_sessions(table, keys, gap)
    items = f"{keys}, " if keys else ""
    return (
        f"SELECT {items}window_start AS ws, window_end AS we, {_calls(draw)} FROM {rows} s "
        f"GROUP BY {items}window_start, window_end"
    )


@st.composite
def clock_windows(draw: Draw) -> str:
    """Windows of processing time."""
    keys = draw(one_of("k, ", ""))
    windows = [
        _windowed("clocked", draw(WINDOWS), "pt"),
        in_sessions("clocked", keys.removesuffix(", "), 4, "pt"),
    ]
    items = f"{keys}window_start AS ws, window_end AS we, {_calls(draw)}"
    return f"SELECT {items} FROM {draw(one_of(*windows))} s GROUP BY {keys}window_start, window_end"


@st.composite
def group_windows(draw: Draw) -> str:
    """The older way to write windows: in GROUP BY."""
    rows, call = draw(one_of("e", "o", "g", "n")), _calls(draw)
    window = draw(st.sampled_from([tumble(10), hop(5, 10)]))
    source = either(rows, in_spark(_windowed(rows, window)))
    start = either(f"{window.function}_START(ts, {window.intervals})", "window_start")
    keys = either(f"{window.function}(ts, {window.intervals})", "window_start, window_end")
    return f"SELECT k, {start} AS ws, {call} FROM {source} s GROUP BY k, {keys}"


#: Windows, and larger ones over their results.
CASCADES = st.sampled_from([(tumble(5), tumble(10)), (hop(5, 10), tumble(20)), (tumble(2), CUMULATE)])


def _of_windows(table: str, window: Window) -> str:
    """Return the results of windows, with a time of their own."""
    return (
        f"SELECT k, window_time AS rt, COUNT(*) AS n, MAX(v) AS v FROM {_windowed(table, window)} s "
        "GROUP BY k, window_start, window_end, window_time"
    )


@st.composite
def cascades(draw: Draw) -> str:
    """Windows over the results of windows."""
    small, large = draw(CASCADES)
    inner = _of_windows(draw(one_of("e", "g", "n")), small)
    keys = draw(one_of("", "k, "))
    outer = (
        f"SELECT {keys}window_start AS ws, window_end AS we, SUM(n) AS n, MIN(v) AS v, COUNT(DISTINCT n) AS d"
    )
    return f"WITH w AS ({inner}) {outer} FROM {_windowed('w', large, 'rt')} s GROUP BY {keys}window_start, window_end"


@st.composite
def cascaded_grouping_sets(draw: Draw) -> str:
    """Subtotals of windows over the results of windows."""
    small, large = draw(CASCADES)
    inner = _of_windows(draw(one_of("e", "g")), small)
    sets = "(window_start, window_end, k), (window_start, window_end)"
    grouped = either("window_start, window_end, ROLLUP(k)", f"GROUPING SETS({sets})")
    items = "k, window_start AS ws, window_end AS we, SUM(n) AS n, MIN(v) AS v"
    return f"WITH w AS ({inner}) SELECT {items} FROM {_windowed('w', large, 'rt')} s GROUP BY {grouped}"


@st.composite
def cascaded_top_ns(draw: Draw) -> str:
    """The best of the results that fall into a larger window."""
    small, large = draw(CASCADES)
    inner = _of_windows(draw(one_of("e", "g")), small)
    order, limit = draw(
        st.sampled_from([("n DESC, k, rt", "r <= 2"), ("rt, k", "r = 1"), ("v, k, rt", "r = 1")])
    )
    number = f"ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY {order})"
    numbered = f"SELECT *, {number} AS r FROM {_windowed('w', large, 'rt')} s"
    return f"WITH w AS ({inner}) SELECT k, n, v, window_end AS we, r FROM ({numbered}) x WHERE {limit}"


@st.composite
def cascaded_joins(draw: Draw) -> str:
    """Results of windows, put into larger windows and joined there with rows or other results."""
    small, large = draw(CASCADES)
    inner = _of_windows("e", small)
    other = draw(one_of(_windowed("f", large), _windowed("w", large, "rt")))
    kind = draw(one_of("JOIN", "LEFT JOIN", "FULL JOIN"))
    on = "l.window_start = r.window_start AND l.window_end = r.window_end AND l.k = r.k"
    items = "l.k AS a, r.k AS b, l.n AS n, l.v AS v, r.v AS w, l.window_end AS we, r.window_end AS xe"
    left, right = f"(SELECT * FROM {_windowed('w', large, 'rt')} s)", f"(SELECT * FROM {other} s)"
    return f"WITH w AS ({inner}) SELECT {items} FROM {left} l {kind} {right} r ON {on}"


@st.composite
def groups_of_window_joins(draw: Draw) -> str:
    """What window joins come to, summed up in the same windows or in larger ones."""
    small, large = draw(CASCADES)
    left, right = (f"(SELECT * FROM {_windowed(table, small)} s)" for table in (draw(one_of("e", "n")), "f"))
    on = "l.window_start = r.window_start AND l.window_end = r.window_end AND l.k = r.k"
    kind = draw(one_of("JOIN", "LEFT JOIN"))
    bounds = "l.window_start AS window_start, l.window_end AS window_end, l.window_time AS rt"
    pairs = f"SELECT l.k AS k, l.v AS v, r.id AS id, {bounds} FROM {left} l {kind} {right} r ON {on}"
    items = "window_start AS ws, window_end AS we, COUNT(*) AS n, COUNT(id) AS m, MAX(v) AS h"
    if draw(st.booleans()):
        larger = _windowed("z", large, "rt")
        return (
            f"WITH w AS ({pairs}), z AS (SELECT k, v, id, rt FROM w) "
            f"SELECT k, {items} FROM {larger} s GROUP BY k, window_start, window_end"
        )
    return f"WITH w AS ({pairs}) SELECT k, {items} FROM w s GROUP BY k, window_start, window_end"


@st.composite
def window_joins(draw: Draw) -> str:
    window = draw(WINDOWS)
    first = draw(one_of("e", "n"))
    left, right = (f"(SELECT * FROM {_windowed(table, window)} s)" for table in (first, "f"))
    if draw(st.booleans()):
        items = "k, window_start, window_end, COUNT(*) AS v, MAX(id) AS id"
        left = f"(SELECT {items} FROM {_windowed('e', window)} s GROUP BY k, window_start, window_end)"
    same = "l.window_start = r.window_start AND l.window_end = r.window_end"
    key = draw(one_of(" AND l.k = r.k", "", " AND l.k = r.k AND l.v < r.v"))
    kind = draw(one_of("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "EXISTS", "NOT EXISTS"))
    if kind.endswith("EXISTS"):
        inner = f"SELECT 1 FROM {right} r WHERE {same}{key}"
        return f"SELECT l.id, l.k, l.window_start AS ws FROM {left} l WHERE {kind} ({inner})"
    return (
        "SELECT l.id AS a, r.id AS b, COALESCE(l.k, r.k) AS k, l.window_start AS ws, r.window_end AS we "
        f"FROM {left} l {kind} {right} r ON {same}{key}"
    )


@st.composite
def window_top_ns(draw: Draw) -> str:
    """The best rows of each window; by time alone, of rows of the same time the first or last one that came."""
    rows = _windowed(draw(one_of("e", "o", "n")), draw(WINDOWS))
    part = draw(one_of("", ", k"))
    order, limit = draw(
        st.sampled_from(
            [
                ("v DESC, id", "n <= 2"),
                ("id DESC", "n = 1"),
                (either("ts", "ts, id"), "n = 1"),
                (either("ts DESC", "ts DESC, id DESC"), "n = 1"),
            ]
        )
    )
    number = f"ROW_NUMBER() OVER (PARTITION BY window_start, window_end{part} ORDER BY {order})"
    numbered = f"SELECT *, {number} AS n FROM {rows} s"
    return f"SELECT id, k, v, window_start AS ws, window_end AS we FROM ({numbered}) x WHERE {limit}"


@st.composite
def window_result_top_ns(draw: Draw) -> str:
    """The best groups of each window."""
    rows = _windowed(draw(one_of("e", "g")), draw(WINDOWS))
    items = "k, window_start, window_end, SUM(v) AS s, COUNT(*) AS c"
    groups = f"SELECT {items} FROM {rows} s GROUP BY k, window_start, window_end"
    number = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC, k)"
    numbered = f"SELECT *, {number} AS n FROM ({groups}) y"
    return f"SELECT k, s, c, window_start AS ws, n FROM ({numbered}) x WHERE n <= 2"


@st.composite
def groupings_over_windows(draw: Draw) -> str:
    """What comes out of windows, grouped without them."""
    rows = _windowed(draw(one_of("e", "g")), draw(WINDOWS))
    groups = f"SELECT k, window_start, SUM(v) AS v, COUNT(*) AS c FROM {rows} s GROUP BY k, window_start, window_end"
    return f"SELECT k, {_calls(draw)} FROM (SELECT c AS id, k, v FROM ({groups}) y) x GROUP BY k"


PLAIN = [
    projections,
    groupings,
    regroupings,
    global_groupings,
    grouping_sets,
    distincts,
    set_operations,
    joins,
    joins_by_time,
    products,
    half_joins,
    besides,
    top_ns,
    limits,
    deduplications,
]
WINDOWED = [
    window_groupings,
    window_rows,
    in_order_of_time,
    window_grouping_sets,
    sessions,
    clock_windows,
    group_windows,
    cascades,
    cascaded_grouping_sets,
    cascaded_top_ns,
    cascaded_joins,
    groups_of_window_joins,
    window_joins,
    window_top_ns,
    window_result_top_ns,
    groupings_over_windows,
]
