"""The session of a client: its catalogs and options, and the statements that it has submitted."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final
from uuid import uuid4

from headrace.common.types import Row
from headrace.config.registry import known_options
from headrace.errors import ConfigurationError, GatewayError
from headrace.gateway.completion import candidates
from headrace.gateway.operation import StatementOperation, StatementResult
from headrace.planner.logical import Field
from headrace.table import TableEnvironment
from headrace.table._paths import path_sql
from headrace.table.result_kind import ResultKind
from headrace.table.table_result import CloseableIterator, TableResult
from headrace.types import DataTypes
from headrace.types.logical import quote_name, quote_text

__all__ = ["GatewaySession"]

#: How many operations of a session are remembered after they have ended.
_MOST_OPERATIONS: Final = 1_000
#: Options of a client, which only the client reads.
_CLIENT_PREFIX: Final = "sql-client."
#: Options of the process at the other end, which has its own here.
_NOT_OURS: Final = (
    "rest.",
    "jobmanager.",
    "taskmanager.",
    "env.",
    "classloader.",
    "blob.",
    "high-availability.",
    "execution.target",
    "execution.attached",
    "execution.shutdown-on-attached-exit",
    "pipeline.jars",
    "pipeline.classpaths",
    "sql-gateway.",
    "yarn.",
    "kubernetes.",
)
_BEGIN: Final = re.compile(r"\s*BEGIN\s+STATEMENT\s+SET\s*;?\s*\Z", re.IGNORECASE)
_END: Final = re.compile(r"\s*END\s*;?\s*\Z", re.IGNORECASE)
_SET_OR_RESET: Final = re.compile(
    r"""\s*(?P<verb>SET|RESET)\s+(?P<quote>['"]?)(?P<key>[\w.-]+)(?P=quote)\s*(?:=\s*(?P<value>.*?))?\s*;?\s*\Z""",
    re.IGNORECASE | re.DOTALL,
)
_SET_ALONE: Final = re.compile(r"\s*SET\s*;?\s*\Z", re.IGNORECASE)
_RESET_ALONE: Final = re.compile(r"\s*RESET\s*;?\s*\Z", re.IGNORECASE)
#: What `configure-session` accepts: statements that answer at once and start no job.
_CONFIGURES: Final = re.compile(
    r"\s*(SET|RESET|CREATE|DROP|ALTER|USE|LOAD|UNLOAD|ADD|REMOVE)\b", re.IGNORECASE
)
_QUERY: Final = re.compile(r"\s*(?:SELECT|WITH|VALUES|\()", re.IGNORECASE)
_TEXT: Final = DataTypes.STRING()


class GatewaySession:
    """What one client sees. One statement is carried out at a time, as in Flink.

    Args:
        handle: The client's name for it.
        t_env: The tables and options of the session, and of no other.
        properties: What the client has set when it opened the session.
    """

    def __init__(self, handle: str, t_env: TableEnvironment, properties: Mapping[str, str]) -> None:
        self.handle = handle
        self._t_env = t_env
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._operations: dict[str, StatementOperation] = {}
        self._is_closed = False
        #: Options that only clients read.
        self._client_properties: dict[str, str] = {}
        #: The INSERTs since BEGIN STATEMENT SET; None outside of one.
        self._inserts: list[str] | None = None
        for key, value in properties.items():
            self._set_initially(key, value)

    @property
    def properties(self) -> dict[str, str]:
        """All options that are set, by key: in the session or for the process. Secrets are hidden."""
        entries = self._t_env._jobs.configuration.entries()
        return {**{each.key: each.value for each in entries}, **self._client_properties}

    @property
    def own_properties(self) -> dict[str, str]:
        """The options that were set in the session, by key."""
        return {**self._t_env.get_config().to_map(), **self._client_properties}

    @property
    def time_zone(self) -> str:
        """The zone that TIMESTAMP_LTZ values are shown in."""
        return self._t_env._jobs.time_zone

    def operation(self, handle: str) -> StatementOperation:
        """Find an operation.

        Raises:
            GatewayError: If there is none of this name.
        """
        with self._lock:
            found = self._operations.get(handle)
        if found is None:
            raise GatewayError(
                f"operation {handle} does not exist in session {self.handle}",
                is_missing=True,
                hint="it was closed, or belongs to another session",
            )
        return found

    def running(self) -> int:
        """Count the operations that hold a thread."""
        with self._lock:
            return sum(each.is_busy for each in self._operations.values())

    def submit(self, statement: str, options: Mapping[str, str] | None = None) -> StatementOperation:
        """Start a statement; returns at once.

        Args:
            statement: One statement of SQL.
            options: For this statement alone.
        """
        return self._start(lambda: self._execute(statement, options or {}))

    def refresh(
        self, table: str, partition: Mapping[str, str], options: Mapping[str, str]
    ) -> StatementOperation:
        """Start a refresh of a materialized table; returns at once.

        Args:
            table: Its name, with those of its catalog and database where they are not the current ones.
            partition: Values of partition columns, to refresh only the rows that have them.
            options: For the refresh alone.
        """
        values = ", ".join(f"{quote_name(name)} = {quote_text(value)}" for name, value in partition.items())
        part = f" PARTITION ({values})" if values else ""
        return self.submit(f"ALTER MATERIALIZED TABLE {path_sql(table)} REFRESH{part}", options)

    def configure(self, statement: str) -> None:
        """Carry out a statement that prepares the session: SET, CREATE, USE and the like.

        Raises:
            GatewayError: If it is another kind of statement.
        """
        if not _CONFIGURES.match(statement):
            raise GatewayError(
                f"configure-session does not accept this statement: {statement.strip()[:80]}",
                hint="it accepts SET, RESET, CREATE, DROP, ALTER, USE, LOAD and UNLOAD; submit others as statements",
            )
        operation = self._start(lambda: self._execute(statement, {}))
        operation.join()
        error = operation.error
        self.close_operation(operation.handle)
        if error is not None:
            raise error

    def complete(self, statement: str, position: int, *, has_full_names: bool = False) -> list[str]:
        """Return what the word before a position may become.

        Args:
            statement: The text so far.
            position: How many of its characters are before the cursor.
            has_full_names: Whether names of tables begin with those of catalog and database.
        """
        with self._turn:
            return candidates(self._t_env, statement, position, has_full_names=has_full_names)

    def close_operation(self, handle: str) -> None:
        """End an operation and forget it; one that is not known has been forgotten already."""
        with self._lock:
            operation = self._operations.pop(handle, None)
        if operation is not None:
            operation.close()

    def close(self) -> None:
        """End all operations. Jobs of INSERTs go on."""
        with self._lock:
            self._is_closed = True
            operations, self._operations = list(self._operations.values()), {}
        for operation in operations:
            operation.close()

    def _start(self, run: Callable[[], StatementResult]) -> StatementOperation:
        operation = StatementOperation(str(uuid4()), run)
        with self._lock:
            if self._is_closed:
                raise GatewayError(f"session {self.handle} is closed", is_missing=True)
            self._forget_old()
            self._operations[operation.handle] = operation
        operation.start()
        return operation

    def _forget_old(self) -> None:
        surplus = len(self._operations) - _MOST_OPERATIONS + 1
        ended = [handle for handle, each in self._operations.items() if not each.is_busy]
        for handle in ended[: max(0, surplus)]:
            self._operations.pop(handle).close()

    # -- statements --------------------------------------------------------------------------------------------

    def _execute(self, statement: str, options: Mapping[str, str]) -> StatementResult:
        with self._turn, self._t_env.get_config().overridden(options):
            if self._inserts is not None:
                return self._in_statement_set(statement)
            if _BEGIN.match(statement):
                self._inserts = []
                return _ok()
            if _END.match(statement):
                raise GatewayError(
                    "there is no statement set to submit", hint="begin one with BEGIN STATEMENT SET"
                )
            if _SET_ALONE.match(statement):
                return self._all_options()
            if _RESET_ALONE.match(statement):
                for key in self._own_options():
                    del self._client_properties[key]
            return self._client_option(statement) or self._result_of(statement)

    def _in_statement_set(self, statement: str) -> StatementResult:
        assert self._inserts is not None
        if not _END.match(statement):
            if not re.match(r"\s*INSERT\b", statement, re.IGNORECASE):
                raise GatewayError(
                    "a statement set accepts only INSERT", hint="END submits the statement set"
                )
            self._t_env.explain_sql(statement)
            self._inserts.append(statement.rstrip().rstrip(";"))
            return _ok()
        inserts, self._inserts = self._inserts, None
        if not inserts:
            return _ok()
        return self._result_of(f"EXECUTE STATEMENT SET BEGIN {'; '.join(inserts)}; END")

    def _result_of(self, statement: str) -> StatementResult:
        result = self._t_env.execute_sql(statement.rstrip().rstrip(";"))
        client = result.get_job_client()
        if client is None:
            return _plain(result)
        job_id = str(client.get_job_id())
        if not _QUERY.match(statement):
            rows = CloseableIterator(iter([Row(job_id)]))
            return StatementResult(
                (Field("job id", _TEXT),),
                rows,
                ResultKind.SUCCESS_WITH_CONTENT,
                is_query=False,
                job_id=job_id,
            )
        return StatementResult(
            tuple(result._schema),
            result.collect(),
            result.get_result_kind(),
            is_query=True,
            job_id=job_id,
            cancel=client.cancel,
        )

    def _client_option(self, statement: str) -> StatementResult | None:
        """Carry out SET and RESET of an option that only the client reads; None if it is another statement."""
        match = _SET_OR_RESET.match(statement)
        if match is None or not match["key"].startswith(_CLIENT_PREFIX):
            return None
        if match["verb"].upper() == "RESET":
            self._client_properties.pop(match["key"], None)
        elif match["value"] is not None:
            self._client_properties[match["key"]] = match["value"].strip("'")
        return _ok()

    def _own_options(self) -> dict[str, str]:
        """Return the options that only the client reads."""
        return {
            key: value for key, value in self._client_properties.items() if key.startswith(_CLIENT_PREFIX)
        }

    def _all_options(self) -> StatementResult:
        result = self._result_of("SET")
        with result.rows as rows:
            known = {row[0]: row[1] for row in rows}
        options = sorted({**known, **self._own_options()}.items())
        return replace(result, rows=CloseableIterator(iter([Row(*each) for each in options])))

    def _set_initially(self, key: str, value: str) -> None:
        """Take over an option of the client that opens the session. Clients send all that they have, so options of
        their own process, and keys that do not exist here, are only remembered.
        """
        if key.startswith((_CLIENT_PREFIX, *_NOT_OURS)):
            self._client_properties[key] = value
            return
        try:
            is_option = known_options().look_up(key).answer is None
        except ConfigurationError:
            is_option = False
        if not is_option:
            self._client_properties[key] = value
            return
        self._t_env.get_config().set(key, value)


def _ok() -> StatementResult:
    return StatementResult(
        (Field("result", _TEXT),), CloseableIterator(iter([Row("OK")])), ResultKind.SUCCESS, is_query=False
    )


def _plain(result: TableResult) -> StatementResult:
    return StatementResult(tuple(result._schema), result.collect(), result.get_result_kind(), is_query=False)
