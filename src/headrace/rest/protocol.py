"""HTTP on one connection: uvicorn's protocol, with a short way for who asks the same again and again.

A page or a monitor asks for the same address every moment, in the very same bytes. What is decided about a request by
its bytes and its connection (parsing, token, origin, endpoint) is decided once, and remembered for the next time:

    bytes as the time before?   no:  parse -> admit -> a task -> handle -> send       uvicorn's way
                                yes: rate  -> handle -> send, at once                 the answer is made anew
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from headrace.rest.http import Response


class Poll(Protocol):
    """A request that may be asked again."""

    def __call__(self) -> Response | None:
        """Answer it once more; None if it must go the long way."""


class Polls(Protocol):
    """Decides about requests that are asked again."""

    def __call__(self, scope: Any) -> Poll | None:
        """Return how a request is answered from now on; None if it goes the long way every time."""


class JoinedWrites:
    """A transport that sends what is written in one turn of the loop at once.

    Head and body of an answer are written one after the other. Sent apart they are two system calls, which are the
    dearest part of a short answer.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self.flush)
        self._waiting.append(data)

    def write_whole(self, data: bytes) -> None:
        """Send an answer that is complete."""
        self.flush()
        self._transport.write(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        if self._waiting:
            waiting, self._waiting = b"".join(self._waiting), []
            self._transport.write(waiting)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class PolledProtocol(HttpToolsProtocol):
    """One connection.

    Args:
        polls: Decides about requests that are asked again.
        **settings: What uvicorn gives its protocols.
    """

    def __init__(self, polls: Polls, **settings: Any) -> None:
        super().__init__(**settings)
        self._polls = polls
        #: The last request, if it came in one piece and was the only one in it; else empty.
        self._asked = b""
        #: How it is answered from its third time on.
        self._poll: Poll | None = None
        #: The last answer to it, and what is sent of it behind the date.
        self._answered: tuple[Response | None, bytes] = (None, b"")
        self._begun = self._completed = 0
        self._last_s = 0.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(JoinedWrites(transport))  # type: ignore[arg-type]  # it is one but for its class

    def data_received(self, data: bytes) -> None:
        if data == self._asked and self._is_between_requests():
            if self._poll is None:
                self._poll = self._polls(self.scope)
            response = self._poll() if self._poll is not None else None
            if response is not None:
                self._send_again(response)
                return
        elif data != self._asked:
            self._poll = None
        self._begun = self._completed = 0
        super().data_received(data)
        is_whole = self._begun == self._completed == 1
        self._asked = data if is_whole and self.cycle.keep_alive else b""

    def _is_between_requests(self) -> bool:
        is_answered = self.cycle.response_complete and not self.pipeline
        return is_answered and not self.flow.write_paused and not self.transport.is_closing()

    def _send_again(self, response: Response) -> None:
        known, rest = self._answered
        if response is not known:
            rest = _without_date(response)
            self._answered = response, rest
        date = b"".join(b"%b: %b\r\n" % header for header in self.server_state.default_headers)
        self.transport.write_whole(STATUS_LINE[response.status] + date + rest)  # type: ignore[attr-defined]
        self._last_s = self.loop.time()
        self.server_state.total_requests += 1

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection over which nothing came lately; the timer is not set anew at every answer."""
        left_s = self._last_s + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left_s, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    # -- from the parser ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._begun += 1
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._completed += 1
        super().on_message_complete()


def headers_of(response: Response) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer as they are sent."""
    return [
        (b"content-type", response.content_type.encode("latin-1")),
        (b"content-length", str(len(response.body)).encode("ascii")),
        *(
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in response.headers.items()
        ),
    ]


def _without_date(response: Response) -> bytes:
    head = b"".join(b"%b: %b\r\n" % header for header in headers_of(response))
    return head + b"\r\n" + response.body
