from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from headrace.errors import UserFunctionError
from headrace.operators.table.steps import PythonCall, StepColumn
from headrace.spark.function_results import checked, checked_series


def returning(value, arrow, spark_type="x"):
    def answer(_):
        return value

    return checked(answer, PythonCall(answer, ("a",), StepColumn("r", spark_type, arrow)))


@pytest.mark.parametrize(
    ("value", "returned"), [([5], "1 values"), (pd.Series([1, 2, 3]), "3 values"), (5, "5"), ("ab", "'ab'")]
)
def test_a_pandas_function_must_return_a_value_for_each_row(value, returned):
    def answer(_):
        return value

    call = PythonCall(answer, ("a",), StepColumn("r", "BIGINT", pa.int64()), is_pandas=True)

    with pytest.raises(UserFunctionError, match=f"^answer returned {returned} for 2 rows; a function with"):
        checked_series(answer, call)(pd.Series([1, 2]))


def test_the_series_of_a_pandas_function_passes():
    def double(values):
        return values * 2

    call = PythonCall(double, ("a",), StepColumn("r", "BIGINT", pa.int64()), is_pandas=True)

    assert list(checked_series(double, call)(pd.Series([1, 2]))) == [2, 4]


@pytest.mark.parametrize(
    ("value", "arrow"),
    [
        (1, pa.int64()),
        (np.int32(1), pa.int64()),
        (None, pa.int64()),
        (1, pa.float64()),
        ("a", pa.string()),
        (datetime.date(2024, 2, 29), pa.date32()),
        ([1, "x"], pa.list_(pa.int64())),
    ],
)
def test_values_of_the_declared_type_pass(value, arrow):
    assert returning(value, arrow)(0) is value


@pytest.mark.parametrize(
    ("value", "arrow", "message"),
    [
        ("1", pa.int64(), "answer returned '1', which is not BIGINT"),
        (1.5, pa.int32(), "answer returned 1.5, which is not INT"),
        (5, pa.string(), "answer returned 5, which is not STRING"),
        ("2024-02-29", pa.timestamp("us"), r"answer returned '2024-02-29', which is not TIMESTAMP\(6\)"),
    ],
)
def test_a_value_of_another_type_is_reported_with_the_arguments(value, arrow, message):
    with pytest.raises(UserFunctionError, match=message) as error:
        returning(value, arrow)("x")

    assert error.value.record == "('x',)"
