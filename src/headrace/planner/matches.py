r"""Divides MATCH_RECOGNIZE: Spark computes what is about one row, the operator what is about several.

    B AS UPPER(B.name) = 'X' AND B.v + 1 > LAST(A.v, 1) * 2
         \____ c4, Spark ___/    \_ c5 _/   \_ c6 of A's row _/     Python compares c5 with c6, and says AND

A part of a condition that looks at one row is a column of every row, written as Spark SQL like all expressions. If the
row is not there, its columns are NULL: what the part is then is a column, too. So all functions are available for
one row at a time. What looks at several rows is a `Formula` for the operator; Python knows fewer functions. Measures
are computed by Spark after the operator, from the values of rows and the aggregates that it passes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.match_declarations import PatternSpec
from headrace.operators.table.match_folds import FOLDS
from headrace.operators.table.match_formulas import (
    FUNCTIONS,
    NULL_SAFE,
    Apply,
    Cell,
    FixedValue,
    Fold,
    Formula,
)
from headrace.planner import expressions as e
from headrace.planner.functions.text import constant
from headrace.planner.logical import Field, TimeKind
from headrace.planner.logical_match import MatchRecognize
from headrace.types.arrow import to_arrow_type
from headrace.types.logical import DecimalType, DoubleType, FloatType, IntegralType

__all__ = ["MatchPlan", "plan_match"]

_NUMBERS: Final = (IntegralType, DecimalType, DoubleType, FloatType)
#: Functions whose result must be a number for Python to know them.
_ARITHMETIC: Final = ("PLUS", "MINUS", "TIMES", "DIVIDE", "MOD", "NEGATE", "ABS", "CAST")
_UNITS: Final = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK")


@dataclass(frozen=True)
class MatchPlan:
    """Who computes what.

    Args:
        columns: Expressions over the input: the columns that the operator gets.
        keys: Which of them are the partition.
        order: How rows are sorted, over those columns; time first.
        pattern: What the operator looks for, and says about matches.
        results: The columns after the partition in what the operator gives.
        measures: Expressions over what it gives: the partition, then the measures.
    """

    columns: tuple[e.Expression, ...]
    keys: tuple[int, ...]
    order: tuple[e.SortKey, ...]
    pattern: PatternSpec
    results: tuple[Field, ...]
    measures: tuple[e.Expression, ...]


def plan_match(node: MatchRecognize) -> MatchPlan:
    """Part a MATCH_RECOGNIZE.

    Raises:
        UnsupportedFeatureError: If a condition needs a function of several rows that Python does not know.
    """
    planning = _Planning(node)
    schema = node.input.schema
    keys = tuple(planning.column(e.InputRef(key, schema[key].type)) for key in node.partition_by)
    order = []
    for key in node.order_by:
        place = planning.column(key.expression)
        order.append(e.SortKey(e.InputRef(place, key.expression.type), key.ascending, key.nulls_first))
    conditions = [
        None if each is None else planning.condition(each, at) for at, each in enumerate(node.conditions)
    ]
    groups = [e.InputRef(at, schema[key].type) for at, key in enumerate(node.partition_by)]
    measures = [planning.measure(each) for each in node.measures]
    pattern = PatternSpec(
        node.variables, tuple(conditions), tuple(planning.results), node.skip, node.within_ms
    )
    return MatchPlan(
        tuple(planning.columns),
        keys,
        tuple(order),
        pattern,
        tuple(planning.fields),
        (*groups, *measures),
    )


@dataclass
class _Planning:
    node: MatchRecognize
    columns: list[e.Expression] = field(default_factory=list)
    results: list[Cell | Fold | None] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)

    def column(self, expression: e.Expression) -> int:
        """Return the column of the operator's input that an expression is."""
        if expression not in self.columns:
            self.columns.append(expression)
        return self.columns.index(expression)

    # --- conditions -----------------------------------------------------------------------------------

    def condition(self, expression: e.Expression, own: int) -> Formula:
        """Return a condition; `own` is the variable that the current row is to belong to."""
        one = self._of_one_row(expression, own)
        if one is not None:
            return one
        match expression:
            case e.Literal():
                return FixedValue(expression.value)
            case e.Call(function=e.MATCH_AGGREGATE):
                return self._fold(expression)
            case e.Call(function="BETWEEN", operands=(value, low, high)):
                bounds = (("GREATER_THAN_OR_EQUAL", low), ("LESS_THAN_OR_EQUAL", high))
                parts = tuple(e.Call(name, (value, bound), expression.type) for name, bound in bounds)
                return self.condition(e.Call("AND", parts, expression.type), own)
            case e.Call():
                self._check(expression)
                operands = tuple(self.condition(each, own) for each in expression.operands)
                return Apply(expression.function, operands, to_arrow_type(expression.type))
        raise _unknown(str(expression))

    def _of_one_row(self, expression: e.Expression, own: int) -> Cell | None:
        """Return a part that looks at no more than one row; None if it is not, or a plain constant."""
        cells = [part for part in e.walk(expression) if _is_cell(part)]
        if any(
            isinstance(part, e.Call) and part.function == e.MATCH_AGGREGATE for part in e.walk(expression)
        ):
            return None
        rows = {_row_of(each, own) for each in cells}
        if len(rows) > 1 or (not rows and isinstance(expression, e.Literal) and _is_plain(expression)):
            return None
        value = e.rewrite(expression, lambda part: part.operands[2] if _is_cell(part) else None)  # type: ignore[union-attr]  # cells are calls
        column = self.column(value)
        if not rows:
            return Cell(column, own)
        ((variable, offset, is_first),) = rows
        is_current = variable == own and not offset and not is_first
        otherwise = None
        if not is_current and not isinstance(value, e.InputRef):
            otherwise = self.column(_of_no_row(value))
        return Cell(column, None if variable < 0 else variable, offset, is_first, otherwise)

    def _check(self, call: e.Call) -> None:
        """Refuse what Python does not know."""
        name = call.function
        known = name in FUNCTIONS or name in NULL_SAFE
        if name in _ARITHMETIC:
            given = [each.type for each in call.operands]
            known = all(isinstance(each, _NUMBERS) for each in (call.type, *given))
        if name == "TIMESTAMPDIFF":
            unit = call.operands[0]
            known = isinstance(unit, e.Literal) and unit.value in _UNITS
        if not known:
            raise _unknown(name)

    def _fold(self, call: e.Call) -> Fold:
        variable, name, *arguments = call.operands
        assert isinstance(variable, e.Literal)
        assert isinstance(name, e.Literal)
        assert name.value in FOLDS, name.value
        column = self.column(arguments[0]) if arguments else None
        separator = constant(arguments[1]) if len(arguments) > 1 else ","
        assert isinstance(separator, str)
        of = None if variable.value < 0 else variable.value
        return Fold(name.value, column, of, to_arrow_type(call.type), separator)

    # --- measures -------------------------------------------------------------------------------------

    def measure(self, expression: e.Expression) -> e.Expression:
        """Return a measure over what the operator gives."""
        return e.rewrite(expression, self._result)

    def _result(self, part: e.Expression) -> e.Expression | None:
        if _is_cell(part):
            assert isinstance(part, e.Call)
            variable, offset, is_first = _row_of(part, None)
            column = self.column(part.operands[2])
            made: Cell | Fold | None = Cell(column, None if variable < 0 else variable, offset, is_first)
        elif isinstance(part, e.Call) and part.function == e.MATCH_AGGREGATE:
            made = self._fold(part)
        elif isinstance(part, e.Call) and part.function == e.MATCH_ROWTIME:
            made = None
        else:
            return None
        time = TimeKind.ROWTIME if made is None else None
        if made not in self.results:
            self.results.append(made)
            self.fields.append(Field(f"$m{len(self.fields)}", part.type, time))
        return e.InputRef(len(self.node.partition_by) + self.results.index(made), part.type)


def _is_cell(part: e.Expression) -> bool:
    return isinstance(part, e.Call) and part.function in (e.MATCH_LAST, e.MATCH_FIRST)


def _is_plain(literal: e.Literal) -> bool:
    """Whether Python can do with a constant as it is."""
    value = literal.value
    return (
        value is None
        or isinstance(value, bool | str)
        or (isinstance(value, int | float | Decimal) and isinstance(literal.type, _NUMBERS))
    )


def _row_of(part: e.Expression, own: int | None) -> tuple[int, int, bool]:
    """Return which row a value is of; the current one is the last row of its own variable, and of all."""
    assert isinstance(part, e.Call)
    variable, offset, _ = part.operands
    assert isinstance(variable, e.Literal)
    assert isinstance(offset, e.Literal)
    is_first = part.function == e.MATCH_FIRST
    if own is not None and variable.value < 0 and not offset.value and not is_first:
        return own, 0, False
    return variable.value, offset.value, is_first


def _of_no_row(value: e.Expression) -> e.Expression:
    """Return what a value is if all its columns are NULL."""

    def change(part: e.Expression) -> e.Expression | None:
        return e.Literal(None, part.type.nullable()) if isinstance(part, e.InputRef) else None

    return e.rewrite(value, change)


def _unknown(name: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{name} of several rows at once in DEFINE is not supported yet",
        feature=f"{name} in DEFINE of MATCH_RECOGNIZE",
        hint="apply it to each row by itself, or compute a column in the query that MATCH_RECOGNIZE reads; "
        "comparisons, arithmetic, AND, OR, NOT, CASE, COALESCE and aggregates may look at several rows",
    )
