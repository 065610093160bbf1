"""The HTTP server: uvicorn in a thread of its own, over the application. Only this module knows uvicorn.

Answers are made in the server's own thread: they take microseconds, from values that jobs have left. What takes longer
(submitting, deleting) goes to a few workers, so that it holds nobody up.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

import uvicorn

from headrace.errors import ConfigurationError
from headrace.rest.application import Admitted, RestApplication, too_large
from headrace.rest.http import Response, error_response
from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

_START_S: Final = 10.0
#: How long the end of the process waits for clients to fetch the results of what they have triggered.
FETCH_S: Final = 10.0
_SLOW_WORKERS: Final = 2
#: How long a body may take to come, s.
_BODY_S: Final = 60.0

_Receive = Callable[[], Awaitable[Any]]
_Send = Callable[[Any], Awaitable[None]]


class RestServer:
    """Serves an application until it is closed.

    Args:
        application: Answers.
        settings: Where to listen.

    Raises:
        ConfigurationError: If no port is free.
    """

    def __init__(self, application: RestApplication, settings: RestSettings) -> None:
        self._application = application
        self._settings = settings
        self._slow = ThreadPoolExecutor(_SLOW_WORKERS, thread_name_prefix="headrace-rest")
        self._socket = _bind(settings)
        self.port: int = self._socket.getsockname()[1]
        application.context.url = self.url
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            http="httptools",
            # Headers that say whom a request comes from could be anybody's.
            proxy_headers=False,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            date_header=True,
            backlog=256,
            limit_concurrency=512,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=2,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="headrace-rest-server", daemon=True)

    @property
    def url(self) -> str:
        """Where clients find it, as seen from this machine."""
        address = self._settings.bind_address
        host = "localhost" if self._settings.is_loopback or address in {"0.0.0.0", "::"} else address  # noqa: S104 - compared, not bound
        return f"{self._settings.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def start(self) -> None:
        """Start to listen; returns when clients are answered."""
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START_S / 0.01)):
            if self._server.started or not self._thread.is_alive():
                break
            waited.wait(0.01)
        if not self._server.started:
            raise ConfigurationError(
                f"REST server did not start at {self._settings.bind_address}:{self.port}"
            )

    def close(self, fetch_s: float = FETCH_S) -> None:
        """Stop; waits a little for clients that have triggered something and not heard of its end."""
        if self._thread.is_alive():
            self._application.context.operations.wait_until_fetched(fetch_s)
            self._server.should_exit = True
            self._thread.join(5.0)
        self._slow.shutdown(wait=False, cancel_futures=True)
        with suppress(OSError):
            self._socket.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except SystemExit:
            _log.error("REST server could not be started at %s", self.url)
        except Exception:  # noqa: BLE001 - jobs continue without it
            _log.exception("REST server has ended")

    # -- ASGI --------------------------------------------------------------------------------------------------

    async def _serve(self, scope: Any, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return
        response = await self._respond(scope, receive)
        await send(
            {"type": "http.response.start", "status": response.status, "headers": _headers_of(response)}
        )
        await send({"type": "http.response.body", "body": response.body})

    async def _respond(self, scope: Any, receive: _Receive) -> Response:
        admitted = self._application.admit(*_asked(scope))
        if isinstance(admitted, Response):
            return admitted
        headers = admitted.request.headers
        declared = headers.get("content-length", "")
        if declared.isdigit() and int(declared[:20]) > admitted.most_bytes:
            return too_large(admitted.most_bytes)
        has_body = declared not in {"", "0"} or "transfer-encoding" in headers
        body = await _read_body(receive, admitted) if has_body else b""
        if isinstance(body, Response):
            return body
        if admitted.endpoint.is_slow:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._slow, self._application.handle, admitted, body)
        return self._application.handle(admitted, body)


def _asked(scope: Any) -> tuple[str, str, dict[str, str], str]:
    """Return what a request is, as the application takes it: method, target, headers, client."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    target = scope["raw_path"].decode("latin-1").partition("?")[0]
    query = scope["query_string"].decode("latin-1")
    client = scope["client"][0] if scope.get("client") else ""
    return scope["method"], f"{target}?{query}" if query else target, headers, client


def _headers_of(response: Response) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", response.content_type.encode("latin-1")),
        (b"content-length", str(len(response.body)).encode("ascii")),
        *(
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in response.headers.items()
        ),
    ]


async def _read_body(receive: _Receive, admitted: Admitted) -> bytes | Response:
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return error_response(400, "Bad request: the body is incomplete.")
                size += len(message.get("body", b""))
                if size > admitted.most_bytes:
                    return too_large(admitted.most_bytes)
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        return error_response(408, "Timed out while waiting for the request body.")


def _bind(settings: RestSettings) -> socket.socket:
    """Take the first port that is free.

    Raises:
        ConfigurationError: If none is.
    """
    problem: OSError | None = None
    for port in settings.ports:
        try:
            return _listen(settings.bind_address, port)
        except OSError as error:
            problem = error
    ports = f"{settings.ports[0]}" + (f" to {settings.ports[-1]}" if len(settings.ports) > 1 else "")
    raise ConfigurationError(
        f"REST server cannot listen at {settings.bind_address}, port {ports}: {problem}",
        hint="set rest.bind-port to a free port, or disable REST with headrace.rest.enabled",
    )


def _listen(address: str, port: int) -> socket.socket:
    family, kind, protocol, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(256)
    except BaseException:
        listener.close()
        raise
    return listener
