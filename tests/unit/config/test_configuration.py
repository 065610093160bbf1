"""Layers of values: which counts, where it came from, what is refused."""

from __future__ import annotations

import pickle
import warnings
from datetime import timedelta

import pytest

from headrace.config import Configuration, Layer, option
from headrace.config.configuration import ConfigurationWarning, DeprecatedKeyWarning
from headrace.config.options.checkpointing import DIRECTORY, INTERVAL
from headrace.config.options.epochs import MAX_RECORDS, RETRIES
from headrace.config.options.execution import (
    GLOBAL_JOB_PARAMETERS,
    MAX_PARALLELISM,
    PARALLELISM,
    RUNTIME_MODE,
    RuntimeExecutionMode,
)
from headrace.config.options.python import FILES
from headrace.config.registry import OptionRegistry
from headrace.errors import ConfigurationError


def test_an_unset_option_has_its_default():
    config = Configuration()
    assert config.get(RETRIES) == 3
    assert config.get(PARALLELISM) is None
    assert not config.contains(RETRIES)
    assert config.origins() == {}


def test_the_strongest_layer_counts_whatever_the_order_of_setting():
    config = (
        Configuration({"headrace.epoch.retries": 5})
        .with_values({"headrace.epoch.retries": "1"}, layer=Layer.FILE)
        .with_values({"headrace.epoch.retries": "2"}, layer=Layer.CLI)
    )
    assert config.get(RETRIES) == 5
    assert config.origins()[RETRIES.key][0] == Layer.CODE.name


def test_setting_a_value_leaves_the_first_configuration_alone():
    first = Configuration()
    second = first.with_values({RETRIES.key: 7})
    assert (first.get(RETRIES), second.get(RETRIES)) == (3, 7)


def test_values_are_typed():
    config = Configuration({"execution.checkpointing.interval": "10 s", "execution.runtime-mode": "batch"})
    assert config.get(INTERVAL) == timedelta(seconds=10)
    assert config.get(RUNTIME_MODE) is RuntimeExecutionMode.BATCH


def test_what_get_returns_belongs_to_the_caller():
    config = Configuration({"pipeline.global-job-parameters.a": "1"})
    config.get(GLOBAL_JOB_PARAMETERS)["b"] = "2"
    Configuration().get(FILES).append("x.py")
    assert config.get(GLOBAL_JOB_PARAMETERS) == {"a": "1"}
    assert Configuration().get(FILES) == []


def test_unknown_keys_are_refused_when_they_are_set():
    with pytest.raises(ConfigurationError, match=r"did you mean 'headrace\.epoch\.retries'"):
        Configuration({"headrace.epoch.retrys": 1})


def test_wrong_values_are_refused_when_they_are_set():
    with pytest.raises(ConfigurationError, match="set in the command line"):
        Configuration().with_values({"parallelism.default": "many"}, layer=Layer.CLI)
    with pytest.raises(ConfigurationError, match="or -1 to leave it open"):
        Configuration().with_values({MAX_PARALLELISM.key: 0})


def test_a_former_key_works_and_warns_with_its_successor():
    with pytest.warns(DeprecatedKeyWarning, match=r"is deprecated; use") as caught:
        config = Configuration({"state.checkpoints.dir": "/c"})
    assert "'execution.checkpointing.dir'" in str(caught[0].message)
    assert config.get(DIRECTORY) == "/c"


def test_the_successor_wins_over_the_former_key_in_the_same_layer():
    with pytest.warns(DeprecatedKeyWarning):
        config = Configuration({"execution.checkpointing.dir": "/new", "state.checkpoints.dir": "/old"})
    assert config.get(DIRECTORY) == "/new"


def test_keys_of_spark_are_handed_over_as_text():
    config = Configuration({"spark.executor.memory": "2g", "spark.ui.enabled": False})
    assert config.spark_settings() == {"spark.executor.memory": "2g", "spark.ui.enabled": "false"}


def test_keys_without_effect_are_listed_with_the_reason():
    config = Configuration({"taskmanager.registration.timeout": "4 s", "pipeline.force-kryo": "true"})
    assert set(config.ignored()) == {"taskmanager.registration.timeout", "pipeline.force-kryo"}
    assert "no effect: values are serialized" in config.explain()


def test_entries_of_a_map_are_collected():
    config = Configuration(
        {"pipeline.global-job-parameters.team": "clicks", "pipeline.global-job-parameters.day": 3}
    )
    assert config.get(GLOBAL_JOB_PARAMETERS) == {"team": "clicks", "day": "3"}
    assert Configuration(config.to_dict()) == config


def test_map_entries_with_any_text_survive_to_dict():
    config = Configuration().with_values({GLOBAL_JOB_PARAMETERS.key: {"url": "http://x;y,z"}})
    assert Configuration(config.to_dict()).get(GLOBAL_JOB_PARAMETERS) == {"url": "http://x;y,z"}


def test_explain_says_where_each_value_came_from():
    config = (
        Configuration({"headrace.epoch.retries": 5})
        .with_values({"headrace.epoch.retries": "1"}, layer=Layer.FILE, place="conf/headrace.yaml")
        .with_values({"parallelism.default": "2"}, layer=Layer.CLI)
    )
    assert config.explain().splitlines() == [
        "headrace.epoch.retries: 5  (code; over conf/headrace.yaml)",
        "parallelism.default: 2  (the command line)",
    ]
    everything = config.explain(defaults=True)
    assert "state.backend.type: hashmap  (the default)" in everything
    assert "execution.checkpointing.interval: not set  (the default; no checkpoints)" in everything


def test_secrets_print_as_stars():
    password = option("db.password", str).no_default().as_secret()
    config = Configuration(
        {"db.password": "hunter2", "spark.hadoop.fs.s3a.secret.key": "hunter3"},
        registry=OptionRegistry([password]),
    )
    for text in (config.explain(), repr(config)):
        assert "hunter" not in text
        assert "***" in text
    assert config.get(password) == "hunter2"
    assert config.spark_settings() == {"spark.hadoop.fs.s3a.secret.key": "hunter3"}


def test_configurations_pickle_with_their_layers():
    config = Configuration({"parallelism.default": 2}).with_values(
        {"headrace.epoch.retries": 1}, layer=Layer.FILE
    )
    copy = pickle.loads(pickle.dumps(config))
    assert copy == config
    assert copy.explain() == config.explain()


def test_load_puts_file_environment_and_command_line_on_top_of_each_other(tmp_path):
    (tmp_path / "headrace.yaml").write_text(
        "parallelism.default: 1\nheadrace:\n  epoch:\n    retries: 1\n    max-records: 1\n"
    )
    config = Configuration.load(
        command_line={"headrace.epoch.max-records": "3"},
        environ={
            "HEADRACE_CONF_DIR": str(tmp_path),
            "HEADRACE_EPOCH_RETRIES": "2",
            "HEADRACE_EPOCH_MAX_RECORDS": "2",
            "PATH": "/bin",
        },
    )
    assert (config.get(PARALLELISM), config.get(RETRIES), config.get(MAX_RECORDS)) == (1, 2, 3)
    assert "headrace.epoch.retries: 2  ($HEADRACE_EPOCH_RETRIES; over " in config.explain()


def test_load_takes_conf_of_the_working_directory(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "headrace.yaml").write_text("parallelism.default: 7")
    assert Configuration.load(environ={}, working_directory=tmp_path).get(PARALLELISM) == 7


def test_load_without_a_file_is_fine(tmp_path):
    assert Configuration.load(environ={}, working_directory=tmp_path) == Configuration()


def test_a_wrong_environment_variable_names_itself(tmp_path):
    with pytest.raises(ConfigurationError, match=r"set in \$HEADRACE_EPOCH_RETRIES"):
        Configuration.load(environ={"HEADRACE_EPOCH_RETRIES": "x"}, working_directory=tmp_path)


def test_a_variable_that_sets_no_option_warns(tmp_path):
    with pytest.warns(ConfigurationWarning, match="HEADRACE_EPOCH_RETRYS does not match any option"):
        Configuration.load(environ={"HEADRACE_EPOCH_RETRYS": "1"}, working_directory=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Configuration.load(environ={"HEADRACE_HOME": "/opt/headrace"}, working_directory=tmp_path)


def test_a_configuration_is_handed_on_with_where_its_values_came_from() -> None:
    there = (
        Configuration({"parallelism.default": "3"})
        .with_values({"pipeline.max-parallelism": "256"}, layer=Layer.FILE, place="conf/headrace.yaml")
        .with_values({"parallelism.default": "2"}, layer=Layer.ENVIRONMENT, place="HEADRACE_PARALLELISM")
        .with_values({"spark.executor.cores": "4"}, layer=Layer.CLI)
        .with_values({"pipeline.global-job-parameters.shop": "one, two"}, layer=Layer.CLI)
    )
    here = Configuration.handed_on(there.to_dict(), there.origins())
    assert here == there
    places = {entry.key: entry.place for entry in here.entries()}
    assert places["pipeline.max-parallelism"] == "conf/headrace.yaml"
    assert places["parallelism.default"] == "code"
    assert places["spark.executor.cores"] == "the command line"
    assert places["pipeline.global-job-parameters"] == "the command line"


def test_values_of_unknown_origin_are_code() -> None:
    here = Configuration.handed_on({"parallelism.default": "2"}, {"parallelism.default": ("MOON", "above")})
    assert here.entries()[0].layer is Layer.CODE
