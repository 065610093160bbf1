"""A schema registry for the tests of formats and tables: the fixture `registry`."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest


class Registry:
    """What the registry's documentation says it does, for the two requests that are made."""

    def __init__(self) -> None:
        self.schemas: list[str] = []
        self.requests: list[str] = []
        self.password: str | None = None

    def answer(self, method: str, path: str, body: bytes, authorization: str | None) -> tuple[int, object]:
        self.requests.append(f"{method} {path}")
        wanted = (
            None if self.password is None else f"Basic {base64.b64encode(self.password.encode()).decode()}"
        )
        if wanted is not None and authorization != wanted:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        if method == "POST":
            schema = json.loads(body)["schema"]
            if schema not in self.schemas:
                self.schemas.append(schema)
            return 200, {"id": self.schemas.index(schema) + 1}
        number = int(path.rsplit("/", 1)[1])
        if number > len(self.schemas):
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 200, {"schema": self.schemas[number - 1]}


@pytest.fixture
def registry() -> Iterator[tuple[Registry, str]]:
    state = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = state.answer(self.command, self.path, body, self.headers.get("Authorization"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield state, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
