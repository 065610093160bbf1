"""A client of the REST API: what the command line asks a cluster with."""

from __future__ import annotations

import http.client
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self
from urllib.parse import quote, urlencode

import msgspec

from headrace.config.configuration import Configuration
from headrace.config.options import rest as options
from headrace.errors import ClusterError, ConfigurationError
from headrace.rest.settings import read_token

_ADDRESS = re.compile(r"(?:(https?)://)?(\[[0-9a-fA-F:.]+\]|[^:/\[\]]+)(?::([0-9]{1,5}))?/?")
_JOB_ID = re.compile(r"[0-9a-f]{32}")
#: Pauses between looks at an operation: short first, then longer.
_POLL_S = (0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class RestClient:
    """Asks one cluster.

    Args:
        host: Where it is.
        port: Its port.
        is_secure: Whether to speak TLS.
        token: What to show.
        authorities: A file with the certificates to trust; those of the system if None.
        timeout_s: How long an answer may take.
        option: What chooses another cluster on the command line.
    """

    host: str
    port: int
    is_secure: bool = False
    token: str | None = field(default=None, repr=False)
    authorities: str | None = None
    timeout_s: float = 60.0
    option: str = "-m"

    @classmethod
    def of(cls, configuration: Configuration, address: str | None = None) -> Self:
        """Make the client of an address, or of the one that is configured.

        Raises:
            ConfigurationError: If the address is not valid.
        """
        get = configuration.get
        host, port = get(options.ADDRESS), get(options.PORT)
        authorities = get(options.TLS_AUTHORITIES)
        is_secure = authorities is not None
        if address is not None:
            parts = _ADDRESS.fullmatch(address)
            if parts is None or int(parts[3] or 0) > 65_535:
                raise ConfigurationError(f"expected an address such as localhost:8081; got {address!r}")
            host, port = parts[2].strip("[]"), int(parts[3] or port)
            is_secure = is_secure if parts[1] is None else parts[1] == "https"
        timeout_s = get(options.CLIENT_TIMEOUT) / timedelta(seconds=1)
        return cls(host, port, is_secure, read_token(configuration), authorities, timeout_s)

    @property
    def url(self) -> str:
        """Where the cluster is."""
        return f"{'https' if self.is_secure else 'http'}://{self.host}:{self.port}"

    def get(self, path: str, **query: str | int) -> Any:
        """Send a GET request and return the decoded JSON.

        Raises:
            ClusterError: If the cluster cannot be reached, or answers with an error.
        """
        return self.ask("GET", path, query=query)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str | int] | None = None,
        content_type: str = "application/json",
        version: int = 1,
    ) -> Any:
        """Send a request; returns the decoded JSON of the response, or its text if it is not JSON.

        Raises:
            ClusterError: If the cluster cannot be reached, or answers with an error.
        """
        data = body if isinstance(body, bytes) else None if body is None else msgspec.json.encode(body)
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        target = f"/v{version}{quote(path)}" + (f"?{urlencode(query)}" if query else "")
        status, answer, answer_type = self._send(method, target, data, headers)
        if status >= 400:
            raise self._refusal(status, answer)
        if "json" not in answer_type:
            return answer.decode("utf-8", "replace")
        return msgspec.json.decode(answer) if answer else {}

    def _send(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, str]:
        connection = self._connect()
        try:
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            return response.status, response.read(), response.getheader("Content-Type", "")
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(
                f"no answer from {self.url}: {_reason(error)}",
                hint=f"check that the cluster is running, or choose another one with {self.option} HOST:PORT",
            ) from error
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if not self.is_secure:
            return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)
        context = ssl.create_default_context(cafile=self.authorities)
        return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout_s, context=context)

    def _refusal(self, status: int, answer: bytes) -> ClusterError:
        try:
            errors = msgspec.json.decode(answer)["errors"]
            text = "\n".join(map(str, errors))
        except (msgspec.MsgspecError, LookupError, TypeError):
            text = answer.decode("utf-8", "replace")[:500] or f"HTTP status {status}"
        hint = None
        if status == 401:
            hint = f"set {options.TOKEN_FILE.key}, or HEADRACE_REST_TOKEN in the environment"
        message, _, own_hint = text.partition("\nhint: ")
        return ClusterError(message, status=status, hint=hint or own_hint or None)

    # -- what takes more than one request --------------------------------------------------------------------------

    def find_job(self, text: str) -> str:
        """Return the id of the job that an id, the beginning of one, or a name means.

        Raises:
            ClusterError: If there is none, or there are several.
        """
        if _JOB_ID.fullmatch(text.lower()):
            return text.lower()
        jobs = self.get("/jobs/overview")["jobs"]
        found = [job for job in jobs if job["jid"].startswith(text.lower()) or job["name"] == text]
        running = [job for job in found if job["end-time"] == -1]
        chosen = running or found
        if len(chosen) == 1:
            return str(chosen[0]["jid"])
        if not chosen:
            raise ClusterError(
                f"no job with the name or id {text!r} at {self.url}", hint="`headrace list -a` lists all jobs"
            )
        ids = ", ".join(job["jid"] for job in chosen[:5]) + (", ..." if len(chosen) > 5 else "")
        raise ClusterError(
            f"several jobs have the name {text!r} at {self.url}", hint=f"use the id of one of them: {ids}"
        )

    def finish(
        self, path: str, trigger_id: str, timeout_s: float, sleep: Callable[[float], object] = time.sleep
    ) -> dict[str, Any]:
        """Wait for the end of an operation; returns its result.

        Raises:
            ClusterError: If it failed, or does not end in time.
        """
        deadline = time.monotonic() + timeout_s
        for number in range(1_000_000):
            answer = self.get(f"{path}/{trigger_id}")
            if answer["status"]["id"] == "COMPLETED":
                result: dict[str, Any] = answer.get("operation") or {}
                cause = result.get("failure-cause") or result.get("failureCause")
                if cause is not None:
                    raise ClusterError(cause["stack-trace"], status=500)
                return result
            if time.monotonic() >= deadline:
                break
            sleep(_POLL_S[min(number, len(_POLL_S) - 1)])
        raise ClusterError(
            f"operation {trigger_id} has not finished within {timeout_s:.0f} s; it continues in the background"
        )


def _reason(error: Exception) -> str:
    """Say why there was no answer, without the system's number for it."""
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error) or type(error).__name__
