"""Programs for PyFlink 1.17 to 1.20: what was removed works with a warning, or says what has taken its place."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import pyflink_alias
from headrace.common import ExecutionConfig, RestartStrategies
from headrace.common._older_names import OLDER_METHODS, OLDER_MODULES, OLDER_NAMES, Works
from headrace.common.configuration import Configuration
from headrace.datastream import (
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    StreamExecutionEnvironment,
)
from headrace.errors import UnsupportedFeatureError
from headrace.table import EnvironmentSettings, StreamTableEnvironment


@pytest.fixture
def alias() -> Iterator[None]:
    pyflink_alias.install()
    yield
    pyflink_alias.uninstall()


def owner_of(kind: str) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    t_env = StreamTableEnvironment.create(env)
    return {
        "StreamExecutionEnvironment": env,
        "CheckpointConfig": env.get_checkpoint_config(),
        "TableEnvironment": t_env,
        "Table": t_env.from_elements([(1,)], ["a"]),
        "ExecutionConfig": env.get_config(),
        "TableConfig": t_env.get_config(),
        "Builder": EnvironmentSettings.new_instance(),
    }[kind]


METHODS = [(kind, name, entry) for kind, methods in OLDER_METHODS.items() for name, entry in methods.items()]
NAMES = [(module, name, entry) for module, names in OLDER_NAMES.items() for name, entry in names.items()]


@pytest.mark.parametrize(("kind", "name"), [each[:2] for each in METHODS if isinstance(each[2], str)])
def test_a_method_that_is_gone_names_the_new_call(kind: str, name: str) -> None:
    owner = owner_of(kind)

    with pytest.raises(UnsupportedFeatureError, match=rf"{kind}\.{name} was removed in PyFlink 2\nhint: "):
        getattr(owner, name)
    assert not hasattr(owner, name)


@pytest.mark.parametrize(("kind", "name"), [each[:2] for each in METHODS if isinstance(each[2], Works)])
def test_a_method_that_works_warns(kind: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"{kind}\.{name}\(\) was removed in PyFlink 2; ") as noticed:
        assert callable(getattr(owner_of(kind), name))
    # Python shows a DeprecationWarning only where it concerns the program's own file.
    assert [each.filename for each in noticed if name in str(each.message)] == [__file__]


@pytest.mark.parametrize(("module", "name", "entry"), NAMES)
def test_a_name_of_a_module_warns_or_names_the_new_one(module: str, name: str, entry: str | Works) -> None:
    found = importlib.import_module(module)
    if isinstance(entry, Works):
        with pytest.warns(DeprecationWarning, match=rf"{name} was removed in PyFlink 2; "):
            assert getattr(found, name) is entry.value
        return
    with pytest.raises(ImportError, match=rf"{name} was removed in PyFlink 2\nhint: "):
        getattr(found, name)


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'set_nothing'"):
        _ = StreamExecutionEnvironment.get_execution_environment().set_nothing


def settings_of(env: StreamExecutionEnvironment) -> Configuration:
    return env._configuration


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_settings_of_older_methods_count() -> None:
    from headrace.datastream import TimeCharacteristic

    env: Any = StreamExecutionEnvironment.get_execution_environment()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(4, 2000))
    env.set_stream_time_characteristic(TimeCharacteristic.EventTime)
    config = env.get_checkpoint_config()
    config.set_checkpoint_storage_dir("/data/a")
    config.enable_externalized_checkpoints(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)

    get = settings_of(env).layered().get
    from headrace.config.options import checkpointing, restart

    assert get(restart.STRATEGY) == "fixed-delay"
    assert get(restart.FIXED_DELAY_ATTEMPTS) == 4
    assert get(checkpointing.DIRECTORY) == "/data/a"
    retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    assert config.get_externalized_checkpoint_retention() is retention
    config.set_checkpoint_storage(FileSystemCheckpointStorage("file:///data/b"))
    assert settings_of(env).layered().get(checkpointing.DIRECTORY) == "file:///data/b"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tables_are_registered_and_scanned_under_their_older_names() -> None:
    t_env: Any = owner_of("TableEnvironment")
    t_env.register_table("numbers", t_env.from_elements([(1, 2)], ["a", "b"]))

    assert t_env.scan("numbers").get_schema().get_field_names() == ["a", "b"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ingestion_time_names_what_to_use() -> None:
    from headrace.datastream import TimeCharacteristic

    env: Any = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedFeatureError, match="IngestionTime was removed"):
        env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)


def test_a_restart_strategy_may_be_set_at_the_config() -> None:
    config = ExecutionConfig()

    with pytest.warns(DeprecationWarning, match=r"ExecutionConfig\.set_restart_strategy\(\) was removed"):
        config.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1000))

    assert config._configuration.get_string("restart-strategy.type", "") == "fixed-delay"


@pytest.mark.usefixtures("alias")
def test_a_name_that_had_another_module_is_found_with_a_warning() -> None:
    import pyflink.common.serialization as older
    from pyflink.datastream.formats.json import JsonRowDeserializationSchema

    with pytest.warns(DeprecationWarning, match=r"import it from pyflink\.datastream\.formats\.json"):
        assert older.JsonRowDeserializationSchema is JsonRowDeserializationSchema


@pytest.mark.usefixtures("alias")
@pytest.mark.parametrize("module", sorted(OLDER_MODULES))
def test_a_module_that_is_gone_says_what_to_use(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=rf"{module} is not part of PyFlink 2\nhint: use "):
        importlib.import_module(f"{module}.anything")
