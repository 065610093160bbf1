"""From options to what a `JobMaster` is told."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.configuration import Configuration
from headrace.config.options import epochs, metrics, rest, scheduler, state
from headrace.runtime.checkpoint.settings import CheckpointSettings
from headrace.runtime.epoch.pacing import PacingSettings
from headrace.runtime.job import restart
from headrace.runtime.job.master import JobMasterSettings
from headrace.runtime.monitoring.flame_graphs import FlameGraphSettings
from headrace.runtime.scheduling.adaptive_scheduler import AdaptiveSettings


def job_master_settings(configuration: Configuration, directory: str) -> JobMasterSettings:
    """Return the settings of a job that keeps state and checkpoints below a directory."""
    return JobMasterSettings(
        directory=directory,
        pacing=PacingSettings(
            target_duration=configuration.get(epochs.TARGET_DURATION),
            initial_records=configuration.get(epochs.INITIAL_RECORDS),
            max_records=configuration.get(epochs.MAX_RECORDS),
            max_bytes=configuration.get(epochs.MAX_BYTES).get_bytes(),
        ),
        idle_poll_s=configuration.get(epochs.IDLE_POLL_INTERVAL).total_seconds(),
        epoch_retries=configuration.get(epochs.RETRIES),
        max_changes=configuration.get(state.COMPACTION_MAX_CHANGES),
        checkpoints=CheckpointSettings.from_configuration(configuration),
        restart=restart.from_configuration(configuration),
        adaptive=AdaptiveSettings.from_configuration(configuration),
        slot_timeout_ms=configuration.get(scheduler.SLOT_REQUEST_TIMEOUT) // timedelta(milliseconds=1),
        latency_interval_ms=configuration.get(metrics.LATENCY_INTERVAL) // timedelta(milliseconds=1),
        failure_history_size=configuration.get(rest.EXCEPTION_HISTORY_SIZE),
        flame_graphs=FlameGraphSettings.from_configuration(configuration),
    )
