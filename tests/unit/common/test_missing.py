from __future__ import annotations

import importlib
import pickle

import pytest

import headrace.datastream
from headrace.common._missing import MissingNameError
from headrace.errors import UnsupportedFeatureError


def test_a_missing_name_of_pyflink_raises_an_error() -> None:
    message = "^SourceFunction is not supported yet"
    with pytest.raises(UnsupportedFeatureError, match=message):
        _ = headrace.datastream.SourceFunction  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedFeatureError, match=message):
        from headrace.datastream import SourceFunction  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(ImportError, match=r"^WINDOW_STATE_NAME is not supported yet$"):
        from headrace.datastream.data_stream import WINDOW_STATE_NAME  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("headrace.datastream", "SourceFunction"),
        ("headrace.datastream.functions", "FunctionWrapper"),
        ("headrace.datastream.data_stream", "WINDOW_STATE_NAME"),
        ("headrace.datastream.window", "WindowOperationDescriptor"),
        ("headrace.datastream.utils", "create_java_properties"),
    ],
)
def test_modules_know_what_they_miss(module: str, name: str) -> None:
    with pytest.raises(MissingNameError, match=f"{name} is not supported yet"):
        getattr(importlib.import_module(module), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(headrace.datastream, "Windowed")
    with pytest.raises(ImportError, match="cannot import name 'Windowed'"):
        from headrace.datastream import Windowed  # type: ignore[attr-defined]  # noqa: F401


def test_the_error_pickles() -> None:
    error = MissingNameError.not_yet("X", "use Y")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.feature) == (MissingNameError, str(error), "X")


def test_everything_listed_is_there() -> None:
    for module in ("headrace.datastream", "headrace.datastream.data_stream", "headrace.datastream.functions"):
        loaded = importlib.import_module(module)
        assert all(hasattr(loaded, name) for name in loaded.__all__)
