"""Materialized tables, without jobs: statements, modes, what is executed when."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import pytest

from headrace.catalog.objects import CatalogTable, RefreshMode, RefreshStatus
from headrace.common.job_status import JobStatus
from headrace.errors import HeadraceError, SqlValidationError
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.table._materialized import Schedule

CREATE = (
    "CREATE MATERIALIZED TABLE totals (PRIMARY KEY (page) NOT ENFORCED) COMMENT 'sums' "
    "WITH ('connector' = 'blackhole') FRESHNESS = INTERVAL '{}' {} "
    "AS SELECT page, SUM(id) AS total FROM clicks GROUP BY page"
)


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class FakeClient:
    """A job that does what it is told."""

    status = JobStatus.RUNNING

    def get_job_status(self) -> Future[JobStatus]:
        return done(self.status)

    def stop_with_savepoint(self, with_drain: bool) -> Future[str]:
        self.status = JobStatus.FINISHED
        return done("/savepoints/1")

    def cancel(self) -> Future[None]:
        self.status = JobStatus.CANCELED
        return done(None)


class FakeResult:
    def __init__(self, client: FakeClient) -> None:
        self._client = client

    def get_job_client(self) -> FakeClient:
        return self._client


class Session:
    """An environment whose jobs are only noted, with the options that they were started with."""

    def __init__(self) -> None:
        self.t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        self.t_env.execute_sql("CREATE TABLE clicks (id INT, page STRING) WITH ('connector' = 'datagen')")
        self.started: list[tuple[str, dict[str, str]]] = []
        self.clients: list[FakeClient] = []
        self.before = self.t_env.get_config().to_map()
        self.keeper = self.t_env._statements._materialized
        self.keeper._execute = self._start  # type: ignore[assignment]  # a fake

    def _start(self, sql: str) -> FakeResult:
        set_now = self.t_env.get_config().to_map()
        changed = {key: value for key, value in set_now.items() if self.before.get(key) != value}
        self.started.append((sql, changed))
        self.clients.append(FakeClient())
        return FakeResult(self.clients[-1])

    def run(self, sql: str) -> list[Any]:
        result = self.t_env.execute_sql(sql)
        return [tuple(row) for row in result.collect()] if hasattr(result, "collect") else []

    def table(self) -> CatalogTable:
        found = self.t_env._manager.table(next(iter(self._ids())))
        assert isinstance(found, CatalogTable)
        return found

    def _ids(self) -> Iterator[Any]:
        from headrace.catalog import ObjectIdentifier

        yield ObjectIdentifier("default_catalog", "default_database", "totals")


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session()
    yield made
    for schedule in made.keeper._schedules.values():
        schedule.stop()
        schedule._thread.join(10)


NAME = "default_catalog.default_database.totals"
QUERY = "SELECT page, SUM(id) AS total FROM `default_catalog`.`default_database`.`clicks` GROUP BY page"


def test_a_table_with_a_short_freshness_is_written_by_a_streaming_job(session: Session) -> None:
    session.run(CREATE.format(30, "SECOND"))
    made = session.table().materialization
    assert made is not None
    assert (made.mode, made.freshness) == (RefreshMode.CONTINUOUS, timedelta(seconds=30))
    [(sql, options)] = session.started
    assert sql == f"INSERT INTO `default_catalog`.`default_database`.`totals` {made.query}"
    assert options == {
        "execution.runtime-mode": "STREAMING",
        "pipeline.name": f"Materialized_table_{NAME}_continuous_refresh_job",
        "execution.checkpointing.interval": "30 s",
    }
    assert session.t_env.get_config().to_map() == session.before
    assert session.run("SHOW MATERIALIZED TABLES") == [("totals",)]
    assert session.run("SHOW TABLES") == [("clicks",), ("totals",)]
    [(text,)] = session.run("SHOW CREATE MATERIALIZED TABLE totals")
    assert "FRESHNESS = INTERVAL '30' SECOND\nREFRESH_MODE = CONTINUOUS\nAS SELECT" in text
    assert "PRIMARY KEY (`page`) NOT ENFORCED" in text


def test_materialized_tables_are_listed_and_others_are_not(session: Session) -> None:
    assert session.t_env.list_materialized_tables() == []
    session.run(CREATE.format(1, "MINUTE"))

    assert session.t_env.list_materialized_tables() == ["totals"]
    catalog = session.t_env.get_catalog("default_catalog")
    assert catalog is not None
    assert catalog.list_materialized_tables("default_database") == ["totals"]


def test_suspend_and_resume_go_through_a_savepoint(session: Session) -> None:
    session.run(CREATE.format(1, "MINUTE"))
    with pytest.raises(SqlValidationError, match="is not suspended"):
        session.run("ALTER MATERIALIZED TABLE totals RESUME")
    session.run("ALTER MATERIALIZED TABLE totals SUSPEND")
    made = session.table().materialization
    assert made is not None
    assert (made.status, made.savepoint) == (RefreshStatus.SUSPENDED, "/savepoints/1")
    with pytest.raises(SqlValidationError, match="already suspended"):
        session.run("ALTER MATERIALIZED TABLE totals SUSPEND")
    session.run("ALTER MATERIALIZED TABLE totals RESUME WITH ('a.b' = 'c')")
    sql, options = session.started[-1]
    assert "`totals` /*+ OPTIONS('a.b'='c') */ SELECT" in sql
    assert options["execution.state-recovery.path"] == "/savepoints/1"
    session.clients[-1].status = JobStatus.FAILED
    with pytest.raises(SqlValidationError, match="does not run in this session"):
        session.run("ALTER MATERIALIZED TABLE totals SUSPEND")


def test_refresh_rewrites_the_table_in_a_batch_job(session: Session) -> None:
    session.run(CREATE.format(1, "MINUTE").replace("WITH", "PARTITIONED BY (page) WITH"))
    session.t_env.execute_sql("ALTER MATERIALIZED TABLE totals REFRESH PARTITION (page = 'it''s')")
    sql, options = session.started[-1]
    assert sql.startswith(
        "INSERT OVERWRITE `default_catalog`.`default_database`.`totals` SELECT * FROM (SELECT page"
    )
    assert sql.endswith("WHERE CAST(`page` AS STRING) = 'it''s'")
    assert options["execution.runtime-mode"] == "BATCH"


def test_a_table_with_a_long_freshness_is_refreshed_on_a_schedule(session: Session) -> None:
    session.run(CREATE.format(1, "DAY"))
    made = session.table().materialization
    assert made is not None
    assert made.mode is RefreshMode.FULL
    assert session.started == []
    session.run("ALTER MATERIALIZED TABLE totals SUSPEND")
    assert session.keeper._schedules == {}
    session.run("ALTER MATERIALIZED TABLE totals RESUME")
    with pytest.raises(SqlValidationError, match="leave WITH out"):
        session.run("ALTER MATERIALIZED TABLE totals SUSPEND")
        session.run("ALTER MATERIALIZED TABLE totals RESUME WITH ('a' = 'b')")
    session.run("DROP MATERIALIZED TABLE totals")
    assert session.run("SHOW TABLES") == [("clicks",)]


def test_dropping_a_table_cancels_its_job(session: Session) -> None:
    session.run(CREATE.format(1, "MINUTE"))
    with pytest.raises(HeadraceError, match="is a materialized table"):
        session.run("DROP TABLE totals")
    session.run("DROP MATERIALIZED TABLE totals")
    assert session.clients[-1].status is JobStatus.CANCELED
    session.run("DROP MATERIALIZED TABLE IF EXISTS totals")
    with pytest.raises(HeadraceError, match=r"materialized table .* does not exist"):
        session.run("DROP MATERIALIZED TABLE totals")


def test_defaults_and_the_threshold_are_options(session: Session) -> None:
    session.t_env.get_config().set("materialized-table.refresh-mode.freshness-threshold", "10 s")
    create = CREATE.format(30, "SECOND")
    session.run(create)
    made = session.table().materialization
    assert made is not None
    assert made.mode is RefreshMode.FULL
    session.run("DROP MATERIALIZED TABLE totals")
    session.run(create.replace("FRESHNESS = INTERVAL '30' SECOND", "REFRESH_MODE = CONTINUOUS"))
    made = session.table().materialization
    assert made is not None
    assert (made.mode, made.freshness) == (RefreshMode.CONTINUOUS, timedelta(minutes=3))


def test_a_table_whose_job_cannot_start_is_not_created(session: Session) -> None:
    def fail(sql: str) -> Any:
        raise SqlValidationError("no")

    session.keeper._execute = fail
    with pytest.raises(SqlValidationError, match="no"):
        session.run(CREATE.format(1, "MINUTE"))
    assert session.run("SHOW TABLES") == [("clicks",)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE MATERIALIZED TABLE t (id INT) AS SELECT 1", "columns of a materialized table"),
        ("CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL 'x' DAY AS SELECT 1", "a whole number of days"),
        ("CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '1' MONTH AS SELECT 1", "expected .*SECOND"),
        ("ALTER MATERIALIZED TABLE clicks SUSPEND", "is not a materialized table"),
        ("ALTER MATERIALIZED TABLE clicks AS SELECT 1", "ALTER MATERIALIZED TABLE ... AS"),
        ("CREATE TEMPORARY MATERIALIZED TABLE t AS SELECT 1", "CREATE TEMPORARY MATERIALIZED"),
    ],
)
def test_what_cannot_be_is_refused(session: Session, sql: str, message: str) -> None:
    with pytest.raises(HeadraceError, match=message):
        session.run(sql)


def test_a_schedule_does_its_work_at_multiples_of_its_length() -> None:
    worked = threading.Semaphore(0)
    schedule = Schedule(timedelta(milliseconds=20), worked.release)
    schedule.start()
    assert worked.acquire(timeout=10)
    assert worked.acquire(timeout=10)
    schedule.stop()
    schedule._thread.join(10)
    assert not schedule._thread.is_alive()
