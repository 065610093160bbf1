"""Names of PyFlink 1.x that PyFlink 2 no longer has: using one says what has taken its place.

`OLDER_METHODS` and `OLDER_NAMES` are the whole table. Programs that ask whether a name is there get the answer no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headrace.errors import UnsupportedFeatureError

_RESTARTS: Final = (
    'set restart-strategy.type in a Configuration: config.set_string("restart-strategy.type", "fixed-delay"), and '
    "pass it to get_execution_environment(config)"
)
_CHECKPOINTS: Final = (
    "set execution.checkpointing.dir in a Configuration: "
    'config.set_string("execution.checkpointing.dir", "s3://...")'
)
_EVENT_TIME: Final = (
    "leave it out: event time is always there; to go by the clock, use processing-time windows and timers"
)
_KAFKA: Final = (
    "use KafkaSource.builder() with env.from_source(), or KafkaSink.builder() with stream.sink_to()"
)

#: What methods of a class have been replaced by.
OLDER_METHODS: Final[dict[str, dict[str, str]]] = {
    "StreamExecutionEnvironment": {
        "set_restart_strategy": _RESTARTS,
        "get_restart_strategy": _RESTARTS,
        "set_number_of_execution_retries": _RESTARTS,
        "get_number_of_execution_retries": _RESTARTS,
        "set_stream_time_characteristic": _EVENT_TIME,
        "get_stream_time_characteristic": _EVENT_TIME,
        "from_parallel_collection": "use from_collection(), or NumberSequenceSource with from_source()",
        "add_default_kryo_serializer": "declare types with Types; others are pickled",
        "register_type_with_kryo_serializer": "declare types with Types; others are pickled",
        "register_type": "declare types with Types; others are pickled",
    },
    "CheckpointConfig": {
        "set_checkpoint_storage_dir": _CHECKPOINTS,
        "set_checkpoint_storage": _CHECKPOINTS,
        "get_checkpoint_storage": _CHECKPOINTS,
        "enable_externalized_checkpoints": "use set_externalized_checkpoint_retention(...)",
        "set_externalized_checkpoint_cleanup": "use set_externalized_checkpoint_retention(...)",
        "get_externalized_checkpoint_cleanup": "use get_externalized_checkpoint_retention()",
        "set_prefer_checkpoint_for_recovery": "leave it out: a job is always restored from its newest checkpoint",
    },
}
#: What names of a module have been replaced by.
OLDER_NAMES: Final[dict[str, dict[str, str]]] = {
    "headrace.datastream": {
        "TimeCharacteristic": _EVENT_TIME,
        "ExternalizedCheckpointCleanup": "use ExternalizedCheckpointRetention",
        "MemoryStateBackend": "use HashMapStateBackend and execution.checkpointing.dir",
        "FsStateBackend": "use HashMapStateBackend and execution.checkpointing.dir",
        "RocksDBStateBackend": "use EmbeddedRocksDBStateBackend and execution.checkpointing.dir",
    },
    "headrace.datastream.connectors": {
        "FlinkKafkaConsumer": _KAFKA,
        "FlinkKafkaProducer": _KAFKA,
        "FlinkKafkaConsumerBase": _KAFKA,
        "FlinkKafkaProducerBase": _KAFKA,
    },
}


class OlderMethodError(UnsupportedFeatureError, AttributeError):
    """A method of PyFlink 1.x that PyFlink 2 has not.

    Also an AttributeError, so that programs which ask with `hasattr` keep working.
    """


class OlderMethods:
    """For classes that have lost methods since PyFlink 1.x: asking for one says what to use instead."""

    if not TYPE_CHECKING:  # checkers should go on to report these names as missing

        def __getattr__(self, name: str) -> Any:
            hint = OLDER_METHODS.get(type(self).__name__, {}).get(name)
            if hint is None:
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
                )
            feature = f"{type(self).__name__}.{name}"
            raise OlderMethodError(f"{feature} was removed in PyFlink 2", feature=feature, hint=hint)
