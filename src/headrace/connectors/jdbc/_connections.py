"""Engines of SQLAlchemy, one a process and database, and what to do when a database is away."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.connectors.jdbc.options import JdbcConnectionOptions
from headrace.errors import ConnectorError
from headrace.errors.causes import with_causes

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

_log = logging.getLogger(__name__)

_FIRST_DELAY_S = 0.1

#: Classes of SQLSTATE that may pass: connection, rollback, resources, locks, shutdown.
_TRANSIENT_STATES = ("08", "40", "53", "55P03", "57P")
#: MySQL: too many connections, shutdown, lock wait, deadlock, and all kinds of lost connections.
_TRANSIENT_MYSQL = {1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013, 2055}

#: By process too: a forked one must not use its parent's connections.
_engines: dict[tuple[int, str], Engine] = {}

R = TypeVar("R")


def engine_for(options: JdbcConnectionOptions) -> Engine:
    """Return the engine for a database. It is kept from one epoch to the next.

    Raises:
        ConnectorError: SQLAlchemy or the driver is not installed.
    """
    url = options.database_url()
    key = (os.getpid(), url.text)
    engine = _engines.get(key)
    if engine is None:
        try:
            from sqlalchemy import create_engine

            # Parameters are rows, which belong in no log.
            engine = create_engine(url.text, pool_pre_ping=True, hide_parameters=True)
        except ImportError as error:
            missing = "headrace[jdbc]" if error.name == "sqlalchemy" else url.driver_extra
            raise ConnectorError(
                f"JDBC: {error.name}, which {url.shown} needs, is not installed",
                hint=f"run pip install '{missing}' where the program runs and on every worker",
                retryable=False,
            ) from error
        except Exception as error:  # noqa: BLE001 - raised again, without the password
            # Whatever SQLAlchemy thinks of the URL: it may quote it.
            raise ConnectorError(
                f"JDBC: cannot use the URL {url.shown}: {url.scrub(str(error))}", retryable=False
            ) from _shown_cause(options, error)
        _engines[key] = engine
    return engine


def release(options: JdbcConnectionOptions) -> None:
    """Close the idle connections to a database."""
    engine = _engines.get((os.getpid(), options.database_url().text))
    if engine is not None:
        engine.dispose()


def dispose_engines() -> None:
    """Close the connections of this process."""
    while _engines:
        _, engine = _engines.popitem()
        engine.dispose()


def paramstyle_of(engine: Engine) -> str:
    """Return how the driver marks values."""
    return str(engine.dialect.paramstyle)


def transact(
    options: JdbcConnectionOptions,
    work: Callable[[Connection], R],
    *,
    max_retries: int,
    what: str,
    auto_commit: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> R:
    """Do work in a transaction; do it again if the database was away.

    A connection may be lost while it commits, and nobody knows whether it did: work that must not be done
    twice has to find out by itself.

    Args:
        options: Where the database is.
        work: What to do.
        max_retries: How often to do it again.
        what: For messages.
        auto_commit: Whether every statement is committed by itself, without a transaction around the work.
        sleep: Waits.

    Raises:
        ConnectorError: The database refused, or was away for too long. The message has no password.
    """
    from sqlalchemy.exc import SQLAlchemyError

    tries = _Tries(options, max_retries, what, sleep)
    while True:
        try:
            engine = engine_for(options)
            if auto_commit:
                engine = engine.execution_options(isolation_level="AUTOCOMMIT")
            with engine.begin() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            tries.wait_after(error)


def read_in_transaction(
    options: JdbcConnectionOptions,
    work: Callable[[Connection], Iterator[R]],
    *,
    max_retries: int,
    what: str,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[R]:
    """Yield what a transaction reads, while it reads it.

    Args:
        options: Where the database is.
        work: Reads. If the database was away, it is called again, and has to continue where it was.
        max_retries: How often to connect again before something more is read.
        what: For messages.
        sleep: Waits.

    Raises:
        ConnectorError: The database refused, or was away for too long. The message has no password.
    """
    from sqlalchemy.exc import SQLAlchemyError

    tries = _Tries(options, max_retries, what, sleep)
    while True:
        try:
            with engine_for(options).begin() as connection:
                for each in work(connection):
                    tries.made = 0
                    yield each
                return
        except SQLAlchemyError as error:
            tries.wait_after(error)


@dataclass
class _Tries:
    """Decides whether work is done again after an error, and waits before it is."""

    options: JdbcConnectionOptions
    max_retries: int
    what: str
    sleep: Callable[[float], None]
    made: int = 0

    def wait_after(self, error: SQLAlchemyError) -> None:
        from sqlalchemy.exc import DBAPIError

        options = self.options
        is_transient = isinstance(error, DBAPIError) and _is_transient(error)
        if not is_transient or self.made >= self.max_retries:
            raise _failure(options, self.what, error, retryable=is_transient) from _shown_cause(
                options, error
            )
        delay = min(_FIRST_DELAY_S * 2**self.made, options.longest_retry_delay_s) * random.uniform(0.5, 1.0)
        self.made += 1
        _log.warning(
            "%s failed; retrying in %.1f s (retry %d of %d): %s",
            *(self.what, delay, self.made, self.max_retries, _reason(options, error)),
        )
        self.sleep(delay)


def _is_transient(error: DBAPIError) -> bool:
    from sqlalchemy.exc import InterfaceError, OperationalError

    if error.connection_invalidated:
        return True
    original: Any = error.orig
    state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
    if state:
        return str(state).startswith(_TRANSIENT_STATES)
    module = type(original).__module__
    if module.startswith("sqlite3"):
        return "locked" in str(original) or "busy" in str(original)
    if module.startswith(("pymysql", "MySQLdb", "mariadb")):
        return bool(original.args) and original.args[0] in _TRANSIENT_MYSQL
    return isinstance(error, OperationalError | InterfaceError)


def _reason(options: JdbcConnectionOptions, error: BaseException) -> str:
    original = getattr(error, "orig", None) or error
    lines = [line.strip() for line in str(original).splitlines() if line.strip()]
    return options.database_url().scrub("; ".join(lines) or type(original).__name__)


def _failure(
    options: JdbcConnectionOptions, what: str, error: BaseException, *, retryable: bool
) -> ConnectorError:
    hint = (
        "check that the database is running and reachable"
        if retryable
        else "correct the statement, or the table it refers to"
    )
    return ConnectorError(
        f"JDBC: {what} failed at {options.database_url().shown}: {_reason(options, error)}",
        hint=hint,
        retryable=retryable,
    )


def _shown_cause(options: JdbcConnectionOptions, error: BaseException) -> BaseException | None:
    """Return the error, unless the password is somewhere in it."""
    url = options.database_url()
    texts = [f"{each}{each.args!r}" for each in with_causes(error)]
    return error if all(url.scrub(text) == text for text in texts) else None
