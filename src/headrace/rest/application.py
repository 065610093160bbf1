"""The application: a request in, a response out. No socket, no thread.

guard -> a file of the page? there it is : route -> body within limits -> job ended? the archive : the handler -> JSON
                                                   every error -> {"errors": [...]} and its status
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, unquote

import msgspec

from headrace.errors import HeadraceError
from headrace.rest.archive import archived_answer, render_archive
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError, status_of
from headrace.rest.http import Request, Response, error_response, json_response
from headrace.rest.openapi import openapi_document
from headrace.rest.page import Page
from headrace.rest.resources import (
    checkpoints,
    cluster,
    datasets,
    epochs,
    exchange,
    flame_graphs,
    gateway,
    identifiers,
    jobmanager,
    jobs,
    logs,
    metrics,
    origins,
    programs,
    prometheus,
    pulse,
    rescaling,
    savepoints,
    spark_pages,
    submissions,
    taskmanagers,
    threads,
    vertices,
    why,
)
from headrace.rest.routing import Endpoint, RouteTable
from headrace.rest.security import Guard
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import LiveJob

_log = logging.getLogger(__name__)

#: Bodies of everything but jobs.
MOST_JSON_BYTES = 1024 * 1024
_VERSION = re.compile(r"/v(1(?=/)|[2-4](?=/(?:sessions|api_versions|info)(?:/|$)))")
#: Sent with every answer: it is data, to be shown by nobody but who asked.
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}

ENDPOINTS: tuple[Endpoint, ...] = (
    *cluster.ENDPOINTS,
    *jobs.ENDPOINTS,
    *epochs.ENDPOINTS,
    *exchange.ENDPOINTS,
    *pulse.ENDPOINTS,
    *vertices.ENDPOINTS,
    *why.ENDPOINTS,
    *flame_graphs.ENDPOINTS,
    *metrics.ENDPOINTS,
    *prometheus.ENDPOINTS,
    *identifiers.ENDPOINTS,
    *checkpoints.ENDPOINTS,
    *savepoints.ENDPOINTS,
    *datasets.ENDPOINTS,
    *rescaling.ENDPOINTS,
    *taskmanagers.ENDPOINTS,
    *jobmanager.ENDPOINTS,
    *logs.ENDPOINTS,
    *threads.ENDPOINTS,
    *programs.ENDPOINTS,
    *submissions.ENDPOINTS,
    *origins.ENDPOINTS,
    *spark_pages.ENDPOINTS,
    *gateway.ENDPOINTS,
)


def archive(job: LiveJob, context: RestContext) -> Mapping[str, str]:
    """Render what is remembered of a job that has ended."""
    return render_archive(ENDPOINTS, job, context)


class RestApplication:
    """Answers requests.

    Args:
        context: What handlers work with.
        settings: Whom to answer.
    """

    def __init__(self, context: RestContext, settings: RestSettings) -> None:
        self.context = context
        self._settings = settings
        self._guard = Guard(settings)
        self._page = Page()
        self._router = RouteTable(
            (*ENDPOINTS, Endpoint("GET", "/openapi.json", "This API.", self._openapi, None))
        )
        self._document: bytes | None = None
        #: Path -> what the last answer depended on, and the answer.
        self._answered: dict[str, tuple[object, Response]] = {}

    def admit(self, method: str, target: str, headers: Mapping[str, str], client: str) -> Admitted | Response:
        """Decide about a request before its body is read: whether it is answered, and by whom."""
        path, _, query = target.partition("?")
        try:
            path, version = _normalized(path)
            request = Request(method, path, headers=headers, client=client, version=version)
            if self._page.has(method, path):
                self._guard.check_place(request)
                return self._page.answer(method, path, headers)
            self._guard.check(request)
            endpoint, params = self._router.find(method, path, version)
            if endpoint.is_changing_get:
                self._guard.check_changing_get(request)
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=50, errors="replace")
            for parameter in endpoint.query:
                parameter.check([value for name, value in pairs if name == parameter.name])
        except RestError as error:
            return error_response(error.status, error.message, headers={**_HEADERS, **error.headers})
        except ValueError:
            return error_response(400, "Bad request: the query cannot be read.", headers=_HEADERS)
        most = self._settings.max_content_length if endpoint.takes_job else MOST_JSON_BYTES
        admitted = Request(method, path, params, dict(pairs), headers, client=client, version=version)
        return Admitted(endpoint, admitted, most)

    def handle(self, admitted: Admitted, body: bytes = b"") -> Response:
        """Answer a request that was admitted."""
        endpoint = admitted.endpoint
        if endpoint.depends_on is None or admitted.request.method != "GET":
            return self._handle(endpoint, with_body(admitted.request, body))
        try:
            state = endpoint.depends_on(self.context)
        except Exception:  # noqa: BLE001 - what is wrong is told where the answer is made
            return self._handle(endpoint, admitted.request)
        known, response = self._answered.get(endpoint.path, (None, None))
        if response is None or known != state:
            response = self._handle(endpoint, admitted.request)
            if response.status == endpoint.status:
                self._answered[endpoint.path] = state, response
        return response

    def _handle(self, endpoint: Endpoint, request: Request) -> Response:
        try:
            response = self._answer(endpoint, request)
        except RestError as error:
            response = error_response(error.status, error.message, headers=error.headers)
        except HeadraceError as error:
            response = error_response(status_of(error), str(error))
        except Exception:  # noqa: BLE001 - one request fails, the server continues
            _log.exception("%s %s failed", request.method, request.path)
            response = error_response(500, "Internal server error. See the server's log.")
        return Response(
            b"" if request.method == "HEAD" else response.body,
            response.status,
            response.content_type,
            {**_HEADERS, **response.headers},
        )

    def answer(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        client: str = "127.0.0.1",
    ) -> Response:
        """Answer a request whose body is at hand."""
        admitted = self.admit(method, target, headers or {}, client)
        if isinstance(admitted, Response):
            return admitted
        if len(body) > admitted.most_bytes:
            return too_large(admitted.most_bytes)
        return self.handle(admitted, body)

    def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        if endpoint.is_about_a_job and endpoint.method == "GET":
            ended = self.context.dispatcher.history.get(request.params["jobid"])
            if ended is not None and endpoint.is_archived:
                return archived_answer(ended, endpoint, request)
        answer = endpoint.handler(self.context, request)
        return answer if isinstance(answer, Response) else json_response(answer, endpoint.status)

    def _openapi(self, context: RestContext, request: Request) -> Response:
        if self._document is None:
            self._document = msgspec.json.encode(openapi_document(ENDPOINTS))
        return Response(self._document)


class Admitted(msgspec.Struct, frozen=True):
    """A request that will be answered once its body is there."""

    endpoint: Endpoint
    request: Request
    #: The most its body may have.
    most_bytes: int


def with_body(request: Request, body: bytes) -> Request:
    """Return a request with its body."""
    if not body:
        return request
    return replace(request, body=body)


def too_large(most: int) -> Response:
    """Answer a body that is too large."""
    return error_response(413, f"The body is too large: the limit is {most} bytes.", headers=_HEADERS)


def _normalized(path: str) -> tuple[str, int | None]:
    """Return a path without the version, decoded once, and the version. Only the SQL gateway has others than 1.

    Raises:
        RestError: If it could mean another path than it says.
    """
    decoded = unquote(path, errors="replace")
    if "\0" in decoded or "\\" in decoded or any(part in {".", ".."} for part in decoded.split("/")):
        raise RestError(400, "Bad request: the path contains '.', '..', a backslash or a NUL.")
    versioned = _VERSION.match(decoded)
    version = int(versioned[1]) if versioned else None
    return (decoded[3:] if versioned else decoded).rstrip("/") or "/", version
