"""Typed expressions: what the binder makes of SQL and the Table API of its calls, with every name resolved.

An `InputRef` is a column of the input row by its place; a node with two inputs sees left columns, then right
ones. Functions go by their name in `planner.functions`. Expressions are values: frozen, compared by parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Any

from headrace.catalog.functions import UserFunction
from headrace.planner.dialect.tokens import Span
from headrace.types.logical import BooleanType, DataType

__all__ = [
    "MATCH_AGGREGATE",
    "MATCH_FIRST",
    "MATCH_LAST",
    "MATCH_ROWTIME",
    "TEMPORAL",
    "TRUE",
    "AggregateCall",
    "Call",
    "Expression",
    "Frame",
    "FrameUnit",
    "InputRef",
    "Literal",
    "Place",
    "SortKey",
    "UserCall",
    "WindowCall",
    "children",
    "conjuncts",
    "conjunction",
    "is_deterministic",
    "references",
    "rewrite",
    "shift",
    "substitute",
    "walk",
]


@dataclass(frozen=True)
class Place:
    """Where in a statement something was written, for errors that only planning finds."""

    text: str
    span: Span


@dataclass(frozen=True)
class InputRef:
    """A column of the input row."""

    index: int
    type: DataType

    def __str__(self) -> str:
        return f"${self.index}"


@dataclass(frozen=True)
class Literal:
    """A constant.

    Values are Python's: int, float, Decimal, str, bytes, bool, date, time, datetime, timedelta; a number of
    months for an interval of years and months; None for NULL.
    """

    value: Any
    type: DataType

    def __str__(self) -> str:
        return "NULL" if self.value is None else repr(self.value)


@dataclass(frozen=True)
class Call:
    """A built-in function or operator, under its canonical name: PLUS, EQUALS, CAST, CASE, UPPER.

    CASE has its operands as condition, value, condition, value, ..., default. CAST and TRY_CAST have one
    operand and cast to `type`.
    """

    function: str
    operands: tuple[Expression, ...]
    type: DataType

    def __str__(self) -> str:
        suffix = f" AS {self.type.summary()}" if self.function in {"CAST", "TRY_CAST"} else ""
        return f"{self.function}({', '.join(map(str, self.operands))}{suffix})"


@dataclass(frozen=True)
class UserCall:
    """A Python function for each row or batch of rows."""

    function: UserFunction
    operands: tuple[Expression, ...]
    type: DataType

    def __str__(self) -> str:
        return f"{self.function.name}({', '.join(map(str, self.operands))})"


Expression = InputRef | Literal | Call | UserCall


@dataclass(frozen=True)
class SortKey:
    """An expression to sort by."""

    expression: Expression
    ascending: bool = True
    #: As in Flink NULL is the smallest value where nothing else is said.
    nulls_first: bool = True

    def __str__(self) -> str:
        direction = "ASC" if self.ascending else "DESC"
        nulls = (
            "" if self.nulls_first == self.ascending else f" NULLS {'FIRST' if self.nulls_first else 'LAST'}"
        )
        return f"{self.expression} {direction}{nulls}"


#: A function of the planner alone: an array as long as its argument says, to UNNEST; NULL for none.
REPLICATE = "$REPLICATE"


#: A function of the planner alone: which of so many buckets a value belongs to.
BUCKET = "$BUCKET"


#: A function of the planner alone, in the condition of a join: the time of a left row, and that of a version.
TEMPORAL = "$TEMPORAL"


#: Functions of the planner alone, in MATCH_RECOGNIZE: a value of the last or first row of a variable. Operands are the
#: place of the variable in the pattern (-1: any row), how many rows from there, and the value, over a row of the input.
MATCH_LAST, MATCH_FIRST = "$LAST", "$FIRST"
#: An aggregate over the rows of a variable: its place, the name of the function, and the arguments over a row.
MATCH_AGGREGATE = "$AGGREGATE"
#: The time a match was found at.
MATCH_ROWTIME = "$MATCH_ROWTIME"


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate function over the rows of a group. COUNT(*) is COUNT without arguments."""

    function: str
    arguments: tuple[Expression, ...]
    type: DataType
    distinct: bool = False
    filter: Expression | None = None
    #: `ARRAY_AGG(x ORDER BY y)`.
    order_by: tuple[SortKey, ...] = ()
    user_function: UserFunction | None = None

    def __str__(self) -> str:
        distinct = "DISTINCT " if self.distinct else ""
        arguments = ", ".join(map(str, self.arguments)) if self.arguments else "*"
        order = f" ORDER BY {', '.join(map(str, self.order_by))}" if self.order_by else ""
        condition = f" FILTER({self.filter})" if self.filter is not None else ""
        return f"{self.function}({distinct}{arguments}{order}){condition}"


class FrameUnit(Enum):
    """What the bounds of a frame count."""

    ROWS = "ROWS"
    RANGE = "RANGE"


@dataclass(frozen=True)
class Frame:
    """The rows an OVER aggregate sees.

    Bounds are numbers of rows; for RANGE, milliseconds, or differences of a column of numbers.
    """

    unit: FrameUnit
    #: How far before the current row it begins, after it if negative; None: at the first row.
    preceding: int | Decimal | None = None
    #: How far after the current row it ends, before it if negative; None: at the last row.
    following: int | Decimal | None = 0
    #: Whether the bounds of a RANGE are differences of numbers.
    of_numbers: bool = False

    def __str__(self) -> str:
        end = "UNBOUNDED FOLLOWING"
        if self.following is not None:
            end = self.bound(-self.following)
        start = "UNBOUNDED PRECEDING" if self.preceding is None else self.bound(self.preceding)
        # As ever where it begins with the current row.
        start = "0 PRECEDING" if self.preceding == 0 else start
        return f"{self.unit.value} BETWEEN {start} AND {end}"

    @staticmethod
    def bound(before: int | Decimal) -> str:
        """Write a bound that is so far before the current row.

        >>> Frame.bound(-2)
        '2 FOLLOWING'
        """
        if before == 0:
            return "CURRENT ROW"
        return f"{before} PRECEDING" if before > 0 else f"{-before} FOLLOWING"

    @property
    def ends_now(self) -> bool:
        """Whether it ends with the current row, and begins there or before."""
        return self.following == 0 and (self.preceding is None or self.preceding >= 0)


@dataclass(frozen=True)
class WindowCall:
    """An aggregate or ranking function OVER rows near the current one."""

    function: str
    arguments: tuple[Expression, ...]
    type: DataType
    partition_by: tuple[Expression, ...]
    order_by: tuple[SortKey, ...]
    #: None for ranking functions, which have no frame.
    frame: Frame | None = None
    distinct: bool = False
    user_function: UserFunction | None = None
    place: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        parts = []
        if self.partition_by:
            parts.append("PARTITION BY " + ", ".join(map(str, self.partition_by)))
        if self.order_by:
            parts.append("ORDER BY " + ", ".join(map(str, self.order_by)))
        if self.frame is not None:
            parts.append(str(self.frame))
        arguments = ", ".join(map(str, self.arguments))
        return f"{self.function}({arguments}) OVER ({' '.join(parts)})"


#: The condition of a join without one.
TRUE = Literal(True, BooleanType(False))


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly below."""
    return expression.operands if isinstance(expression, Call | UserCall) else ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, outermost first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def references(expression: Expression) -> set[int]:
    """The places of the input columns that an expression reads."""
    return {part.index for part in walk(expression) if isinstance(part, InputRef)}


def rewrite(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Replace parts of an expression: `change` gives the replacement, or None to continue below."""
    changed = change(expression)
    if changed is not None:
        return changed
    if isinstance(expression, Call | UserCall):
        operands = tuple(rewrite(operand, change) for operand in expression.operands)
        return expression if operands == expression.operands else replace(expression, operands=operands)
    return expression


def shift(expression: Expression, by: int) -> Expression:
    """The expression over a row that has `by` more columns in front.

    >>> print(shift(InputRef(1, BooleanType()), 3))
    $4
    """
    return rewrite(
        expression,
        lambda part: InputRef(part.index + by, part.type) if isinstance(part, InputRef) else None,
    )


def substitute(expression: Expression, mapping: Mapping[int, Expression]) -> Expression:
    """The expression with input columns replaced; columns that are not in the mapping stay."""
    return rewrite(expression, lambda part: mapping.get(part.index) if isinstance(part, InputRef) else None)


def conjuncts(expression: Expression | None) -> list[Expression]:
    """The conditions that AND puts together; none for TRUE.

    >>> conjuncts(TRUE)
    []
    """
    if expression is None or expression == TRUE:
        return []
    if isinstance(expression, Call) and expression.function == "AND":
        return [part for operand in expression.operands for part in conjuncts(operand)]
    return [expression]


def conjunction(conditions: Sequence[Expression]) -> Expression:
    """All conditions combined with AND; TRUE if there are none."""
    if not conditions:
        return TRUE
    if len(conditions) == 1:
        return conditions[0]
    nullable = any(condition.type.is_nullable for condition in conditions)
    return Call("AND", tuple(conditions), BooleanType(nullable))


#: Stands in a WATERMARK declaration for the watermarks that a stream brings along.
SOURCE_WATERMARK = "SOURCE_WATERMARK"
#: Functions whose value differs from call to call.
NON_DETERMINISTIC = frozenset(
    {
        "RAND",
        "RAND_INTEGER",
        "UUID",
        "PROCTIME",
        "CURRENT_ROW_TIMESTAMP",
        "UNIX_TIMESTAMP",
        "CURRENT_WATERMARK",
    }
)


def is_deterministic(expression: Expression) -> bool:
    """Whether the expression gives the same value for the same row."""
    return all(
        part.function.is_deterministic
        if isinstance(part, UserCall)
        else part.function not in NON_DETERMINISTIC
        for part in walk(expression)
        if isinstance(part, Call | UserCall)
    )
