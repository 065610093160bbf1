"""Programs with functions in Python, whose results are compared with Flink's. Flink's own Python reads this, too.

What comes out of a program is compared as a table: its rows when everything has been processed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

#: Rows of the table `t`: id, k, v, words.
ROWS = [
    (1, "a", 10, "one,two"),
    (2, "a", 20, "three"),
    (3, "b", 5, None),
    (4, "b", 7, "four,five,six"),
    (5, None, 7, ""),
    (6, "a", None, "seven"),
]
#: Rows of `e`, which have an event time in seconds: id, k, v, s.
TIMED = [
    (1, "a", 10, 1),
    (2, "a", 20, 3),
    (3, "b", 5, 4),
    (4, "a", 40, 12),
    (5, "b", 7, 13),
    (6, "b", 8, 30),
    (7, "a", 1, 31),
]


class Names:
    """What programs need of the API: the same names in both."""

    def __init__(self, root: str) -> None:
        self.table = import_module(f"{root}.table")
        self.udf = import_module(f"{root}.table.udf")
        self.expressions = import_module(f"{root}.table.expressions")
        self.window = import_module(f"{root}.table.window")
        self.types = self.table.DataTypes
        self.col = self.expressions.col
        self.lit = self.expressions.lit


def environment(names: Names, mode: str) -> Any:
    """Make the tables of a mode, with all functions in SQL."""
    settings = names.table.EnvironmentSettings
    t_env = names.table.TableEnvironment.create(
        settings.in_streaming_mode() if mode == "streaming" else settings.in_batch_mode()
    )
    t_env.get_config().set("parallelism.default", "1")
    t_env.get_config().set("table.local-time-zone", "UTC")
    t_env.get_config().set("pipeline.global-job-parameters", "offset:100")
    types = names.types
    row = types.ROW(
        [
            types.FIELD("id", types.INT()),
            types.FIELD("k", types.STRING()),
            types.FIELD("v", types.BIGINT()),
            types.FIELD("words", types.STRING()),
        ]
    )
    t_env.create_temporary_view("t", t_env.from_elements(ROWS, row))
    values = ", ".join(f"({i}, '{k}', CAST({v} AS BIGINT), {s})" for i, k, v, s in TIMED)
    t_env.execute_sql(
        f"CREATE TEMPORARY VIEW e AS SELECT id, k, v, "
        f"TIMESTAMPADD(SECOND, s, TIMESTAMP '2024-01-01 00:00:00') AS ts FROM (VALUES {values}) AS q(id, k, v, s)"
    )
    for name, function in functions(names).items():
        t_env.create_temporary_function(name, function)
    return t_env


def functions(names: Names) -> dict[str, Any]:
    """Make all functions that SQL calls."""
    types, udf = names.types, names.udf
    numbers = types.ARRAY(types.BIGINT())
    counting, only_adds = _counting(names)
    return {
        **_table_functions(names),
        "weighted": udf.udaf(_weighted_average(names)),
        "seen": udf.udaf(_views(names)),
        "offset_": udf.udaf(counting, result_type=types.BIGINT(), accumulator_type=numbers),
        "only_adds": udf.udaf(only_adds, result_type=types.BIGINT(), accumulator_type=numbers),
        "mean": udf.udaf(lambda v: v.mean(), result_type=types.DOUBLE(), func_type="pandas"),
    }


def _table_functions(names: Names) -> dict[str, Any]:
    types, udf, table = names.types, names.udf, names.table

    @udf.udtf(result_types=[types.STRING(), types.INT()])
    def split(text: Any) -> Any:
        for word in (text or "").split(","):
            if word:
                yield word, len(word)

    @udf.udtf(result_types=types.STRING())
    def single(text: Any) -> Any:
        return text

    class Repeat(udf.TableFunction):  # type: ignore[name-defined,misc]
        def eval(self, text: Any, times: Any) -> Any:
            for number in range(times or 0):
                yield table.Row(text, number)

    repeat = udf.udtf(Repeat(), result_types=[types.STRING(), types.INT()])
    return {"split_words": split, "single_": single, "repeat_": repeat}


def _weighted_average(names: Names) -> Any:
    types, table = names.types, names.table

    class WeightedAverage(names.udf.AggregateFunction):  # type: ignore[name-defined,misc]
        def create_accumulator(self) -> Any:
            return table.Row(0, 0)

        def accumulate(self, accumulator: Any, value: Any, weight: Any) -> None:
            if value is not None and weight is not None:
                accumulator[0] += value * weight
                accumulator[1] += weight

        def retract(self, accumulator: Any, value: Any, weight: Any) -> None:
            if value is not None and weight is not None:
                accumulator[0] -= value * weight
                accumulator[1] -= weight

        def merge(self, accumulator: Any, accumulators: Any) -> None:
            for other in accumulators:
                accumulator[0] += other[0]
                accumulator[1] += other[1]

        def get_value(self, accumulator: Any) -> Any:
            return accumulator[0] // accumulator[1] if accumulator[1] else None

        def get_result_type(self) -> Any:
            return types.BIGINT()

        def get_accumulator_type(self) -> Any:
            return types.ROW([types.FIELD("f0", types.BIGINT()), types.FIELD("f1", types.BIGINT())])

    return WeightedAverage()


def _views(names: Names) -> Any:
    types, table = names.types, names.table

    class Views(names.udf.AggregateFunction):  # type: ignore[name-defined,misc]
        def create_accumulator(self) -> Any:
            return table.Row(table.ListView(), table.MapView())

        def accumulate(self, accumulator: Any, value: Any) -> None:
            if value is not None:
                accumulator[0].add(value)
                seen = accumulator[1]
                seen[value] = seen[value] + 1 if value in seen else 1

        def get_value(self, accumulator: Any) -> Any:
            counts = ",".join(f"{key}:{count}" for key, count in sorted(accumulator[1].items()))
            return f"{sorted(accumulator[0])} {counts}"

        def get_result_type(self) -> Any:
            return types.STRING()

        def get_accumulator_type(self) -> Any:
            numbers = types.LIST_VIEW(types.BIGINT())
            counts = types.MAP_VIEW(types.BIGINT(), types.BIGINT())
            return types.ROW([types.FIELD("f0", numbers), types.FIELD("f1", counts)])

    return Views()


def _counting(names: Names) -> tuple[Any, Any]:
    class Counting(names.udf.AggregateFunction):  # type: ignore[name-defined,misc]
        def open(self, function_context: Any) -> None:
            self.offset = int(function_context.get_job_parameter("offset", "0"))
            self.counter = function_context.get_metric_group().counter("rows")

        def create_accumulator(self) -> Any:
            return [0]

        def accumulate(self, accumulator: Any) -> None:
            self.counter.inc()
            accumulator[0] += 1

        def retract(self, accumulator: Any) -> None:
            accumulator[0] -= 1

        def get_value(self, accumulator: Any) -> Any:
            return accumulator[0] + self.offset

    class OnlyAdds(Counting):
        retract = names.udf.AggregateFunction.retract

    return Counting(), OnlyAdds()


def table_functions(names: Names) -> dict[str, Any]:
    """Make functions that only calls of the Table API take."""
    types, udf, table = names.types, names.udf, names.table
    pair = types.ROW([types.FIELD("a", types.BIGINT()), types.FIELD("b", types.BIGINT())])

    class TopTwo(udf.TableAggregateFunction):  # type: ignore[name-defined,misc]
        def create_accumulator(self) -> Any:
            return []

        def accumulate(self, accumulator: Any, given: Any) -> None:
            value = given[2] if isinstance(given, table.Row) else given
            if value is not None:
                accumulator[:] = sorted([*accumulator, value], reverse=True)[:2]

        def emit_value(self, accumulator: Any) -> Any:
            for place, value in enumerate(accumulator):
                yield table.Row(value, place)

        def get_result_type(self) -> Any:
            return pair

        def get_accumulator_type(self) -> Any:
            return types.ARRAY(types.BIGINT())

    @udf.udtf(result_types=[types.INT(), types.STRING()])
    def split_row(row: Any) -> Any:
        for word in (row[3] or "").split(","):
            yield row[0], word

    return {
        "top_two": udf.udtaf(TopTwo()),
        "top_two_rows": udf.udtaf(TopTwo()),
        "split_row": split_row,
        "extremes": udf.udaf(lambda v: (int(v.max()), int(v.min())), result_type=pair, func_type="pandas"),
    }


def _lateral(names: Names, t_env: Any) -> dict[str, Callable[[], Any]]:
    col, table = names.col, t_env.from_path("t")
    more = table_functions(names)
    call = names.expressions.call
    return {
        "join_lateral": lambda: table.join_lateral(call("split_words", col("words")).alias("w", "n")).select(
            col("id"), col("w"), col("n")
        ),
        "left_outer_join_lateral": lambda: table.left_outer_join_lateral(
            call("split_words", col("words")).alias("w", "n")
        ).select(col("id"), col("w"), col("n")),
        "join_lateral of rows": lambda: table.join_lateral(more["split_row"].alias("a", "b")).select(
            col("id"), col("b")
        ),
        "flat_map": lambda: table.flat_map(call("split_words", col("words"))),
        "flat_map of rows": lambda: table.flat_map(more["split_row"]),
    }


def _aggregates(names: Names, t_env: Any) -> dict[str, Callable[[], Any]]:
    col, table = names.col, t_env.from_path("t")
    more = table_functions(names)
    call = names.expressions.call
    return {
        "aggregate": lambda: (
            table.group_by(col("k"))
            .aggregate(call("weighted", col("v"), col("id")).alias("x"))
            .select(col("k"), col("x"))
        ),
        "flat_aggregate": lambda: (
            table.group_by(col("k"))
            .flat_aggregate(more["top_two"](col("v")).alias("x", "y"))
            .select(col("k"), col("x"), col("y"))
        ),
        "flat_aggregate of rows": lambda: table.flat_aggregate(more["top_two_rows"].alias("x", "y")).select(
            col("x"), col("y")
        ),
    }


def _pandas(names: Names, t_env: Any) -> dict[str, Callable[[], Any]]:
    col, table = names.col, t_env.from_path("t").filter(names.col("v").is_not_null)
    more = table_functions(names)
    return {
        "pandas aggregate": lambda: (
            table.group_by(col("k"))
            .aggregate(more["extremes"](col("v")).alias("x", "y"))
            .select(col("k"), col("x"), col("y"))
        ),
    }


#: Queries of SQL that both modes run.
SQL = {
    "a table function": "SELECT id, w, n FROM t, LATERAL TABLE(split_words(words)) AS f(w, n)",
    "a left join with a table function": (
        "SELECT id, w, n FROM t LEFT JOIN LATERAL TABLE(split_words(words)) AS f(w, n) ON TRUE"
    ),
    "a table function of one column": "SELECT id, w FROM t, LATERAL TABLE(single_(words)) AS f(w)",
    "a table function with two arguments": (
        "SELECT id, w, n FROM t JOIN LATERAL TABLE(repeat_(k, CHAR_LENGTH(words))) AS f(w, n) ON TRUE WHERE n < 2"
    ),
    "rows of a table function grouped": (
        "SELECT n, COUNT(*) AS c FROM t, LATERAL TABLE(split_words(words)) AS f(w, n) GROUP BY n"
    ),
    "one table function behind another": (
        "SELECT id, a, b FROM t, LATERAL TABLE(split_words(words)) AS f(a, n), LATERAL TABLE(repeat_(a, 2)) AS g(b, m)"
    ),
    "unnest with ordinality": (
        "SELECT id, w, n FROM t CROSS JOIN UNNEST(SPLIT(words, ',')) WITH ORDINALITY AS u(w, n)"
    ),
    "unnest of a map": "SELECT id, a, b FROM t CROSS JOIN UNNEST(MAP['x', id, 'y', id * 2]) AS m(a, b)",
    "unnest of rows": "SELECT id, a, b FROM t CROSS JOIN UNNEST(ARRAY[ROW(id, k), ROW(-id, 'z')]) AS r(a, b)",
    "an aggregate function": "SELECT k, weighted(v, id) AS x FROM t GROUP BY k",
    "an aggregate function over all rows": "SELECT weighted(v, id) AS x FROM t",
    "an aggregate function beside built-in ones": (
        "SELECT k, weighted(v, id) AS x, COUNT(*) AS n, MAX(v) AS m FROM t GROUP BY k"
    ),
    "an aggregate function with DISTINCT": "SELECT k, seen(DISTINCT MOD(v, 5)) AS x FROM t GROUP BY k",
    "an aggregate function with views": "SELECT k, seen(v) AS x FROM t GROUP BY k",
    "an aggregate function without arguments": "SELECT k, offset_() AS x FROM t GROUP BY k",
    "an aggregate function of groups": (
        "SELECT weighted(s, c) AS x, offset_() AS y FROM "
        "(SELECT k, SUM(v) AS s, COUNT(*) AS c FROM t GROUP BY k)"
    ),
}
#: Queries that only BATCH mode runs in Flink.
BATCH = {
    "a pandas aggregate function": "SELECT k, mean(v) AS x FROM t WHERE v IS NOT NULL GROUP BY k",
    "a pandas aggregate function over all rows": "SELECT mean(v) AS x FROM t WHERE v IS NOT NULL",
    "a pandas aggregate function OVER rows": (
        "SELECT id, mean(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM e"
    ),
    "a pandas aggregate function of windows": (
        "SELECT k, TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, mean(v) AS x FROM e "
        "GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)"
    ),
}
#: What is refused, in both.
WRONG = {
    "too many arguments": "SELECT k, weighted(v, id, id) AS x FROM t GROUP BY k",
    "too few names": "SELECT id, w FROM t, LATERAL TABLE(split_words(words)) AS f(w)",
    "a table function as a value": "SELECT split_words(words) FROM t",
    "an aggregate function in WHERE": "SELECT id FROM t WHERE weighted(v, id) > 1",
    "a function that cannot retract": (
        "SELECT only_adds() AS y FROM (SELECT k, SUM(v) AS s FROM t GROUP BY k)"
    ),
}


def programs(names: Names, t_env: Any, mode: str) -> dict[str, Callable[[], Any]]:
    """Return all programs of a mode."""
    queries = {**SQL, **BATCH} if mode == "batch" else SQL
    made: dict[str, Callable[[], Any]] = {
        name: partial(t_env.sql_query, text) for name, text in queries.items()
    }
    made |= _lateral(names, t_env)
    if mode == "streaming":
        made |= _aggregates(names, t_env)
    else:
        made |= _pandas(names, t_env)
    return made


def final_rows(result: Any) -> list[str]:
    """Return the rows that a changelog leaves, as text."""
    left: list[str] = []
    for row in result.collect():
        text = repr([_plain(each) for each in row])
        if row.get_row_kind().name in ("INSERT", "UPDATE_AFTER"):
            left.append(text)
        else:
            left.remove(text)
    return sorted(left)


def _plain(value: Any) -> Any:
    return str(value) if hasattr(value, "isoformat") else value
