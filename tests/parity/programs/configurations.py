"""Configuration, and the getters and setters of environments."""

from pyflink.common import Configuration, RestartStrategies
from pyflink.datastream import (
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)

from . import values


def _config():
    config = Configuration()
    config.set_string("pipeline.name", "job")
    config.set_integer("parallelism.default", 3)
    config.set_boolean("pipeline.object-reuse", True)
    return config


def _env():
    return StreamExecutionEnvironment.get_execution_environment(Configuration())


def _checkpointed():
    env = _env()
    env.enable_checkpointing(5000, CheckpointingMode.AT_LEAST_ONCE)
    return env.get_checkpoint_config()


def _unaligned():
    config = _env().get_checkpoint_config()
    config.enable_unaligned_checkpoints()
    return config.is_unaligned_checkpoints_enabled()


def _float_value():
    config = Configuration()
    config.set_float("python.fn-execution.memory.managed.fraction", 0.5)
    return config.get_float("python.fn-execution.memory.managed.fraction", 1.0)


def _bytes_value():
    config = Configuration()
    config.set_bytearray("pipeline.name", bytearray(b"ab"))
    return bytes(config.get_bytearray("pipeline.name", bytearray(b"")))


def _removed():
    config = _config()
    config.remove_config("pipeline.name")
    return sorted(config.key_set())


def _added():
    config = Configuration()
    config.add_all(_config())
    return config == _config()


values(
    text=lambda: _config().get_string("pipeline.name", "none"),
    text_default=lambda: Configuration().get_string("pipeline.name", "none"),
    number=lambda: _config().get_integer("parallelism.default", 0),
    number_default=lambda: Configuration().get_integer("parallelism.default", 7),
    flag=lambda: _config().get_boolean("pipeline.object-reuse", False),
    flag_default=lambda: Configuration().get_boolean("pipeline.object-reuse", True),
    keys=lambda: sorted(_config().key_set()),
    contains=lambda: (_config().contains_key("pipeline.name"), _config().contains_key("no.such.key")),
    removed=_removed,
    to_dict=lambda: dict(sorted(_config().to_dict().items())),
    added=_added,
    equal=lambda: _config() == _config(),
    unequal=lambda: _config() == Configuration(),
    same_hash=lambda: hash(_config()) == hash(_config()),
    parallelism=lambda: _env().set_parallelism(3).get_parallelism(),
    max_parallelism=lambda: _env().set_max_parallelism(64).get_max_parallelism(),
    parallelism_zero=lambda: _env().set_parallelism(0),
    buffer_timeout=lambda: _env().set_buffer_timeout(10).get_buffer_timeout(),
    checkpoint_interval=lambda: _checkpointed().get_checkpoint_interval(),
    checkpoint_interval_default=lambda: _env().get_checkpoint_config().get_checkpoint_interval(),
    checkpoint_mode=lambda: _checkpointed().get_checkpointing_mode().name,
    checkpoint_enabled=lambda: _checkpointed().is_checkpointing_enabled(),
    checkpoint_disabled=lambda: _env().get_checkpoint_config().is_checkpointing_enabled(),
    checkpoint_timeout=lambda: _env().get_checkpoint_config().get_checkpoint_timeout(),
    checkpoint_pause=lambda: _env().get_checkpoint_config().get_min_pause_between_checkpoints(),
    checkpoint_concurrent=lambda: _env().get_checkpoint_config().get_max_concurrent_checkpoints(),
    checkpoint_failures=lambda: _env().get_checkpoint_config().get_tolerable_checkpoint_failure_number(),
    checkpoint_retention=lambda: _env().get_checkpoint_config().get_externalized_checkpoint_retention().name,
    checkpoint_unaligned=lambda: _env().get_checkpoint_config().is_unaligned_checkpoints_enabled(),
    checkpoint_interval_env=lambda: _env().enable_checkpointing(5000).get_checkpoint_interval(),
    checkpoint_interval_low=lambda: _env().enable_checkpointing(1),
    watermark_interval=lambda: _env().get_config().get_auto_watermark_interval(),
    watermark_interval_set=lambda: (
        _env().get_config().set_auto_watermark_interval(50).get_auto_watermark_interval()
    ),
    object_reuse=lambda: _env().get_config().is_object_reuse_enabled(),
    object_reuse_set=lambda: _env().get_config().enable_object_reuse().is_object_reuse_enabled(),
    config_parallelism=lambda: _env().get_config().set_parallelism(5).get_parallelism(),
    config_latency=lambda: _env().get_config().get_latency_tracking_interval(),
    config_generic=lambda: _env().get_config().has_generic_types_disabled(),
    config_equal=lambda: _env().get_config() == _env().get_config(),
    config_parameters=lambda: _env().get_config().get_global_job_parameters(),
    restart_description=lambda: RestartStrategies.fixed_delay_restart(3, 1000).get_description(),
    restart_attempts=lambda: RestartStrategies.fixed_delay_restart(3, 1000).get_restart_attempts(),
    config_text=lambda: str(Configuration()),
    closure_cleaner=lambda: _env().get_config().is_closure_cleaner_enabled(),
    cancellation_interval=lambda: _env().get_config().get_task_cancellation_interval(),
    cancellation_timeout=lambda: _env().get_config().get_task_cancellation_timeout(),
    force_kryo=lambda: _env().get_config().is_force_kryo_enabled(),
    force_avro=lambda: _env().get_config().is_force_avro_enabled(),
    auto_uids=lambda: _env().get_config().has_auto_generated_uids_enabled(),
    snapshot_compression=lambda: _env().get_config().is_use_snapshot_compression(),
    max_parallelism_default=lambda: _env().get_config().get_max_parallelism(),
    externalized=lambda: _env().get_checkpoint_config().is_externalized_checkpoints_enabled(),
    aligned_timeout=lambda: str(_env().get_checkpoint_config().get_aligned_checkpoint_timeout()),
    force_unaligned=lambda: _env().get_checkpoint_config().is_force_unaligned_checkpoints(),
    unaligned_set=_unaligned,
    float_value=_float_value,
    bytes_value=_bytes_value,
    runtime_modes=lambda: [each.name for each in RuntimeExecutionMode],
    checkpointing_modes=lambda: [each.name for each in CheckpointingMode],
    retentions=lambda: [each.name for each in ExternalizedCheckpointRetention],
    restart_none=lambda: type(RestartStrategies.no_restart()).__name__,
    chaining=lambda: _env().is_chaining_enabled(),
    chaining_off=lambda: _env().disable_operator_chaining().is_chaining_enabled(),
)
