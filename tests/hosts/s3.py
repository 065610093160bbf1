"""An S3 server for tests: moto, a process of its own, at an address that hosts reach."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from pyarrow.fs import FileSelector, S3FileSystem

from tests.hosts.network import Place, wait_until
from tests.postgres import free_port

_KEY, _SECRET = "tester", "no-secret"


class S3Server:
    """A server with one bucket."""

    bucket = "bucket"

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    @property
    def environment(self) -> dict[str, str]:
        """What processes need to find it under `s3://bucket`."""
        return {
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            # A request that gets no answer is given up in seconds, not minutes.
            "AWS_REQUEST_TIMEOUT_MS": "3000",
            "AWS_MAX_ATTEMPTS": "2",
        }

    def file_system(self) -> S3FileSystem:
        return S3FileSystem(
            access_key=_KEY,
            secret_key=_SECRET,
            region="us-east-1",
            endpoint_override=self._endpoint,
            allow_bucket_creation=True,
        )

    def names(self, directory: str) -> list[str]:
        """Return the objects below a directory of the bucket."""
        prefix = f"{self.bucket}/{directory}"
        found = self.file_system().get_file_info(FileSelector(prefix, recursive=True, allow_not_found=True))
        return sorted(each.path.removeprefix(f"{prefix}/") for each in found if each.is_file)

    def read(self, path: str) -> str:
        with self.file_system().open_input_stream(f"{self.bucket}/{path}") as stream:
            return stream.read().decode()


@contextmanager
def run_s3(place: Place, log: Path) -> Iterator[S3Server]:
    """Start a server; stop it at the end."""
    port = free_port()
    endpoint = f"http://{place.address}:{port}"
    process = place.start(log, sys.executable, "-m", "moto.server", "-H", place.address, "-p", str(port))
    try:
        wait_until(lambda: _answers(endpoint), lambda: f"the S3 server: {process.log[-2000:]}", 60)
        server = S3Server(endpoint)
        server.file_system().create_dir(server.bucket)
        yield server
    finally:
        process.stop()


def _answers(endpoint: str) -> bool:
    try:
        with urlopen(f"{endpoint}/moto-api/", timeout=2):
            return True
    except (URLError, OSError):
        return False
