"""An S3 server for tests: moto's, in a process of its own, which keeps everything in memory.

pyarrow and every process of the test find it through the environment, as they would find any other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest

#: Serves until its input is closed, which it also is when the tests are killed.
_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").disabled = True
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


@dataclass(frozen=True)
class S3Server:
    """A running server."""

    endpoint: str

    def environment(self) -> dict[str, str]:
        """Return what a process needs to find it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def new_bucket(self) -> str:
        """Make a bucket, and return its URI."""
        from pyarrow.fs import S3FileSystem

        name = f"bucket-{uuid4().hex[:12]}"
        S3FileSystem(endpoint_override=self.endpoint, allow_bucket_creation=True).create_dir(name)
        return f"s3://{name}"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """Return a server that all tests of this process share."""
    pytest.importorskip("moto", reason="needs moto's server: pip install 'moto[server]'")
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        port = process.stdout.readline().strip()
        assert port, "moto's server did not start"
        yield S3Server(f"http://127.0.0.1:{port}")
        process.stdin.close()
        process.wait(30)


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URI of a new bucket that this process can reach."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server.new_bucket()
