"""The few options a task needs, fixed when the job is submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.runtime.artifacts import ShippedArtifact
from headrace.runtime.epoch.recording import RecordingSettings
from headrace.runtime.task.latency import LatencySettings
from headrace.state.latency import StateLatencySettings
from headrace.state.stores.settings import StoreSettings
from headrace.util.host_directories import Owner


@dataclass(frozen=True)
class TaskSettings:
    """Shipped with the job."""

    #: Name of the directory, under the host's scratch space, for local state copies of this run.
    scratch_name: str
    #: Who is written down as the owner of these directories.
    owner: Owner = field(default_factory=lambda: Owner.here("copies of state"))
    #: Where the host's scratch space is, whatever the store would choose; for workers that only seem to be hosts.
    scratch_parent: str | None = None
    store: StoreSettings = field(default_factory=StoreSettings)
    buffer_records: int = 1_000
    #: From one periodic watermark to the next; 0 for none between two batches of the input.
    watermark_interval_ms: int = 200
    state_cache_entries: int = 1_000_000
    #: How many bytes a worker may allocate, if there is a limit.
    memory_limit: int | None = None
    #: The least level that functions log.
    log_level: str = "INFO"
    #: What the job brings along.
    artifacts: tuple[ShippedArtifact, ...] = ()
    #: Where the worker has cached files, by name; filled in there.
    cached_files: Mapping[str, str] = field(default_factory=dict)
    latency: LatencySettings = field(default_factory=LatencySettings)
    #: Set if accesses to keyed state are measured.
    state_latency: StateLatencySettings | None = None
    #: Set if epochs are recorded, to be replayed.
    recording: RecordingSettings | None = None
