"""Puts dispatcher, application and server together: for a program that is run, and for a session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from headrace.config.configuration import Configuration
from headrace.config.options import rest as options
from headrace.graph.job_graph import JobGraph
from headrace.rest.application import RestApplication, archive
from headrace.rest.context import CachedCluster, Cluster, NoSparkPages, RestContext, SparkPages
from headrace.rest.operations import Operations
from headrace.rest.program_runner import ProgramRunner
from headrace.rest.reporters import Reporters
from headrace.rest.server import FETCH_S, RestServer
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import Dispatcher, JobRecovery, LiveJob, StartJob
from headrace.runtime.job.history import JobHistory
from headrace.util.application_log import DriverLogging, application_log

if TYPE_CHECKING:
    # Only for a gateway: it brings the planner of SQL along, which most programs start without.
    from headrace.gateway.sessions import Sessions


class ControlPlane:
    """The jobs of this process and the server that shows them.

    Args:
        configuration: The options of the process.
        cluster: What runs tasks.
        start: Starts jobs that are submitted; None where the program starts them.
        unpack: Reads jobs that are submitted.
        recovery: Given if jobs are to outlive the process.
        shut_down: Ends a session.
        artifact_directory: Where files go that submitted jobs bring along.
        spark_pages: Knows Spark's user interface.
        gateway: The sessions of the SQL gateway, if clients may open some.
        archive_directory: Where ended jobs are kept if the options do not say; None: in memory.

    Raises:
        ConfigurationError: If the server must not, or cannot, listen.
    """

    def __init__(
        self,
        configuration: Configuration,
        cluster: Cluster,
        *,
        start: StartJob | None = None,
        unpack: Callable[[bytes], JobGraph] | None = None,
        recovery: JobRecovery | None = None,
        shut_down: Callable[[], None] | None = None,
        artifact_directory: str = "",
        archive_directory: str | None = None,
        spark_pages: SparkPages | None = None,
        gateway: Sessions | None = None,
    ) -> None:
        settings = RestSettings.from_configuration(configuration)
        get = configuration.get
        history = JobHistory(
            get(options.ARCHIVE_DIRECTORY) or archive_directory,
            capacity=get(options.HISTORY_CAPACITY),
            expiration_ms=get(options.HISTORY_EXPIRATION) // timedelta(milliseconds=1),
        )
        self.dispatcher = Dispatcher(archive=self._archive, history=history, start=start, recovery=recovery)
        log = application_log(configuration)
        self._logging = DriverLogging(log)
        self._context = RestContext(
            self.dispatcher,
            configuration,
            Operations(settings.keep_results_s),
            CachedCluster(cluster),
            log,
            unpack=unpack,
            programs=ProgramRunner(configuration, lambda: self.url) if start is not None else None,
            spark_pages=spark_pages or NoSparkPages(),
            gateway=gateway,
            shut_down=shut_down,
            artifact_directory=artifact_directory,
        )
        self._server = RestServer(RestApplication(self._context, settings), settings)
        self._reporters = Reporters(self._context)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return self._server.url

    def start(self) -> None:
        self._logging.start()
        self._server.start()
        self._reporters.start()
        if self._context.gateway is not None:
            self._context.gateway.start()

    def close(self, fetch_s: float = FETCH_S) -> None:
        """Archive what has ended, and stop to answer."""
        if self._context.gateway is not None:
            self._context.gateway.close()
        self._reporters.close()
        self.dispatcher.close()
        self._server.close(fetch_s)
        self._logging.stop()

    def _archive(self, job: LiveJob) -> dict[str, str]:
        return dict(archive(job, self._context))
