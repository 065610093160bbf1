"""A private PostgreSQL server for tests, in a directory of its own, gone when they are done.

PostgreSQL refuses to run as root; then the server runs as `postgres` or `nobody`.
"""

from __future__ import annotations

import glob
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.jdbc import JdbcConnectionOptions
from headrace.connectors.jdbc._connections import dispose_engines

_START_TIMEOUT_S = 60.0


def ends_with_tests() -> tuple[str, ...]:
    """Return what the command of a server begins with, so that it ends with the tests also when these are killed.

    The kernel ends it with the thread that has started it, so other threads than the main one do without.
    """
    if shutil.which("setpriv") is None or threading.current_thread() is not threading.main_thread():
        return ()
    return ("setpriv", "--pdeathsig", "KILL", "--")


class NoServerError(Exception):
    """There can be no server here; the message says why."""


@dataclass
class PostgresServer:
    """A running server."""

    port: int
    user: str
    password: str
    process: subprocess.Popen[bytes]
    host: str = "127.0.0.1"

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:postgresql://{self.host}:{self.port}/postgres"

    def options(self) -> JdbcConnectionOptions:
        return JdbcConnectionOptions(self.jdbc_url, self.user, self.password)

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        import psycopg

        place = f"host={self.host} port={self.port} user={self.user} password={self.password} dbname=postgres"
        with psycopg.connect(place, autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


def find_programs() -> Path:
    """Return the directory of initdb and postgres, the newest if there are several."""
    on_path = shutil.which("initdb")
    if on_path and shutil.which("postgres"):
        return Path(on_path).parent
    places = [
        "/usr/lib/postgresql/*/bin",
        "/opt/homebrew/opt/postgresql*/bin",
        "/usr/local/opt/postgresql*/bin",
    ]
    found = [path for place in places for path in sorted(glob.glob(f"{place}/initdb"))]
    if not found:
        raise NoServerError(
            "there is no initdb on PATH; install PostgreSQL's server, or run make setup as root"
        )
    return Path(found[-1]).parent


def server_account() -> dict[str, Any]:
    """Return as whom to start the server, as arguments of subprocess."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise NoServerError("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")


@contextmanager
def run_server(host: str = "127.0.0.1") -> Iterator[PostgresServer]:
    """Start a server; stop it and remove its files at the end.

    Args:
        host: The address it listens at. One that is not of this machine alone is for the hosts of its network too.

    Raises:
        NoServerError: There can be none; the message says why.
    """
    programs, account = find_programs(), server_account()
    # Not below pytest's directory, which only its owner may enter.
    directory = Path(tempfile.mkdtemp(prefix="headrace-postgres-"))
    try:
        password = secrets.token_hex(12)
        (directory / "password").write_text(password)
        for path in (directory, directory / "password"):
            if account:
                os.chown(path, account["user"], account["group"])
        where = {
            "cwd": directory,
            "env": {**os.environ, "LC_ALL": "C"},
            "stdin": subprocess.DEVNULL,
            **account,
        }
        made = subprocess.run(
            [
                *(programs / "initdb", "--pgdata", directory / "data", "--username", "tester", "--no-sync"),
                *("--auth", "scram-sha-256", "--pwfile", directory / "password", "--encoding", "UTF8"),
            ],
            **where,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise NoServerError(f"initdb failed: {(made.stderr or made.stdout).strip()[-500:]}")
        with open(directory / "data" / "pg_hba.conf", "a") as access:
            access.write("host all all samenet scram-sha-256\n")
        port = free_port()
        settings = {
            "listen_addresses": host,
            "unix_socket_directories": "",
            "fsync": "off",
            "port": str(port),
            # For changes by logical decoding; tests leave slots behind.
            "wal_level": "logical",
            "max_replication_slots": "100",
        }
        with open(directory / "log", "wb") as log:
            process = subprocess.Popen(
                [*ends_with_tests(), programs / "postgres", "-D", directory / "data"]
                + [word for name, value in settings.items() for word in ("-c", f"{name}={value}")],
                **where,
                stdout=log,
                stderr=log,
            )
        try:
            server = PostgresServer(port, "tester", password, process, host)
            wait_until_ready(server, directory / "log")
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(30)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(server: PostgresServer, log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            server.execute("SELECT 1")
            return
        except psycopg.OperationalError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise NoServerError(f"the server did not start: {log.read_text()[-500:]}") from None
            time.sleep(0.05)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Return a server that all tests of the run share; tests use tables of their own."""
    pytest.importorskip("psycopg", reason="no driver for PostgreSQL: pip install 'headrace[jdbc]'")
    with ExitStack() as stack:
        try:
            server = stack.enter_context(run_server())
        except NoServerError as error:
            pytest.skip(f"no PostgreSQL server for tests: {error}")
        stack.callback(dispose_engines)
        yield server
