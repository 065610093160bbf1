"""A client of Confluent's schema registry: schemas by their number, and numbers for schemas.

A schema under a number never changes, so what was asked once is kept. Credentials are sent, never shown.
"""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from headrace.errors import ConnectorError, JobDefinitionError

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class RegistryAddress:
    """Where a schema registry is, and who asks it."""

    url: str
    #: `user:password`, as in Confluent's basic.auth.user.info.
    user_info: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise JobDefinitionError(
                f"schema registry: expected a URL such as http://host:8081; got {self.shown!r}"
            )
        if parts.username:
            # The URL is shown in messages, so credentials move out of it.
            host = parts.hostname + (f":{parts.port}" if parts.port else "")
            object.__setattr__(self, "user_info", f"{parts.username}:{parts.password or ''}")
            object.__setattr__(self, "url", urlunsplit(parts._replace(netloc=host)))

    @property
    def shown(self) -> str:
        """The URL as it may be shown."""
        scheme, at, rest = self.url.rpartition("@")
        return f"{scheme.partition('://')[0]}://***@{rest}" if at else self.url

    def __repr__(self) -> str:
        return f"RegistryAddress({self.shown!r})"


class SchemaRegistry:
    """A client of a Confluent schema registry that caches the schemas it has fetched."""

    def __init__(self, address: RegistryAddress) -> None:
        self._address = address
        self._schemas: dict[int, str] = {}
        self._numbers: dict[tuple[str, str], int] = {}

    def schema(self, number: int) -> str:
        """Return the schema of a number, as JSON.

        Raises:
            ConnectorError: There is none, or the registry cannot be asked.
        """
        if number not in self._schemas:
            answer = self._ask("GET", f"/schemas/ids/{number}", None, f"schema {number}")
            self._schemas[number] = str(answer["schema"])
        return self._schemas[number]

    def register(self, subject: str, schema: str) -> int:
        """Return the number of a schema under a subject, where it is registered if it was not.

        Raises:
            ConnectorError: The schema is not compatible with others of the subject, or the registry cannot be reached.
        """
        key = (subject, schema)
        if key not in self._numbers:
            path = f"/subjects/{quote(subject, safe='')}/versions"
            answer = self._ask("POST", path, {"schema": schema}, f"subject {subject!r}")
            self._numbers[key] = int(answer["id"])
        return self._numbers[key]

    def _ask(self, method: str, path: str, body: Any, what: str) -> Any:
        request = urllib.request.Request(  # noqa: S310 - http or https, checked by the address
            self._address.url.rstrip("/") + path,
            data=None if body is None else msgspec.json.encode(body),
            headers={"Accept": _CONTENT_TYPE, "Content-Type": _CONTENT_TYPE},
            method=method,
        )
        if self._address.user_info is not None:
            token = base64.b64encode(self._address.user_info.encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                return msgspec.json.decode(answer.read())
        except urllib.error.HTTPError as error:
            raise self._refusal(error, what) from None
        except (OSError, msgspec.DecodeError) as error:
            raise ConnectorError(
                f"schema registry {self._address.shown}: the request for {what} failed: {error}",
                hint="check that the registry is running and reachable from the driver and every worker",
            ) from None

    def _refusal(self, error: urllib.error.HTTPError, what: str) -> ConnectorError:
        with error:
            said = error.read(500).decode(errors="replace")
        hints = {
            401: "check the user name and password",
            403: "check the user's permissions",
            404: "check that the messages come from producers that use this registry",
            409: "the schema is not compatible with those of the subject: change it, or use another subject",
        }
        return ConnectorError(
            f"schema registry {self._address.shown}: {what}: {error.code} {said}",
            hint=hints.get(error.code),
            retryable=error.code >= 500,
        )
