"""A real Chromium for tests of the web page, and servers for it to look at."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from headrace.rest.page import Page

#: Nothing is sent anywhere but to the page's server.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def launched() -> Iterator[Any]:
    """Start the system's Chromium; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra: dev)")
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(
            f"there is no Chromium on PATH ({', '.join(NAMES)}); scripts/setup.sh chromium installs it"
        )
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=path, args=list(FLAGS), headless=True)
        except playwright.Error as error:
            pytest.skip(f"{path} does not start here: {str(error).splitlines()[0]}")
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page of the browser that notes everything that goes wrong in it."""

    def __init__(self, browser: Any, expected: str = "", **options: Any) -> None:
        #: The browser itself reports answers that are errors; one that a test is about is not a problem.
        self._expected = expected
        self._context = browser.new_context(**{"viewport": {"width": 1360, "height": 860}, **options})
        self.page = self._context.new_page()
        self.page.set_default_timeout(20_000)
        self.problems: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(f"a dialog: {dialog.message}"))
        # Violations of the policy are console errors, and events as well.
        self.page.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " event => console.error('violates ' + event.violatedDirective + ' ' + event.blockedURI));"
        )

    def _note(self, message: Any) -> None:
        is_expected = self._expected and self._expected in message.text
        if message.type in {"error", "warning"} and not is_expected:
            self.problems.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        self._context.close()
        assert self.problems == [], self.problems


class FakeServer:
    """The page's own files under its own policy, with answers of REST that were made up."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        page = Page()
        encoded = {path: json.dumps(answer).encode() for path, answer in answers.items()}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if page.has("GET", path):
                    found = page.answer("GET", path, {})
                    self._send(
                        found.status, found.body, {"Content-Type": found.content_type, **found.headers}
                    )
                elif path in encoded:
                    self._send(200, encoded[path], {"Content-Type": "application/json"})
                else:
                    self._send(404, b'{"errors": ["not found"]}', {"Content-Type": "application/json"})

            def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(ConnectionError):  # the page gives up what it no longer wants
                    self.wfile.write(body)

            def log_message(self, format: str, *values: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
