"""Queries of the Table API and SQL that run: their rows, sorted, as `collect` returns them."""

from pyflink.table import DataTypes
from pyflink.table.expressions import (
    col,
    range_,
    with_all_columns,
    with_columns,
    without_columns,
)

from . import query

_PEOPLE = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.INT()),
        DataTypes.FIELD("name", DataTypes.STRING()),
        DataTypes.FIELD("score", DataTypes.DOUBLE()),
        DataTypes.FIELD("city", DataTypes.STRING()),
    ]
)


def _people(env):
    rows = [(1, "ann", 1.5, "rome"), (2, "bob", 2.5, "oslo"), (3, "cat", None, "rome"), (4, None, 4.0, None)]
    return env.from_elements(rows, _PEOPLE)


def _orders(env):
    return env.from_elements([(1, 10), (1, 20), (2, 5), (9, 7)], ["person", "amount"])


@query
def selected(env):
    return _people(env).select(col("id"), col("name"), (col("score") * 2).alias("twice"))


@query
def filtered(env):
    return _people(env).filter((col("score") > 2) | col("city").is_null)


@query
def where(env):
    return _people(env).where(col("name").like("%a%")).select(col("name").upper_case)


@query
def all_columns(env):
    return _people(env).select(with_all_columns())


@query
def some_columns(env):
    return _people(env).select(with_columns(range_("id", "score")), without_columns("id", "name"))


@query
def grouped(env):
    people = _people(env)
    return people.group_by(col("city")).select(
        col("city"),
        col("id").count.alias("n"),
        col("score").sum.alias("s"),
        col("score").avg,
        col("name").max,
    )


@query
def grouped_more(env):
    return (
        _people(env)
        .group_by(col("city"))
        .select(col("city"), col("score").min, col("score").stddev_pop, col("id").sum0, col("score").var_samp)
    )


@query
def distinct_counts(env):
    return _people(env).select(col("city").count.distinct.alias("cities"), col("id").sum.alias("ids"))


@query
def ordered(env):
    return _people(env).order_by(col("score").desc).fetch(2)


@query
def ordered_offset(env):
    return _people(env).order_by(col("id")).offset(1).fetch(2)


@query
def limited(env):
    return _people(env).order_by(col("id").desc).limit(1, 1)


@query
def joined(env):
    return _people(env).join(_orders(env), col("id") == col("person")).select(col("name"), col("amount"))


@query
def left_joined(env):
    return (
        _people(env)
        .left_outer_join(_orders(env), col("id") == col("person"))
        .select(col("id"), col("amount"))
    )


@query
def right_joined(env):
    return (
        _people(env)
        .right_outer_join(_orders(env), col("id") == col("person"))
        .select(col("id"), col("amount"))
    )


@query
def full_joined(env):
    return (
        _people(env)
        .full_outer_join(_orders(env), col("id") == col("person"))
        .select(col("id"), col("person"), col("amount"))
    )


@query
def united(env):
    ids = _people(env).select(col("id"))
    return ids.union(_orders(env).select(col("person").cast(DataTypes.INT())))


@query
def united_all(env):
    ids = _people(env).select(col("id"))
    return ids.union_all(ids)


@query
def intersected(env):
    return _people(env).select(col("id")).intersect(_orders(env).select(col("person").cast(DataTypes.INT())))
