"""The session a client works in: of a gateway in this process, or of one that is reached over REST."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from headrace.common.types import Row, RowKind
from headrace.errors import ClusterError, HeadraceError
from headrace.gateway.operation import PortionKind, StatementOperation
from headrace.gateway.session import GatewaySession
from headrace.gateway.sessions import Sessions
from headrace.gateway.type_reading import type_from_json
from headrace.gateway.values import ResultRowFormat, fields_of
from headrace.planner.logical import Field
from headrace.rest.client import RestClient
from headrace.table.result_kind import ResultKind

__all__ = ["FetchedRows", "SessionConnection", "EmbeddedConnection", "RemoteConnection", "RunningStatement"]

_VERSION: Final = 2
_HEARTBEAT_S: Final = 60.0
_CAUSE: Final = re.compile(
    r"(?:.*Caused by: )?(?:[\w.$]+\.)?[\w$]*(?:Exception|Error): (.*?)(?:\n\s+at .*|\nEnd of exception.*)?\Z",
    re.DOTALL,
)


@dataclass(frozen=True)
class FetchedRows:
    """Some rows of a statement. Their values are texts, written for people."""

    #: The columns; None while the statement has not been executed.
    fields: tuple[Field, ...] | None = None
    rows: Sequence[Row] = ()
    kind: ResultKind = ResultKind.SUCCESS
    is_query: bool = False
    job_id: str | None = None
    #: Whether no rows follow.
    is_last: bool = False


class RunningStatement(Protocol):
    """A statement that was submitted."""

    def fetch(self) -> FetchedRows:
        """Return the next rows, without waiting for them; raises what the statement failed with."""

    def close(self) -> None:
        """Stop the statement, and the job of a query; discard the rest of its rows. Closing twice does no harm."""


class SessionConnection(Protocol):
    """A session of a gateway."""

    #: Where the gateway is, for people.
    place: str

    def submit(self, statement: str) -> RunningStatement:
        """Start executing a statement, without waiting for its result."""

    def complete(self, text: str, position: int) -> list[str]:
        """Return what the word before a position may become."""

    def properties(self) -> Mapping[str, str]:
        """Return the options of the session."""

    def close(self) -> None:
        """End the session; its queries are cancelled."""


class EmbeddedConnection:
    """A session in this process.

    Args:
        sessions: Opens it.
        properties: Options to begin with.
        place: Where statements are executed, for people.
    """

    def __init__(
        self, sessions: Sessions, properties: Mapping[str, str] | None = None, place: str = "this process"
    ) -> None:
        self.place = place
        self._sessions = sessions
        self._session = sessions.open(properties or {})

    def submit(self, statement: str) -> RunningStatement:
        """Start executing a statement, without waiting for its result."""
        return _EmbeddedStatement(self._session, self._session.submit(statement))

    def complete(self, text: str, position: int) -> list[str]:
        """Return what the word before a position may become."""
        return self._session.complete(text, position)

    def properties(self) -> Mapping[str, str]:
        """Return the options of the session."""
        return self._session.properties

    def close(self) -> None:
        """End the session, which cancels its running statements."""
        self._sessions.end(self._session.handle)


class _EmbeddedStatement:
    def __init__(self, session: GatewaySession, operation: StatementOperation) -> None:
        self._session = session
        self._operation = operation
        self._token = 0

    def fetch(self) -> FetchedRows:
        portion = self._operation.fetch(self._token)
        if portion.kind is PortionKind.NOT_READY:
            return FetchedRows()
        result = portion.result
        assert result is not None
        self._token = self._token if portion.next_token is None else portion.next_token
        texts = fields_of(
            [each.type for each in result.schema], ResultRowFormat.PLAIN_TEXT, self._session.time_zone
        )
        rows = [Row.of_kind(row.get_row_kind(), *texts(row)) for row in portion.rows]
        is_last = portion.kind is PortionKind.EOS
        return FetchedRows(result.schema, rows, result.kind, result.is_query, result.job_id, is_last)

    def close(self) -> None:
        self._session.close_operation(self._operation.handle)


class RemoteConnection:
    """A session of a gateway that is reached over REST: headrace's or Flink's.

    Args:
        client: Asks the gateway.
        properties: Options to begin with.
    """

    def __init__(self, client: RestClient, properties: Mapping[str, str] | None = None) -> None:
        self.place = client.url
        self._client = client
        opened = client.ask("POST", "/sessions", {"properties": dict(properties or {})}, version=_VERSION)
        self._session = f"/sessions/{opened['sessionHandle']}"
        self._is_over = threading.Event()
        threading.Thread(target=self._stay, name="headrace-sql-heartbeat", daemon=True).start()

    def submit(self, statement: str) -> RunningStatement:
        """Start executing a statement, without waiting for its result."""
        started = self._ask("POST", "/statements", {"statement": statement})
        return _RemoteStatement(self._client, f"{self._session}/operations/{started['operationHandle']}")

    def complete(self, text: str, position: int) -> list[str]:
        """Return what the word before a position may become."""
        found = self._ask("GET", "/complete-statement", {"statement": text, "position": position})
        return [_short_name(str(each), text[:position]) for each in found["candidates"]]

    def properties(self) -> Mapping[str, str]:
        """Return the options of the session."""
        found: Mapping[str, str] = self._ask("GET", "")["properties"]
        return found

    def close(self) -> None:
        """End the session, which cancels its running statements."""
        self._is_over.set()
        self._ask("DELETE", "")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        return _asked(self._client, method, self._session + path, body)

    def _stay(self) -> None:
        """Keep the session from being closed as idle while the user reads or thinks."""
        while not self._is_over.wait(_HEARTBEAT_S) and self.is_kept_open():
            pass

    def is_kept_open(self) -> bool:
        """Send a heartbeat; False if the gateway has closed the session, which the next statement says."""
        try:
            self._ask("POST", "/heartbeat", {})
        except ClusterError as error:
            return error.status != HTTPStatus.NOT_FOUND
        except HeadraceError:  # the gateway cannot be reached now; it may be with the next heartbeat
            pass
        return True


class _RemoteStatement:
    def __init__(self, client: RestClient, operation: str) -> None:
        self._client = client
        self._operation = operation
        self._token = 0

    def fetch(self) -> FetchedRows:
        path = f"{self._operation}/result/{self._token}"
        answer = _asked(self._client, "GET", path, query={"rowFormat": "PLAIN_TEXT"})
        if answer["resultType"] == "NOT_READY":
            return FetchedRows()
        following = answer.get("nextResultUri")
        if following is not None:
            self._token = int(urlsplit(following).path.rpartition("/")[2])
        results = answer["results"]
        fields = tuple(
            Field(each["name"], type_from_json(each["logicalType"])) for each in results["columns"]
        )
        rows = [Row.of_kind(RowKind[row["kind"]], *row["fields"]) for row in results["data"]]
        kind = ResultKind[answer.get("resultKind", "SUCCESS_WITH_CONTENT")]
        is_query, job_id = bool(answer.get("isQueryResult")), answer.get("jobID")
        return FetchedRows(fields, rows, kind, is_query, job_id, is_last=following is None)

    def close(self) -> None:
        _asked(self._client, "DELETE", f"{self._operation}/close")


def _short_name(candidate: str, before: str) -> str:
    """Return a candidate without catalog and database, unless somebody has begun to type them.

    Example:
        >>> _short_name("default_catalog.default_database.orders", "SELECT * FROM or")
        'orders'
    """
    is_full = re.search(r"\.[^\s.]*\Z", before) is not None
    return candidate if is_full else candidate.rpartition(".")[2]


def _asked(
    client: RestClient, method: str, path: str, body: Any = None, query: Mapping[str, str | int] | None = None
) -> Any:
    try:
        return client.ask(method, path, body, query=query, version=_VERSION)
    except ClusterError as error:
        found = _CAUSE.match(error.message)
        if found is None or error.status is None:
            raise
        raise ClusterError(found[1], status=error.status, hint=error.hint) from error
