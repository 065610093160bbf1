"""A private MariaDB server for tests, in a directory of its own. Few machines have one; then tests skip."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.jdbc import JdbcConnectionOptions
from headrace.connectors.jdbc._connections import dispose_engines
from tests.postgres import NoServerError, free_port

_START_TIMEOUT_S = 60.0


@dataclass
class MariaServer:
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]

    def options(self) -> JdbcConnectionOptions:
        return JdbcConnectionOptions(f"jdbc:mariadb://127.0.0.1:{self.port}/test", "tester", "secret")

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        import pymysql

        connection = pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="tester",
            password="secret",
            database="test",
            autocommit=True,
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())


@contextmanager
def run_server() -> Iterator[MariaServer]:
    """Start a server; stop it and remove its files at the end.

    Raises:
        NoServerError: There can be none; the message says why.
    """
    # Debian has the server where only root's PATH leads.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    install, server = (shutil.which(name, path=path) for name in ("mariadb-install-db", "mariadbd"))
    if install is None or server is None:
        raise NoServerError("there is no mariadbd on PATH; install mariadb-server")
    directory = Path(tempfile.mkdtemp(prefix="headrace-mariadb-"))
    as_user: list[str] = []
    if os.getuid() == 0:
        try:
            account = pwd.getpwnam("mysql")
        except KeyError:
            raise NoServerError("MariaDB should not run as root, and there is no user mysql") from None
        os.chown(directory, account.pw_uid, account.pw_gid)
        as_user = ["--user=mysql"]
    data = f"--datadir={directory / 'data'}"
    try:
        made = subprocess.run(
            [install, "--no-defaults", data, "--auth-root-authentication-method=normal", *as_user],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise NoServerError(f"mariadb-install-db failed: {(made.stderr or made.stdout).strip()[-500:]}")
        port = free_port()
        start = directory / "start.sql"
        start.write_text(
            # Each statement is a line.
            "CREATE DATABASE IF NOT EXISTS test;\n"
            "CREATE OR REPLACE USER tester@'%' IDENTIFIED BY 'secret';\n"
            "GRANT ALL ON *.* TO tester@'%';\n"
        )
        start.chmod(0o644)
        settings = [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={directory / 'socket'}"]
        settings += [f"--init-file={start}", "--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve"]
        with open(directory / "log", "wb") as log:
            process = subprocess.Popen(
                [server, "--no-defaults", data, *settings, *as_user],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            running = MariaServer(port, process)
            _wait_until_ready(running, directory / "log")
            yield running
        finally:
            process.terminate()
            process.wait(60)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _wait_until_ready(server: MariaServer, log: Path) -> None:
    import pymysql

    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            server.execute("SELECT 1")
            return
        except pymysql.err.OperationalError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise NoServerError(f"the server did not start: {log.read_text()[-500:]}") from None
            time.sleep(0.1)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaServer]:
    """Return a server that all tests of the run share; tests use tables of their own."""
    pytest.importorskip("pymysql", reason="no driver for MariaDB: pip install PyMySQL")
    with ExitStack() as stack:
        try:
            server = stack.enter_context(run_server())
        except NoServerError as error:
            pytest.skip(f"no MariaDB server for tests: {error}")
        stack.callback(dispose_engines)
        yield server
