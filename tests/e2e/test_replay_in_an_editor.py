"""`headrace replay --debugger debugpy`, as an editor sees it: over the debug adapter protocol."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from tests.docs.documents import ROOT
from tests.docs.test_debugging_session import command_of, session

pytest.importorskip("debugpy")


class Editor:
    """Sends requests, and reads what comes back."""

    def __init__(self, connection: socket.socket) -> None:
        self._stream = connection.makefile("rwb")
        self._sent = 0

    def send(self, command: str, **arguments: Any) -> None:
        self._sent += 1
        message = {"seq": self._sent, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(message).encode()
        self._stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._stream.flush()

    def wait_for(self, name: str) -> dict[str, Any]:
        """Return the body of the next event or answer of a name."""
        for message in self._messages():
            if name in (message.get("event"), message.get("command")):
                assert message.get("success", True), message
                body: dict[str, Any] = message.get("body", {})
                return body
        raise AssertionError(f"the connection was closed before {name}")

    def _messages(self) -> Iterator[dict[str, Any]]:
        while header := self._stream.readline():
            if header.lower().startswith(b"content-length:"):
                size = int(header.partition(b":")[2])
                self._stream.readline()
                yield json.loads(self._stream.read(size))


@pytest.mark.slow
def test_an_editor_stops_at_the_line_that_raised_with_the_state_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, first, *_ = session()
    (tmp_path / "orders.py").write_text(program.text, encoding="utf-8")
    checkpoints = str(tmp_path / "checkpoints")
    words = [word.replace("/data/checkpoints", checkpoints) for word in command_of(first).words]
    words[1:1] = ["-D", "execution.target=tests.docs.session_executor:SessionExecutor"]
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, words).exit_code == 1

    command = ["replay", checkpoints, "--last-failure", "--debugger", "debugpy"]
    with subprocess.Popen(
        [sys.executable, "-m", "headrace.cli.main", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(ROOT / "src")),
    ) as replay:
        try:
            assert replay.stdout is not None
            waiting = replay.stdout.readline()
            assert waiting.startswith("waiting for an editor to attach to 127.0.0.1:"), (
                "nothing else is printed"
            )
            port = int(waiting.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                editor = Editor(connection)
                editor.send("initialize", adapterID="test")
                editor.send("attach", justMyCode=False)
                editor.wait_for("initialized")
                editor.send("setExceptionBreakpoints", filters=["uncaught"])  # as editors do by default
                editor.send("configurationDone")
                stopped = editor.wait_for("stopped")
                assert stopped["reason"] == "exception"
                assert "invalid literal for int()" in stopped["description"]
                editor.send("stackTrace", threadId=stopped["threadId"])
                top = editor.wait_for("stackTrace")["stackFrames"][0]
                assert (top["name"], top["line"]) == ("process_element", 12)
                editor.send("evaluate", expression="order, self.total.value()", frameId=top["id"])
                assert editor.wait_for("evaluate")["result"] == "('bob,n/a', 8)"
        finally:
            replay.kill()
