"""Options: reading, limits, messages."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from headrace.config.option import option
from headrace.errors import ConfigurationError

INTERVAL = option("execution.checkpointing.interval", timedelta).no_default("off").describe("How often.")


def test_an_option_reads_what_it_writes():
    assert INTERVAL.read(INTERVAL.write(timedelta(seconds=90))) == timedelta(seconds=90)


def test_a_message_names_key_form_example_value_and_place():
    with pytest.raises(ConfigurationError) as caught:
        INTERVAL.read("often", source="conf/headrace.yaml")
    assert str(caught.value) == (
        "execution.checkpointing.interval: expected a duration such as '10 s'; "
        "got 'often' (set in conf/headrace.yaml)"
    )


def test_limits_are_kept():
    retries = option("retries", int).default(3).at_least(0).at_most(9)
    assert retries.read("9") == 9
    with pytest.raises(ConfigurationError, match="expected at least 0; got '-1'"):
        retries.read("-1")
    with pytest.raises(ConfigurationError, match="expected at most 9; got 10"):
        retries.read(10)


def test_only_allowed_values_are_taken():
    backend = option("backend", str).default("hashmap").one_of("hashmap", "rocksdb")
    assert backend.read("rocksdb") == "rocksdb"
    with pytest.raises(ConfigurationError, match="expected one of hashmap, rocksdb; got 'redis'"):
        backend.read("redis")


def test_a_check_says_what_it_expects():
    even = option("even", int).default(2).checked_by(lambda value: "an even number" if value % 2 else None)
    with pytest.raises(ConfigurationError, match="expected an even number; got 3"):
        even.read(3)


def test_secrets_are_never_shown():
    password = option("db.password", str).no_default().as_secret()
    assert password.show("hunter2") == "***"
    assert password.write("hunter2") == "hunter2"
    with pytest.raises(ConfigurationError) as caught:
        password.one_of("a").read("hunter2")
    assert "hunter2" not in str(caught.value)


def test_declaring_more_leaves_the_first_option_as_it_was():
    first = option("a", int).default(1)
    second = first.deprecates("b").deprecates("c").describe("d").without_effect("e")
    assert first.deprecated_keys == ()
    assert second.deprecated_keys == ("b", "c")
    assert (second.description, second.no_effect) == ("d", "e")


def test_the_environment_variable_follows_from_the_key():
    assert INTERVAL.environment_variable == "HEADRACE_EXECUTION_CHECKPOINTING_INTERVAL"
    assert option("headrace.epoch.max-records", int).default(1).environment_variable == (
        "HEADRACE_EPOCH_MAX_RECORDS"
    )


def test_a_type_without_a_written_form_is_refused_at_declaration():
    with pytest.raises(TypeError):
        option("a", complex)


def test_options_pickle():
    assert pickle.loads(pickle.dumps(INTERVAL)).key == INTERVAL.key
