"""The settings of a `JobMaster`, and how they follow from the options."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.config.configuration import Configuration
from headrace.config.options import (
    checkpointing,
    epochs,
    execution,
    live,
    metrics,
    replay,
    rest,
    scheduler,
    state,
    table,
)
from headrace.config.scheduling import scheduler_type
from headrace.runtime.checkpoint.settings import CheckpointSettings
from headrace.runtime.epoch.pacing import PacingSettings
from headrace.runtime.epoch.recording import recording_directory
from headrace.runtime.job import restart
from headrace.runtime.job.exchange_choice import EPOCHS, ExchangeChoice
from headrace.runtime.monitoring.flame_graphs import FlameGraphSettings
from headrace.runtime.run.live_run import LiveOptions
from headrace.runtime.scheduling.adaptive_scheduler import AdaptiveSettings
from headrace.runtime.scheduling.autoscaler import AutoscalerSettings

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobMasterSettings:
    """The options the master itself reads."""

    #: Where the job keeps state and checkpoints, each job below its own id.
    directory: str
    pacing: PacingSettings
    idle_poll_s: float = 0.01
    epoch_retries: int = 3
    max_changes: int = 16
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    restart: restart.RestartStrategy = field(default_factory=restart.NoRestart)
    #: Set if the parallelism follows the slots.
    adaptive: AdaptiveSettings | None = None
    #: Set if it follows the load.
    autoscaler: AutoscalerSettings | None = None
    #: How long a job waits for slots.
    slot_timeout_ms: int = 300_000
    #: From one latency marker to the next; 0 for none.
    latency_interval_ms: int = 0
    #: Failures that are remembered.
    failure_history_size: int = 16
    flame_graphs: FlameGraphSettings = field(default_factory=FlameGraphSettings)
    #: Set if subtasks last as long as a run.
    live: LiveOptions | None = None
    #: Whether they do, and why.
    exchange: ExchangeChoice = EPOCHS
    #: How many epochs are kept to be replayed, and below which directory the job is recorded.
    recorded_epochs: int = 0
    recording_directory: str | None = None


def live_options(configuration: Configuration) -> LiveOptions:
    """Return what the options say about live jobs."""
    milliseconds = timedelta(milliseconds=1)
    is_exactly_once = configuration.get(checkpointing.MODE) is checkpointing.CheckpointingMode.EXACTLY_ONCE
    if configuration.get(checkpointing.UNALIGNED) and not is_exactly_once:
        _log.warning(
            "%s has no effect with %s: AT_LEAST_ONCE, because barriers are not aligned",
            *(checkpointing.UNALIGNED.key, checkpointing.MODE.key),
        )
    return LiveOptions(
        port=configuration.get(live.PORT),
        # Where the parallelism follows the slots, all subtasks start again, with those that are left.
        fails_by_region=configuration.get(scheduler.FAILOVER_STRATEGY) == "region"
        and scheduler_type(configuration) is not scheduler.SchedulerType.Adaptive,
        buffer_timeout_ms=configuration.get(execution.BUFFER_TIMEOUT) // milliseconds,
        heartbeat_ms=configuration.get(live.HEARTBEAT_INTERVAL) // milliseconds,
        heartbeat_timeout_s=(
            configuration.get(live.HEARTBEAT_TIMEOUT) or configuration.get(live.LOST_AFTER)
        ).total_seconds(),
        idle_poll_s=configuration.get(live.IDLE_POLL_INTERVAL).total_seconds(),
        barrier_interval_ms=configuration.get(live.BARRIER_INTERVAL) // milliseconds,
        latency_interval_ms=configuration.get(metrics.LATENCY_INTERVAL) // milliseconds,
        watermark_interval_ms=configuration.get(execution.AUTO_WATERMARK_INTERVAL) // milliseconds,
        max_records=configuration.get(epochs.MAX_RECORDS),
        is_exactly_once=is_exactly_once,
        overtakes_after_ms=configuration.get(checkpointing.ALIGNED_TIMEOUT) // milliseconds
        if is_exactly_once and configuration.get(checkpointing.UNALIGNED)
        else None,
    )


def job_master_settings(
    configuration: Configuration,
    directory: str,
    *,
    exchange: ExchangeChoice = EPOCHS,
    job_id: str = "",
) -> JobMasterSettings:
    """Return the settings of a job that keeps state and checkpoints below a directory.

    Args:
        configuration: The options.
        directory: Where the job keeps its files.
        exchange: Whether subtasks last as long as a run, and why.
        job_id: The job.
    """
    return JobMasterSettings(
        directory=directory,
        pacing=PacingSettings(
            target_duration=_target_duration(configuration),
            initial_records=configuration.get(epochs.INITIAL_RECORDS),
            max_records=_max_records(configuration),
            max_bytes=configuration.get(epochs.MAX_BYTES).get_bytes(),
        ),
        idle_poll_s=configuration.get(epochs.IDLE_POLL_INTERVAL).total_seconds(),
        epoch_retries=configuration.get(epochs.RETRIES),
        max_changes=configuration.get(state.COMPACTION_MAX_CHANGES),
        checkpoints=CheckpointSettings.from_configuration(configuration),
        restart=restart.from_configuration(configuration),
        adaptive=AdaptiveSettings.from_configuration(configuration),
        autoscaler=AutoscalerSettings.from_configuration(configuration),
        slot_timeout_ms=configuration.get(scheduler.SLOT_REQUEST_TIMEOUT) // timedelta(milliseconds=1),
        latency_interval_ms=configuration.get(metrics.LATENCY_INTERVAL) // timedelta(milliseconds=1),
        failure_history_size=configuration.get(rest.EXCEPTION_HISTORY_SIZE),
        flame_graphs=FlameGraphSettings.from_configuration(configuration),
        live=live_options(configuration) if exchange.is_live else None,
        exchange=exchange,
        recorded_epochs=configuration.get(replay.KEEP),
        recording_directory=recording_directory(configuration, job_id),
    )


def _target_duration(configuration: Configuration) -> timedelta:
    """Return how long an epoch may take: as long as rows of a mini-batch wait, if that was set."""
    latency = configuration.get(table.MINI_BATCH_LATENCY)
    is_set = configuration.get(table.MINI_BATCH) and latency
    return latency if is_set else configuration.get(epochs.TARGET_DURATION)


def _max_records(configuration: Configuration) -> int | None:
    """Return how many records a source subtask reads in an epoch at most; a mini-batch may have fewer."""
    most, size = configuration.get(epochs.MAX_RECORDS), configuration.get(table.MINI_BATCH_SIZE)
    if not configuration.get(table.MINI_BATCH) or size <= 0:
        return most
    return size if most is None else min(most, size)
