"""The registry: which keys exist, and what is said about those that do not."""

from __future__ import annotations

import pytest

from headrace.config.option import option
from headrace.config.registry import OptionRegistry, known_options, subjects
from headrace.errors import ConfigurationError


def test_no_two_options_share_a_key():
    keys = [
        key
        for declared in subjects().values()
        for each in declared
        for key in (each.key, *each.deprecated_keys)
    ]
    assert len(keys) == len(set(keys))
    with pytest.raises(ValueError, match="two options have the key 'a'"):
        OptionRegistry([option("a", int).default(1), option("b", int).default(1).deprecates("a")])


def test_no_two_options_share_an_environment_variable():
    variables = [each.environment_variable for each in known_options()]
    assert len(variables) == len(set(variables))


def test_every_option_is_described_and_its_default_is_valid():
    for each in known_options():
        assert each.description.endswith("."), each.key
        if each.default is not None:
            assert each.read(each.write(each.default)) == each.default, each.key
            assert each.read(each.default) == each.default, each.key


def test_keys_are_lower_case_and_dotted_as_in_flink():
    flinks_own = {"high-availability.storageDir", "taskmanager.numberOfTaskSlots"}
    for each in known_options():
        assert each.key == each.key.lower() or each.key in flinks_own
        assert "." in each.key or each.key == "scheduler-mode"  # as Flink has it
        assert "_" not in each.key


def test_no_option_hides_behind_an_ignored_prefix():
    for each in known_options():
        assert known_options().look_up(each.key).option is each


def test_an_unknown_key_names_the_nearest_known_one():
    with pytest.raises(ConfigurationError) as caught:
        known_options().look_up("execution.checkpointing.intervals")
    assert str(caught.value) == (
        "unknown configuration key 'execution.checkpointing.intervals'\n"
        "hint: did you mean 'execution.checkpointing.interval'?"
    )


def test_an_unknown_key_that_resembles_nothing_points_to_the_reference():
    with pytest.raises(ConfigurationError, match=r"docs/configuration\.md lists all keys"):
        known_options().look_up("qqq")


def test_a_former_key_finds_its_successor():
    known = known_options().look_up("state.checkpoints.dir")
    assert known.is_deprecated
    assert known.option is not None
    assert known.option.key == "execution.checkpointing.dir"


def test_keys_of_spark_pass_untouched():
    known = known_options().look_up("spark.executor.memory")
    assert known.option is None
    assert known.ignored_because is None


def test_keys_that_only_make_sense_in_flink_are_known_and_say_why_they_do_nothing():
    reason = known_options().look_up("pekko.throughput").ignored_because
    assert reason is not None
    assert "spark.rpc" in reason
    assert known_options().look_up("python.execution-mode").ignored_because


def test_entries_of_a_map_option_have_keys_of_their_own():
    known = known_options().look_up("pipeline.global-job-parameters.team.name")
    assert known.option is not None
    assert known.entry == "team.name"
    assert not known.is_deprecated
