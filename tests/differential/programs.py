"""Random programs of the Table API, each with the SQL that says the same; as few parentheses in it as there can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from headrace.table import DataTypes, StreamTableEnvironment, Table
from headrace.table.expression import Expression
from headrace.table.expressions import and_, coalesce, col, if_then_else, lit, negative, not_, or_
from headrace.table.window import Session, Slide, Tumble

Draw = st.DrawFn

#: How strongly operators of SQL bind.
OR, AND, NOT, TEST, SUM, PRODUCT, SIGN, ATOM = range(8)


@dataclass(frozen=True)
class Term:
    """An expression and its text."""

    expression: Any
    sql: str
    strength: int = ATOM

    def within(self, strength: int) -> str:
        """Return the text as a part of one that binds so strongly."""
        return self.sql if self.strength >= strength else f"({self.sql})"


@dataclass(frozen=True)
class Program:
    """Makes a table with the columns id, k and v; and the query that is the same."""

    table: Callable[[StreamTableEnvironment], Table]
    sql: str


_COLUMNS = {name: Term(col(name), name) for name in ("id", "k", "v")}


def _infix(left: Term, operator: str, right: Term, strength: int) -> Term:
    made = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
        "%": lambda a, b: a % b,
        "=": lambda a, b: a == b,
        "<>": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        ">=": lambda a, b: a >= b,
        "AND": lambda a, b: a & b,
        "OR": lambda a, b: a | b,
    }[operator](left.expression, right.expression)
    # Operators of the same strength go from left to right.
    text = f"{left.within(strength)} {operator} {right.within(strength + 1)}"
    return Term(made, text, strength)


# -- expressions -----------------------------------------------------------------------------------------------


@st.composite
def numbers(draw: Draw, depth: int = 2) -> Term:
    """Whole numbers, or NULL."""
    kind = draw(st.integers(0, 7)) if depth else 0
    if kind <= 1:
        return draw(st.sampled_from([_COLUMNS["v"], _COLUMNS["id"], Term(lit(3), "3"), Term(lit(2), "2")]))
    one = draw(numbers(depth - 1))
    if kind == 2:
        operator, strength = draw(st.sampled_from([("+", SUM), ("-", SUM), ("*", PRODUCT)]))
        return _infix(one, operator, draw(numbers(depth - 1)), strength)
    if kind == 3:
        return _infix(one, "/", Term(lit(4), "4"), PRODUCT)
    if kind == 4:
        minus = draw(st.sampled_from([lambda each: -each, negative]))
        return Term(minus(one.expression), f"- {one.within(SIGN)}", SIGN)
    if kind == 5:
        return Term(one.expression.abs, f"ABS({one.sql})")
    other = draw(numbers(depth - 1))
    if kind == 6:
        return Term(coalesce(one.expression, other.expression), f"COALESCE({one.sql}, {other.sql})")
    condition = draw(conditions(depth - 1))
    choose = draw(st.sampled_from([if_then_else, lambda test, yes, no: test.then(yes, no)]))
    return Term(
        choose(condition.expression, one.expression, other.expression),
        f"CASE WHEN {condition.sql} THEN {one.sql} ELSE {other.sql} END",
    )


@st.composite
def conditions(draw: Draw, depth: int = 2) -> Term:
    """Conditions, which may be NULL."""
    kind = draw(st.integers(0, 7))
    if kind <= 2 or not depth:
        one = draw(numbers(min(depth, 1)))
        if kind == 0:
            operator = draw(st.sampled_from(["=", "<>", "<", ">="]))
            return _infix(one, operator, draw(numbers(0)), TEST)
        if kind == 1:
            number = one.within(SUM)
            return Term(one.expression.between(1, 4), f"{number} BETWEEN 1 AND 4", TEST)
        return draw(
            st.sampled_from(
                [
                    Term(col("k") == "a", "k = 'a'", TEST),
                    Term(col("k").is_null, "k IS NULL", TEST),
                    Term(col("v").is_not_null, "v IS NOT NULL", TEST),
                    Term(col("k").in_("a", "c"), "k IN ('a', 'c')", TEST),
                ]
            )
        )
    one = draw(conditions(depth - 1))
    if kind == 3:
        if draw(st.booleans()):
            return Term(~one.expression, f"{one.within(SUM)} IS NOT TRUE", TEST)  # as PyFlink has it
        return Term(not_(one.expression), f"NOT {one.within(NOT)}", NOT)
    if kind == 4:
        return Term(one.expression.is_true, f"{one.within(SUM)} IS TRUE", TEST)
    other = draw(conditions(depth - 1))
    operator, strength, function = draw(st.sampled_from([("AND", AND, and_), ("OR", OR, or_)]))
    made = _infix(one, operator, other, strength)
    if draw(st.booleans()):
        return made
    return Term(function(one.expression, other.expression), made.sql, strength)


def _aggregates(draw: Draw) -> Term:
    value = draw(numbers(1))
    each: Expression[Any] = value.expression
    return draw(
        st.sampled_from(
            [
                Term(each.sum, f"SUM({value.sql})"),
                Term(each.count, f"COUNT({value.sql})"),
                Term(each.max, f"MAX({value.sql})"),
                Term(each.min, f"MIN({value.sql})"),
                Term(each.avg, f"AVG({value.sql})"),
                Term(each.sum0, f"COALESCE(SUM({value.sql}), 0)"),
                Term(each.sum.distinct, f"SUM(DISTINCT {value.sql})"),
                Term(each.count.distinct, f"COUNT(DISTINCT {value.sql})"),
            ]
        )
    )


# -- tables ----------------------------------------------------------------------------------------------------

_BIGINT = DataTypes.BIGINT()


@st.composite
def programs(draw: Draw, depth: int = 3) -> Program:
    """Tables with the columns id, k and v."""
    make = draw(st.sampled_from(_STEPS)) if depth else _table
    return make(draw, depth - 1)


def _table(draw: Draw, _: int) -> Program:
    name = draw(st.sampled_from(["t", "u", "p"]))
    return Program(lambda t_env: t_env.from_path(name), f"SELECT id, k, v FROM {name}")


def _filtered(draw: Draw, depth: int) -> Program:
    rows, condition = draw(programs(depth)), draw(conditions())
    call = draw(st.sampled_from(["where", "filter"]))
    return Program(
        lambda t_env: getattr(rows.table(t_env), call)(condition.expression),
        f"SELECT * FROM ({rows.sql}) x WHERE {condition.sql}",
    )


def _computed(draw: Draw, depth: int) -> Program:
    rows, value = draw(programs(depth)), draw(numbers())
    if draw(st.booleans()):
        return Program(
            lambda t_env: rows.table(t_env).add_or_replace_columns(value.expression.cast(_BIGINT).alias("v")),
            f"SELECT id, k, CAST({value.sql} AS BIGINT) AS v FROM ({rows.sql}) x",
        )
    return Program(
        lambda t_env: rows.table(t_env).select(
            col("id"), coalesce(col("k"), "n").alias("k"), value.expression.cast(_BIGINT).alias("v")
        ),
        f"SELECT id, COALESCE(k, 'n') AS k, CAST({value.sql} AS BIGINT) AS v FROM ({rows.sql}) x",
    )


def _grouped(draw: Draw, depth: int) -> Program:
    rows, call = draw(programs(depth)), _aggregates(draw)
    return Program(
        lambda t_env: (
            rows.table(t_env)
            .group_by(col("k"))
            .select(col("id").max.alias("id"), col("k"), call.expression.cast(_BIGINT).alias("v"))
        ),
        f"SELECT MAX(id) AS id, k, CAST({call.sql} AS BIGINT) AS v FROM ({rows.sql}) x GROUP BY k",
    )


def _distinct(draw: Draw, depth: int) -> Program:
    rows = draw(programs(depth))
    return Program(
        lambda t_env: rows.table(t_env).select(col("v").alias("id"), col("k"), col("v")).distinct(),
        f"SELECT DISTINCT v AS id, k, v FROM ({rows.sql}) x",
    )


def _combined(draw: Draw, depth: int) -> Program:
    left, right = draw(programs(depth)), draw(programs(depth))
    call, operator = draw(
        st.sampled_from(
            [
                ("union_all", "UNION ALL"),
                ("union", "UNION"),
                ("intersect", "INTERSECT"),
                ("intersect_all", "INTERSECT ALL"),
                ("minus", "EXCEPT"),
                ("minus_all", "EXCEPT ALL"),
            ]
        )
    )
    return Program(
        lambda t_env: getattr(left.table(t_env), call)(right.table(t_env)),
        f"SELECT * FROM ({left.sql}) x {operator} SELECT * FROM ({right.sql}) y",
    )


def _joined(draw: Draw, depth: int) -> Program:
    left, right = draw(programs(depth)), draw(programs(depth))
    call, kind = draw(
        st.sampled_from(
            [
                ("join", "JOIN"),
                ("left_outer_join", "LEFT JOIN"),
                ("right_outer_join", "RIGHT JOIN"),
                ("full_outer_join", "FULL JOIN"),
            ]
        )
    )
    also = draw(st.sampled_from([None, Term(col("v") < col("v2"), "v < v2", TEST)]))
    on = Term(col("k") == col("k2"), "k = k2", TEST)
    on = on if also is None else _infix(on, "AND", also, AND)
    return Program(
        lambda t_env: getattr(left.table(t_env), call)(
            right.table(t_env).rename_columns(
                col("id").alias("id2"), col("k").alias("k2"), col("v").alias("v2")
            ),
            on.expression,
        ).select(col("id"), col("k2").alias("k"), col("v2").alias("v")),
        f"SELECT id, k2 AS k, v2 AS v FROM ({left.sql}) x {kind} "
        f"(SELECT id AS id2, k AS k2, v AS v2 FROM ({right.sql}) z) y ON {on.sql}",
    )


def _first(draw: Draw, depth: int) -> Program:
    rows, count = draw(programs(depth)), draw(st.integers(1, 3))
    return Program(
        lambda t_env: rows.table(t_env).order_by(col("v").desc, col("id"), col("k").asc).limit(count),
        f"SELECT * FROM ({rows.sql}) x ORDER BY v DESC NULLS FIRST, id NULLS LAST, k NULLS LAST LIMIT {count}",
    )


def _windowed(draw: Draw, _: int) -> Program:
    name, call = draw(st.sampled_from(["e", "f", "g"])), _aggregates(draw)
    size, slide = lit(10).seconds, lit(5).seconds
    window, sql = draw(
        st.sampled_from(
            [
                (Tumble.over(size).on(col("ts")), "TUMBLE(ts, INTERVAL '10' SECOND)"),
                (
                    Slide.over(size).every(slide).on(col("ts")),
                    "HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
                ),
                (Session.with_gap(slide).on(col("ts")), "SESSION(ts, INTERVAL '5' SECOND)"),
            ]
        )
    )
    return Program(
        lambda t_env: (
            t_env.from_path(name)
            .window(window.alias("w"))
            .group_by(col("k"), col("w"))
            .select(col("id").max.alias("id"), col("k"), call.expression.cast(_BIGINT).alias("v"))
        ),
        f"SELECT MAX(id) AS id, k, CAST({call.sql} AS BIGINT) AS v FROM {name} GROUP BY k, {sql}",
    )


_STEPS: list[Callable[[Draw, int], Program]] = [
    _table,
    _filtered,
    _computed,
    _grouped,
    _distinct,
    _combined,
    _joined,
    _first,
    _windowed,
]
