"""CheckpointConfig: a face of the configuration."""

from __future__ import annotations

import pytest

from headrace.common import Configuration, Duration
from headrace.config import Configuration as Layers
from headrace.datastream.checkpoint_config import CheckpointConfig
from headrace.datastream.checkpointing_mode import CheckpointingMode
from headrace.datastream.execution_mode import RuntimeExecutionMode
from headrace.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from headrace.datastream.time_domain import TimeDomain
from headrace.errors import ConfigurationError


def test_defaults_are_those_of_flink():
    config = CheckpointConfig()
    assert not config.is_checkpointing_enabled()
    assert config.get_checkpoint_interval() == -1
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert config.get_checkpoint_timeout() == 600_000
    assert config.get_min_pause_between_checkpoints() == 0
    assert config.get_max_concurrent_checkpoints() == 1
    assert config.get_tolerable_checkpoint_failure_number() == 0
    assert config.is_fail_on_checkpointing_errors()
    assert not config.is_externalized_checkpoints_enabled()
    assert not config.is_unaligned_checkpoints_enabled()
    assert not config.is_force_unaligned_checkpoints()
    assert config.get_alignment_timeout() == Duration.of_millis(0)


def test_everything_set_is_seen_by_key():
    configuration = Configuration()
    (
        CheckpointConfig(configuration)
        .set_checkpoint_interval(5000)
        .set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
        .set_checkpoint_timeout(60_000)
        .set_min_pause_between_checkpoints(1000)
        .set_max_concurrent_checkpoints(2)
        .set_tolerable_checkpoint_failure_number(3)
        .set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
        .enable_unaligned_checkpoints()
        .set_aligned_checkpoint_timeout(Duration.of_seconds(2))
        .set_force_unaligned_checkpoints()
    )
    assert configuration.to_dict() == {
        "execution.checkpointing.interval": "5 s",
        "execution.checkpointing.mode": "AT_LEAST_ONCE",
        "execution.checkpointing.timeout": "1 min",
        "execution.checkpointing.min-pause": "1 s",
        "execution.checkpointing.max-concurrent-checkpoints": "2",
        "execution.checkpointing.tolerable-failed-checkpoints": "3",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.aligned-checkpoint-timeout": "2 s",
        "execution.checkpointing.unaligned.forced": "true",
    }
    Layers(configuration.to_dict())


def test_everything_set_by_key_is_seen():
    config = CheckpointConfig(
        Configuration.from_dict(
            {
                "execution.checkpointing.interval": "1 min",
                "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
            }
        )
    )
    assert config.is_checkpointing_enabled()
    assert config.get_checkpoint_interval() == 60_000
    assert config.is_externalized_checkpoints_enabled()
    assert config.get_externalized_checkpoint_retention() is (
        ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION
    )


def test_failures_may_be_tolerated_without_end():
    config = CheckpointConfig().set_fail_on_checkpointing_errors(False)
    assert config.get_tolerable_checkpoint_failure_number() == 2**31 - 1
    assert config.set_fail_on_checkpointing_errors(True).get_tolerable_checkpoint_failure_number() == 0


def test_unaligned_checkpoints_can_be_turned_off_again():
    config = CheckpointConfig().enable_unaligned_checkpoints().disable_unaligned_checkpoints()
    assert not config.is_unaligned_checkpoints_enabled()
    assert config.set_alignment_timeout(Duration.of_seconds(1)).get_aligned_checkpoint_timeout() == (
        Duration.of_seconds(1)
    )


def test_senseless_values_are_refused():
    with pytest.raises(ConfigurationError, match="expected at least 10 ms; got 5"):
        CheckpointConfig().set_checkpoint_interval(5)
    with pytest.raises(ConfigurationError, match="max-concurrent-checkpoints: expected at least 1; got 0"):
        CheckpointConfig().set_max_concurrent_checkpoints(0)


def test_the_enums_have_flinks_members():
    assert [mode.name for mode in RuntimeExecutionMode] == ["STREAMING", "BATCH", "AUTOMATIC"]
    assert [domain.name for domain in TimeDomain] == ["EVENT_TIME", "PROCESSING_TIME"]
