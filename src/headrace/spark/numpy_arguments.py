"""Numpy's values as arguments of calls to Java, recognized without PySpark's test kit.

PySpark asks its test kit, for every argument, whether there is numpy. That imports pandas and all of Spark SQL, half a
second that every job would begin with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from py4j import protocol
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter


class _Scalars(NumpyScalarConverter):
    def can_convert(self, obj: Any) -> bool:
        return isinstance(obj, np.generic)


class _Arrays(NumpyArrayConverter):
    def can_convert(self, obj: Any) -> bool:
        return isinstance(obj, np.ndarray) and obj.ndim == 1


def ask_numpy_itself() -> None:
    """Put ours in the places of PySpark's."""
    ours = {NumpyScalarConverter: _Scalars(), NumpyArrayConverter: _Arrays()}
    protocol.INPUT_CONVERTER[:] = [ours.get(type(each), each) for each in protocol.INPUT_CONVERTER]
