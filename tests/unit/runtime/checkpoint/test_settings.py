"""Checkpointing as configured."""

from __future__ import annotations

from headrace.common import Configuration as ProgramConfiguration
from headrace.config.configuration import Configuration
from headrace.config.options.checkpointing import (
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    RecoveryClaimMode,
)
from headrace.datastream import FileSystemCheckpointStorage, StreamExecutionEnvironment
from headrace.runtime.checkpoint.settings import CheckpointSettings


def test_without_configuration_there_are_no_checkpoints() -> None:
    settings = CheckpointSettings.from_configuration(Configuration())
    assert settings == CheckpointSettings()
    assert not settings.is_enabled
    assert settings.effective_interval_ms is None


def test_every_option_is_read() -> None:
    settings = CheckpointSettings.from_configuration(
        Configuration(
            {
                "execution.checkpointing.interval": "5 s",
                "execution.checkpointing.timeout": "1 min",
                "execution.checkpointing.min-pause": "2 s",
                "execution.checkpointing.max-concurrent-checkpoints": 3,
                "execution.checkpointing.tolerable-failed-checkpoints": 4,
                "execution.checkpointing.mode": "AT_LEAST_ONCE",
                "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
                "execution.checkpointing.num-retained": 5,
                "execution.checkpointing.dir": "/c",
                "execution.checkpointing.savepoint-dir": "/s",
                "execution.checkpointing.checkpoints-after-tasks-finish": "false",
                "execution.state-recovery.path": "/s/savepoint-1",
                "execution.state-recovery.claim-mode": "CLAIM",
                "execution.state-recovery.ignore-unclaimed-state": "true",
                "web.checkpoints.history": 6,
            }
        )
    )
    assert settings == CheckpointSettings(
        interval_ms=5_000,
        timeout_ms=60_000,
        min_pause_ms=2_000,
        max_concurrent=3,
        tolerable_failures=4,
        mode=CheckpointingMode.AT_LEAST_ONCE,
        retention=ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION,
        retained=5,
        directory="/c",
        savepoint_directory="/s",
        after_tasks_finish=False,
        recovery_path="/s/savepoint-1",
        claim_mode=RecoveryClaimMode.CLAIM,
        ignore_unclaimed_state=True,
        history_size=6,
    )


def test_a_pause_lengthens_the_interval_and_means_one_at_a_time() -> None:
    settings = CheckpointSettings(interval_ms=1_000, min_pause_ms=3_000, max_concurrent=5)
    assert (settings.effective_interval_ms, settings.effective_max_concurrent) == (3_000, 1)
    settings = CheckpointSettings(interval_ms=1_000, max_concurrent=5)
    assert (settings.effective_interval_ms, settings.effective_max_concurrent) == (1_000, 5)


def test_what_a_program_sets_with_pyflinks_methods_is_what_runs() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(ProgramConfiguration())
    env.enable_checkpointing(5_000, CheckpointingMode.AT_LEAST_ONCE)
    env.set_default_savepoint_directory("/s")
    (
        env.get_checkpoint_config()
        .set_checkpoint_timeout(60_000)
        .set_min_pause_between_checkpoints(1_000)
        .set_max_concurrent_checkpoints(2)
        .set_tolerable_checkpoint_failure_number(3)
        .set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION)
    )
    storage = FileSystemCheckpointStorage("/c")
    env.configure(ProgramConfiguration.from_dict(storage.to_dict()))
    values = env.get_checkpoint_config()._configuration.to_dict()
    assert CheckpointSettings.from_configuration(Configuration(values)) == CheckpointSettings(
        interval_ms=5_000,
        timeout_ms=60_000,
        min_pause_ms=1_000,
        max_concurrent=2,
        tolerable_failures=3,
        mode=CheckpointingMode.AT_LEAST_ONCE,
        retention=ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION,
        directory="/c",
        savepoint_directory="/s",
    )
