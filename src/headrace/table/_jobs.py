"""From queries to a running job: plan, translate, submit."""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from headrace.catalog.objects import CatalogTable
from headrace.common import JobClient, JobID
from headrace.common.changelog import ALL, ChangelogMode
from headrace.config import Configuration
from headrace.config.options import execution, table_async
from headrace.config.options import table as options
from headrace.config.options.table_flink import REQUIRE_ON_CONFLICT
from headrace.connectors.base import Boundedness
from headrace.connectors.collect import open_collector
from headrace.connectors.lookup_tables import LookupSettings, TableLookup
from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream.closeable_iterator import CloseableIterator
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.graph.job_graph import JobGraph
from headrace.graph.mixed_job import table_steps
from headrace.graph.stream_graph import default_max_parallelism
from headrace.graph.table_job import TableNode, build_table_job
from headrace.graph.transformations import PhysicalTransformation
from headrace.operators.table.opened_functions import AsyncSettings
from headrace.planner.async_calls import with_settings
from headrace.planner.batch import translate_batch
from headrace.planner.conflicts import ConflictRules
from headrace.planner.emit import SPARK_SETTINGS
from headrace.planner.logical import LogicalNode, OnConflict, Scan, Sink
from headrace.planner.optimize import Plan, SinkRequest, plan_batch, plan_job
from headrace.planner.physical import CollectTarget, TableTarget
from headrace.planner.statements import ShowPartitions
from headrace.planner.translate import TranslationSettings, translate
from headrace.table._adaptive_batch import batch_settings
from headrace.table._connectors import TableConnectors
from headrace.table._optimizations import Optimizations
from headrace.table.table_config import checked_zone

__all__ = ["TableJobs"]


class RunningQuery(NamedTuple):
    """A query that was started."""

    client: JobClient
    #: Its rows as they come.
    rows: CloseableIterator
    #: Which kinds of rows they are.
    mode: ChangelogMode
    #: Whether one of its sources never ends.
    is_endless: bool


class TableJobs:
    """Plans and starts the jobs of an environment.

    Args:
        env: Has the configuration, and starts jobs.
    """

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        self._env = env

    @property
    def configuration(self) -> Configuration:
        """All layers of the configuration, as they are now."""
        return self._env._configuration.layered()

    @property
    def is_batch(self) -> bool:
        """Whether queries run once, over bounded input."""
        return self.configuration.get(execution.RUNTIME_MODE) is execution.RuntimeExecutionMode.BATCH

    @property
    def has_state_ttl(self) -> bool:
        """Whether state of queries expires."""
        return bool(self.configuration.get(options.STATE_TTL))

    @property
    def time_zone(self) -> str:
        """The time zone of the session."""
        return session_time_zone(self.configuration)

    # --- planning -------------------------------------------------------------------------------------

    def plan_query(self, query: LogicalNode, collect_id: str = "explain") -> Plan:
        """Plan a query whose rows come to the program."""
        return self._plan([SinkRequest(query, "collect", CollectTarget(collect_id), ALL)])

    def plan_inserts(self, sinks: Sequence[Sink]) -> Plan:
        """Plan INSERTs that run as one job."""
        return self._plan([self._request(sink) for sink in sinks])

    def plan_stream(self, request: SinkRequest) -> Plan:
        """Plan a query whose rows become a data stream."""
        return self._plan([request])

    def _plan(self, requests: Sequence[SinkRequest]) -> Plan:
        if not self.configuration.get(options.DYNAMIC_TABLE_OPTIONS):
            for request in requests:
                _refuse_hints(request.query)
        if self.is_batch:
            for request in requests:
                _refuse_conflicts(request)
            return plan_batch(requests)
        get = self.configuration.get
        return plan_job(
            requests,
            self.connectors,
            conflicts=ConflictRules(get(options.UPSERT_MATERIALIZE), get(REQUIRE_ON_CONFLICT)),
            is_sharing=get(options.REUSE_SUB_PLAN),
            splitting=self.optimizations.splitting,
            has_mini_batches=self.optimizations.mini_batch is True,
        )

    @property
    def connectors(self) -> TableConnectors:
        """Finds what reads and writes tables."""
        return TableConnectors(is_batch=self.is_batch)

    def partitions(self, statement: ShowPartitions) -> list[str]:
        """Return the partitions of a table."""
        return self.connectors.partitions_of(statement.identifier.dotted(), statement.table, statement.values)

    def _request(self, sink: Sink) -> SinkRequest:
        name = sink.identifier.dotted()
        names = [column.name for column in sink.table.sink_columns]
        primary = sink.table.primary_key.columns if sink.table.primary_key is not None else ()
        ability = self.connectors.ability_of(name, sink.table)
        return SinkRequest(
            sink.input,
            name,
            TableTarget(sink.identifier, sink.table, sink.overwrite, sink.static_partitions),
            ability.accepts,
            tuple(names.index(each) for each in primary if each in names),
            names=tuple(names),
            types=tuple(column.type for column in sink.table.sink_columns),
            on_conflict=sink.on_conflict,
            place=sink.place,
        )

    # --- running --------------------------------------------------------------------------------------

    def run_query(self, query: LogicalNode, awaits_end: str | None = None) -> RunningQuery:
        """Start a query.

        Args:
            query: The query.
            awaits_end: The call that returns when the query has ended, if that is what it is for: it warns of
                sources that never end.
        """
        collect_id = uuid.uuid4().hex
        plan = self.plan_query(query, collect_id)
        graph = self.job_graph(plan, "collect")
        endless = endless_source(graph)
        if awaits_end is not None and endless is not None:
            warnings.warn(
                f"{awaits_end} returns when the query has ended, and its source {endless!r} never ends; "
                "read rows as they come with execute().collect(), or bound the source",
                stacklevel=4,
            )
        mode = ChangelogMode.insert_only() if self.is_batch else plan.changelogs[plan.sinks[0].inputs[0]]
        reader = open_collector(collect_id)
        try:
            client = self._env._submit_job_graph(graph)
        except BaseException:
            reader.close()
            raise
        return RunningQuery(client, CloseableIterator(reader, client), mode, endless is not None)

    def submit(self, graph: JobGraph) -> JobClient:
        """Start a job and return its client."""
        return self._env._submit_job_graph(graph)

    def run_inserts(self, sinks: Sequence[Sink]) -> JobClient:
        """Start INSERTs as one job."""
        names = [sink.identifier.dotted() for sink in sinks]
        return self._env._submit_job_graph(
            self.job_graph(self.plan_inserts(sinks), f"insert-into_{','.join(names)}")
        )

    def nodes(self, plan: Plan) -> list[TableNode]:
        """Return the nodes of a plan's job."""
        get = self.configuration.get
        zone = self.time_zone
        settings = TranslationSettings(
            ttl_ms=_milliseconds(get(options.STATE_TTL)),
            idle_ms=_milliseconds(get(options.IDLE_TIMEOUT)) or None,
            drops_null=get(options.NOT_NULL_ENFORCER) is options.NotNullEnforcer.DROP,
            is_utc=zone in _UTC,
            zone=zone,
            row_by_row=self.optimizations.row_by_row,
            one_phase=self.optimizations.one_phase,
        )
        how = translate_batch if self.is_batch else translate
        nodes = how(plan, self.connectors, settings)
        lookups = LookupSettings(get(table_async.LOOKUP_CAPACITY), get(table_async.LOOKUP_TIMEOUT))
        with_settings(nodes, self._async_settings, self._async_table_settings, lookups)
        return nodes

    @property
    def optimizations(self) -> Optimizations:
        """What the configuration says about how changes are gathered."""
        return Optimizations.of(self.configuration)

    def lookup_of(self, name: str, table: CatalogTable, keys: Sequence[str]) -> TableLookup:
        """Return what looks rows of a table up."""
        return self.connectors.lookup_of(name, table, keys)

    @property
    def _async_settings(self) -> AsyncSettings:
        get = self.configuration.get
        retries = get(table_async.SCALAR_RETRIES) is table_async.RetryStrategy.FIXED_DELAY
        return AsyncSettings(
            max_concurrent=get(table_async.SCALAR_CONCURRENCY),
            timeout=get(table_async.SCALAR_TIMEOUT),
            max_attempts=get(table_async.SCALAR_ATTEMPTS) if retries else 1,
            retry_delay=get(table_async.SCALAR_RETRY_DELAY),
        )

    @property
    def _async_table_settings(self) -> AsyncSettings:
        get = self.configuration.get
        retries = get(table_async.TABLE_RETRIES) is table_async.RetryStrategy.FIXED_DELAY
        return AsyncSettings(
            max_concurrent=get(table_async.TABLE_CONCURRENCY),
            timeout=get(table_async.TABLE_TIMEOUT),
            max_attempts=1 + get(table_async.TABLE_MAX_RETRIES) if retries else 1,
            retry_delay=get(table_async.TABLE_RETRY_DELAY),
            timeout_key=table_async.TABLE_TIMEOUT.key,
        )

    def steps(self, plan: Plan) -> list[PhysicalTransformation]:
        """Return a plan as steps of the stream program, producers before consumers."""
        return self._steps(self.nodes(plan))

    def _steps(self, nodes: Sequence[TableNode]) -> list[PhysicalTransformation]:
        self._env._session_settings.update(self.session_settings)
        return table_steps(nodes, next_id=self._env._next_id, parallelism=self._parallelism)

    @property
    def _parallelism(self) -> int:
        parallelism = self.configuration.get(options.DEFAULT_PARALLELISM)
        return parallelism if parallelism > 0 else self._env.get_parallelism()

    @property
    def session_settings(self) -> dict[str, str]:
        """What the Spark SQL of jobs relies on."""
        return {**SPARK_SETTINGS, "spark.sql.session.timeZone": self.time_zone}

    def job_graph(self, plan: Plan, name: str) -> JobGraph:
        """Return the job of a plan."""
        return self.graph_of(self.nodes(plan), name, self.session_settings)

    def graph_of(
        self, nodes: Sequence[TableNode], name: str, session_settings: Mapping[str, str]
    ) -> JobGraph:
        """Return the job of some nodes, whose Spark SQL relies on these settings."""
        get = self.configuration.get
        parallelism = self._parallelism
        if any(node.stream is not None for node in nodes):
            return self._env._job_graph_of(self._steps(nodes), get(execution.NAME) or name)
        maximum = get(execution.MAX_PARALLELISM)
        if self.is_batch:
            session_settings = {**session_settings, **batch_settings(self.configuration)}
        return build_table_job(
            nodes,
            job_id=str(JobID.generate()),
            name=get(execution.NAME) or name,
            parallelism=parallelism,
            max_parallelism=default_max_parallelism(parallelism) if maximum == -1 else maximum,
            is_batch=self.is_batch,
            global_job_parameters=get(execution.GLOBAL_JOB_PARAMETERS),
            session_settings=session_settings,
        )


def endless_source(job: JobGraph) -> str | None:
    """Return the name of a source of the job that never ends, if there is one."""
    for vertex in job.vertices:
        source = getattr(vertex.head.declaration, "source", None)
        if getattr(source, "boundedness", Boundedness.BOUNDED) is not Boundedness.BOUNDED:
            return vertex.head.name
    return None


_UTC = ("UTC", "Etc/UTC", "Z")


def session_time_zone(configuration: Configuration) -> str:
    """Return the time zone that a job's Spark session has.

    Raises:
        SqlValidationError: If there is no such zone.
    """
    zone = configuration.get(options.LOCAL_TIME_ZONE)
    if zone == options.LOCAL_TIME_ZONE.default:
        zone = configuration.spark_settings().get("spark.sql.session.timeZone", "")
    return checked_zone(zone) if zone else _machine_zone()


def _machine_zone() -> str:
    """Return the zone of this machine, as Spark would find it."""
    from pathlib import Path

    if time.tzname == ("UTC", "UTC"):
        return "UTC"
    link = Path("/etc/localtime")
    parts = str(link.resolve()).partition("zoneinfo/")
    if parts[2]:
        return parts[2]
    hours, seconds = divmod(abs(time.timezone), 3600)
    return f"{'-' if time.timezone > 0 else '+'}{hours:02}:{seconds // 60:02}"


def _refuse_conflicts(request: SinkRequest) -> None:
    if request.on_conflict in (OnConflict.NOTHING, OnConflict.ERROR):
        raise UnsupportedFeatureError.not_yet(
            f"ON CONFLICT DO {request.on_conflict.value} in BATCH mode",
            "use ON CONFLICT DO DEDUPLICATE, or streaming mode",
        )


def _refuse_hints(node: LogicalNode) -> None:
    if isinstance(node, Scan) and node.hints:
        raise SqlValidationError(
            f"table {node.identifier.dotted()!r} has an OPTIONS hint, and {options.DYNAMIC_TABLE_OPTIONS.key} is false",
            hint="leave the hint out, or set the option to true",
        )
    for each in node.inputs:
        _refuse_hints(each)


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
