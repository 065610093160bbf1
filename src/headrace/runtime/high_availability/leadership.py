"""Leadership of one process over one job: the lease it holds, and what follows when it is lost.

A program that is started again under the same `high-availability.cluster-id` gives its job the same id, so it finds the
job's checkpoints and continues from the last one. One that is started from a savepoint is another job: a savepoint is
named by somebody who wants to continue from there, whatever became of the job before.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
from collections.abc import Callable
from dataclasses import replace

from headrace.config.configuration import Configuration
from headrace.config.options import checkpointing
from headrace.errors import ConfigurationError, LeadershipError
from headrace.graph.job_graph import JobGraph
from headrace.runtime.high_availability.job_results import FileJobResults
from headrace.runtime.high_availability.job_store import JobStore
from headrace.runtime.high_availability.lease import HighAvailabilitySettings, LeaderLease, LeaseKeeper
from headrace.storage.paths import absolute_path

_log = logging.getLogger(__name__)

#: A lease that was left behind by a lost driver is waited for: so many times its length, and some seconds.
_PATIENCE = 2
_MORE_PATIENCE_S = 5.0


def lasting_job_id(cluster_id: str, started_from: str | None = None) -> str:
    """Return the id that a program's job has in every process of a cluster id.

    Args:
        cluster_id: Drivers with the same id replace each other.
        started_from: The savepoint or checkpoint that the job is to start from.
    """
    known_by = cluster_id if started_from is None else f"{cluster_id}\0{absolute_path(started_from)}"
    return hashlib.md5(known_by.encode(), usedforsecurity=False).hexdigest()


class Leadership:
    """Held by a process for as long as it runs a job; `release` it when the job is over."""

    def __init__(
        self,
        settings: HighAvailabilitySettings,
        name: str,
        stand_by: Callable[[LeadershipError], object] | None = None,
    ) -> None:
        self._settings = settings
        self._lease = LeaderLease(settings, name=name)
        #: Every job of the process has one.
        self._on_lost: list[Callable[[LeadershipError], object]] = []
        self._lost: LeadershipError | None = None
        self._lock = threading.Lock()
        patience_s = settings.lease_ms / 1000 * _PATIENCE + _MORE_PATIENCE_S
        if not self._lease.try_acquire():
            if stand_by is None:
                _log.info("%s; waiting up to %g s", self._lease.occupied().message, patience_s)
            else:
                stand_by(self._lease.occupied())
                patience_s = math.inf
            self._lease.acquire(patience_s)
        self._keeper = LeaseKeeper(self._lease, self._lose)
        self._keeper.start()

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        name: str,
        stand_by: Callable[[LeadershipError], object] | None = None,
    ) -> Leadership | None:
        """Lead, if the configuration asks for it; waits until a lost driver's lease has run out.

        Args:
            configuration: Says whether, and under which cluster id.
            name: Shown to others that want to lead.
            stand_by: Given if the process waits for as long as another one leads; told once who that is.

        Raises:
            LeadershipError: If another process leads, and this one does not stand by.
            ConfigurationError: If a new leader could find no checkpoints.
        """
        settings = HighAvailabilitySettings.from_configuration(configuration)
        if settings is None:
            return None
        if not configuration.get(checkpointing.DIRECTORY):
            raise ConfigurationError(
                "high availability needs checkpoints that outlive the driver",
                hint=f"set {checkpointing.DIRECTORY.key} to a directory that every driver can read",
            )
        return cls(settings, name, stand_by)

    def with_lasting_id(self, job: JobGraph, started_from: str | None = None) -> JobGraph:
        """Return the job under the id that it has in every process of this cluster id.

        Args:
            job: The job.
            started_from: The savepoint or checkpoint that it is to start from.
        """
        return replace(job, job_id=lasting_job_id(self._settings.cluster_id, started_from))

    @property
    def token(self) -> int:
        """The fencing token: higher than that of every leader before."""
        return self._lease.token

    def job_store(self) -> JobStore:
        """Return where the jobs of this cluster id are kept for the next leader."""
        return JobStore(self._settings.jobs_directory, self._lease)

    def job_results(self, *, is_session: bool = False) -> FileJobResults:
        """Return where it is written down how jobs of this cluster id ended.

        Args:
            is_session: Whether ids of jobs never come again: then results go when jobs have been cleaned up.
        """
        deletes = self._settings.deletes_results
        return FileJobResults(
            self._settings.results_directory,
            leader=self.token,
            ensure_leader=self.ensure,
            delete_on_commit=is_session if deletes is None else deletes,
            continues_failed=not is_session,
        )

    @property
    def artifact_directory(self) -> str:
        """Where files of jobs are kept for the next leader."""
        return f"{self._settings.jobs_directory}-artifacts"

    def ensure(self) -> None:
        """Raise if this process does not lead any more; to be called before every write that matters."""
        self._lease.ensure_leader()

    def when_lost(self, action: Callable[[LeadershipError], object]) -> None:
        """Have a function called when leadership is lost; at once if it is."""
        with self._lock:
            self._on_lost.append(action)
            lost = self._lost
        if lost is not None:
            action(lost)

    def release(self) -> None:
        """Release the lease, so that the next leader does not have to wait until it expires."""
        self._keeper.stop()
        self._lease.release()

    def _lose(self, error: LeadershipError) -> None:
        with self._lock:
            self._lost = error
            actions = list(self._on_lost)
        for action in actions:
            action(error)
