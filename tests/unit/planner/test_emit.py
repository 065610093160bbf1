"""Expressions as Spark SQL text. What the text gives is tested on Spark, in tests/planner/test_emission.py."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from headrace.catalog import FunctionKind, UserFunction
from headrace.errors import InvariantViolation
from headrace.planner.emit import emit, emit_literal
from headrace.planner.expressions import Call, InputRef, Literal, UserCall
from headrace.planner.functions.text import quoted
from headrace.types import DataType
from headrace.types import DataTypes as T

MOMENT = datetime.datetime.combine(datetime.date(2024, 2, 29), datetime.time(10, 11, 12, 345000))


@pytest.mark.parametrize(
    ("value", "data_type", "text"),
    [
        (None, T.INT(), "CAST(NULL AS int)"),
        (True, T.BOOLEAN(), "true"),
        (7, T.INT(), "7"),
        (7, T.BIGINT(), "CAST(7 AS bigint)"),
        (2**63 - 1, T.BIGINT(), "CAST(9223372036854775807 AS bigint)"),
        (Decimal("0.908"), T.DECIMAL(4, 3), "CAST(0.908 AS decimal(4,3))"),
        (Decimal("1E-7"), T.DECIMAL(8, 7), "CAST(0.0000001 AS decimal(8,7))"),
        (float("inf"), T.DOUBLE(), "CAST('inf' AS double)"),
        ("it's \\d\n", T.CHAR(8), "'it\\'s \\\\d\\n'"),
        (b"\x0a", T.BINARY(1), "X'0a'"),
        (MOMENT, T.TIMESTAMP(3), "TIMESTAMP_NTZ'2024-02-29 10:11:12.345000'"),
        (MOMENT.date(), T.DATE(), "DATE'2024-02-29'"),
        (datetime.time(1, 2), T.TIME(0), "CAST(TIME'01:02:00' AS time(0))"),
        (
            datetime.timedelta(days=-1, hours=-2),
            T.INTERVAL(T.DAY(), T.SECOND(3)),
            "INTERVAL '-1 02:00:00.000000' DAY TO SECOND",
        ),
        (14, T.INTERVAL(T.YEAR(), T.MONTH()), "14"),
    ],
)
def test_literals(value: object, data_type: DataType, text: str) -> None:
    assert emit_literal(value, data_type) == text


def test_columns_have_the_names_that_the_caller_gives() -> None:
    one, other = InputRef(1, T.INT()), InputRef(0, T.INT())
    assert emit(Call("PLUS", (one, other), T.INT()), ["`a`", "t.`b`"]) == "(t.`b` + `a`)"


def test_fields_are_quoted() -> None:
    row = InputRef(0, T.ROW([T.FIELD("a`b", T.INT())]))
    assert emit(Call("FIELD", (row, Literal("a`b", T.CHAR(3))), T.INT()), ["r"]) == "r.`a``b`"


def test_a_cast_to_the_same_type_is_nothing() -> None:
    assert emit(Call("CAST", (InputRef(0, T.INT(False)),), T.INT()), ["x"]) == "x"


def test_a_cast_of_a_string_raises_where_flink_does_and_a_try_does_not() -> None:
    operand = InputRef(0, T.STRING())
    assert "raise_error" in emit(Call("CAST", (operand,), T.INT()), ["x"])
    assert emit(Call("TRY_CAST", (operand,), T.INT()), ["x"]) == "CAST(x AS int)"


def test_strings_are_cut_and_filled_to_their_type() -> None:
    operand = InputRef(0, T.STRING())
    assert emit(Call("CAST", (operand,), T.VARCHAR(3)), ["x"]) == "left(x, 3)"
    assert emit(Call("CAST", (operand,), T.CHAR(3)), ["x"]) == "rpad(x, 3, ' ')"


def test_python_functions_and_unknown_functions_are_not_spark_sql() -> None:
    function = UserFunction("f", FunctionKind.SCALAR, print, None, T.INT())
    for expression in (UserCall(function, (), T.INT()), Call("OUTER", (), T.INT())):
        with pytest.raises(InvariantViolation):
            emit(expression, [])


def test_quotes_and_backslashes_are_escaped() -> None:
    assert quoted("\\") == "'\\\\'"
