"""Names of PyFlink 1.x that PyFlink 2 no longer has: they work with a warning, or say what has taken their place.

`OLDER_METHODS`, `OLDER_NAMES`, `OLDER_MODULES` and `MOVED_NAMES` are the whole table. A `Works` does what the name did
and warns. Where there is only a hint, programs that ask whether the name is there get the answer no.
"""

from __future__ import annotations

import enum
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headrace.common.restart_strategy import RestartStrategyConfiguration
from headrace.config.options import checkpointing
from headrace.config.options.checkpointing import ExternalizedCheckpointRetention
from headrace.errors import JobDefinitionError, UnsupportedFeatureError, shorten


@dataclass(frozen=True)
class Works:
    """A name that still works.

    Args:
        hint: What has taken its place.
        value: What it stands for: of a method, a function that takes the object first.
    """

    hint: str
    value: Callable[..., Any]


class TimeCharacteristic(enum.Enum):
    """The time characteristic of PyFlink 1.x programs. Event time is always available now."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2


class ExecutionMode(enum.Enum):
    """How PyFlink 1.x exchanged data in DataSet programs; streams and tables never depended on it."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3


def _restart_settings(restart_strategy_configuration: Any) -> dict[str, str]:
    if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
        raise JobDefinitionError(
            f"set_restart_strategy() expects a strategy made with RestartStrategies; "
            f"got {shorten(restart_strategy_configuration)}"
        )
    return restart_strategy_configuration.to_dict()


def _set_restart_strategy(env: Any, restart_strategy_configuration: Any) -> Any:
    from headrace.common import Configuration

    env.configure(Configuration.from_dict(_restart_settings(restart_strategy_configuration)))
    return env


def _set_restart_strategy_of_config(config: Any, restart_strategy_configuration: Any) -> Any:
    for key, value in _restart_settings(restart_strategy_configuration).items():
        config._configuration.set_string(key, value)
    return config


def _set_time_characteristic(env: Any, characteristic: Any) -> Any:
    if characteristic is TimeCharacteristic.IngestionTime:
        raise UnsupportedFeatureError(
            "TimeCharacteristic.IngestionTime was removed in PyFlink 2",
            feature="TimeCharacteristic.IngestionTime",
            hint="WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(IngestionTimeAssigner()), from "
            "headrace.common.watermark_strategy",
        )
    return env


def _set_checkpoint_dir(config: Any, checkpoint_path: str) -> Any:
    config._configuration.set(checkpointing.DIRECTORY, str(checkpoint_path))
    return config


def _set_checkpoint_storage(config: Any, storage: Any) -> Any:
    for key, value in storage.to_dict().items():
        if key == checkpointing.DIRECTORY.key:
            _set_checkpoint_dir(config, value)
    return config


def _set_retention(config: Any, cleanup_mode: Any) -> Any:
    return config.set_externalized_checkpoint_retention(cleanup_mode)


def _same(older: Any, *arguments: Any) -> Any:
    return older


_RESTARTS: Final = (
    'set restart-strategy.type in a Configuration: config.set_string("restart-strategy.type", "fixed-delay"), and '
    "pass it to get_execution_environment(config)"
)
_CHECKPOINTS: Final = (
    "set execution.checkpointing.dir in a Configuration: "
    'config.set_string("execution.checkpointing.dir", "s3://...")'
)
_EVENT_TIME: Final = (
    "remove the call: event time is always available; to follow the clock, use processing-time windows and "
    "timers"
)
_KAFKA: Final = (
    "use KafkaSource.builder() with env.from_source(), or KafkaSink.builder() with stream.sink_to()"
)
_KRYO: Final = "declare types with Types; others are pickled"
_RETENTION: Final = "use set_externalized_checkpoint_retention(...)"
_DDL: Final = (
    'use execute_sql("CREATE TABLE ... WITH (...)"), or create_temporary_table() with a TableDescriptor'
)
_CONSTRAINT: Final = "leave it out: schedulers have not followed it since Flink 1.13"
_EXECUTION_MODE: Final = "use env.set_runtime_mode(...) with a RuntimeExecutionMode"
_INSERT: Final = 'use table.execute_insert(...), or execute_sql("INSERT INTO ...")'
_PLANNER: Final = "leave it out: there is one planner"

_CSV_TABLES: Final = "use a table with 'connector' = 'filesystem' and 'format' = 'csv'"

#: What methods of a class have been replaced by.
OLDER_METHODS: Final[dict[str, dict[str, str | Works]]] = {
    "StreamExecutionEnvironment": {
        "set_restart_strategy": Works(_RESTARTS, _set_restart_strategy),
        "get_restart_strategy": _RESTARTS,
        "set_number_of_execution_retries": _RESTARTS,
        "get_number_of_execution_retries": _RESTARTS,
        "set_stream_time_characteristic": Works(_EVENT_TIME, _set_time_characteristic),
        "get_stream_time_characteristic": Works(_EVENT_TIME, lambda env: TimeCharacteristic.EventTime),
        "from_parallel_collection": "use from_collection(), or NumberSequenceSource with from_source()",
        "add_default_kryo_serializer": Works(_KRYO, _same),
        "register_type_with_kryo_serializer": Works(_KRYO, _same),
        "register_type": Works(_KRYO, _same),
    },
    "ExecutionConfig": {
        "set_restart_strategy": Works(_RESTARTS, _set_restart_strategy_of_config),
        "get_restart_strategy": _RESTARTS,
        "set_number_of_execution_retries": _RESTARTS,
        "set_default_input_dependency_constraint": Works(_CONSTRAINT, _same),
        "get_default_input_dependency_constraint": _CONSTRAINT,
        "set_execution_mode": Works(_EXECUTION_MODE, _same),
        "get_execution_mode": "use env.get_configuration(): execution.runtime-mode",
        "add_default_kryo_serializer": Works(_KRYO, _same),
        "register_type_with_kryo_serializer": Works(_KRYO, _same),
        "register_pojo_type": Works(_KRYO, _same),
        "register_kryo_type": Works(_KRYO, _same),
    },
    "CheckpointConfig": {
        "set_checkpoint_storage_dir": Works(_CHECKPOINTS, _set_checkpoint_dir),
        "set_checkpoint_storage": Works(_CHECKPOINTS, _set_checkpoint_storage),
        "get_checkpoint_storage": _CHECKPOINTS,
        "enable_externalized_checkpoints": Works(_RETENTION, _set_retention),
        "set_externalized_checkpoint_cleanup": Works(_RETENTION, _set_retention),
        "get_externalized_checkpoint_cleanup": Works(
            "use get_externalized_checkpoint_retention()",
            lambda config: config.get_externalized_checkpoint_retention(),
        ),
        "set_prefer_checkpoint_for_recovery": Works(
            "leave it out: a job is always restored from its newest checkpoint", _same
        ),
        "is_prefer_checkpoint_for_recovery": Works(
            "leave it out: a job is always restored from its newest checkpoint", lambda config: True
        ),
    },
    "TableEnvironment": {
        "connect": _DDL,
        "from_table_source": _DDL,
        "register_table_source": _DDL,
        "register_table_sink": _DDL,
        "register_table": Works(
            "use create_temporary_view()", lambda t_env, name, table: t_env.create_temporary_view(name, table)
        ),
        "register_java_function": "write the function in Python, and use create_temporary_function()",
        "register_function": Works(
            "use create_temporary_function()",
            lambda t_env, name, function: t_env.create_temporary_function(name, function),
        ),
        "scan": Works("use from_path()", lambda t_env, *path: t_env.from_path(".".join(path))),
        "sql_update": _INSERT,
        "insert_into": _INSERT,
        "execute": "leave it out: execute_sql() and execute_insert() start jobs; wait for them with .wait()",
        "explain": "use table.explain(), or explain_sql()",
    },
    "TableConfig": {
        "set_idle_state_retention_time": Works(
            "use set_idle_state_retention()",
            lambda config, shortest, longest: config.set_idle_state_retention(shortest),
        ),
    },
    "Table": {
        "get_table_schema": "use get_resolved_schema()",
    },
    "Builder": {
        "use_blink_planner": Works(_PLANNER, _same),
        "use_any_planner": Works(_PLANNER, _same),
        "use_old_planner": _PLANNER,
    },
}
_STATE_BACKENDS: Final[dict[str, str | Works]] = {
    "MemoryStateBackend": "use HashMapStateBackend and execution.checkpointing.dir",
    "FsStateBackend": "use HashMapStateBackend and execution.checkpointing.dir",
    "RocksDBStateBackend": "use EmbeddedRocksDBStateBackend and execution.checkpointing.dir",
}
#: What names of a module have been replaced by.
OLDER_NAMES: Final[dict[str, dict[str, str | Works]]] = {
    "headrace.common": {"ExecutionMode": Works(_EXECUTION_MODE, ExecutionMode)},
    "headrace.datastream.state_backend": _STATE_BACKENDS,
    "headrace.datastream": {
        "TimeCharacteristic": Works(_EVENT_TIME, TimeCharacteristic),
        "ExternalizedCheckpointCleanup": Works(
            "use ExternalizedCheckpointRetention", ExternalizedCheckpointRetention
        ),
        **_STATE_BACKENDS,
    },
    "headrace.datastream.connectors.kafka": {
        "FlinkKafkaConsumer": _KAFKA,
        "FlinkKafkaProducer": _KAFKA,
        "FlinkKafkaConsumerBase": _KAFKA,
        "FlinkKafkaProducerBase": _KAFKA,
        "Semantic": "use DeliveryGuarantee with KafkaSink.builder().set_delivery_guarantee(...)",
    },
    "headrace.table": {
        "BatchTableEnvironment": "use TableEnvironment.create(EnvironmentSettings.in_batch_mode())",
        "CsvTableSource": _CSV_TABLES,
        "CsvTableSink": _CSV_TABLES,
    },
}


#: Modules of PyFlink that are gone.
OLDER_MODULES: Final[dict[str, str]] = {
    "pyflink.dataset": "use the DataStream API with RuntimeExecutionMode.BATCH, or the Table API",
    "pyflink.table.sinks": _CSV_TABLES,
    "pyflink.table.sources": _CSV_TABLES,
}
#: Names that had another module, each below `pyflink`, with the module where they are.
MOVED_NAMES: Final[dict[str, dict[str, str]]] = {
    "common.serialization": {
        "AvroRowDeserializationSchema": "datastream.formats.avro",
        "AvroRowSerializationSchema": "datastream.formats.avro",
        "CsvRowDeserializationSchema": "datastream.formats.csv",
        "CsvRowSerializationSchema": "datastream.formats.csv",
        "JsonRowDeserializationSchema": "datastream.formats.json",
        "JsonRowSerializationSchema": "datastream.formats.json",
    },
}


class OlderMethodError(UnsupportedFeatureError, AttributeError):
    """A method of PyFlink 1.x that PyFlink 2 has not.

    Also an AttributeError, so that programs which ask with `hasattr` keep working.
    """


def warn_of(name: str, hint: str) -> None:
    """Warn the program that a name is one of PyFlink 1.x; by default Python shows only warnings of programs."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("headrace.", "importlib.")
    ):
        frame, level = frame.f_back, level + (not frame.f_code.co_filename.startswith("<frozen importlib"))
    warnings.warn(f"{name} was removed in PyFlink 2; {hint}", DeprecationWarning, stacklevel=level)


def older_method(owner: Any, name: str) -> Any:
    """Return a method of PyFlink 1.x that still works.

    Args:
        owner: The object.
        name: What was asked for.

    Raises:
        OlderMethodError: If it does not work any more.
        AttributeError: If there was none of this name.
    """
    kinds = [each.__name__ for each in type(owner).__mro__]
    for kind in kinds:
        entry = OLDER_METHODS.get(kind, {}).get(name)
        if isinstance(entry, Works):
            warn_of(f"{kind}.{name}()", entry.hint)
            return partial(entry.value, owner)
        if entry is not None:
            feature = f"{kind}.{name}"
            raise OlderMethodError(f"{feature} was removed in PyFlink 2", feature=feature, hint=entry)
    raise AttributeError(f"{kinds[0]!r} object has no attribute {name!r}", name=name, obj=owner)


class OlderMethods:
    """For classes that have lost methods since PyFlink 1.x."""

    if not TYPE_CHECKING:  # checkers should go on to report these names as missing

        def __getattr__(self, name: str) -> Any:
            return older_method(self, name)
