"""Layers of a program's configuration are put together when it changes, not whenever an option is read."""

import pytest

from headrace.config import Configuration
from headrace.config.options.execution import PARALLELISM
from headrace.datastream._program_configuration import ProgramConfiguration
from headrace.errors import ConfigurationError


def test_reads_without_a_change_between_them_share_the_layers() -> None:
    configuration = ProgramConfiguration(Configuration({"pipeline.name": "below"}), None)
    configuration.set_string("parallelism.default", "3")

    assert configuration.layered() is configuration.layered()
    assert configuration.get(PARALLELISM) == 3


def test_a_value_that_is_set_or_removed_after_a_read_counts() -> None:
    configuration = ProgramConfiguration(Configuration({"parallelism.default": 2}), None)
    assert configuration.get(PARALLELISM) == 2

    configuration.set_string("parallelism.default", "3")
    assert configuration.get(PARALLELISM) == 3

    configuration.remove_config("parallelism.default")
    assert configuration.get(PARALLELISM) == 2


def test_a_wrong_value_is_refused_at_every_read() -> None:
    configuration = ProgramConfiguration(Configuration(), None)
    configuration.set_string("parallelism.default", "many")

    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"parallelism\.default"):
            configuration.layered()
