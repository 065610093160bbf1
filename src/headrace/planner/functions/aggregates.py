"""Aggregate and ranking functions: their arguments, and the types of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from headrace import types as t
from headrace.planner.coercion import is_string
from headrace.planner.functions.signature import WrongArguments

__all__ = ["BuiltInAggregate", "aggregates", "find_aggregate", "over_lists"]


@dataclass(frozen=True)
class BuiltInAggregate:
    """An aggregate, or a function that only works OVER a window."""

    name: str
    shown: str
    description: str
    #: The result for arguments of these types, over groups that have at least one row.
    result: Callable[[Sequence[t.DataType]], t.DataType]
    #: How many arguments there may be.
    least: int = 1
    most: int = 1
    #: ROW_NUMBER and its like need OVER.
    only_over: bool = False
    #: COUNT and COLLECT give a value for no rows too.
    value_for_no_rows: bool = False
    aliases: tuple[str, ...] = ()

    def resolve(self, types: Sequence[t.DataType], grouped: bool) -> t.DataType:
        """The result's type.

        Raises:
            WrongArguments: The number of arguments, or the type of one, does not fit.
        """
        if not self.least <= len(types) <= self.most:
            raise WrongArguments(f"wrong arguments for {self.name}", f"usage: {self.shown}")
        found = self.result(types)
        # Without GROUP BY there is a group even where there are no rows.
        return found if grouped or self.value_for_no_rows else found.nullable()


def _number(name: str, one: t.DataType) -> t.NumericType:
    if not isinstance(one, t.NumericType):
        raise WrongArguments(
            f"{name} takes a number, not {one.summary_without_null()}", "CAST it to a number, such as DOUBLE"
        )
    return one


def _sum(types: Sequence[t.DataType]) -> t.DataType:
    one = _number("SUM", types[0])
    return t.DecimalType(38, one.scale, one.is_nullable) if isinstance(one, t.DecimalType) else one


def _average(name: str) -> Callable[[Sequence[t.DataType]], t.DataType]:
    def result(types: Sequence[t.DataType]) -> t.DataType:
        one = _number(name, types[0])
        return (
            t.DecimalType(38, max(6, one.scale), one.is_nullable) if isinstance(one, t.DecimalType) else one
        )

    return result


def _of_a_sample(name: str, description: str, alias: str) -> BuiltInAggregate:
    """A statistic that has no value for a single row."""
    return BuiltInAggregate(
        name,
        f"{name}(number)",
        description,
        lambda types: _average(name)(types).nullable(),
        aliases=(alias,),
    )


def _ordered(name: str) -> Callable[[Sequence[t.DataType]], t.DataType]:
    def result(types: Sequence[t.DataType]) -> t.DataType:
        if isinstance(types[0], t.ArrayType | t.MapType | t.MultisetType | t.RowType | t.VariantType):
            raise WrongArguments(
                f"{name} takes values that can be ordered, not {types[0].summary_without_null()}",
                "select a field of the value, or CAST it to STRING",
            )
        return types[0]

    return result


def _list(types: Sequence[t.DataType]) -> t.DataType:
    for one in types:
        if not is_string(one):
            raise WrongArguments(
                f"LISTAGG takes strings, not {one.summary_without_null()}", "CAST it to STRING"
            )
    return t.DataTypes.STRING(types[0].is_nullable)


def _counted(_: Sequence[t.DataType]) -> t.DataType:
    return t.BigIntType(False)


def _shifted(types: Sequence[t.DataType]) -> t.DataType:
    if len(types) > 1 and not isinstance(types[1], t.IntegralType):
        raise WrongArguments("the offset must be an integer", "LAG(value, 1)")
    return types[0].nullable()


_ALL: Final = (
    BuiltInAggregate(
        "COUNT",
        "COUNT(*), COUNT([DISTINCT] value, ...)",
        "The number of rows, or of those where no value is NULL.",
        _counted,
        0,
        9,
        value_for_no_rows=True,
    ),
    BuiltInAggregate(
        "APPROX_COUNT_DISTINCT",
        "APPROX_COUNT_DISTINCT(value)",
        "The number of different values that are not NULL. It is exact here, and needs as much state as COUNT(DISTINCT "
        "value).",
        _counted,
        value_for_no_rows=True,
    ),
    BuiltInAggregate("SUM", "SUM([DISTINCT] number)", "The sum, in the type of its argument.", _sum),
    BuiltInAggregate(
        "AVG",
        "AVG([DISTINCT] number)",
        "The average, in the type of its argument: that of whole numbers has no fraction.",
        _average("AVG"),
    ),
    BuiltInAggregate("MIN", "MIN(value)", "The smallest value.", _ordered("MIN")),
    BuiltInAggregate("MAX", "MAX(value)", "The largest value.", _ordered("MAX")),
    BuiltInAggregate(
        "FIRST_VALUE",
        "FIRST_VALUE(value)",
        "The first value that is not NULL.",
        lambda types: types[0].nullable(),
    ),
    BuiltInAggregate(
        "LAST_VALUE",
        "LAST_VALUE(value)",
        "The last value that is not NULL.",
        lambda types: types[0].nullable(),
    ),
    BuiltInAggregate(
        "LISTAGG",
        "LISTAGG([DISTINCT] text [, separator])",
        "The strings joined with a separator, by default a comma.",
        _list,
        1,
        2,
    ),
    BuiltInAggregate(
        "STDDEV_POP",
        "STDDEV_POP(number)",
        "The standard deviation of the population.",
        _average("STDDEV_POP"),
    ),
    _of_a_sample("STDDEV_SAMP", "The standard deviation of the sample.", alias="STDDEV"),
    BuiltInAggregate("VAR_POP", "VAR_POP(number)", "The variance of the population.", _average("VAR_POP")),
    _of_a_sample("VAR_SAMP", "The variance of the sample.", alias="VARIANCE"),
    BuiltInAggregate(
        "COLLECT",
        "COLLECT([DISTINCT] value)",
        "The values as a multiset.",
        lambda types: t.MultisetType(types[0], False),
        value_for_no_rows=True,
    ),
    BuiltInAggregate(
        "ARRAY_AGG",
        "ARRAY_AGG([DISTINCT] value [{RESPECT | IGNORE} NULLS])",
        "The values as an array; NULLs are included unless you write IGNORE NULLS.",
        lambda types: t.ArrayType(types[0]),
    ),
    BuiltInAggregate(
        "ROW_NUMBER",
        "ROW_NUMBER() OVER (...)",
        "The number of the row in its partition, from 1.",
        _counted,
        0,
        0,
        True,
    ),
    BuiltInAggregate(
        "RANK",
        "RANK() OVER (...)",
        "The rank of the row; equal rows share it and leave a gap.",
        _counted,
        0,
        0,
        True,
    ),
    BuiltInAggregate(
        "DENSE_RANK", "DENSE_RANK() OVER (...)", "The rank of the row, without gaps.", _counted, 0, 0, True
    ),
    BuiltInAggregate(
        "LAG",
        "LAG(value [, offset [, default]]) OVER (...)",
        "The value some rows before.",
        _shifted,
        1,
        3,
        True,
    ),
    BuiltInAggregate(
        "LEAD",
        "LEAD(value [, offset [, default]]) OVER (...)",
        "The value some rows after.",
        _shifted,
        1,
        3,
        True,
    ),
    BuiltInAggregate(
        "NTILE",
        "NTILE(number) OVER (...)",
        "The bucket of the row, if the partition is divided into this many.",
        lambda _: t.BigIntType(False),
        1,
        1,
        True,
    ),
    BuiltInAggregate(
        "CUME_DIST",
        "CUME_DIST() OVER (...)",
        "The share of rows up to this one.",
        lambda _: t.DoubleType(False),
        0,
        0,
        True,
    ),
    BuiltInAggregate(
        "PERCENT_RANK",
        "PERCENT_RANK() OVER (...)",
        "The relative rank of the row.",
        lambda _: t.DoubleType(False),
        0,
        0,
        True,
    ),
)
#: Aggregates that the grammar writes as a function of ARRAY_AGG; see `dialect.list_forms`.
_OVER_LISTS: Final = (
    BuiltInAggregate(
        "JSON_ARRAYAGG",
        "JSON_ARRAYAGG(value [{NULL | ABSENT} ON NULL])",
        "The values as a JSON array; NULLs are left out unless you write NULL ON NULL.",
        lambda _: t.DataTypes.STRING(False),
    ),
    BuiltInAggregate(
        "JSON_OBJECTAGG",
        "JSON_OBJECTAGG([KEY] key VALUE value [{NULL | ABSENT} ON NULL])",
        "Keys and values as a JSON object; it fails if two keys are the same.",
        lambda _: t.DataTypes.STRING(False),
        2,
        2,
    ),
    BuiltInAggregate(
        "PERCENTILE",
        "PERCENTILE([DISTINCT] number, part [, frequency])",
        "The value below which a share of the numbers lies, interpolated if necessary. The share is from 0 to 1, or an "
        "array; the frequency is how often each number counts.",
        lambda _: t.DoubleType(),
        2,
        3,
    ),
)
_BY_NAME: Final = {name: one for one in _ALL for name in (one.name, *one.aliases)}


def find_aggregate(name: str) -> BuiltInAggregate | None:
    """The aggregate with this name, whatever its capitals."""
    return _BY_NAME.get(name.upper())


def over_lists() -> list[BuiltInAggregate]:
    """Those that are written as a function of a list; binding never meets them."""
    return list(_OVER_LISTS)


def aggregates() -> list[BuiltInAggregate]:
    return list(_ALL)
