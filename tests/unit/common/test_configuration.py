"""PyFlink's Configuration, ConfigOptions and ExecutionConfig."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import pytest

from headrace.common import ConfigOptions, Configuration, ExecutionConfig
from headrace.config import Configuration as Layers
from headrace.config.options.checkpointing import INTERVAL
from headrace.config.options.execution import GLOBAL_JOB_PARAMETERS, PARALLELISM
from headrace.errors import ConfigurationError


def test_values_of_all_kinds_are_kept_as_text():
    config = (
        Configuration()
        .set_string("s", "x")
        .set_integer("i", 4)
        .set_boolean("b", True)
        .set_float("f", 1.5)
        .set_bytearray("y", bytearray(b"\x00\xff"))
    )
    assert config.get_string("s", None) == "x"
    assert config.get_integer("i", 0) == 4
    assert config.get_boolean("b", False) is True
    assert config.get_float("f", 0.0) == 1.5
    assert config.get_bytearray("y", None) == b"\x00\xff"
    assert config.to_dict()["b"] == "true"
    assert config.key_set() == {"s", "i", "b", "f", "y"}


def test_defaults_count_for_keys_that_are_not_set():
    config = Configuration()
    assert config.get_string("s", "d") == "d"
    assert config.get_integer("i", 7) == 7
    assert config.get_bytearray("y", None) is None


def test_values_that_do_not_fit_are_refused():
    config = Configuration().set_string("a", "many")
    with pytest.raises(ConfigurationError, match="a: 'many' cannot be read as int"):
        config.get_integer("a", 1)
    with pytest.raises(ConfigurationError, match="set_string expects a str; got 4"):
        config.set_string("a", 4)


def test_configurations_are_copied_merged_and_compared():
    first = Configuration.from_dict({"a": "1"})
    second = Configuration(first).set_string("b", "2")
    assert first != second
    assert first == copy.deepcopy(first) == copy.copy(first) == pickle.loads(pickle.dumps(first))
    assert Configuration().add_all(second, "x.").to_dict() == {"x.a": "1", "x.b": "2"}
    target = {"z": "0"}
    second.add_all_to_dict(target)
    assert target == {"z": "0", "a": "1", "b": "2"}
    assert second.remove_config("b")
    assert not second.remove_config("b")
    assert second.contains_key("a")
    assert str(second) == "{'a': '1'}"


def test_lists_are_parsed():
    assert Configuration.parse_list_value("a;b") == ["a", "b"]
    assert Configuration.parse_list_value("[a, 'b']") == ["a", "b"]
    assert Configuration.parse_list_value("") == []


def test_typed_options_are_set_and_read():
    config = Configuration().set(INTERVAL, timedelta(seconds=10))
    assert config.to_dict() == {"execution.checkpointing.interval": "10 s"}
    assert config.get(INTERVAL) == timedelta(seconds=10)
    config.set(GLOBAL_JOB_PARAMETERS, {"a": "x;y:z"}).set(GLOBAL_JOB_PARAMETERS, {"b": "x;y:z"})
    assert config.get(GLOBAL_JOB_PARAMETERS) == {"b": "x;y:z"}


def test_options_of_ones_own():
    own = ConfigOptions.key("my.flag").boolean_type().default_value(False)
    assert Configuration().get(own) is False
    assert Configuration().set_string("my.flag", "true").get(own) is True
    for build in ("int_type", "long_type", "float_type", "double_type", "string_type"):
        assert getattr(ConfigOptions.key("k"), build)().no_default_value().default is None


def test_what_a_program_sets_becomes_the_strongest_layer():
    config = Configuration().set_integer("parallelism.default", 3)
    assert Layers().with_values(config.to_dict()).get(PARALLELISM) == 3


SWITCHES = [
    ("closure_cleaner", "is_closure_cleaner_enabled", True),
    ("force_kryo", "is_force_kryo_enabled", False),
    ("force_avro", "is_force_avro_enabled", False),
    ("object_reuse", "is_object_reuse_enabled", False),
    ("auto_generated_uids", "has_auto_generated_uids_enabled", True),
]


@pytest.mark.parametrize(("name", "getter", "default"), SWITCHES)
def test_switches_of_execution_config(name, getter, default):
    config = ExecutionConfig()
    assert getattr(config, getter)() is default
    getattr(config, f"enable_{name}")()
    assert getattr(config, getter)() is True
    getattr(config, f"disable_{name}")()
    assert getattr(config, getter)() is False


def test_generic_types_can_be_refused():
    config = ExecutionConfig()
    assert not config.has_generic_types_disabled()
    assert config.disable_generic_types().has_generic_types_disabled()
    assert not config.enable_generic_types().has_generic_types_disabled()


TIMES = [
    ("auto_watermark_interval", 200),
    ("latency_tracking_interval", 0),
    ("task_cancellation_interval", 30_000),
    ("task_cancellation_timeout", 180_000),
]


@pytest.mark.parametrize(("name", "default"), TIMES)
def test_times_of_execution_config_are_milliseconds(name, default):
    config = ExecutionConfig()
    assert getattr(config, f"get_{name}")() == default
    getattr(config, f"set_{name}")(1500)
    assert getattr(config, f"get_{name}")() == 1500


def test_parallelism_can_be_left_open():
    config = ExecutionConfig()
    assert config.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT == -1
    assert config.set_parallelism(4).get_parallelism() == 4
    assert config.set_parallelism(-1).get_parallelism() == -1
    assert config.get_max_parallelism() == -1
    assert config.set_max_parallelism(256).get_max_parallelism() == 256
    with pytest.raises(ConfigurationError, match=r"parallelism\.default: expected at least 1; got 0"):
        config.set_parallelism(0)


def test_execution_config_is_a_face_of_its_configuration():
    configuration = Configuration().set_string("pipeline.object-reuse", "true")
    config = ExecutionConfig(configuration)
    assert config.is_object_reuse_enabled()
    config.set_global_job_parameters({"team": "clicks"}).set_use_snapshot_compression(True)
    assert configuration.get_string("pipeline.global-job-parameters.team", None) == "clicks"
    assert config.get_global_job_parameters() == {"team": "clicks"}
    assert config.is_use_snapshot_compression()
    assert config == ExecutionConfig(Configuration(configuration))
    Layers(configuration.to_dict())  # every key that was set is known


def test_there_are_no_java_serializers():
    config = ExecutionConfig()
    assert config.get_default_kryo_serializer_classes() == {}
    assert config.get_registered_kryo_types() == config.get_registered_pojo_types() == []


def test_equal_configurations_hash_alike() -> None:
    one, other = Configuration(), Configuration()
    one.set_integer("parallelism.default", 3)
    other.set_integer("parallelism.default", 3)
    assert (one == other, hash(one) == hash(other)) == (True, True)
