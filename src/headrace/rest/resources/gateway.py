"""The SQL gateway: Flink's protocol, versions 1 to 4, for its SQL client, its JDBC driver and other clients.

POST /sessions                                                 a session, with its own catalogs and options
POST /sessions/:s/statements                                   a statement starts
GET  /sessions/:s/operations/:o/result/:token                  its rows, portion by portion
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from headrace import __version__
from headrace.errors import GatewayError, HeadraceError, JobExecutionError, SqlParseError
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import CamelBody, Empty, Request, Response, json_response
from headrace.rest.routing import Endpoint, QueryParameters

if TYPE_CHECKING:
    # Handlers import what they need of it: it brings the planner of SQL along, which most programs start without.
    from headrace.gateway.operation import Portion, StatementOperation, StatementResult
    from headrace.gateway.session import GatewaySession
    from headrace.gateway.sessions import Sessions
    from headrace.gateway.values import ResultRowFormat

#: 0: no limit; nothing else is accepted, as in Flink. `_refuse_timeout` says so in words.
_Timeout = Annotated[int, msgspec.Meta(ge=0, extra_json_schema={"maximum": 0})]


#: What the refresh workflows of Flink's schedulers send.
_Never = Annotated[bool, msgspec.Meta(extra_json_schema={"const": False})]
_NoText = Annotated[str | None, msgspec.Meta(extra_json_schema={"type": "null"})]
_NoOptions = Annotated[dict[str, str] | None, msgspec.Meta(extra_json_schema={"maxProperties": 0})]
#: Flink takes one instead of a script.
_NoUri = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "null"})]


class ApiVersions(CamelBody):
    versions: list[str]


class GatewayInfo(CamelBody):
    product_name: str
    version: str


class SessionRequest(CamelBody, omit_defaults=True):
    session_name: str | None = None
    properties: dict[str, str] | None = None


class SessionOpened(CamelBody):
    session_handle: str


class SessionProperties(CamelBody):
    properties: dict[str, str]


class GatewayStatus(CamelBody):
    status: str


class StatementRequest(CamelBody, omit_defaults=True):
    statement: str
    execution_timeout: _Timeout | None = None
    execution_config: dict[str, str] | None = None


class ConfigureRequest(CamelBody, omit_defaults=True):
    statement: Annotated[str, msgspec.Meta(min_length=1)]
    execution_timeout: _Timeout | None = None


class ScriptRequest(CamelBody, omit_defaults=True):
    script: Annotated[str, msgspec.Meta(pattern=r"\S")] | msgspec.UnsetType = msgspec.UNSET
    script_uri: _NoUri = None
    execution_config: dict[str, str] | None = None


class RefreshRequest(CamelBody, omit_defaults=True):
    is_periodic: _Never
    schedule_time: _NoText = None
    dynamic_options: _NoOptions = None
    static_partitions: dict[str, str] | None = None
    execution_config: dict[str, str] | None = None


class ScriptDeployed(CamelBody):
    #: The script's name in logs; its jobs run in this cluster.
    cluster_id: str = msgspec.field(name="clusterID")


class StatementSubmitted(CamelBody):
    operation_handle: str


class CompletionRequest(CamelBody):
    statement: str
    position: Annotated[int, msgspec.Meta(ge=0)]


class CompletionBody(CamelBody):
    candidates: list[str]


class ResultColumn(CamelBody):
    name: str
    logical_type: dict[str, Any]
    comment: str | None = None


class ResultRow(CamelBody):
    #: INSERT, UPDATE_BEFORE, UPDATE_AFTER or DELETE.
    kind: str
    fields: list[Any]


class ResultRows(CamelBody):
    columns: list[ResultColumn]
    row_format: Literal["JSON", "PLAIN_TEXT"]
    data: list[ResultRow]


class FetchedResult(CamelBody, omit_defaults=True):
    result_type: Literal["NOT_READY", "PAYLOAD", "EOS"]
    is_query_result: bool | None = None
    job_id: str | None = msgspec.field(default=None, name="jobID")
    result_kind: str | None = None
    results: ResultRows | None = None
    next_result_uri: str | None = None


_ROW_FORMAT = QueryParameters(
    "rowFormat",
    "How values are written: JSON, or PLAIN_TEXT as people read them.",
    {"type": "string", "enum": ["JSON", "PLAIN_TEXT"]},
    ignores_case=True,
)
#: The newest version: what a path without a version means.
_NEWEST = 4


def versions(context: RestContext, request: Request) -> ApiVersions:
    return ApiVersions(["V1", "V2", "V3", "V4"])


def info(context: RestContext, request: Request) -> GatewayInfo:
    # Clients compare neither name nor version; people read them.
    return GatewayInfo("headrace", __version__)


def open_session(context: RestContext, request: Request) -> SessionOpened:
    body = request.read(SessionRequest)
    return SessionOpened(_sessions(context).open(body.properties or {}).handle)


def close_session(context: RestContext, request: Request) -> GatewayStatus:
    _sessions(context).end(request.params["sessionhandle"])
    return GatewayStatus("CLOSED")


def properties(context: RestContext, request: Request) -> SessionProperties:
    return SessionProperties(_session(context, request).properties)


def heartbeat(context: RestContext, request: Request) -> Empty:
    _session(context, request)
    return Empty()


def configure(context: RestContext, request: Request) -> Empty:
    body = request.read(ConfigureRequest)
    _refuse_timeout(body.execution_timeout)
    session = _session(context, request)
    try:
        session.configure(body.statement)
    except Exception as error:
        raise _failed(error) from error
    return Empty()


def complete(context: RestContext, request: Request) -> CompletionBody:
    body = request.read(CompletionRequest)
    session = _session(context, request)
    return CompletionBody(session.complete(body.statement, body.position, has_full_names=True))


def submit(context: RestContext, request: Request) -> StatementSubmitted:
    body = request.read(StatementRequest)
    _refuse_timeout(body.execution_timeout)
    session = _session(context, request)
    _sessions(context).check_room()
    return StatementSubmitted(session.submit(body.statement, body.execution_config).handle)


def deploy(context: RestContext, request: Request) -> ScriptDeployed:
    body = request.read(ScriptRequest)
    session = _session(context, request)
    if body.script_uri is not None:
        raise RestError(400, "scriptUri is not supported; send the text of the script as `script`.")
    if body.script is msgspec.UNSET:
        raise RestError(400, "Bad request: `script` is missing.")
    _sessions(context).check_room()
    options = {**session.own_properties, **(body.execution_config or {})}
    try:
        return ScriptDeployed(_sessions(context).deploy(body.script, options))
    except HeadraceError as error:
        raise _failed(error) from error


def refresh(context: RestContext, request: Request) -> StatementSubmitted:
    body = request.read(RefreshRequest)
    session = _session(context, request)
    if body.is_periodic or body.schedule_time is not None:
        raise RestError(
            400, "Periodic refreshes are not accepted: headrace refreshes tables by their FRESHNESS itself."
        )
    if body.dynamic_options:
        raise RestError(400, "dynamicOptions are not supported; set options with executionConfig.")
    _sessions(context).check_room()
    table = request.params["tablename"]
    operation = session.refresh(table, body.static_partitions or {}, body.execution_config or {})
    return StatementSubmitted(operation.handle)


def status(context: RestContext, request: Request) -> GatewayStatus:
    return GatewayStatus(_operation(context, request)[1].status.value)


def cancel(context: RestContext, request: Request) -> GatewayStatus:
    operation = _operation(context, request)[1]
    try:
        operation.cancel()
    except GatewayError as error:
        raise RestError(409, str(error)) from error
    return GatewayStatus(operation.status.value)


def close(context: RestContext, request: Request) -> GatewayStatus:
    _session(context, request).close_operation(request.params["operationhandle"])
    return GatewayStatus("CLOSED")


def fetch(context: RestContext, request: Request) -> Response:
    from headrace.gateway.values import ResultRowFormat

    session, operation = _operation(context, request)
    row_format = ResultRowFormat(request.query.get("rowFormat", "JSON").upper())
    try:
        portion = operation.fetch(int(request.params["token"]))
    except Exception as error:
        if isinstance(error, GatewayError) and error is not operation.error:
            # The request is right, but not now: the statement was cancelled, or the token is that of another portion.
            raise RestError(409, str(error)) from error
        raise _failed(error) from error
    version = request.version or _NEWEST
    uri = None
    if portion.next_token is not None:
        place = f"/v{version}/sessions/{session.handle}/operations/{operation.handle}"
        uri = f"{place}/result/{portion.next_token}" + (
            f"?rowFormat={row_format.value}" if version > 1 else ""
        )
    return json_response(_body(portion, row_format, session.time_zone, uri))


def _body(portion: Portion, row_format: ResultRowFormat, zone: str, uri: str | None) -> FetchedResult:
    if portion.kind.value == "NOT_READY":
        return FetchedResult("NOT_READY", next_result_uri=uri)
    result = portion.result
    assert result is not None
    return FetchedResult(
        portion.kind.value,
        is_query_result=result.is_query,
        job_id=result.job_id,
        result_kind=result.kind.name,
        results=_rows(portion, result, row_format, zone),
        next_result_uri=uri,
    )


def _rows(portion: Portion, result: StatementResult, row_format: ResultRowFormat, zone: str) -> ResultRows:
    from headrace.gateway.values import fields_of, type_json

    fields = fields_of([each.type for each in result.schema], row_format, zone)
    return ResultRows(
        [ResultColumn(each.name, type_json(each.type)) for each in result.schema],
        row_format.value,
        [ResultRow(row.get_row_kind().name, fields(row)) for row in portion.rows],
    )


def _sessions(context: RestContext) -> Sessions:
    if context.gateway is None:
        raise RestError(
            403,
            "This process runs no SQL gateway. Start one with `headrace sql-gateway`, or a session that accepts jobs "
            "with `headrace session --submit`.",
        )
    return context.gateway


def _session(context: RestContext, request: Request) -> GatewaySession:
    return _sessions(context).get(request.params["sessionhandle"])


def _operation(context: RestContext, request: Request) -> tuple[GatewaySession, StatementOperation]:
    session = _session(context, request)
    return session, session.operation(request.params["operationhandle"])


def _refuse_timeout(timeout: int | None) -> None:
    if timeout:
        raise RestError(400, "executionTimeout is not supported; cancel the operation instead.")


def _failed(error: Exception) -> RestError:
    """Answer with the failure of a statement. Flink's clients show what is between the last cause and its stack."""
    text = str(error) if isinstance(error, HeadraceError) else "".join(traceback.format_exception(error))
    name = f"org.apache.flink.table.api.{_FLINK_NAMES.get(type(error).__name__, 'TableException')}"
    # Flink's SQL client then reads on, up to the next semicolon: statement sets have several.
    place = 'Encountered "<EOF>"' if _is_incomplete(error) else "headrace"
    message = f"<Exception on server side:\nCaused by: {name}: {text}\n\tat {place}\nEnd of exception on server side>"
    # What is none of our errors is a bug of ours, whatever the statement was.
    is_ours = isinstance(error, HeadraceError) and not isinstance(error, JobExecutionError)
    return RestError(400 if is_ours else 500, message)


def _is_incomplete(error: Exception) -> bool:
    return isinstance(error, SqlParseError) and error.message.endswith("found the end of the statement")


#: What Flink's clients show as the kind of an error, by ours.
_FLINK_NAMES = {
    "SqlParseError": "SqlParserException",
    "SqlValidationError": "ValidationException",
    "CatalogError": "ValidationException",
}

_SESSION = "/sessions/{sessionhandle}"
_OPERATION = f"{_SESSION}/operations/{{operationhandle}}"

ENDPOINTS = (
    Endpoint("GET", "/api_versions", "The versions of the SQL gateway's protocol.", versions, ApiVersions),
    Endpoint("GET", "/info", "What serves the SQL gateway.", info, GatewayInfo),
    Endpoint(
        "POST",
        "/sessions",
        "Open a session of the SQL gateway.",
        open_session,
        SessionOpened,
        body=SessionRequest,
    ),
    Endpoint("GET", _SESSION, "The options of a session.", properties, SessionProperties),
    Endpoint("DELETE", _SESSION, "Close a session and cancel its queries.", close_session, GatewayStatus),
    Endpoint("POST", f"{_SESSION}/heartbeat", "Keep a session from being closed as idle.", heartbeat, Empty),
    Endpoint(
        "POST",
        f"{_SESSION}/configure-session",
        "Carry out a statement that prepares the session, such as SET or CREATE TABLE.",
        configure,
        Empty,
        body=ConfigureRequest,
        is_slow=True,
        versions=frozenset({2, 3, 4}),
    ),
    Endpoint(
        "GET",
        f"{_SESSION}/complete-statement",
        "What the word before the cursor may become.",
        complete,
        CompletionBody,
        body=CompletionRequest,
        versions=frozenset({2, 3, 4}),
    ),
    Endpoint(
        "POST",
        f"{_SESSION}/statements",
        "Start a statement.",
        submit,
        StatementSubmitted,
        body=StatementRequest,
    ),
    Endpoint(
        "POST",
        f"{_SESSION}/scripts",
        "Run a script in the background, in a session of its own with the options of this one.",
        deploy,
        ScriptDeployed,
        body=Annotated[ScriptRequest, msgspec.Meta(extra_json_schema={"required": ["script"]})],
        versions=frozenset({4}),
    ),
    Endpoint(
        "POST",
        f"{_SESSION}/materialized-tables/{{tablename}}/refresh",
        "Refresh a materialized table, or one of its partitions.",
        refresh,
        StatementSubmitted,
        body=RefreshRequest,
        versions=frozenset({3}),
    ),
    Endpoint("GET", f"{_OPERATION}/status", "Where a statement stands.", status, GatewayStatus),
    Endpoint("POST", f"{_OPERATION}/cancel", "Cancel a statement.", cancel, GatewayStatus),
    Endpoint("DELETE", f"{_OPERATION}/close", "Close a statement and forget its rows.", close, GatewayStatus),
    Endpoint(
        "GET",
        f"{_OPERATION}/result/{{token}}",
        "A portion of a statement's rows; `nextResultUri` leads to the next one.",
        fetch,
        FetchedResult,
        query=(_ROW_FORMAT,),
    ),
)
