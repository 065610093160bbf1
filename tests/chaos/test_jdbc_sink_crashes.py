"""JdbcSink.exactly_once_sink: whatever is killed, and wherever, every row is in the table once."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from headrace.connectors import staged_files, write_ahead
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink, _publisher
from headrace.connectors.jdbc._connections import dispose_engines
from headrace.connectors.jdbc.sink import JdbcExactlyOnceSink
from headrace.errors import ConnectorError
from tests.chaos.sink_faults import Crash, Fuse, crash_everywhere, new_committer, run_driver, write_epoch

pytestmark = pytest.mark.chaos

#: Where a commit can be interrupted: statements, the end of a transaction, the clean-up after it.
DATABASE_STEPS = ("execute", "exec_driver_sql", "_commit_impl", "_rollback_impl")


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(write_ahead, "_INLINE_BYTES", 100)
    monkeypatch.setattr(_publisher, "_MAX_ROWS", 5)
    monkeypatch.setattr(_publisher, "_PRUNE_COMMITS", 2)
    yield
    dispose_engines()


def sink_of(options: JdbcConnectionOptions, table: str) -> JdbcExactlyOnceSink:
    execution = JdbcExecutionOptions.builder().with_batch_size(3).with_max_retries(5).build()
    return JdbcSink.exactly_once_sink(f"INSERT INTO {table} VALUES (?, ?)", None, options, execution)


# --- killed processes -----------------------------------------------------------------------------


def kill_at_every_step(
    options: JdbcConnectionOptions, execute: Callable[[str], list[Any]], root: Path
) -> int:
    write_ahead._INLINE_BYTES = 100
    _publisher._MAX_ROWS = 5

    def prepare(steps: int) -> dict[str, Any]:
        table = f"killed_{steps}"
        execute(f"CREATE TABLE {table} (id INTEGER, text TEXT)")
        staging = str(root / str(steps))
        sink = sink_of(options, table)
        staged = write_epoch(sink, 1, [[(1, "few")], [(n, "many" * 30) for n in (2, 3, 4, 5)]], staging)
        staged += write_epoch(sink, 2, [[(6, "x"), (7, "y")], [(n, "more" * 30) for n in (8, 9)]], staging)
        write_epoch(sink, 3, [[(10, "never committed" * 30)]], staging)
        return {"table": table, "staging": staging, "sink": sink, "staged": staged}

    def commit(prepared: dict[str, Any]) -> None:
        new_committer(prepared["sink"], prepared["staging"]).commit(prepared["staged"])

    def recover(prepared: dict[str, Any]) -> None:
        committer = new_committer(prepared["sink"], prepared["staging"])
        committer.commit(prepared["staged"])
        committer.discard_after(2)
        committer.finish()

    def check(prepared: dict[str, Any]) -> None:
        found = sorted(key for (key,) in execute(f"SELECT id FROM {prepared['table']}"))
        assert found == [1, 2, 3, 4, 5, 6, 7, 8, 9], found
        assert [path for path in Path(prepared["staging"]).rglob("*") if path.is_file()] == []

    def hook(fuse: Fuse) -> None:
        for name in DATABASE_STEPS:
            fuse.wrap(Connection, name)
        fuse.wrap(os, "remove")

    return crash_everywhere(prepare, commit, recover, check, hook)


def run_alone(program: str) -> int:
    """Run in a process without threads, which forks those that are killed."""
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import *\n{program}"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def sqlite_execute(path: str) -> Callable[[str], list[Any]]:
    def execute(sql: str) -> list[Any]:
        with closing(sqlite3.connect(path)) as database, database:
            return database.execute(sql).fetchall()

    return execute


def test_a_process_killed_in_a_commit_does_no_harm_on_sqlite(tmp_path):
    path = str(tmp_path / "db")
    steps = run_alone(
        f"options = JdbcConnectionOptions('jdbc:sqlite:' + {path!r})\n"
        f"print(kill_at_every_step(options, sqlite_execute({path!r}), Path({str(tmp_path)!r})))"
    )
    assert steps > 10


def test_a_process_killed_in_a_commit_does_no_harm_on_postgresql(tmp_path, postgres):
    steps = run_alone(
        "from tests.postgres import PostgresServer\n"
        f"server = PostgresServer({postgres.port}, {postgres.user!r}, {postgres.password!r}, None)\n"
        f"print(kill_at_every_step(server.options(), server.execute, Path({str(tmp_path)!r})))"
    )
    assert steps > 10


# --- random faults --------------------------------------------------------------------------------


class Faults:
    """Crashes, I/O errors, lost connections and lost answers, from a seed."""

    def __init__(self, rng: random.Random, rate: float, disconnect: Callable[[], None]) -> None:
        self.rng = rng
        self.rate = rate
        self.disconnect = disconnect
        self.is_dead = False
        self.is_busy = False

    def burn(self, name: str) -> None:
        if self.is_dead:
            raise Crash(name)
        if self.is_busy or name == "_rollback_impl" or self.rng.random() >= self.rate:
            return
        kind = self.rng.choice(["crash", "crash", "disconnect", "error"])
        if kind == "crash":
            self.is_dead = True
            raise Crash(name)
        if kind == "disconnect":
            self.is_busy = True
            self.disconnect()
            self.is_busy = False
        elif name in {"remove", "fsync"}:
            raise OSError(5, "input/output error (injected)")

    def after_commit(self, *args: Any) -> None:
        """The transaction is committed, but nobody hears of it."""
        if not self.is_dead and self.rng.random() < self.rate:
            raise OperationalError(
                "COMMIT", None, Exception("the answer is lost"), connection_invalidated=True
            )

    def maybe_crash(self, name: str) -> None:
        if self.rng.random() < self.rate:
            self.is_dead = True
            raise Crash(name)

    def restart(self) -> None:
        self.is_dead = False


def run_with_faults(
    sink: JdbcExactlyOnceSink, seed: int, staging: Path, disconnect: Callable[[], None]
) -> tuple[list[Any], int]:
    rng = random.Random(seed)
    faults = Faults(rng, rng.choice([0.005, 0.02, 0.05]), disconnect)
    records = [(number, "text" * rng.choice([1, 50])) for number in range(150)]
    fuse = Fuse(faults.burn)
    undo = [fuse.wrap(Connection, name) for name in DATABASE_STEPS]
    undo += [fuse.wrap(os, "remove"), fuse.wrap(os, "fsync"), fuse.wrap(staged_files, "open_output")]
    committed = Connection._commit_impl

    def commit_impl(self: Connection) -> None:
        committed(self)
        faults.after_commit()

    Connection._commit_impl = commit_impl  # type: ignore[method-assign]
    try:
        crashes = run_driver(sink, records, rng, faults.maybe_crash, faults.restart, str(staging))
    finally:
        for each in reversed(undo):
            each()
    return records, crashes


@pytest.fixture
def no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.connectors.jdbc import _connections

    monkeypatch.setattr(_connections, "_FIRST_DELAY_S", 0.001)


# A driver that is gone does not close its files and connections.
FORGIVING = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@FORGIVING
@pytest.mark.usefixtures("no_naps")
@pytest.mark.parametrize("seed", range(15))
def test_random_faults_on_sqlite(tmp_path, seed):
    path = str(tmp_path / "db")
    execute = sqlite_execute(path)
    execute("CREATE TABLE items (id INTEGER, text TEXT)")
    sink = sink_of(JdbcConnectionOptions(f"jdbc:sqlite:{path}"), "items")

    records, crashes = run_with_faults(sink, seed, tmp_path / "staging", dispose_engines)

    assert Counter(execute("SELECT id, text FROM items")) == Counter(records), f"after {crashes} crashes"


@FORGIVING
@pytest.mark.usefixtures("no_naps")
@pytest.mark.parametrize("seed", range(15))
def test_random_faults_on_postgresql(tmp_path, postgres, seed):
    table = f"items_{seed}"
    postgres.execute(f"CREATE TABLE {table} (id INTEGER, text TEXT)")

    def disconnect() -> None:
        postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    records, crashes = run_with_faults(
        sink_of(postgres.options(), table), seed, tmp_path / "staging", disconnect
    )

    found = postgres.execute(f"SELECT id, text FROM {table}")
    assert Counter(found) == Counter(records), f"after {crashes} crashes"


@FORGIVING
@pytest.mark.usefixtures("no_naps")
@pytest.mark.parametrize("seed", range(5))
def test_random_faults_on_mariadb(tmp_path, mariadb, seed):
    import pymysql

    table = f"items_{seed}"
    mariadb.execute(f"CREATE TABLE {table} (id INTEGER, text TEXT)")

    def disconnect() -> None:
        others = (
            "SELECT id FROM information_schema.processlist WHERE user = 'tester' AND id <> connection_id()"
        )
        for (number,) in mariadb.execute(others):
            with suppress(pymysql.err.OperationalError):  # it may have gone by itself
                mariadb.execute(f"KILL {number}")

    records, crashes = run_with_faults(
        sink_of(mariadb.options(), table), seed, tmp_path / "staging", disconnect
    )

    found = mariadb.execute(f"SELECT id, text FROM {table}")
    assert Counter(found) == Counter(records), f"after {crashes} crashes"


def test_two_drivers_that_commit_the_same_write_it_once(tmp_path, postgres):
    from concurrent.futures import ThreadPoolExecutor

    postgres.execute("CREATE TABLE twice (id INTEGER, text TEXT)")
    sink = sink_of(postgres.options(), "twice")
    staged = write_epoch(sink, 1, [[(number, "x") for number in range(20)], [(99, "y")]], str(tmp_path))
    committers = [new_committer(sink, "") for _ in range(4)]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda committer: committer.commit(staged), committers))

    assert postgres.execute("SELECT count(*) FROM twice") == [(21,)]


def test_a_database_that_is_away_for_a_while_is_waited_for(postgres):
    postgres.execute("CREATE TABLE patient (id INTEGER, text TEXT)")
    sink = sink_of(postgres.options(), "patient")
    committer = new_committer(sink)
    committer.commit(write_epoch(sink, 1, [[(1, "x")]]))
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )

    committer.commit(write_epoch(sink, 2, [[(2, "y")]]))

    assert postgres.execute("SELECT id FROM patient ORDER BY id") == [(1,), (2,)]


def test_a_wrong_password_is_an_error_without_the_password(postgres):
    options = JdbcConnectionOptions(postgres.jdbc_url, postgres.user, "not-the-password")
    execution = JdbcExecutionOptions.builder().with_max_retries(0).build()
    sink = JdbcSink.exactly_once_sink("INSERT INTO t VALUES (?)", None, options, execution)

    with pytest.raises(ConnectorError, match="password authentication failed") as caught:
        new_committer(sink).commit(write_epoch(sink, 1, [["x"]]))
    assert "not-the-password" not in str(caught.value)
