"""An S3 server for tests: moto's, in a process of its own, which keeps everything in memory.

pyarrow and every process of the test find it through the environment, as they would find any other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

#: Serves until its input is closed, which it also is when the tests are killed.
_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").disabled = True
server = ThreadedMotoServer(ip_address=sys.argv[1], port=0, verbose=False)
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
        name = f"bucket-{uuid4().hex[:12]}"
        self.file_system().create_dir(name)
        return f"s3://{name}"

    def file_system(self) -> FileSystem:
        """Return all of its buckets as a file system, for a process without its environment."""
        from pyarrow.fs import S3FileSystem

        names = {
            "access_key": "AWS_ACCESS_KEY_ID",
            "secret_key": "AWS_SECRET_ACCESS_KEY",
            "region": "AWS_DEFAULT_REGION",
        }
        keys = {name: self.environment()[variable] for name, variable in names.items()}
        return S3FileSystem(endpoint_override=self.endpoint, allow_bucket_creation=True, **keys)


@contextmanager
def run_s3(address: str = "127.0.0.1") -> Iterator[S3Server]:
    """Start a server; stop it at the end.

    Args:
        address: Where it listens.
    """
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, address],
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
        try:
            yield S3Server(f"http://{address}:{port}")
        finally:
            process.stdin.close()
            process.wait(30)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """Return a server that all tests of this process share."""
    pytest.importorskip("moto", reason="needs moto's server of S3, which is in headrace[dev]")
    with run_s3() as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URI of a new bucket that this process can reach."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server.new_bucket()
