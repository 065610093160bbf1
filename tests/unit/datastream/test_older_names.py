"""Names of PyFlink 1.x say what has taken their place."""

from __future__ import annotations

import importlib

import pytest

from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream._older_names import OLDER_METHODS, OLDER_NAMES
from headrace.errors import UnsupportedFeatureError


@pytest.mark.parametrize("name", OLDER_METHODS["StreamExecutionEnvironment"])
def test_a_method_of_the_environment_names_its_successor(name: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert not hasattr(env, name)
    with pytest.raises(
        UnsupportedFeatureError, match=rf"StreamExecutionEnvironment\.{name} was removed in PyFlink 2\nhint: "
    ):
        getattr(env, name)


@pytest.mark.parametrize("name", OLDER_METHODS["CheckpointConfig"])
def test_a_method_of_checkpointing_names_its_successor(name: str) -> None:
    config = StreamExecutionEnvironment.get_execution_environment().get_checkpoint_config()
    with pytest.raises(
        UnsupportedFeatureError, match=rf"CheckpointConfig\.{name} was removed in PyFlink 2\nhint: "
    ):
        getattr(config, name)


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in OLDER_NAMES.items() for name in names]
)
def test_a_name_of_a_module_names_its_successor(module: str, name: str) -> None:
    with pytest.raises(ImportError, match=rf"{name} was removed in PyFlink 2\nhint: "):
        getattr(importlib.import_module(module), name)


def test_a_name_that_nobody_knows_is_an_ordinary_error() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(
        AttributeError, match="'StreamExecutionEnvironment' object has no attribute 'set_moon'"
    ):
        env.set_moon()  # type: ignore[attr-defined]
