"""Which arguments of calls to Java are numpy's."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from py4j import protocol
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from headrace.spark.numpy_arguments import ask_numpy_itself

WHO_IS_ASKED = """
import sys

from py4j import protocol

from headrace.spark.numpy_arguments import ask_numpy_itself

ask_numpy_itself()
assert not any(converter.can_convert(True) for converter in protocol.INPUT_CONVERTER)
print(sorted({"pandas", "pyspark.testing"} & sys.modules.keys()))
"""


@pytest.fixture
def converters(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    own = list(protocol.INPUT_CONVERTER)
    monkeypatch.setattr(protocol, "INPUT_CONVERTER", own)
    ask_numpy_itself()
    return own


@pytest.mark.parametrize(
    "value", [1, "text", True, [1], np.int64(1), np.str_("a"), np.arange(3), np.zeros((2, 2)), np.array(1)]
)
def test_a_value_is_converted_by_the_same_as_in_pyspark(converters: list[Any], value: object) -> None:
    for kind in (NumpyArrayConverter, NumpyScalarConverter):
        [own] = [each for each in converters if isinstance(each, kind)]
        assert own.can_convert(value) == kind().can_convert(value)


def test_nothing_is_imported_to_find_out() -> None:
    said = subprocess.run([sys.executable, "-c", WHO_IS_ASKED], capture_output=True, text=True, check=False)
    assert said.stdout == "[]\n", said.stderr
