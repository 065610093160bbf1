"""Keeps materialized tables up to date.

    CONTINUOUS   a streaming job: INSERT INTO the table, with a checkpoint as often as the freshness says
    FULL         batch jobs: INSERT OVERWRITE, one whenever a multiple of the freshness is reached

SUSPEND stops the job with a savepoint, or the schedule; RESUME continues from there. The catalog keeps the query, and
what a suspended job continues from. Jobs and schedules belong to the process that has started them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from headrace.catalog import CatalogManager, ObjectIdentifier
from headrace.catalog.objects import CatalogTable, Materialization, RefreshMode, RefreshStatus
from headrace.common.job_client import JobClient
from headrace.config import Configuration
from headrace.config.options import checkpointing, execution, materialized_table
from headrace.errors import CatalogError, HeadraceError, SqlValidationError
from headrace.planner import statements as s
from headrace.table.table_config import TableConfig
from headrace.table.table_result import TableResult
from headrace.types.logical import quote_name, quote_text
from headrace.util import clock

__all__ = ["MaterializedTableKeeper"]

_log = logging.getLogger(__name__)


class MaterializedTableKeeper:
    """Carries out statements about materialized tables.

    Args:
        manager: Has the tables.
        config: What jobs are started with.
        read: Returns all layers of the configuration.
        execute: Carries out a statement of SQL.
    """

    def __init__(
        self,
        manager: CatalogManager,
        config: TableConfig,
        read: Callable[[], Configuration],
        execute: Callable[[str], TableResult],
    ) -> None:
        self._manager = manager
        self._config = config
        self._read = read
        self._execute = execute
        self._jobs: dict[ObjectIdentifier, JobClient] = {}
        self._schedules: dict[ObjectIdentifier, Schedule] = {}
        #: A refresh of a schedule and a statement of the program must not change options for each other.
        self._turn = threading.RLock()

    def carry_out(self, statement: s.MaterializedTableStatement) -> TableResult | None:
        """Carry out a statement; return the result of the job that REFRESH has started."""
        match statement:
            case s.CreateMaterializedTable():
                self._create(statement)
            case s.DropMaterializedTable(identifier):
                self._drop(identifier)
            case s.AlterMaterializedTable(identifier, "SUSPEND"):
                self._suspend(identifier)
            case s.AlterMaterializedTable(identifier, "RESUME", options):
                self._resume(identifier, options)
            case s.AlterMaterializedTable(identifier, _, _, partition):
                return self._refresh(identifier, partition)
        return None

    # -- statements --------------------------------------------------------------------------------------------

    def _create(self, statement: s.CreateMaterializedTable) -> None:
        identifier = statement.create.identifier
        if self._manager.permanent_table(identifier) is not None:
            if statement.create.if_not_exists:
                return
            raise CatalogError(f"table or view {identifier.dotted()!r} already exists")
        made = self._materialization(statement)
        self._manager.put_table(identifier, replace(statement.create.table, materialization=made))
        try:
            self._start(identifier, made, {})
        except BaseException:
            self._manager.catalog(identifier.catalog).drop_table(identifier.database, identifier.name)
            raise

    def _materialization(self, statement: s.CreateMaterializedTable) -> Materialization:
        read = self._read().get
        mode, freshness = statement.mode, statement.freshness
        if freshness is None:
            is_full = mode is RefreshMode.FULL
            default = (
                materialized_table.FULL_FRESHNESS if is_full else materialized_table.CONTINUOUS_FRESHNESS
            )
            freshness = read(default)
        if mode is None:
            is_close = freshness < read(materialized_table.THRESHOLD)
            mode = RefreshMode.CONTINUOUS if is_close else RefreshMode.FULL
        return Materialization(statement.query, freshness, mode)

    def _suspend(self, identifier: ObjectIdentifier) -> None:
        made = self._of(identifier)
        if made.status is RefreshStatus.SUSPENDED:
            raise SqlValidationError(f"materialized table {identifier.dotted()!r} is already suspended")
        savepoint = None
        if made.mode is RefreshMode.FULL:
            self._end_schedule(identifier)
        else:
            savepoint = self._running(identifier).stop_with_savepoint(False).result()
            self._jobs.pop(identifier)
        self._change(identifier, replace(made, status=RefreshStatus.SUSPENDED, savepoint=savepoint))

    def _resume(self, identifier: ObjectIdentifier, options: Mapping[str, str]) -> None:
        made = self._of(identifier)
        if made.status is not RefreshStatus.SUSPENDED and identifier in (self._jobs | self._schedules):
            raise SqlValidationError(f"materialized table {identifier.dotted()!r} is not suspended")
        self._start(identifier, made, options)
        self._change(identifier, replace(made, status=RefreshStatus.ACTIVATED, savepoint=None))

    def _refresh(self, identifier: ObjectIdentifier, partition: Mapping[str, str]) -> TableResult:
        made = self._of(identifier)
        query = made.query
        if partition:
            conditions = (
                f"CAST({quote_name(name)} AS STRING) = {quote_text(value)}"
                for name, value in partition.items()
            )
            query = f"SELECT * FROM ({query}) WHERE {' AND '.join(conditions)}"
        name = f"Materialized_table_{identifier.dotted()}_one_time_refresh_job"
        options = {execution.RUNTIME_MODE.key: "BATCH", execution.NAME.key: name}
        with self._turn, self._config.overridden(options):
            return self._execute(f"INSERT OVERWRITE {identifier} {query}")

    def _drop(self, identifier: ObjectIdentifier) -> None:
        if self._manager.permanent_table(identifier) is None:
            return
        self._end_schedule(identifier)
        client = self._jobs.pop(identifier, None)
        if client is not None and not client.get_job_status().result().is_globally_terminal_state():
            client.cancel().result()
        self._manager.catalog(identifier.catalog).drop_table(identifier.database, identifier.name)

    # -- jobs --------------------------------------------------------------------------------------------------

    def _start(self, identifier: ObjectIdentifier, made: Materialization, options: Mapping[str, str]) -> None:
        if made.mode is RefreshMode.FULL:
            if options:
                raise SqlValidationError(
                    f"materialized table {identifier.dotted()!r} is refreshed by batch jobs, which RESUME has no "
                    "options for",
                    hint="leave WITH out",
                )
            schedule = Schedule(made.freshness, lambda: self._refresh_on_schedule(identifier))
            self._schedules[identifier] = schedule
            schedule.start()
            return
        settings = {
            execution.RUNTIME_MODE.key: "STREAMING",
            execution.NAME.key: f"Materialized_table_{identifier.dotted()}_continuous_refresh_job",
            checkpointing.INTERVAL.key: f"{int(made.freshness.total_seconds())} s",
        }
        if made.savepoint is not None:
            settings[checkpointing.RECOVERY_PATH.key] = made.savepoint
        listed = ", ".join(f"{quote_text(key)}={quote_text(value)}" for key, value in options.items())
        hint = f" /*+ OPTIONS({listed}) */" if options else ""
        with self._turn, self._config.overridden(settings):
            client = self._execute(f"INSERT INTO {identifier}{hint} {made.query}").get_job_client()
        assert client is not None
        self._jobs[identifier] = client

    def _refresh_on_schedule(self, identifier: ObjectIdentifier) -> None:
        try:
            self._refresh(identifier, {}).wait()
        except HeadraceError as error:
            _log.warning("materialized table %s was not refreshed: %s", identifier.dotted(), error)

    def _running(self, identifier: ObjectIdentifier) -> JobClient:
        client = self._jobs.get(identifier)
        if client is None or client.get_job_status().result().is_globally_terminal_state():
            raise SqlValidationError(
                f"the job of materialized table {identifier.dotted()!r} does not run in this session",
                hint="suspend it where it was started, or stop the job with a savepoint",
            )
        return client

    def _end_schedule(self, identifier: ObjectIdentifier) -> None:
        schedule = self._schedules.pop(identifier, None)
        if schedule is not None:
            schedule.stop()

    # -- the catalog -------------------------------------------------------------------------------------------

    def _table(self, identifier: ObjectIdentifier) -> CatalogTable:
        found = self._manager.permanent_table(identifier)
        assert isinstance(found, CatalogTable)
        return found

    def _of(self, identifier: ObjectIdentifier) -> Materialization:
        made = self._table(identifier).materialization
        assert made is not None
        return made

    def _change(self, identifier: ObjectIdentifier, made: Materialization) -> None:
        self._manager.put_table(identifier, replace(self._table(identifier), materialization=made))


class Schedule:
    """Does something whenever a multiple of a length of time since 1970 is reached, as a cron job would.

    Args:
        every: The length of time.
        work: What is done; the next one waits for it.
        now_ms: The time.
    """

    def __init__(
        self, every: timedelta, work: Callable[[], None], now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._every_ms = every // timedelta(milliseconds=1)
        self._work = work
        self._now_ms = now_ms
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-refresh", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Do it no more. What is under way is finished."""
        self._stopped.set()

    def seconds_to_next(self) -> float:
        """Return how long it is to the next time.

        Example:
            >>> Schedule(timedelta(minutes=1), print, lambda: 90_000).seconds_to_next()
            30.0
        """
        return (self._every_ms - self._now_ms() % self._every_ms) / 1000

    def _run(self) -> None:
        while not self._stopped.wait(self.seconds_to_next()):
            self._work()
